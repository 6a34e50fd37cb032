"""Make the paper's tables from runs: coverage and plan lengths, seeds, and differences."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from statistics import fmean

from regoal.config import TrainConfig
from regoal.errors import UsageError
from regoal.records.results import PlanResult
from regoal.records.run_record import RunRecord
from regoal.reports.attributes import (
    ATTRIBUTES,
    COVERAGE,
    MEAN_LENGTH,
    MEDIAN_LENGTH,
    MISSING,
    RESAMPLES,
    TOTAL_LENGTH,
    bootstrap_interval,
    solved_by_all,
)
from regoal.reports.paper import paper_row
from regoal.reports.rendering import Cell, Table
from regoal.reports.run_choice import (
    NO_RESULTS,
    Results,
    display_name,
    group_by_domain_and_method,
    select_results,
    sort_domains,
    sort_methods,
)

LENGTHS = (TOTAL_LENGTH, MEDIAN_LENGTH, MEAN_LENGTH)
PAPER_NOTE = (
    "No return: coverage of plans that enter no state twice, the paper's rule; Diff. compares it "
    "with the paper's. Lengths are of all plans. Mean: over the domains that the paper also has."
)
COMPARED = tuple(a for a in ATTRIBUTES if a.only_if_solved_by_all)
LENGTHS_NOTE = (
    "Total, median and mean are of the plans as they were executed, before they were shortened."
)
SELECTION_NOTE = (
    "Of several seeds, the table shows the one with the best validation coverage, then the "
    "shortest validation plans, then the lowest seed."
)


SETTINGS = (
    *("preset", "budget_s"),
    *(f.name for f in fields(TrainConfig) if f.name not in ("seed", "hindsight")),
)
"""The settings that should be equal for all runs of a table."""


def coverage_table(runs: Sequence[RunRecord]) -> Table:
    """Make a table of solved test instances and plan lengths of the learned policies.

    It corresponds to the paper's Table 3. `run_choice.select_run` chooses one run for each domain
    and method. Raises `UsageError` if no run has test results.
    """
    learned = [run for run in runs if run.method != "lama"]
    return _make_lengths_table("Coverage and plan length on the test instances", learned)


def lama_table(runs: Sequence[RunRecord]) -> Table:
    """Make a table of solved test instances and lengths of LAMA's first plans (paper, Table 2).

    Raises `UsageError` if LAMA has no results.
    """
    lama = [run for run in runs if run.method == "lama"]
    return _make_lengths_table("Coverage and plan length of LAMA's first plan", lama)


def paper_table(runs: Sequence[RunRecord]) -> Table:
    """Make a table of coverage in per cent and mean plan length: ours, the paper's, and difference.

    The paper's test stops in a state without new successors. Its coverage is therefore compared
    with ours of plans without a return. Its lengths are means over the instances that its policies
    solved, so a difference in length says little if the coverages differ. Raises `UsageError` if no
    run has test results.
    """
    results = select_results(runs)
    keys = _sort_keys(results)
    rows = [_make_paper_row(domain, method, results[domain, method]) for domain, method in keys]
    means = [row for m in sort_methods(keys) if (row := _make_mean_row(m, results))]
    return Table(
        title="Ours and the paper's: coverage and mean plan length",
        header=(
            *("Domain", "Method", "#"),
            *("Ours", "No return", "Paper", "Diff."),
            *("Ours", "Paper", "Diff."),
        ),
        groups=(("", 2), ("Coverage %", 4), ("Mean length", 3)),
        rows=(*rows, *means),
        totals=len(means),
        text_columns=2,
        notes=(PAPER_NOTE, *_collect_notes(runs)),
    )


def seeds_table(runs: Sequence[RunRecord]) -> Table:
    """Make a table of test coverage in per cent over seeds: number, mean, and 95 % interval.

    The interval is a bootstrap interval. Raises `UsageError` if no run has test results.
    """
    seeds = group_by_domain_and_method(runs)
    return Table(
        title="Test coverage over seeds",
        header=("Domain", "Method", "Seeds", "Cov. %", "95 % interval"),
        rows=tuple(
            _make_seeds_row(domain, method, seeds[domain, method])
            for domain, method in _sort_keys(seeds)
        ),
        text_columns=2,
        notes=(f"Percentile bootstrap of the mean over seeds, {RESAMPLES} resamples.",),
    )


def common_table(runs: Sequence[RunRecord]) -> Table:
    """Make a table of plan lengths and seconds over the instances that every method solved.

    Only these instances give a fair comparison. A method that solved no instance of a domain is
    omitted there. Raises `UsageError` if no run has test results.
    """
    results = {
        key: found for key, found in select_results(runs).items() if any(r.solved for r in found)
    }
    rows: list[tuple[Cell, ...]] = []
    for domain in sort_domains(results):
        methods = sort_methods(key for key in results if key[0] == domain)
        common = solved_by_all([results[domain, method] for method in methods])
        rows += _make_common_rows(domain, dict(zip(methods, common, strict=True)))
    return Table(
        title="Plan length and seconds over the instances solved by all methods",
        header=("Domain", "Method", "#", *(a.heading for a in COMPARED)),
        rows=tuple(rows),
        text_columns=2,
        notes=(
            "Methods that solved no instance of a domain are omitted there.",
            "A policy's seconds include the time of the other problems in its batch.",
            *_collect_notes(runs),
        ),
    )


TABLES: dict[str, Callable[[Sequence[RunRecord]], Table]] = {
    "coverage": coverage_table,
    "lama": lama_table,
    "paper": paper_table,
    "seeds": seeds_table,
    "common": common_table,
}
"""Every table by the name of its file."""


def tables_of(runs: Sequence[RunRecord]) -> dict[str, Table]:
    """Make every table that the runs have results for, by name.

    Raises `UsageError` if no run has test results.
    """
    methods = {run.method for run in runs if run.results}
    if not methods:
        raise UsageError(NO_RESULTS)
    empty = {"lama"} - methods
    if methods == {"lama"}:
        empty = {"coverage"}
    return {name: make(runs) for name, make in TABLES.items() if name not in empty}


def _make_lengths_table(title: str, runs: Sequence[RunRecord]) -> Table:
    results = select_results(runs)
    domains, methods = sort_domains(results), sort_methods(results)
    rows = [
        _make_lengths_row(display_name(d), [results.get((d, m), ()) for m in methods])
        for d in domains
    ]
    everything = [[r for d in domains for r in results.get((d, m), ())] for m in methods]
    rows.append(_make_lengths_row("Total", everything))
    return Table(
        title=title,
        header=(
            "Domain",
            "#",
            *(a.heading for _ in methods for a in (COVERAGE, *LENGTHS)),
        ),
        rows=tuple(rows),
        groups=(("", 1), *((method, 1 + len(LENGTHS)) for method in methods)),
        totals=1,
        notes=(*_note_unequal(results), *_collect_notes(runs)),
    )


def _make_lengths_row(name: str, by_method: Sequence[Sequence[PlanResult]]) -> tuple[Cell, ...]:
    coverages = [COVERAGE.of(results) for results in by_method]
    best = COVERAGE.best(coverages) if len(by_method) > 1 else None
    row = [Cell(name), Cell(str(max(len(results) for results in by_method)))]
    for results, coverage in zip(by_method, coverages, strict=True):
        row.append(Cell(COVERAGE.text(coverage), bold=bool(coverage) and coverage == best))
        row += [Cell(length.text(length.of(results))) for length in LENGTHS]
    return tuple(row)


def _make_common_rows(
    domain: str, by_method: Mapping[str, Sequence[PlanResult]]
) -> Iterator[tuple[Cell, ...]]:
    """Yield one row for each method, with the best value of each attribute in bold."""
    values = {m: [a.of(results) for a in COMPARED] for m, results in by_method.items()}
    columns = zip(*values.values(), strict=True)
    best = [a.best(column) for a, column in zip(COMPARED, columns, strict=True)]
    for method, row in values.items():
        cells = [
            Cell(a.text(value), bold=len(values) > 1 and value is not None and value == top)
            for a, value, top in zip(COMPARED, row, best, strict=True)
        ]
        number = str(len(by_method[method]))
        yield (Cell(display_name(domain)), Cell(method), Cell(number), *cells)


def _sort_keys(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the (domain, method) keys in the order of domains, then of methods."""
    keys = set(found)
    return [(d, m) for d in sort_domains(keys) for m in sort_methods(keys) if (d, m) in keys]


