"""Seconds and memory for reading the largest problem of each domain, and for steps on it.

Run `python -m benchmarks.sizes FOLDER [--domains NAME ...] [--steps 300] [--seconds 20]`. FOLDER
has a folder for each domain, with `domain.pddl` and problems at any depth. Each domain gets a new
process. The network is untrained, with the numbers, rounds and relations of the preset
`laptop`: times do not depend on the weights. All times are processor seconds of one thread.
Memory is what the process held at most, less what it held before it read a file. With
`--limit-gb 8`, the address space is limited, so a process that needs more fails.

The first step is counted separately, since what never changes is encoded then. The other steps are
split into parts: listing applicable actions, successors, the rest of the encoding, joining the
batch, the forward pass, and the choice of an action. With `--reading`, nothing but reading is
measured, for five files of each domain, from a tenth of the largest to the largest. Its last column
is the slope of the seconds against the bytes on logarithmic axes; 1 is linear growth.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.machine import ROOT, description, forget_peak, peak_mb, resident_mb
from regoal.cli import script
from regoal.config import LAPTOP
from regoal.evaluation.execution import Execution, execute
from regoal.networks.encoder import Encoder
from regoal.networks.kernels.cpu import kernel as cpu_kernel
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.task import Task

SIZE, LAYERS = LAPTOP.embedding_size, LAPTOP.layers
"""Numbers of an embedding, and rounds, as in the preset."""
MIN_STEPS = 5
"""Fewest steps, whatever time they take."""
PARTS = ("actions", "successors", "encoding", "joining", "forward", "choice")
TIMED = (
    ("actions", Task, "applicable_actions"),
    ("actions", Task, "applicable_with"),
    ("successors", Task, "successor"),
    ("encoding", Execution, "prepare"),
    ("joining", Encoder, "join"),
    ("forward", QNetwork, "q_values"),
    ("choice", Execution, "step"),
)
"""The functions that a part is made of, less the time of other parts called by them."""


class Clock:
    """Processor seconds of each part of a step, and of the step as a whole."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.steps: list[float] = []
        self._open: list[float] = []
        self._start = time.process_time()

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, with the time of its calls counted for `name`."""

        def timed(*args: Any, **keywords: Any) -> Any:
            self._open.append(0.0)
            start = time.process_time()
            try:
                return function(*args, **keywords)
            finally:
                passed = time.process_time() - start
                self.seconds[name] += passed - self._open.pop()
                if self._open:
                    self._open[-1] += passed
                if name == "forward":
                    self._end_step()

        return timed

    def _end_step(self) -> None:
        """Count the time from one forward pass to the next; the first one is no part of it."""
        if not self.steps:
            self.seconds.clear()
        now = time.process_time()
        self.steps.append(now - self._start)
        self._start = now

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count inside this context."""
        patches = [
            patch.object(owner, name, self.wrap(part, getattr(owner, name)))
            for part, owner, name in TIMED
        ]
        for each in patches:
            each.start()
        try:
            yield
        finally:
            for each in patches:
                each.stop()


def read(domain: Path, problem: Path) -> tuple[Task, float, float]:
    """Read a problem; return the task, processor seconds with child processes, and MB."""
    loaded = load_domain(domain)
    forget_peak()
    before, start = resident_mb(), _count_seconds()
    task = load_task(loaded, problem)
    assert task.initial_state is not None
    return task, _count_seconds() - start, peak_mb() - before


def _count_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(x.ru_utime + x.ru_stime for x in used)


