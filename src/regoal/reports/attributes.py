"""Attributes of results: their names, how they are aggregated, and when they are comparable."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from regoal.records.results import PlanResult

RESAMPLES = 2000
CONFIDENCE = 0.95
MISSING = "-"
"""The text of a cell without a value."""


@dataclass(frozen=True)
class Attribute:
    """One number that describes a set of results.

    An attribute with `only_if_solved_by_all` may compare two methods only on the problems that both
    solve. The total length of a few short plans, for example, is no achievement.
    """

    name: str
    heading: str
    """The heading of its column."""
    value: Callable[[PlanResult], float | None]
    """Returns the attribute of one result, or None, e.g. for the plan length of a failure."""
    aggregate: Callable[[Sequence[float]], float]
    smaller_is_better: bool
    only_if_solved_by_all: bool
    digits: int

    def of(self, results: Sequence[PlanResult]) -> float | None:
        """Return the aggregate over `results`, or None if no result has a value."""
        values = [v for v in map(self.value, results) if v is not None]
        return self.aggregate(values) if values else None

    def best(self, values: Sequence[float | None]) -> float | None:
        """Return the best of several values, or None if all are missing."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        return min(known) if self.smaller_is_better else max(known)

    def text(self, value: float | None) -> str:
        """Write a value with the attribute's digits, or a dash if it is missing."""
        return MISSING if value is None else f"{value:.{self.digits}f}"


def _read_length(result: PlanResult) -> float | None:
    return result.plan_length


def _make_length_attribute(
    heading: str, aggregate: Callable[[Sequence[float]], float], digits: int
) -> Attribute:
    return Attribute(
        f"{heading.lower()} plan length",
        heading,
        _read_length,
        aggregate,
        smaller_is_better=True,
        only_if_solved_by_all=True,
        digits=digits,
    )


COVERAGE = Attribute(
    "coverage",
    "Cov.",
    lambda result: float(result.solved),
    sum,
    smaller_is_better=False,
    only_if_solved_by_all=False,
    digits=0,
)
TOTAL_LENGTH = _make_length_attribute("Total", sum, 0)
MEDIAN_LENGTH = _make_length_attribute("Median", median, 1)
MEAN_LENGTH = _make_length_attribute("Mean", fmean, 1)
SECONDS = Attribute(
    "seconds",
    "Seconds",
    lambda result: result.seconds if result.solved else None,
    fmean,
    smaller_is_better=True,
    only_if_solved_by_all=True,
    digits=2,
)
SHORT_LENGTH = Attribute(
    "mean length of shortened plans",
    "Short.",
    lambda result: result.short_length,
    fmean,
    smaller_is_better=True,
    only_if_solved_by_all=True,
    digits=1,
)
ATTRIBUTES = (COVERAGE, TOTAL_LENGTH, MEDIAN_LENGTH, MEAN_LENGTH, SHORT_LENGTH, SECONDS)


def solved_by_all(results: Sequence[Sequence[PlanResult]]) -> list[list[PlanResult]]:
    """Return each method's results on the problems that every method solved, in their order."""
    solved = [{r.problem for r in method if r.solved} for method in results]
    common = set.intersection(*solved) if solved else set()
    return [[r for r in method if r.problem in common] for method in results]


def bootstrap_interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float] | None:
    """Return the percentile bootstrap interval (95 %) of the mean over seeds, from 2000 resamples.

    Equal values and seeds give equal intervals. Returns None for fewer than two values, because one
    seed says nothing about others.
    """
    if len(values) < 2:  # noqa: PLR2004 - the smallest number that varies
        return None
    rng = np.random.default_rng(seed)
    means = rng.choice(np.asarray(values, dtype=float), (RESAMPLES, len(values))).mean(axis=1)
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)
