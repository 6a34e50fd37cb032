"""The measures, and how they are taken: interleaved repeats, the median and its spread."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

import numpy as np

from benchmarks.work import Stack, Timed


@dataclass(frozen=True)
class Budget:
    """When to stop repeating a measure."""

    seconds: float
    """No repeat begins after all stacks together have taken this long."""
    least: int
    most: int


@dataclass(frozen=True)
class Measure:
    """One quantity, and how to measure it on a stack."""

    name: str
    unit: str
    run: Callable[[Stack, int], Timed]
    """Measures once; takes the stack and the number of the repeat."""
    prepare: Callable[[Stack], None] = lambda stack: None
    """Called once before the first repeat, untimed."""
    per_second: bool = False
    """Whether it is given in units per second instead of seconds per unit."""
    budget: Budget = field(default_factory=lambda: Budget(seconds=6.0, least=2, most=15))
    search: Callable[[Stack, int], Timed] | None = None
    """Measures with less work, to find the best number of threads; None: as `run`."""
    threads_of: str | None = None
    """The measure whose best number of threads is used, if a search would take long."""


ENCODE_AGAIN = "encode_state_again"
GREEDY_ACTIONS = {30: 30}
"""Actions of each problem's greedy execution, by number of layers. Other numbers take few actions:
one of theirs takes a third of a second on Miconic with 100 layers."""
FEW_ACTIONS = 5
MEASURES = (
    Measure("optimisation_step", "s", lambda stack, turn: stack.optimise(turn)),
    Measure("exploration_step", "s", lambda stack, turn: stack.explore(10)),
    Measure(
        "greedy_steps_per_second", "1/s",
        lambda stack, turn: stack.greedy(GREEDY_ACTIONS.get(stack.layers, FEW_ACTIONS)),
        per_second=True, search=lambda stack, turn: stack.greedy(3),
    ),
    Measure("encode_state", "s", lambda stack, turn: stack.encode()),
    Measure(ENCODE_AGAIN, "s", lambda stack, turn: stack.encode_again()),
    Measure(
        "episode", "s", lambda stack, turn: stack.episode(),
        prepare=lambda stack: stack.warm_up_episode(),
        budget=Budget(seconds=20.0, least=1, most=8), threads_of="optimisation_step",
    ),
)  # fmt: skip
"""Encoding does not depend on the layers, so it is measured at the first depth only."""

QUICK = Budget(seconds=0.0, least=1, most=1)


def best_threads(measure: Measure, stack: Stack, limit: int) -> int:
    """Find the number of threads, up to `limit`, with which the stack is fastest.

    Each number is tried up to three times, and once if that takes a second; the best time counts.
    """
    fastest, run_once = {}, measure.search or measure.run
    for count in range(1, limit + 1):
        stack.use_threads(count)
        runs = [run_once(stack, 0)]
        while len(runs) < 3 and sum(run.seconds for run in runs) < 1.0:
            runs.append(run_once(stack, len(runs)))
        fastest[count] = min(run.each for run in runs)
    return min(fastest, key=lambda count: fastest[count])


def repeat(
    measure: Measure, stacks: Mapping[str, tuple[Stack, int]], budget: Budget
) -> dict[str, list[Timed]]:
    """Run every stack with its threads, in alternating order, until the budget is spent."""
    found: dict[str, list[Timed]] = {name: [] for name in stacks}
    for stack, threads in stacks.values():
        stack.use_threads(threads)
        measure.prepare(stack)
    used, turn = 0.0, 0
    while turn < budget.least or (turn < budget.most and used < budget.seconds):
        for name in sorted(stacks, reverse=bool(turn % 2)):
            stack, threads = stacks[name]
            stack.use_threads(threads)
            found[name].append(measure.run(stack, turn))
            used += found[name][-1].seconds
        turn += 1
    return found


def summary(timings: Sequence[Timed], *, per_second: bool) -> dict[str, Any]:
    """Compute median, quartiles and extremes, and the mean number of actions of a run."""
    values = [1 / t.each if per_second else t.each for t in timings]
    low, high = np.quantile(values, [0.25, 0.75])
    return {
        "median": median(values),
        "quartiles": [float(low), float(high)],
        "extremes": [min(values), max(values)],
        "repeats": len(values),
        "actions": round(fmean(t.actions for t in timings), 1),
    }


def ratio(ours: float, theirs: float, *, per_second: bool) -> float:
    """Return how many times faster (or smaller) ours is.

    >>> ratio(0.5, 2.0, per_second=False)
    4.0
    """
    return ours / theirs if per_second else theirs / ours
