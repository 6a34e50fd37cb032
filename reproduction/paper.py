"""The paper's Table 3, and Maze, with one preset: `python -m reproduction.paper`.

A row is a domain with lifted or propositional goals, on Blocks also with state goals. It has three
seeds, and the table shows the one that validation chooses, next to the paper's figures and LAMA's.
No domain has its own settings.

Cells with a record in `results/paper.jsonl` are not run again. With folders of runs as arguments,
which `regoal sweep reproduction/paper.toml` has made, nothing is run either. The table also goes to
`results/coverage.csv`, with a line for each cell. The policies stay in `runs/paper/`, from where
`python -m reproduction.ship runs/paper` copies the best into the package.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from regoal.cli import script
from regoal.records.results import OUTCOMES, Outcome
from regoal.records.run_record import RESULTS, read_results
from regoal.records.validation import Validation
from regoal.reports.attributes import MISSING
from regoal.reports.paper import PaperRow, paper_row
from regoal.reports.rendering import Cell, Table
from regoal.reports.run_choice import display_name, sort_domains, sort_methods
from regoal.sweeps.commands import done_record
from regoal.sweeps.sweep_file import Sweep
from reproduction import cells
from reproduction.cells import (
    VALIDATION_KEYS,
    Records,
    make_table,
    note_commits,
    read_arguments,
    text_row,
    to_csv,
    write_mean,
)

CSV_NAME = "coverage.csv"
TITLE = "The paper's rows, and Maze, with one preset"
COLUMNS = (
    "domain", "hindsight", "seed", "chosen", "episodes", "minutes",
    "validated", "validated_with_noise", "validation_actions", "validation_problems",
    "solved", "without_return", "tested", "total", "median", "mean", "misses", "commit",
)  # fmt: skip
MOST_NAMED = 5
"""The most misses of one kind that the table names; `results/coverage.csv` names all."""

Record = Mapping[str, Any]
Rows = Mapping[tuple[str, str], Sequence[Record]]
"""The records of each row, by its domain and its kind of goals; there is at least one."""


@dataclass(frozen=True)
class Score:
    """How one run did on validation and on the test problems."""

    validation: Validation | None
    """Of the policy that was kept; None if none was."""
    lengths: Sequence[int]
    """The lengths of its plans for the test problems."""
    without_return: int
    """How many of these plans enter no state twice, as the paper's rule demands."""
    misses: Mapping[str, Sequence[str]]
    """The unsolved test problems, by the outcome that ended them."""


def measure(record: Record) -> Score:
    """Measure a record.

    >>> x = measure({"validation": [[5, 2, 4, 4, 9, 0, 1], [10, 1, 4, 4, 5, 0, 0]],
    ...              "test": {"p1": ["solved", 7, 0.1, 2], "p2": ["dead_end", None, 0.1, 0]}})
    >>> x.validation.episode, x.lengths, x.without_return, x.misses
    (5, [7], 0, {'dead_end': ['p2']})
    """
    kept = [
        Validation(**dict(zip(VALIDATION_KEYS[:-1], values, strict=True)))
        for *values, is_kept in record["validation"]
        if is_kept
    ]
    lengths, without_return = [], 0
    misses: dict[str, list[str]] = defaultdict(list)
    for problem, (outcome, length, _, returns) in record["test"].items():
        if outcome == Outcome.SOLVED.key:
            lengths.append(length)
            without_return += returns == 0
        else:
            misses[outcome].append(problem)
    return Score(kept[-1] if kept else None, lengths, without_return, dict(misses))


def choose(records: Sequence[Record]) -> Record:
    """Choose the seed whose policy was best on validation; of equal ones the lowest.

    It is best by problems solved, then by tenths of them solved with noise, then by few actions.
    """

    def rate(record: Record) -> tuple[int, ...]:
        validation = measure(record).validation
        return (*(validation.merit if validation else (-1, 0, 0)), -record["seed"])

    return max(records, key=rate)


def summarise(records: Records, sweep: Sweep, title: str = TITLE) -> tuple[list[Table], str]:
    """Make the tables, and the CSV text with a line for each cell that has a record.

    A record of other settings than the sweep's counts as missing.
    """
    found: dict[tuple[str, str], list[Record]] = defaultdict(list)
    missing: dict[tuple[str, str], list[int]] = defaultdict(list)
    for setting in sweep.settings:
        record = records.get(setting.name, {"settings": None})
        if record["settings"] == done_record(sweep, setting):
            found[setting.domain, setting.hindsight].append(record)
        else:
            missing[setting.domain, setting.hindsight].append(setting.seed)
    rows = {
        (domain, goals): found[domain, goals]
        for domain in sort_domains(found)
        for goals in sort_methods(found)
        if (domain, goals) in found
    }
    lines = [line for group in rows.values() for line in _make_csv_lines(group)]
    tables = [_make_coverage_table(title, rows, missing), _make_misses_table(rows)]
    return tables, to_csv(COLUMNS, lines)


HEADER = (
    *("Domain", "Goals", "Seeds", "Chosen", "Solved", "Lowest", "No return", "Mean length"),
    *("Minutes", "Solved", "Mean length", "Solved", "Mean length", "Solved", "Mean length"),
)
NOTES = (
    "Solved: of 100 test problems, by the seed that was chosen by validation. The length, the "
    "minutes of training and the plans without a return are of this seed too. Lowest: by the seed "
    "that solves the fewest. The paper chooses one of ten seeds.",
    "No return: plans that enter no state twice. The paper's test allows no others, so this column "
    "compares with its coverage. LAMA: first plans, on our problems and as the paper has them.",
)