def _make_paper_row(domain: str, method: str, results: Sequence[PlanResult]) -> tuple[Cell, ...]:
    theirs = paper_row(domain, method)
    return (
        Cell(display_name(domain)),
        Cell(method),
        Cell(str(len(results))),
        Cell(f"{_compute_coverage(results):.1f}"),
        *_make_difference_cells(
            _compute_paper_coverage(results), float(theirs.coverage) if theirs else None
        ),
        *_make_difference_cells(
            MEAN_LENGTH.of(results), theirs.mean if theirs and theirs.coverage else None
        ),
    )


def _make_mean_row(method: str, results: Results) -> tuple[Cell, ...] | None:
    """Make the row of mean coverage over the domains that the paper also has, if there are any."""
    shared = [
        (found, theirs)
        for (domain, by), found in results.items()
        if by == method and (theirs := paper_row(domain, method))
    ]
    if not shared:
        return None
    return (
        Cell("Mean"),
        Cell(method),
        Cell(str(sum(len(found) for found, _ in shared))),
        Cell(f"{fmean(_compute_coverage(found) for found, _ in shared):.1f}"),
        *_make_difference_cells(
            fmean(_compute_paper_coverage(found) for found, _ in shared),
            fmean(theirs.coverage for _, theirs in shared),
        ),
        *(Cell(MISSING) for _ in range(3)),
    )


