"""The paper's tables from run folders: coverage and plan lengths, seeds, and ours minus theirs."""

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
    by_domain_and_method,
    display_name,
    domain_order,
    method_order,
    selected_results,
)

LENGTHS = (TOTAL_LENGTH, MEDIAN_LENGTH, MEAN_LENGTH)
PAPER_NOTE = (
    "No return: coverage of plans that enter no state twice, the paper's rule; its difference to "
    "the paper's is given. Lengths are of all plans. Mean: over the domains that the paper has too."
)
COMPARED = tuple(a for a in ATTRIBUTES if a.only_if_solved_by_all)
SELECTION_NOTE = (
    "Of several seeds the one with the best validation coverage is shown, of equal ones the one "
    "with the shortest validation plans, then the lowest seed."
)


SETTINGS = (
    *("preset", "budget_s"),
    *(f.name for f in fields(TrainConfig) if f.name not in ("seed", "hindsight")),
)
"""What runs of one table should have in common."""


def coverage_table(runs: Sequence[RunRecord]) -> Table:
    """Solved test instances and plan lengths of the learned policies (paper, Table 3).

    One run a domain and method: the one that `selection.select_run` picks. Raises `UsageError`
    where no run has test results.
    """
    learned = [run for run in runs if run.method != "lama"]
    return _lengths_table("Coverage and plan length on the test instances", learned)


def lama_table(runs: Sequence[RunRecord]) -> Table:
    """Solved test instances and lengths of LAMA's first plans (paper, Table 2). Raises as above."""
    lama = [run for run in runs if run.method == "lama"]
    return _lengths_table("Coverage and plan length of LAMA's first plan", lama)


def paper_table(runs: Sequence[RunRecord]) -> Table:
    """Coverage in per cent and mean plan length: ours, the paper's, and ours minus theirs.

    The paper's testing ends where no state is new, so that its coverage is compared with ours of
    plans without a return. Its lengths are means over what its own policies solved, so a
    difference in length says little where the coverages differ. Raises as `coverage_table`.
    """
    results = selected_results(runs)
    keys = _keys(results)
    rows = [_beside_paper(domain, method, results[domain, method]) for domain, method in keys]
    means = [row for m in method_order(keys) if (row := _mean_beside_paper(m, results))]
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
        notes=(PAPER_NOTE, *_notes(runs)),
    )


def seeds_table(runs: Sequence[RunRecord]) -> Table:
    """Test coverage in per cent over seeds: how many, mean, and a 95 % bootstrap interval.

    Raises as `coverage_table`.
    """
    seeds = by_domain_and_method(runs)
    return Table(
        title="Test coverage over seeds",
        header=("Domain", "Method", "Seeds", "Cov. %", "95 % interval"),
        rows=tuple(
            _over_seeds(domain, method, seeds[domain, method]) for domain, method in _keys(seeds)
        ),
        text_columns=2,
        notes=(f"Percentile bootstrap of the mean over seeds, {RESAMPLES} resamples.",),
    )