def _make_coverage_table(
    title: str, rows: Rows, missing: Mapping[tuple[str, str], Sequence[int]]
) -> Table:
    means = [row for goals in sort_methods(rows) for row in _make_mean_rows(goals, rows)]
    return Table(
        title=title,
        header=HEADER,
        groups=(("", 8), ("Paper", 2), ("LAMA", 2), ("Paper's LAMA", 2)),
        rows=(*(_make_row(*key, group) for key, group in rows.items()), *means),
        totals=len(means),
        text_columns=3,
        notes=(
            *NOTES,
            *_note_missing(missing, rows),
            note_commits(record for group in rows.values() for record in group),
        ),
    )


def _make_row(domain: str, goals: str, records: Sequence[Record]) -> tuple[Cell, ...]:
    chosen, plain = choose(records), domain.removesuffix("-l")
    x = measure(chosen)
    lama = read_results(cells.RESULTS_FOLDER / plain / "lama" / "0" / RESULTS)
    return text_row(
        *(display_name(domain), goals),
        ", ".join(str(record["seed"]) for record in records),
        chosen["seed"],
        *(len(x.lengths), _count_lowest(records), x.without_return),
        write_mean(x.lengths),
        f"{chosen['minutes']:.1f}",
        *_write_paper(paper_row(domain, goals)),
        len([r for r in lama if r.solved]) if lama else MISSING,
        write_mean([r.plan_length for r in lama if r.plan_length is not None]),
        *_write_paper(paper_row(domain, "lama")),
    )


def _write_paper(row: PaperRow | None) -> tuple[str, str]:
    if row is None:
        return MISSING, MISSING
    return str(row.coverage), f"{row.mean:.1f}" if row.coverage else MISSING


def _make_mean_rows(goals: str, rows: Rows) -> Iterator[tuple[Cell, ...]]:
    """Make the row of mean coverage over the domains that the paper has too, if several."""
    found = [
        (group, paper, lama)
        for (domain, of), group in rows.items()
        if of == goals
        and (paper := paper_row(domain, goals))
        and (lama := paper_row(domain, "lama"))
    ]
    if not found[1:]:
        return
    groups, papers, lamas = zip(*found, strict=True)
    chosen = [measure(choose(group)) for group in groups]
    yield text_row(
        *(f"mean of {len(found)} rows", goals, "", ""),
        write_mean([len(x.lengths) for x in chosen]),
        write_mean([_count_lowest(group) for group in groups]),
        write_mean([x.without_return for x in chosen]),
        *("", "", write_mean([row.coverage for row in papers]), "", "", ""),
        *(write_mean([row.coverage for row in lamas]), ""),
    )


def _count_lowest(records: Sequence[Record]) -> int:
    """Count what the seed solves that solves the fewest."""
    return min(len(measure(record).lengths) for record in records)


def _note_missing(missing: Mapping[tuple[str, str], Sequence[int]], rows: Rows) -> Iterator[str]:
    """Say which cells have no record, rows with equal missing seeds together."""
    every = {(d, g): f"{display_name(d)} {g}" for d, g in (*rows, *missing)}
    by_seeds: dict[tuple[int, ...], list[tuple[str, str]]] = defaultdict(list)
    for row, seeds in missing.items():
        by_seeds[tuple(seeds)].append(row)
    parts = []
    for seeds, lacking in by_seeds.items():
        others = [name for row, name in every.items() if row not in lacking]
        if len(lacking) > len(others):
            of = "all rows" + (f" but {', '.join(others)}" if others else "")
        else:
            of = ", ".join(every[row] for row in lacking)
        parts.append(f"seed{'s' if seeds[1:] else ''} {', '.join(map(str, seeds))} of {of}")
    if parts:
        yield f"No record yet of {sum(map(len, missing.values()))} cells: {'; '.join(parts)}."


def _make_misses_table(rows: Rows) -> Table:
    lines = [
        text_row(
            *(display_name(domain), goals, chosen["seed"], OUTCOMES[outcome].text, len(names)),
            ", ".join(names[:MOST_NAMED]) + (", ..." if names[MOST_NAMED:] else ""),
        )
        for (domain, goals), group in rows.items()
        if (chosen := choose(group))
        for outcome, names in measure(chosen).misses.items()
    ]
    return Table(
        title="Misses of the chosen seeds, by the outcome that ended them",
        header=("Domain", "Goals", "Seed", "Outcome", "Problems", "Names"),
        rows=tuple(lines),
        text_columns=6,
        notes=() if lines else ("There are none.",),
    )


def _make_csv_lines(records: Sequence[Record]) -> Iterator[list[object]]:
    chosen = choose(records)
    for record in records:
        x = measure(record)
        v = x.validation
        yield [
            *(record["domain"], record["hindsight"], record["seed"]),
            *(int(record is chosen), record["episodes"], record["minutes"]),
            *((v.solved, v.robust, v.plan_length, v.problems) if v else ("",) * 4),
            *(len(x.lengths), x.without_return, len(record["test"]), sum(x.lengths)),
            *((median(x.lengths), f"{fmean(x.lengths):.1f}") if x.lengths else ("", "")),
            "; ".join(f"{outcome}: {' '.join(names)}" for outcome, names in x.misses.items()),
            str(record["commit"])[:7],
        ]


def main() -> None:
    """Run what has no record, and show the tables."""
    make_table("paper", read_arguments(__doc__), summarise, csv_name=CSV_NAME)


if __name__ == "__main__":
    script(main)
