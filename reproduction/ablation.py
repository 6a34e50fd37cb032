"""Measure the use of each part of the preset: `python -m reproduction.ablation`.

One part at a time is taken out of the preset, over several domains and seeds. The tables show the
episode of the first complete validation, the coverage on validation of the policy that was kept,
and its coverage on the test problems.

Cells with a record in `results/ablation.jsonl` are not run again. With folders of runs as
arguments, which `regoal sweep reproduction/ablation.toml` has made, nothing is run either.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regoal.cli import script
from regoal.records.results import Outcome
from regoal.reports.attributes import MISSING
from regoal.reports.rendering import Table
from regoal.sweeps.sweep_file import Sweep
from reproduction.cells import (
    VALIDATION_KEYS,
    Records,
    group_records,
    make_table,
    note_commits,
    read_arguments,
    text_row,
    to_csv,
)

COLUMNS = (
    "variant", "domain", "seed", "episodes", "minutes", "first_complete", "kept_solved",
    "validation_problems", "test_solved", "test_problems", "commit",
)  # fmt: skip


@dataclass(frozen=True)
class Quality:
    """How good a run was: problems that were solved, and how many there were."""

    first: int | None
    """The episode of the first complete validation; None if there is none."""
    validation: tuple[int, int]
    """On validation, by the policy that was kept; none of none if none was kept."""
    test: tuple[int, int]
    """On the test problems."""


def measure(record: Mapping[str, Any]) -> Quality:
    """Measure a record.

    >>> measure({"validation": [[5, 2, 4, 4, 9, 0, 1], [10, 1, 4, 4, 5, 0, 0]],
    ...          "test": {"p1": ["solved", 7, 0.1, 0], "p2": ["dead_end", None, 0.1, 0]}})
    Quality(first=None, validation=(2, 4), test=(1, 2))
    """
    validations = [dict(zip(VALIDATION_KEYS, v, strict=True)) for v in record["validation"]]
    complete = [v["episode"] for v in validations if v["solved"] == v["problems"]]
    kept = [(v["solved"], v["problems"]) for v in validations if v["kept"]]
    solved = sum(outcome == Outcome.SOLVED.key for outcome, *_ in record["test"].values())
    return Quality(
        complete[0] if complete else None,
        kept[-1] if kept else (0, 0),
        (solved, len(record["test"])),
    )


def summarise(records: Records, sweep: Sweep) -> tuple[list[Table], str]:
    """Make the tables, with a row for each variant, and the CSV text with a row for each run."""
    groups = group_records(records, sweep)
    ordered = [record for group in groups.values() for record in group]
    found = {key: [measure(record) for record in group] for key, group in groups.items()}
    tables = [_make_table(title, found, show, note_commits(ordered)) for title, show in SHOWN]
    return tables, to_csv(COLUMNS, map(_make_csv_row, ordered))


def _share(counts: tuple[int, int]) -> str:
    solved, given = counts
    return f"{100 * solved / given:.0f}" if given else MISSING


SHOWN: tuple[tuple[str, Callable[[Quality], str]], ...] = (
    ("Episode of the first complete validation", lambda x: str(x.first or "never")),
    ("Per cent of validation that the kept policy solves", lambda x: _share(x.validation)),
    ("Per cent of the test problems that it solves", lambda x: _share(x.test)),
)
"""The titles of the tables, and what each shows of a run."""


def _make_table(
    title: str,
    found: Mapping[tuple[str, str], Sequence[Quality]],
    show: Callable[[Quality], str],
    note: str,
) -> Table:
    variants, domains = (list(dict.fromkeys(names)) for names in zip(*found, strict=True))
    rows = [
        text_row(v, *(", ".join(map(show, found.get((v, d), ()))) or MISSING for d in domains))
        for v in variants
    ]
    return Table(
        title=f"{title}, by seed",
        header=("", *domains),
        rows=tuple(rows),
        notes=(note,),
    )


def _make_csv_row(record: Mapping[str, Any]) -> list[object]:
    x = measure(record)
    own = [record[key] for key in COLUMNS[:5]]
    first = "" if x.first is None else x.first
    return [*own, first, *x.validation, *x.test, str(record["commit"])[:7]]


def main() -> None:
    """Run what has no record, and show the tables."""
    make_table("ablation", read_arguments(__doc__), summarise)


if __name__ == "__main__":
    script(main)
