"""Draw figures like the paper's: coverage over training episodes above, the curriculum below.

matplotlib is imported only to draw a figure, and never opens a window.
"""

import io
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regoal.errors import UsageError
from regoal.records.json_lines import JsonObject, as_float
from regoal.records.run_record import RunRecord
from regoal.system.files import write_bytes_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

# Okabe and Ito's palette, which colour-blind readers can distinguish.
COLOURS = {
    "lifted": "#0072B2",
    "propositional": "#D55E00",
    "state": "#009E73",
    "lama": "#CC79A7",
}
OTHER_COLOURS = ("#E69F00", "#56B4E9", "#000000")
Curve = Callable[[RunRecord, Floats], Floats]
"""Returns a share for each given episode of a run."""
GOAL_SIZE, LENGTH = "#0072B2", "#D55E00"
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.columnspacing": 1.2,
    "legend.handlelength": 1.8,
    "svg.hashsalt": "regoal",  # equal runs give equal bytes
}


def plot_run(run: RunRecord, out: Path) -> list[Path]:
    """Draw one run: validation coverage above; mean goal size and trajectory length below.

    Writes `out` with the endings `.png` and `.svg`, and returns both paths. Raises `UsageError` if
    the run has no episode yet.
    """
    _require_episodes([run])
    with _apply_style():
        figure, top, sizes, lengths = _make_panels()
        _draw_validation(top, run)
        episodes = _read_column(run.episodes, "episode")
        for axes, key, colour, dashes in (
            (sizes, "goal_size", GOAL_SIZE, "-"),
            (lengths, "trajectory_length", LENGTH, "--"),
        ):
            values = _read_column(run.episodes, key)
            axes.plot(episodes, values, color=colour, alpha=0.25, linewidth=0.8)
            axes.plot(
                episodes, rolling_mean(values, _choose_window(len(values))), dashes, color=colour
            )
            axes.yaxis.label.set_color(colour)
            axes.tick_params(axis="y", colors=colour)
        top.set_title(f"{run.domain}, {run.method}, seed {run.seed}")
        return _save(figure, out)


def plot_methods(runs: Sequence[RunRecord], out: Path) -> list[Path]:
    """Draw the runs of one domain by method, each curve a mean over seeds (paper, Figure 1).

    The upper panel shows the coverage of the best policy up to each episode. The standard deviation
    over seeds is shaded. If all runs have a test curve (`reproduction/curve.py`), coverage is that
    of the test problems without cycle avoidance, as in the paper. Otherwise it is validation
    coverage.

    The lower panel shows mean goal size (solid) and trajectory length (dashed). A curve ends with
    the shortest of its runs. Writes, returns and raises as `plot_run` does.
    """
    runs = [run for run in runs if run.episodes]
    _require_episodes(runs)
    by_method: dict[str, list[RunRecord]] = defaultdict(list)
    for run in runs:
        by_method[run.method].append(run)
    with _apply_style():
        figure, top, sizes, lengths = _make_panels()
        tested = all(run.test_curve for run in runs)
        if tested:
            top.set_ylabel("test coverage (%)")
        for method, colour in _choose_colours(list(by_method)).items():
            seeds = by_method[method]
            curve = tested_so_far if tested else best_so_far
            _draw_best_so_far(top, seeds, curve, colour, f"{method} ({_count_seeds(len(seeds))})")
            _draw_mean(sizes, seeds, "goal_size", colour, "-")
            _draw_mean(lengths, seeds, "trajectory_length", colour, "--")
        figure.suptitle(", ".join(sorted({run.domain for run in runs})))
        top.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.2)
        _explain_line_styles(sizes)
        return _save(figure, out)


def rolling_mean(values: Floats, window: int) -> Floats:
    """Return the mean of the last `window` values at each place, without missing ones (NaN).

    >>> rolling_mean(np.array([1.0, 3.0, np.nan, 5.0]), 2).tolist()
    [1.0, 2.0, 3.0, 5.0]
    """
    known = ~np.isnan(values)
    sums = np.cumsum(np.where(known, values, 0.0))
    counts = np.cumsum(known).astype(np.float64)
    sums[window:] -= sums[:-window].copy()
    counts[window:] -= counts[:-window].copy()
    return _divide(sums, counts)


def best_so_far(run: RunRecord, episodes: Floats) -> Floats:
    """Return validation coverage in [0, 1] of the best policy up to each of `episodes`, shape [E].

    It is 0 before the first validation, because no policy has been chosen.
    """
    at = _read_column(run.validation, "episode")
    best: Floats = np.append(0.0, np.maximum.accumulate(np.nan_to_num(coverage_of(run.validation))))
    return best[np.searchsorted(at, episodes, side="right")]


def tested_so_far(run: RunRecord, episodes: Floats) -> Floats:
    """Return test coverage in [0, 1] of the best policy up to each of `episodes`, shape [E]."""
    at = _read_column(run.test_curve, "episode")
    return np.append(0.0, coverage_of(run.test_curve))[np.searchsorted(at, episodes, side="right")]


def coverage_of(validation: Sequence[JsonObject]) -> Floats:
    """Return the solved share of each validation, in [0, 1], shape [V]."""
    problems = np.maximum(_read_column(validation, "problems"), 1)
    share: Floats = _read_column(validation, "solved") / problems
    return share


