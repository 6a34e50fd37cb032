"""Coverage and training curves as values that the page's template draws as SVG."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from regoal.records.run_record import RunRecord
from regoal.reports.attributes import COVERAGE
from regoal.reports.plots import Floats, best_so_far, stack_seeds, tested_so_far
from regoal.reports.run_choice import display_name, select_results, sort_domains, sort_methods

MOST_POINTS = 120
"""Most points of a curve; more would make the page large and look no different."""
WIDTH, HEIGHT = 340, 190
LEFT, RIGHT, TOP, BOTTOM = 38, 12, 10, 30
KINDS = 6
"""Methods are told apart by so many patterns, dashes and marks; more methods repeat them."""


@dataclass(frozen=True)
class Bar:
    """The coverage of one method on one domain."""

    method: str
    kind: int
    """Which pattern and colour the method has on the whole page."""
    solved: int
    problems: int

    @property
    def share(self) -> float:
        """The solved share in per cent."""
        return 100 * self.solved / self.problems


@dataclass(frozen=True)
class Curve:
    """Mean coverage of a method's seeds over episodes, in units of the drawing."""

    method: str
    kind: int
    seeds: int
    line: str
    """Points as SVG's `points` has them."""
    band: str
    """The corners of the area of one standard deviation; empty for a single seed."""
    end: tuple[float, float]
    last: float
    """Coverage at the end in per cent."""


@dataclass(frozen=True)
class CurveChart:
    """The curves of one domain."""

    domain: str
    tested: bool
    """Whether coverage is that of the test problems, else of the validation problems."""
    episodes: int
    curves: tuple[Curve, ...]


def number_methods(runs: Sequence[RunRecord]) -> dict[str, int]:
    """Return the number of each method's pattern on the page."""
    methods = sort_methods({(run.domain, run.method) for run in runs})
    return {method: i % KINDS for i, method in enumerate(methods)}


def make_bars(runs: Sequence[RunRecord]) -> dict[str, list[Bar]]:
    """Return coverage by domain, of the run that tables show for each method."""
    if not any(run.results for run in runs):
        return {}
    results, kinds = select_results(runs), number_methods(runs)
    bars: dict[str, list[Bar]] = defaultdict(list)
    for domain in sort_domains(results):
        for method in sort_methods(key for key in results if key[0] == domain):
            found = results[domain, method]
            solved = round(COVERAGE.of(found) or 0)
            bars[display_name(domain)].append(Bar(method, kinds[method], solved, len(found)))
    return dict(bars)


def make_curves(runs: Sequence[RunRecord]) -> list[CurveChart]:
    """Return the curves of each domain with trainings: coverage of the best policy so far."""
    by_domain: dict[str, list[RunRecord]] = defaultdict(list)
    for run in runs:
        if run.episodes and run.validation:
            by_domain[run.domain].append(run)
    kinds = number_methods(runs)
    order = sort_domains((domain, "") for domain in by_domain)
    return [_make_chart(domain, by_domain[domain], kinds) for domain in order]


def _make_chart(domain: str, runs: Sequence[RunRecord], kinds: Mapping[str, int]) -> CurveChart:
    by_method: dict[str, list[RunRecord]] = defaultdict(list)
    for run in runs:
        by_method[run.method].append(run)
    tested = all(run.test_curve for run in runs)
    of = tested_so_far if tested else best_so_far
    curves = {method: stack_seeds(seeds, of) for method, seeds in by_method.items()}
    episodes = max(float(at[-1]) for at, _ in curves.values())
    methods = sort_methods((domain, method) for method in curves)
    return CurveChart(
        display_name(domain),
        tested,
        round(episodes),
        tuple(_make_curve(method, kinds[method], *curves[method], episodes) for method in methods),
    )


def _make_curve(method: str, kind: int, at: Floats, shares: Floats, episodes: float) -> Curve:
    kept = np.unique(np.linspace(0, len(at) - 1, min(len(at), MOST_POINTS)).round().astype(int))
    at, mean, deviation = at[kept], shares.mean(axis=0)[kept], shares.std(axis=0)[kept]
    x = LEFT + (WIDTH - LEFT - RIGHT) * at / max(episodes, 1.0)
    low, high = np.maximum(mean - deviation, 0), np.minimum(mean + deviation, 1)
    band = ""
    if len(shares) > 1:
        band = f"{_join(x, high)} {_join(x[::-1], low[::-1])}"
    end = (float(x[-1].round(1)), float(_scale(mean)[-1].round(1)))
    return Curve(method, kind, len(shares), _join(x, mean), band, end, 100 * float(mean[-1]))


def _scale(shares: Floats) -> Floats:
    scaled: Floats = TOP + (HEIGHT - TOP - BOTTOM) * (1 - shares)
    return scaled


def _join(x: Floats, shares: Floats) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, _scale(shares), strict=True))