def common_table(runs: Sequence[RunRecord]) -> Table:
    """Plan lengths and seconds over the instances that every method solved: the fair comparison.

    Methods that solved none of a domain are left out there. Raises as `coverage_table`.
    """
    results = {
        key: found for key, found in selected_results(runs).items() if any(r.solved for r in found)
    }
    rows: list[tuple[Cell, ...]] = []
    for domain in domain_order(results):
        methods = method_order(key for key in results if key[0] == domain)
        common = solved_by_all([results[domain, method] for method in methods])
        rows += _compared(domain, dict(zip(methods, common, strict=True)))
    return Table(
        title="Plan length and seconds over the instances solved by all methods",
        header=("Domain", "Method", "#", *(a.heading for a in COMPARED)),
        rows=tuple(rows),
        text_columns=2,
        notes=(
            "Methods that solved no instance of a domain are left out there.",
            "A policy's seconds are shared by the problems of its batch.",
            *_notes(runs),
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
    """Every table that the runs have results for, by name.

    Raises `UsageError` where there is none.
    """
    methods = {run.method for run in runs if run.results}
    if not methods:
        raise UsageError(NO_RESULTS)
    empty = {"lama"} - methods
    if methods == {"lama"}:
        empty = {"coverage"}
    return {name: make(runs) for name, make in TABLES.items() if name not in empty}


def _lengths_table(title: str, runs: Sequence[RunRecord]) -> Table:
    results = selected_results(runs)
    domains, methods = domain_order(results), method_order(results)
    rows = [
        _lengths_row(display_name(d), [results.get((d, m), ()) for m in methods]) for d in domains
    ]
    everything = [[r for d in domains for r in results.get((d, m), ())] for m in methods]
    rows.append(_lengths_row("Total", everything))
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
        notes=(*_unequal_note(results), *_notes(runs)),
    )


def _lengths_row(name: str, by_method: Sequence[Sequence[PlanResult]]) -> tuple[Cell, ...]:
    coverages = [COVERAGE.of(results) for results in by_method]
    best = COVERAGE.best(coverages) if len(by_method) > 1 else None
    row = [Cell(name), Cell(str(max(len(results) for results in by_method)))]
    for results, coverage in zip(by_method, coverages, strict=True):
        row.append(Cell(COVERAGE.text(coverage), bold=bool(coverage) and coverage == best))
        row += [Cell(length.text(length.of(results))) for length in LENGTHS]
    return tuple(row)


def _compared(
    domain: str, by_method: Mapping[str, Sequence[PlanResult]]
) -> Iterator[tuple[Cell, ...]]:
    """One row a method, the best of each attribute bold."""
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


def _keys(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The (domain, method) keys, each in its order."""
    keys = set(found)
    return [(d, m) for d in domain_order(keys) for m in method_order(keys) if (d, m) in keys]


def _beside_paper(domain: str, method: str, results: Sequence[PlanResult]) -> tuple[Cell, ...]:
    theirs = paper_row(domain, method)
    return (
        Cell(display_name(domain)),
        Cell(method),
        Cell(str(len(results))),
        Cell(f"{_per_cent(results):.1f}"),
        *_difference(_without_returns(results), float(theirs.coverage) if theirs else None),
        *_difference(MEAN_LENGTH.of(results), theirs.mean if theirs and theirs.coverage else None),
    )


def _mean_beside_paper(method: str, results: Results) -> tuple[Cell, ...] | None:
    """Mean coverage over the domains that the paper has too; None where there is none."""
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
        Cell(f"{fmean(_per_cent(found) for found, _ in shared):.1f}"),
        *_difference(
            fmean(_without_returns(found) for found, _ in shared),
            fmean(theirs.coverage for _, theirs in shared),
        ),
        *(Cell(MISSING) for _ in range(3)),
    )


def _difference(ours: float | None, theirs: float | None) -> list[Cell]:
    return [
        Cell(MISSING if ours is None else f"{ours:.1f}"),
        Cell(MISSING if theirs is None else f"{theirs:.1f}"),
        Cell(MISSING if ours is None or theirs is None else f"{ours - theirs:+.1f}"),
    ]


def _over_seeds(domain: str, method: str, runs: Sequence[RunRecord]) -> tuple[Cell, ...]:
    shares = [_per_cent(run.results) for run in runs]
    interval = bootstrap_interval(shares)
    return (
        Cell(display_name(domain)),
        Cell(method),
        Cell(str(len(runs))),
        Cell(f"{fmean(shares):.1f}"),
        Cell(f"{interval[0]:.1f} to {interval[1]:.1f}" if interval else MISSING),
    )


def _per_cent(results: Sequence[PlanResult]) -> float:
    """Coverage in per cent of the results, which must not be empty."""
    return 100 * sum(result.solved for result in results) / len(results)


def _without_returns(results: Sequence[PlanResult]) -> float:
    """Coverage in per cent of plans through new states only."""
    return 100 * sum(result.solved_without_return for result in results) / len(results)


def _unequal_note(results: Results) -> list[str]:
    """Warnings where a method was tested on fewer instances of a domain than another."""
    most: dict[str, int] = defaultdict(int)
    for (domain, _), found in results.items():
        most[domain] = max(most[domain], len(found))
    fewer = [
        f"{display_name(domain)}, {method} ({len(results[domain, method])} of {most[domain]})"
        for domain, method in _keys(results)
        if len(results[domain, method]) < most[domain]
    ]
    notes = [f"Tested on a part of the instances: {'; '.join(fewer)}."] if fewer else []
    if any((d, m) not in results for d in domain_order(results) for m in method_order(results)):
        notes.append(f"{MISSING} where a method was not tested: its total is over the others only.")
    return notes


def _number_of_values(runs: Sequence[RunRecord], name: str) -> int:
    """How many different values a setting has, in the runs that have it."""
    return len({str(run.config[name]) for run in runs if name in run.config})


def _notes(runs: Sequence[RunRecord]) -> tuple[str, ...]:
    notes = []
    if any(len(seeds) > 1 for seeds in by_domain_and_method(runs).values()):
        notes.append(SELECTION_NOTE)
    if unequal := [name for name in SETTINGS if _number_of_values(runs, name) > 1]:
        notes.append(f"The runs differ in {', '.join(unequal)}; their config.json has the values.")
    if others := [str(run.folder) for run in runs if run.of_another_policy]:
        notes.append(f"Tested with another policy than the run has now: {', '.join(others)}.")
    waiting = sum(1 for run in runs if not run.results)
    if waiting:
        notes.append(f"{waiting} of {len(runs)} runs have no test results yet and are left out.")
    return tuple(notes)
