"""Are our test sets like the paper's? Compares plan lengths with its Tables 2 and 3.

Run `python -m benchmarks.domain_agreement [--seed N]`. It prints a Markdown table in under a
minute. An "optimum" is exact. A "plan" was found by a simple method, and is a little longer than
the optimum. Compare them with the paper's policies that solve all 100 instances. LAMA's first plans
are longer. If it solves fewer than 100, its numbers are those of the easier instances.
"""

import argparse
from collections.abc import Callable
from statistics import fmean, median
from typing import NamedTuple

from benchmarks import reference_lengths as lengths
from regoal.domains import splits
from regoal.domains.instance import Instance


class Row(NamedTuple):
    """One row: our test set and method, and the paper's solved / median / mean in three columns."""

    domain: str
    split: str
    kind: str
    length: Callable[[Instance], int]
    lama: str = "-"
    lifted: str = "-"
    propositional: str = "-"


ROWS = (
    Row(
        *("blocks", "test", "plan", lengths.blocks),
        *("100 / 218 / 232.5", "100 / 98 / 96.7", "100 / 100 / 107.3"),
    ),
    Row("blocks", "test-tower", "plan", lengths.blocks),
    Row(
        *("childsnack", "test", "optimum", lengths.childsnack),
        *("24 / 89 / 98.4", "56 / 69 / 77.8", "100 / 90.5 / 92.6"),
    ),
    Row(
        *("childsnack-af", "test", "optimum", lengths.childsnack),
        *("65 / 261 / 261.0", "100 / 211.5 / 234.2", "100 / 211.5 / 211.5"),
    ),
    Row(
        *("delivery", "test", "optimum", lengths.delivery),
        *("99 / 276 / 276.1", "12 / 243.5 / 292.2", "11 / 137 / 167.0"),
    ),
    Row(
        *("gripper", "test", "optimum", lengths.gripper),
        *("100 / 238 / 238.0", "100 / 238 / 238.0", "100 / 238 / 239.9"),
    ),
    Row("hiking", "test", "plan", lengths.hiking, "26 / 77.5 / 78.4", "0", "0"),
    Row(
        *("miconic", "test", "plan", lengths.miconic),
        *("100 / 195.5 / 195.6", "100 / 159 / 160.0", "100 / 158.5 / 158.4"),
    ),
    Row(
        *("reward", "test", "optimum", lengths.reward),
        *("99 / 116 / 121.8", "58 / 86.5 / 95.9", "72 / 87.5 / 91.6"),
    ),
    Row(
        *("spanner", "test", "optimum", lengths.spanner),
        *("0", "100 / 94 / 95.5", "100 / 94 / 95.5"),
    ),
    Row(
        *("visitall", "test", "plan", lengths.visitall),
        *("100 / 475 / 530.0", "100 / 409 / 453.3", "88 / 363 / 392.6"),
    ),
    Row("visitall", "test-full", "plan", lengths.visitall),
    Row("maze", "test", "optimum", lengths.maze),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of the test sets (default 0)")
    seed = parser.parse_args().seed
    print(
        "| test set | reference | total | median | mean "
        "| paper: LAMA | lifted HER | propositional HER |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for row in ROWS:
        found = [row.length(x) for x in splits.instances(row.domain, row.split, seed)]
        name = row.domain + row.split.removeprefix("test")
        ours = f"{sum(found)} | {median(found):g} | {fmean(found):.1f}"
        paper = f"{row.lama} | {row.lifted} | {row.propositional}"
        print(f"| {name} | {row.kind} | {ours} | {paper} |", flush=True)


if __name__ == "__main__":
    main()
