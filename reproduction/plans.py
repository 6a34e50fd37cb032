"""How the policies that come with regoal plan: `python -m reproduction.plans`.

The policy of each domain of the paper, and of Maze, is run on the 100 test problems with what
`regoal plan` does: greedy execution, then commitment and search, then useless steps are taken out.
Each problem has one core, 8 GB and one minute. Those that run out of time are tried again with five
minutes, once all domains are done.

The records are kept in `results/plans/` as problems end, so that a test goes on after any stop.
LAMA's first plans are those of `python -m reproduction.lama`.
"""

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from regoal.cli import script
from regoal.domains.splits import DOMAINS, TEST_COUNT
from regoal.records.results import OUTCOMES, Outcome, PlanResult
from regoal.records.run_record import RESULTS, read_results
from regoal.reports.attributes import MISSING
from regoal.reports.rendering import Cell, Table, to_markdown
from regoal.reports.run_choice import display_name
from reproduction import cells
from reproduction.cells import text_row, write_mean
from reproduction.lama import test_problems
from reproduction.timed_tests import find_left, read_domain, run_test

TIME_LIMITS = ("1m", "5m")
HEADER = (
    *("Domain", "Greedy", "Commitment", "Search", "1 minute", "5 minutes"),
    *("Executed", "Shortened", "Solved", "Mean length", "Left"),
)
GROUPS = (("Solved by", 3), ("Solved within", 2), ("Mean steps", 2), ("LAMA", 2), ("", 1))
BUILT_IN = tuple(name for name, entry in DOMAINS.items() if not entry.expandable_training)


def main() -> None:
    """Run what has no record, and show the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=BUILT_IN, choices=BUILT_IN, metavar="DOMAIN")
    parser.add_argument("--table", action="store_true", help="run nothing, show the table")
    arguments = parser.parse_args()
    folder = cells.RESULTS_FOLDER / "plans"
    for limit in () if arguments.table else TIME_LIMITS:
        for domain in arguments.only:
            if files := find_left(folder, domain, limit, test_problems(domain, 0)):
                run_test(["evaluate", domain, "--search"], files, folder, domain, limit)
    print(to_markdown(make_table(cells.RESULTS_FOLDER)), end="")


def make_table(results: Path) -> Table:
    """Make the table from the records in a folder of results."""
    rows = [
        _make_row(
            domain,
            [read_results(results / "plans" / f"{domain}.{limit}.jsonl") for limit in TIME_LIMITS],
            best,
            read_results(results / domain / "lama" / "0" / RESULTS),
        )
        for domain in BUILT_IN
        if (best := read_domain(results / "plans", domain))
    ]
    return Table(
        title="The policies of the paper's domains and of Maze, on 100 test problems each",
        header=HEADER,
        groups=GROUPS,
        rows=tuple(rows),
        notes=(
            "What greedy execution leaves is given to commitment, then to search, within the same "
            "time. Steps: as they were executed, and without useless ones; means over the problems "
            "that are solved, so not the same for LAMA. LAMA: first plans, within 5 minutes of "
            "processor time and 4 GiB. Left: what ended the others.",
        ),
    )


def _make_row(
    domain: str,
    tests: Sequence[Sequence[PlanResult]],
    best: Sequence[PlanResult],
    lama: Sequence[PlanResult],
) -> tuple[Cell, ...]:
    """Make the row of a domain from the records with each limit, and the best of each problem."""
    first, second = tests
    solved = [result for result in best if result.solved]
    ways = [sum(r.found_by == way for r in solved) for way in ("greedy", "commitment", "search")]
    late = {r.problem for r in first if r.outcome is Outcome.TIME_LIMIT}
    return text_row(
        display_name(domain),
        *ways,
        _count([r for r in solved if r in first], TEST_COUNT - len(first)),
        _count(solved, TEST_COUNT - len(first) + len(late - {r.problem for r in second})),
        write_mean([r.plan_length or 0 for r in solved]),
        write_mean([r.short_length or r.plan_length or 0 for r in solved]),
        sum(r.solved for r in lama) if lama else MISSING,
        write_mean([r.plan_length or 0 for r in lama if r.solved]),
        _name_left(best),
    )


def _count(solved: Sequence[PlanResult], waiting: int) -> str:
    """Write how many are solved, and how many have not been tried yet."""
    return f"{len(solved)}, and {waiting} to try" if waiting else str(len(solved))


def _name_left(results: Sequence[PlanResult]) -> str:
    """Name the problems without a plan, by what ended them."""
    ended: Mapping[str, list[str]] = defaultdict(list)
    for result in results:
        if not result.solved:
            ended[result.outcome.key].append(result.problem)
    return "; ".join(f"{OUTCOMES[key].text}: {', '.join(x)}" for key, x in ended.items())


if __name__ == "__main__":
    script(main)
