"""Runs workers and watches them: a crash or a hang becomes a fault of one input, and it goes on."""

import json
import os
import shutil
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import regoal
from reliability.worker import STAMP

HANG_S = 10.0
START_S = 120.0
GRAMMAR = ("--grammar",)
BATCH = 20_000
"""Inputs a process, so that none grows old."""


@dataclass
class Report:
    """Counts and faults of many inputs."""

    inputs: int = 0
    faults: list[dict] = field(default_factory=list)
    slowest_s: float = 0.0


def environment() -> dict[str, str]:
    """The environment in which a process finds regoal and these tests."""
    paths = [str(Path(regoal.__file__).parents[1]), str(Path(__file__).parents[1])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def fuzz(
    folder: Path,
    *,
    seed: int,
    count: int,
    seconds: float,
    extra: tuple[str, ...] = (),
    hang_s: float = HANG_S,
) -> Report:
    """Read `count` inputs, or as many as fit into the time; what crashes or hangs is kept.

    `extra` are further words for the worker: `--grammar` for inputs from the grammars.
    """
    report, start = Report(), 0
    deadline = time.monotonic() + seconds
    while start < count and (left := deadline - time.monotonic()) > 0:
        batch = min(BATCH, count - start)
        done, last, kind = _batch(folder, (seed, start, batch, left), extra, hang_s)
        report.inputs += done
        if (folder / "slowest").exists():
            slowest = float((folder / "slowest").read_text())
            report.slowest_s = max(report.slowest_s, slowest)
        if kind:
            kept = folder / "kept" / f"{seed}-{last}"
            shutil.copytree(folder / "files" / "now", kept, dirs_exist_ok=True)
            report.faults.append({"number": last, "message": kind, "files": str(kept)})
            start = last + 1
            if extra == GRAMMAR or last < 0:
                break  # hypothesis cannot begin in the middle
        else:
            start += batch
    faults = folder / "faults.jsonl"
    if faults.exists():
        report.faults += [json.loads(line) for line in faults.read_text().splitlines()]
    return report


def _batch(
    folder: Path, inputs: tuple[int, int, int, float], extra: tuple[str, ...], hang_s: float
) -> tuple[int, int, str]:
    """One worker: inputs read, the number of the last, and what ended it, if anything did."""
    folder.mkdir(parents=True, exist_ok=True)
    seed, start, count, seconds = inputs
    command = [sys.executable, "-m", "reliability.worker", "--folder", str(folder)]
    command += ["--seed", str(seed), "--start", str(start), "--count", str(count)]
    command += ["--seconds", str(seconds), *extra]
    with (folder / "log").open("w") as log:
        (folder / "stamp").unlink(missing_ok=True)
        process = subprocess.Popen(command, env=environment(), stdout=log, stderr=log)
        began, hung = time.monotonic(), False
        while process.poll() is None:
            time.sleep(0.05)
            number, _, since = _stamp(folder, began)
            hung = time.monotonic() - since > (hang_s if number >= 0 else START_S)
            if hung:
                process.kill()
                process.wait()
    number, done, _ = _stamp(folder, began)
    if process.returncode == 0:
        return done, number, ""
    said = (folder / "log").read_text(errors="replace").strip().splitlines()
    what = f"longer than {hang_s:g} s" if hung else f"ended with {process.returncode}"
    return done, number, f"{what}: {said[-1] if said else 'no words'}"


def _stamp(folder: Path, began: float) -> tuple[int, int, float]:
    try:
        return STAMP.unpack((folder / "stamp").read_bytes())
    except (OSError, struct.error):
        return -2, 0, began
