"""The learning track of 2023: `python -m reproduction.ipc2023`.

For each domain: trains on its training problems alone and tests the policy (`trained`), tests the
policy that comes with regoal if it has one for the domain, trained on other problems (`shipped`),
and runs LAMA's first search (`lama`). Each test problem has 8 GB, one core and 2 minutes; what is
left after them all is tried again with 30 minutes. `--time-limits` says otherwise.

The record of a problem is kept in `results/ipc2023/METHOD/DOMAIN.LIMIT.jsonl` as it ends, and the
policy in `results/ipc2023/trained/`, so a test goes on after any stop and on any machine that has
these files. The table is made from them and written to `results/ipc2023.csv`.
"""

import argparse
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

from regoal.cli import script
from regoal.errors import RegoalError, UsageError
from regoal.records.run_record import POLICY
from regoal.reports.rendering import to_markdown
from regoal.sweeps.commands import copy_given_problems
from regoal.sweeps.sweep_file import Sweep, read_sweep
from regoal.system.files import write_text_atomically
from reproduction.cells import REPRODUCTION, RESULTS_FOLDER, read_records, run_cells
from reproduction.ipc2023_tables import (
    DOMAINS,
    METHODS,
    OPTIONS,
    coverage_table,
    quality_table,
    read_all,
    read_limits,
    to_csv,
    training_table,
)
from reproduction.timed_tests import find_left, run_test

SHIPPED = {
    "blocksworld": "blocks",
    "childsnack": "childsnack",
    "miconic": "miconic",
    "spanner": "spanner",
}
"""The policies that come with regoal, by the domains that they are for."""
TIME_LIMITS = ("2m", "30m")
MAX_STEPS = 20000


def main() -> None:
    """Run what has no record, and show the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("methods", nargs="*", help=f"some of {', '.join(METHODS)}; all if none")
    parser.add_argument("--only", nargs="+", default=DOMAINS, choices=DOMAINS, metavar="DOMAIN")
    parser.add_argument(
        "--time-limits", nargs="+", default=TIME_LIMITS, metavar="TIME",
        help=f"of a problem, the shortest first ({' '.join(TIME_LIMITS)})",
    )  # fmt: skip
    parser.add_argument("--table", action="store_true", help="run nothing, show the tables")
    arguments = parser.parse_args()
    if unknown := set(arguments.methods) - set(METHODS):
        parser.error(f"there is no method {min(unknown)!r}; choose from {', '.join(METHODS)}")
    folder = RESULTS_FOLDER / "ipc2023"
    failures = []
    if not arguments.table:
        sweep = read_sweep(REPRODUCTION / "ipc2023.toml")
        of_all = product(arguments.time_limits, arguments.methods or METHODS, arguments.only)
        for limit, method, domain in of_all:
            try:
                run(method, domain, sweep, folder, limit)
            except RegoalError as error:  # the others can go on
                print(f"regoal: error: {error}", flush=True)
                failures.append(error)
    results = read_all(folder)
    write_text_atomically(folder.with_suffix(".csv"), to_csv(results, read_limits(folder)))
    print(to_markdown(coverage_table(results)))
    print(to_markdown(quality_table(results)))
    print(to_markdown(training_table(read_records(folder.with_suffix(".jsonl")))), end="")
    if failures:
        raise failures[0]


def run(method: str, domain: str, sweep: Sweep, folder: Path, limit: str) -> None:
    """Test one method on one domain with so much time a problem.

    Raises `UsageError` if the test ends with an error.
    """
    name = f"{domain}-2023"
    kind = method.partition("-")[0]
    if kind == "shipped" and domain not in SHIPPED:
        return
    # Only the domain at hand: the files of the others need not be there.
    own = tuple(s for s in sweep.settings if s.domain == name)
    given = {key: value for key, value in sweep.given.items() if key == name}
    sweep = replace(sweep, settings=own, given=given)
    copy_given_problems(replace(sweep, test={}))
    problems = sweep.instances(name, "test")
    files = find_left(folder / method, domain, limit, problems)
    if not files:
        return
    if kind == "lama":
        words = ["lama", str(problems / "domain.pddl")]
    else:
        own_policy = folder / kind / f"{domain}.safetensors"
        policy = SHIPPED[domain] if kind == "shipped" else str(train(sweep, own_policy))
        words = ["evaluate", policy, "--max-steps", str(MAX_STEPS)]
    run_test([*words, *OPTIONS[method]], files, folder / method, domain, limit)


def train(sweep: Sweep, policy: Path) -> Path:
    """Train on the one domain of a sweep, unless `policy` is there; returns its path.

    Raises `UsageError` if the training fails, or if its policy is nowhere to be found.
    """
    if policy.is_file():
        return policy
    if failures := run_cells(sweep, RESULTS_FOLDER / "ipc2023.jsonl"):
        raise UsageError(f"{failures[0]}.")
    made = sweep.folder(sweep.settings[0]) / POLICY
    if not made.is_file():
        raise UsageError(
            f"{sweep.settings[0].name} is trained, but there is neither {policy} nor {made}. To "
            f"train it again, remove its line from {RESULTS_FOLDER / 'ipc2023.jsonl'}."
        )
    policy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(made, policy)
    return policy


if __name__ == "__main__":
    script(main)
