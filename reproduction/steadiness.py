"""How steady learning is: `python -m reproduction.steadiness`.

Each domain is trained with three seeds for a fixed number of episodes: with the preset, and with
the preset as it was before it had advantage learning, achieved goals, the settling of the learning
rate, 15 layers and a longer average. The table shows, for each seed, the episode of the first
complete validation, how many of the validations after it are complete, and their mean coverage. The
aim is that nine of ten are complete, for every seed.

Cells with a record in `results/steadiness.jsonl` are not run again. With folders of runs as
arguments, which `regoal sweep reproduction/steadiness.toml` has made, nothing is run either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from regoal.cli import script
from regoal.reports.attributes import MISSING
from regoal.reports.rendering import Cell, Table
from regoal.sweeps.sweep_file import Sweep
from reproduction.cells import (
    Records,
    group_records,
    make_table,
    note_commits,
    read_arguments,
    text_row,
    to_csv,
)

AIM = 0.9
COLUMNS = (
    "variant", "domain", "seed", "episodes", "minutes", "validations", "first_complete", "after",
    "complete_after", "mean_after", "commit",
)  # fmt: skip


@dataclass(frozen=True)
class Steadiness:
    """How the validations of one run went."""

    validations: int
    first: int | None
    """The episode of the first complete validation; None if there is none."""
    after: int
    """Validations after it."""
    complete: int
    """The complete ones among these."""
    mean: float | None
    """Their mean coverage in [0, 1]; None if there are none. It is a lower bound, as a validation
    ends early if the policy cannot become the best one."""

    @property
    def steady(self) -> bool:
        """Whether nine of ten validations after the first complete one are complete."""
        return self.after > 0 and self.complete >= AIM * self.after


def measure(validation: list[list[int]]) -> Steadiness:
    """Measure the validations of a record.

    >>> measure([[5, 0, 1, 4], [10, 4, 4, 4], [15, 2, 4, 4], [20, 4, 4, 4]])
    Steadiness(validations=4, first=10, after=2, complete=1, mean=0.75)
    """
    first = next(
        (i for i, (_, solved, _, given, *_) in enumerate(validation) if solved == given), None
    )
    if first is None:
        return Steadiness(len(validation), None, 0, 0, None)
    shares = [solved / given for _, solved, _, given, *_ in validation[first + 1 :]]
    complete = sum(share == 1 for share in shares)
    mean = fmean(shares) if shares else None
    return Steadiness(len(validation), validation[first][0], len(shares), complete, mean)


def summarise(records: Records, sweep: Sweep) -> tuple[list[Table], str]:
    """Make the table, a row for each variant and domain, and the CSV text, a row for each run."""
    groups = group_records(records, sweep)
    ordered = [record for group in groups.values() for record in group]
    table = Table(
        title="How steady learning is",
        header=(
            *("Variant", "Domain", "Seeds", "First complete episode", "Complete after it"),
            *("Mean coverage after it", "Nine of ten"),
        ),
        rows=tuple(_make_row(*key, group) for key, group in groups.items()),
        text_columns=7,
        notes=(
            "By seed. After the first complete validation: complete of all; a validation that ends "
            "early counts with what it has solved.",
            note_commits(ordered),
        ),
    )
    return [table], to_csv(COLUMNS, map(_make_csv_row, ordered))


def _make_row(variant: str, domain: str, records: Sequence[Mapping[str, Any]]) -> tuple[Cell, ...]:
    found = [measure(record["validation"]) for record in records]
    return text_row(
        *(variant, domain),
        ", ".join(str(record["seed"]) for record in records),
        ", ".join("never" if x.first is None else str(x.first) for x in found),
        ", ".join(f"{x.complete} of {x.after}" for x in found),
        ", ".join(MISSING if x.mean is None else f"{x.mean:.2f}" for x in found),
        f"{sum(x.steady for x in found)} of {len(found)}",
    )


def _make_csv_row(record: Mapping[str, Any]) -> list[object]:
    x = measure(record["validation"])
    own = [record[key] for key in COLUMNS[:5]]
    first = "" if x.first is None else x.first
    mean = "" if x.mean is None else f"{x.mean:.3f}"
    commit = str(record["commit"])[:7]
    return [*own, x.validations, first, x.after, x.complete, mean, commit]


def main() -> None:
    """Run what has no record, and show the table."""
    make_table("steadiness", read_arguments(__doc__), summarise)


if __name__ == "__main__":
    script(main)
