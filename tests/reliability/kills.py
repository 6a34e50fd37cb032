"""Small trainings, killed at random moments and resumed, compared with undisturbed ones.

`regoal train` runs in processes of its own: mostly copies of this one, which start at once, now and
then the command itself. Half of the kills come right at a write call, as little of a run's time is
spent writing.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch._dynamo  # Adam needs it; each copy of this process would load it anew

from regoal import cli
from regoal.errors import RegoalError
from regoal.learning.checkpoint import read_checkpoint
from regoal.networks.policy_file import load_policy
from regoal.planning.mimir import library as library_module
from regoal.records.json_lines import read_json, read_jsonl
from regoal.records.run_record import load_run
from reliability import texts
from reliability.disk import KILL, Disk
from reliability.watch import environment

PROBLEM = """(define (problem {name}) (:domain stacks) (:objects a b c d)
  (:init {init} (clear {top}) (clear d) (table d)) (:goal (and {goal})))
"""
PROBLEMS = {
    "train/p1": ("(on a b) (on b c) (table c)", "a", "(on b a)"),
    "train/p2": ("(on c b) (on b a) (table a)", "c", "(on d c) (on c b)"),
    "train/p3": ("(on b a) (table a) (table c) (clear c)", "b", "(on a b) (on b c)"),
    "validation/v1": ("(on a c) (on c b) (table b)", "a", "(on b a) (on a d)"),
    "validation/v2": ("(on c a) (on a b) (table b)", "c", "(on a b) (on b c)"),
}
SETTINGS = (
    *("--layers", "2", "--embedding-size", "16", "--updates", "4", "--batch-size", "4"),
    *("--horizon", "8", "--replay-capacity", "80", "--validate-every", "2", "--patience", "0"),
    *("--validation-steps", "5", "--threads", "2"),
)


@dataclass
class Killed:
    """Counts and faults of processes that were killed."""

    kills: int = 0
    resumes: int = 0
    terminated: int = 0
    in_writing: int = 0
    """Kills right at a write call."""
    trainings: int = 0
    faults: list[str] = field(default_factory=list)


def write_problems(folder: Path) -> Path:
    """The files that the trainings read; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "domain.pddl").write_text(texts.STACKS)
    for name, (init, top, goal) in PROBLEMS.items():
        path = folder / f"{name}.pddl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROBLEM.format(name=path.stem, init=init, top=top, goal=goal))
    return folder


def command(files: Path, out: Path, *, seed: int, episodes: int) -> list[str]:
    """The words of one training."""
    words = ["train", str(files / "domain.pddl"), "--problems", str(files / "train")]
    words += ["--validation", str(files / "validation"), "--out", str(out), "--resume"]
    return [*words, *SETTINGS, "--seed", str(seed), "--episodes", str(episodes)]