def whole_coverage_of(validation: Sequence[JsonObject]) -> Floats:
    """Return the solved share of each complete validation, shape [V]; others are NaN.

    A validation is complete if it tried all problems.
    """
    share = coverage_of(validation)
    share[_read_column(validation, "tried") < _read_column(validation, "problems")] = np.nan
    return share


def _read_column(records: Sequence[JsonObject], key: str) -> Floats:
    return np.array([as_float(record.get(key)) for record in records], dtype=np.float64)


def _divide(sums: Floats, counts: Floats) -> Floats:
    """Divide sums by counts; the result is NaN if the count is zero."""
    mean: Floats = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return mean


def _require_episodes(runs: Sequence[RunRecord]) -> None:
    if not any(run.episodes for run in runs):
        names = ", ".join(str(run.folder) for run in runs) or "the given runs"
        raise UsageError(f"Nothing to draw: no episode has been recorded in {names}.")


def _choose_window(episodes: int) -> int:
    """Choose a window long enough to show a trend and short enough to show the first rise."""
    return max(1, min(25, episodes // 10))


def _count_seeds(number: int) -> str:
    return "1 seed" if number == 1 else f"{number} seeds"


def _choose_colours(methods: list[str]) -> dict[str, str]:
    known = {method: colour for method, colour in COLOURS.items() if method in methods}
    others = sorted(set(methods) - set(known))
    return known | {m: OTHER_COLOURS[i % len(OTHER_COLOURS)] for i, m in enumerate(others)}


def _draw_validation(axes: "Axes", run: RunRecord) -> None:
    at, coverage = _read_column(run.validation, "episode"), 100 * whole_coverage_of(run.validation)
    axes.plot(at, coverage, ".-", color="#888888", linewidth=0.8, markersize=3, label="current")
    if len(at):
        end = max(at[-1], as_float(run.episodes[-1].get("episode")))
        best = 100 * best_so_far(run, np.append(at, end))
        axes.step(np.append(at, end), best, where="post", color="#000000", label="best so far")
        axes.legend(loc="lower right")


def _draw_best_so_far(
    axes: "Axes", runs: Sequence[RunRecord], curve: Curve, colour: str, label: str
) -> None:
    episodes, best = stack_seeds(runs, curve)
    mean, deviation = 100 * best.mean(axis=0), 100 * best.std(axis=0)
    axes.plot(episodes, mean, color=colour, label=label)
    low, high = np.maximum(mean - deviation, 0), np.minimum(mean + deviation, 100)
    axes.fill_between(episodes, low, high, color=colour, alpha=0.18, linewidth=0)


def _draw_mean(axes: "Axes", runs: Sequence[RunRecord], key: str, colour: str, dashes: str) -> None:
    def smooth(run: RunRecord, episodes: Floats) -> Floats:
        values = _read_column(run.episodes, key)[: len(episodes)]
        return rolling_mean(values, _choose_window(len(values)))

    episodes, values = stack_seeds(runs, smooth)
    known = ~np.isnan(values)
    sums, counts = np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0)
    axes.plot(episodes, _divide(sums, counts), dashes, color=colour)


def stack_seeds(runs: Sequence[RunRecord], curve: Curve) -> tuple[Floats, Floats]:
    """Return the episodes that every run has, shape [E], and each run's curve, shape [runs, E]."""
    shortest = min(runs, key=lambda run: len(run.episodes))
    episodes = _read_column(shortest.episodes, "episode")
    return episodes, np.stack([curve(run, episodes) for run in runs])


def _apply_style() -> AbstractContextManager[None]:
    import matplotlib as mpl

    mpl.use("Agg")
    return mpl.rc_context(STYLE)


def _make_panels() -> "tuple[Figure, Axes, Axes, Axes]":
    """Make a figure with coverage above, goal size (left) and trajectory length (right) below."""
    from matplotlib import pyplot

    figure, (top, sizes) = pyplot.subplots(
        2, 1, sharex=True, figsize=(5.6, 5.0), layout="constrained"
    )
    top.set_ylabel("validation coverage (%)")
    top.set_ylim(-3, 103)
    sizes.set_ylabel("mean goal size")
    sizes.set_xlabel("episode")
    lengths = sizes.twinx()
    lengths.set_ylabel("mean trajectory length")
    lengths.grid(visible=False)
    lengths.spines["right"].set_visible(True)
    return figure, top, sizes, lengths


def _explain_line_styles(axes: "Axes") -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color="#555555", linestyle="-", label="goal size (left)"),
        Line2D([], [], color="#555555", linestyle="--", label="trajectory length (right)"),
    ]
    axes.legend(
        handles=marks, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, borderaxespad=0.2
    )


def _save(figure: "Figure", out: Path) -> list[Path]:
    from matplotlib import pyplot

    out.parent.mkdir(parents=True, exist_ok=True)
    paths = [out.with_name(f"{out.name}.{ending}") for ending in ("png", "svg")]
    top, *below = figure.axes
    top.set_xlim(0, max(1.0, *(axes.dataLim.x1 for axes in figure.axes)))
    for axes in below:
        axes.set_ylim(bottom=0)
    options: tuple[dict[str, Any], ...] = ({"dpi": 200}, {"metadata": {"Date": None}})
    for path, given in zip(paths, options, strict=True):
        drawn = io.BytesIO()
        figure.savefig(drawn, format=path.suffix[1:], **given)
        write_bytes_atomically(path, drawn.getvalue())
    pyplot.close(figure)
    return paths