def measure_steps(domain: Path, problem: Path, steps: int, seconds: float) -> str:
    """Read a problem and take steps on it; return a row of the table."""
    torch.set_num_threads(1)
    cpu_kernel.use_threads(1)
    held = resident_mb()
    task, read_s, read_mb = read(domain, problem)
    relations = relations_of(schema_of(task.domain), achieved_goals=True)
    network = QNetwork(relations, SIZE, seed=0)
    clock, end = Clock(), time.process_time() + seconds
    with clock.running():
        list(
            execute(
                network, Encoder(relations), [task], layers=LAYERS, max_steps=steps,
                stop=lambda: len(clock.steps) > MIN_STEPS and time.process_time() > end,
            )
        )  # fmt: skip
    first, *others = clock.steps
    count = max(1, len(others))
    shares = " | ".join(f"{1e3 * clock.seconds[part] / count:.1f}" for part in PARTS)
    return (
        f"| {domain.parent.name} {problem.stem} | {len(task.objects)} | {read_s:.2f} "
        f"| {read_mb:.0f} | {first:.2f} | {len(others)} | {1e3 * sum(others) / count:.1f} "
        f"| {shares} | {peak_mb() - held:.0f} |"
    )


def list_problems(domain: Path) -> list[Path]:
    """List the problems in a domain's folder, from the smallest file to the largest."""
    found = [path for path in domain.parent.rglob("*.pddl") if path != domain]
    return sorted(found, key=lambda path: (path.stat().st_size, path))


def choose_for_growth(problems: Sequence[Path]) -> list[Path]:
    """Choose five files from a tenth of the largest one's size to the largest, evenly by rank."""
    largest = problems[-1].stat().st_size
    some = [path for path in problems if path.stat().st_size >= largest / 10]
    return [some[round(i * (len(some) - 1) / 4)] for i in range(5)]


def measure_reading(domain: Path, problems: Sequence[Path]) -> str:
    """Read some problems, each in a new process; return a row with the growth of the time."""
    found = [_run_here("--read", str(domain), str(path)).split() for path in problems]
    seconds, memory = ([float(row[i]) for row in found] for i in (0, 1))
    sizes = [path.stat().st_size for path in problems]
    power = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    return (
        f"| {domain.parent.name} | {', '.join(f'{size / 1e3:.0f}' for size in sizes)} "
        f"| {', '.join(f'{s:.2f}' for s in seconds)} | {', '.join(f'{m:.0f}' for m in memory)} "
        f"| {power:.2f} |"
    )


def _run_here(*arguments: str) -> str:
    """Run this module in a new process, and return what it prints."""
    command = [sys.executable, "-m", "benchmarks.sizes", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or f"failed: {done.stderr.strip()[-300:]}"


def main() -> None:
    """Measure each domain in a new process, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="folder with a folder a domain")
    parser.add_argument("--domains", nargs="*", help="names of folders; all if not given")
    parser.add_argument("--steps", type=int, default=300, help="most steps on a problem")
    parser.add_argument("--seconds", type=float, default=20, help="processor seconds of steps")
    parser.add_argument("--limit-gb", type=float, default=0, help="limit of the address space")
    parser.add_argument("--reading", action="store_true", help="measure reading only")
    parser.add_argument("--read", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--walk", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        print(*read(*arguments.read)[1:])
    elif arguments.walk:
        if arguments.limit_gb:
            limit = int(arguments.limit_gb * 2**30)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        domain, problem = arguments.walk
        print(measure_steps(domain, problem, arguments.steps, arguments.seconds))
    else:
        _print_table(arguments)


def _print_table(arguments: argparse.Namespace) -> None:
    print(json.dumps(description()))
    heading = (
        ["domain", "file, kB", "seconds", "MB", "growth"]
        if arguments.reading
        else [
            "problem",
            "objects",
            "reading, s",
            "MB",
            "first step, s",
            "more steps",
            "ms each",
            *PARTS,
            "MB in all",
        ]
    )
    print(f"| {' | '.join(heading)} |\n|{'---|' * len(heading)}")
    for domain in sorted(arguments.folder.glob("*/domain.pddl")):
        if arguments.domains and domain.parent.name not in arguments.domains:
            continue
        problems = list_problems(domain)
        if arguments.reading:
            print(measure_reading(domain, choose_for_growth(problems)), flush=True)
            continue
        options = ("steps", "seconds", "limit_gb")
        values = [f"--{k.replace('_', '-')}={getattr(arguments, k)}" for k in options]
        print(_run_here("--walk", str(domain), str(problems[-1]), *values), flush=True)


if __name__ == "__main__":
    script(main)