def _make_difference_cells(ours: float | None, theirs: float | None) -> list[Cell]:
    return [
        Cell(MISSING if ours is None else f"{ours:.1f}"),
        Cell(MISSING if theirs is None else f"{theirs:.1f}"),
        Cell(MISSING if ours is None or theirs is None else f"{ours - theirs:+.1f}"),
    ]


def _make_seeds_row(domain: str, method: str, runs: Sequence[RunRecord]) -> tuple[Cell, ...]:
    shares = [_compute_coverage(run.results) for run in runs]
    interval = bootstrap_interval(shares)
    return (
        Cell(display_name(domain)),
        Cell(method),
        Cell(str(len(runs))),
        Cell(f"{fmean(shares):.1f}"),
        Cell(f"{interval[0]:.1f} to {interval[1]:.1f}" if interval else MISSING),
    )


def _compute_coverage(results: Sequence[PlanResult]) -> float:
    """Return the coverage of the results in per cent; there must be at least one result."""
    return 100 * sum(result.solved for result in results) / len(results)


def _compute_paper_coverage(results: Sequence[PlanResult]) -> float:
    """Return the coverage in per cent of plans that enter no state twice."""
    return 100 * sum(result.solved_without_return for result in results) / len(results)


def _note_unequal(results: Results) -> list[str]:
    """Warn the reader if a method was tested on fewer instances of a domain than another."""
    most: dict[str, int] = defaultdict(int)
    for (domain, _), found in results.items():
        most[domain] = max(most[domain], len(found))
    fewer = [
        f"{display_name(domain)}, {method} ({len(results[domain, method])} of {most[domain]})"
        for domain, method in _sort_keys(results)
        if len(results[domain, method]) < most[domain]
    ]
    notes = [f"Tested on a part of the instances: {'; '.join(fewer)}."] if fewer else []
    if any((d, m) not in results for d in sort_domains(results) for m in sort_methods(results)):
        notes.append(f"{MISSING} if a method was not tested: its total is over the others only.")
    return notes


def _count_values(runs: Sequence[RunRecord], name: str) -> int:
    """Count the different values of a setting in the runs that have it."""
    return len({str(run.config[name]) for run in runs if name in run.config})


def _collect_notes(runs: Sequence[RunRecord]) -> tuple[str, ...]:
    notes = []
    if any(len(seeds) > 1 for seeds in group_by_domain_and_method(runs).values()):
        notes.append(SELECTION_NOTE)
    if unequal := [name for name in SETTINGS if _count_values(runs, name) > 1]:
        notes.append(f"The runs differ in {', '.join(unequal)}; their config.json has the values.")
    if others := [str(run.folder) for run in runs if run.of_another_policy]:
        notes.append(f"Tested with another policy than the run has now: {', '.join(others)}.")
    if any(result.short_length is not None for run in runs for result in run.results):
        notes.append(LENGTHS_NOTE)
    waiting = sum(1 for run in runs if not run.results)
    if waiting:
        notes.append(f"{waiting} of {len(runs)} runs have no test results yet and are omitted.")
    return tuple(notes)