def start_copy(words: list[str], log: Path, disk: Disk | None = None) -> int:
    """Run a command line in a copy of this process, on `disk`; returns the process's number."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        prepare_copy(log)
        with disk.installed() if disk else contextlib.nullcontext():
            code = cli.run(words)
        if disk is not None and disk.at == 0:
            log.with_suffix(".calls").write_text(str(disk.calls))
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        os._exit(code)


def prepare_copy(log: Path) -> None:
    """Make a copy of a process behave as the command itself."""
    output = log.open("a", buffering=1)
    for number in (1, 2):
        os.dup2(output.fileno(), number)
    sys.stdout = sys.stderr = output
    signal.signal(signal.SIGTERM, cli._terminate)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    library_module.find_crash = lambda make: ""  # saves a process a file


def kill_soak(folder: Path, *, seed: int, kills: int, seconds: float, episodes: int = 40) -> Killed:
    """Kill trainings until there are so many kills, or the time is over; the last one ends."""
    rng, found = random.Random(seed), Killed()
    files = write_problems(folder / "files")
    torch.set_num_threads(1)
    deadline = time.monotonic() + seconds
    while found.kills < kills and time.monotonic() < deadline:
        number = found.trainings
        whole, broken = (folder / f"{kind}-{number}" for kind in ("whole", "killed"))
        begun = time.monotonic()
        _wait(start_copy(command(files, whole, seed=number, episodes=episodes), folder / "log"))
        takes = time.monotonic() - begun
        words = command(files, broken, seed=number, episodes=episodes)
        if _until_done(words, broken, takes, rng, found, folder / "log"):
            found.faults += [f"training {number}: {x}" for x in differences(whole, broken)]
        found.trainings += 1
    return found


def _until_done(
    words: list[str], out: Path, takes: float, rng: random.Random, found: Killed, log: Path
) -> bool:
    """Start a training again and again, until it ends by itself; whether it does."""
    latest, again = 0, False
    while True:
        in_writing = rng.random() < 0.5
        if in_writing:  # at one of the next write calls
            child, wait = start_copy(words, log, Disk(out, rng.randint(1, 30), KILL)), 100.0
        elif rng.random() < 0.1:
            with log.open("ab") as stream:
                process = subprocess.Popen(
                    [sys.executable, "-m", "regoal.cli", *words],
                    env=environment(), stdout=stream, stderr=stream,
                )  # fmt: skip
            child, wait = process.pid, rng.uniform(0, takes) + 1.5
        else:
            child, wait = start_copy(words, log), rng.uniform(0, takes)
        found.resumes += again
        code = _ended_by(child, wait, signal.SIGTERM if rng.random() < 0.2 else signal.SIGKILL)
        if code == 0:
            return True
        again = True
        found.kills += code == -signal.SIGKILL
        found.in_writing += in_writing and code == -signal.SIGKILL
        # A process that has only just begun does not handle SIGTERM yet.
        found.terminated += code in (128 + signal.SIGTERM, -signal.SIGTERM)
        if code not in (-signal.SIGKILL, 128 + signal.SIGTERM, -signal.SIGTERM):
            found.faults.append(f"exit code {code}; see {log}")
            return False
        episode, faults = state_of(out)
        if episode < latest:
            faults.append(f"episode {latest} was saved, now it is {episode}")
        latest = episode
        found.faults += faults


def _ended_by(child: int, seconds: float, number: int) -> int:
    """Send a signal after some time unless the process has ended before; its exit code."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(min(0.005, seconds / 50))
    os.kill(child, number)
    return _wait(child)


def _wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def state_of(out: Path) -> tuple[int, list[str]]:
    """The saved episode of a run folder after a kill (0 for none), and what is damaged in it."""
    faults = []
    episode = 0
    try:
        if (out / "config.json").exists():
            load_run(out)
        if (out / "policy.safetensors").exists():
            load_policy(out / "policy.safetensors")
        checkpoint, notes = read_checkpoint(out / "checkpoint.safetensors")
        faults += notes
        episode = checkpoint.record["episode"] if checkpoint else 0
    except RegoalError as error:
        faults.append(str(error))
    return episode, faults


def differences(one: Path, other: Path) -> list[str]:
    """List the differences between two runs that should be equal, the clock aside."""
    faults = []
    if (one / "policy.safetensors").read_bytes() != (other / "policy.safetensors").read_bytes():
        faults.append("the policies differ")
    if _checkpoint(one) != _checkpoint(other):
        faults.append("the checkpoints differ")
    for name in ("episodes.jsonl", "validation.jsonl"):
        if _timeless(one / name) != _timeless(other / name):
            faults.append(f"{name} differs")
    configs = [read_json(folder / "config.json") | {"environment": None} for folder in (one, other)]
    if configs[0] != configs[1]:
        faults.append("config.json differs")
    if unfinished := sorted(path.name for path in other.glob(".*.tmp")):
        faults.append(f"unfinished files are left: {unfinished}")
    return faults


def _checkpoint(out: Path) -> object:
    checkpoint, notes = read_checkpoint(out / "checkpoint.safetensors")
    assert checkpoint is not None
    tensors = {name: t.numpy().tobytes() for name, t in checkpoint._tensors.items()}
    facts = json.loads(json.dumps(checkpoint._facts))
    facts["record"] |= {"elapsed_s": 0}
    return tensors, facts, notes


def _timeless(path: Path) -> list[dict]:
    return [
        {key: value for key, value in record.items() if not key.endswith(("seconds", "_s"))}
        for record in read_jsonl(path)
    ]
