"""Commands on disks that fail at any of their write calls: nothing broken, one clear line."""

import errno
import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from reliability import kills
from reliability.disk import Disk


@dataclass
class Filled:
    """Counts and faults of runs on failing disks."""

    runs: int = 0
    resumes: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    """Write calls of each command undisturbed."""
    faults: list[str] = field(default_factory=list)


WAYS = (
    (errno.ENOSPC, False),
    (errno.ENOSPC, True),
    (errno.EACCES, True),
)
"""The disk is full for a moment, for good, or may not be written any more."""


def run_on(disk: Disk, words: list[str], log: Path) -> int:
    """Run a command line in a copy of this process on such a disk; returns its exit code."""
    log.unlink(missing_ok=True)
    return os.waitstatus_to_exitcode(os.waitpid(kills.start_copy(words, log, disk), 0)[1])


def spread(calls: int, most: int) -> list[int]:
    """At most so many of the numbers 1 to `calls`, evenly spread, both ends among them."""
    if calls <= most:
        return list(range(1, calls + 1))
    return sorted({1 + round(i * (calls - 1) / (most - 1)) for i in range(most)})


def fill_trainings(
    folder: Path, *, most: int = 1000, episodes: int = 4, seconds: float = math.inf
) -> Filled:
    """A training whose n-th write call fails, for each n (or `most` of them) and way.

    Where the time does not suffice, fewer.
    """
    deadline = time.monotonic() + seconds
    found = Filled()
    files, log = kills.write_problems(folder / "files"), folder / "log"
    whole = folder / "whole"
    words = kills.command(files, whole, seed=1, episodes=episodes)
    assert run_on(Disk(whole), words, log) == 0
    found.calls["train"] = int(log.with_suffix(".calls").read_text())
    for error, stays in WAYS:
        for at in spread(found.calls["train"], most):
            if time.monotonic() > deadline:
                break
            out = folder / f"{error}-{stays}-{at}"
            words = kills.command(files, out, seed=1, episodes=episodes)
            code = run_on(Disk(out, at, error, stays), words, log)
            found.runs += 1
            faults = told_badly(code, error, out, log)
            faults += kills.state_of(out)[1]
            faults += [f"{p.name} is left" for p in out.glob(".*.tmp")]
            if run_on(Disk(out), words, log) != 0:
                faults.append(f"no resuming: {log.read_text()[-300:]}")
            else:
                found.resumes += 1
                faults += kills.differences(whole, out)
            found.faults += [f"train, call {at}, {os.strerror(error)}: {x}" for x in faults]
    return found


def told_badly(code: int, error: int, out: Path, log: Path) -> list[str]:
    """List the faults in the end of a command whose disk failed."""
    text = log.read_text()
    told = [line for line in text.splitlines() if line.startswith("regoal: error: ")]
    if code == 0:
        return []
    faults = []
    if code != 36:
        faults.append(f"exit code {code}")
    if len(told) != 1 or not text.endswith(f"{told[0]}\n"):
        faults.append(f"not one clear line at the end: {text[-500:]!r}")
    elif os.strerror(error) not in told[0] or str(out) not in told[0]:
        faults.append(f"neither reason nor file: {told[0]}")
    if "Traceback" in text or "Internal error" in text:
        faults.append(f"an internal error: {text[-500:]!r}")
    return faults


def fill_others(
    folder: Path, run: Path, files: Path, *, most: int = 15, left_out: str = ""
) -> Filled:
    """The other commands that write: what they leave is whole, and they say what is wrong."""
    found, log = Filled(), folder / "log"
    domain, problem = files / "domain.pddl", files / "train" / "p1.pddl"
    commands = {
        "generate": lambda out: ["generate", "gripper", "--split", "validation", "--out", str(out)],
        "plan": lambda out: [
            *("plan", str(run), str(domain), str(problem), "--out", str(out / "sas_plan")),
        ],
        "evaluate": lambda out: [
            *("evaluate", str(run), "--problems", str(files / "train"), "--domain", str(domain)),
            *("--out", str(out / "results.jsonl"), "--plans", str(out / "plans")),
        ],
        "report": lambda out: ["report", str(run), "--out", str(out)],
    }
    for name, words in commands.items():
        if name == left_out:
            continue
        whole = folder / f"{name}-whole"
        whole.mkdir(parents=True)
        assert run_on(Disk(whole), words(whole), log) in (0, 12), log.read_text()
        found.calls[name] = int(log.with_suffix(".calls").read_text())
        for error, stays in WAYS:
            for at in spread(found.calls[name], most):
                out = folder / f"{name}-{error}-{stays}-{at}"
                out.mkdir()
                code = run_on(Disk(out, at, error, stays), words(out), log)
                found.runs += 1
                faults = told_badly(code, error, out, log)
                faults += _not_whole(out, whole)
                found.faults += [f"{name}, call {at}, {os.strerror(error)}: {x}" for x in faults]
    return found


def _not_whole(out: Path, whole: Path) -> list[str]:
    """Files in `out` that are not those of the undisturbed call, but for records cut at a line."""
    faults = []
    for path in out.rglob("*"):
        right = whole / path.relative_to(out)
        if path.name.endswith(".tmp"):
            faults.append(f"{path.name} is left")
        whole_only = (
            path.suffix in (".pddl", ".plan", ".png", ".svg", ".md") or path.name == "sas_plan"
        )
        if whole_only and path.read_bytes() != right.read_bytes():
            faults.append(f"{path.name} is not whole")
    return faults
