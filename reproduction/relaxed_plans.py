"""Delivery and Maze with what begins a relaxed plan: `python -m reproduction.relaxed_plans`.

The sweep is `reproduction/relaxed_plans.toml`, and the table is like that of `reproduction.paper`.
Cells with a record in `results/relaxed_plans.jsonl` are not run again. With folders of runs as
arguments nothing is run either. The policies stay in `runs/relaxed-plans/`, from where `python -m
reproduction.ship runs/relaxed-plans` copies the best into the package.
"""

from functools import partial

from regoal.cli import script
from reproduction import paper
from reproduction.cells import make_table, read_arguments

TITLE = "With relaxed plans and other actions"


def main() -> None:
    """Run what has no record, and show the tables."""
    summarise = partial(paper.summarise, title=TITLE)
    make_table("relaxed_plans", read_arguments(__doc__), summarise)


if __name__ == "__main__":
    script(main)
