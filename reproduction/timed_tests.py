"""Tests of planners on folders of problems, with a time limit for each problem.

The record of a problem is kept in `FOLDER/DOMAIN.LIMIT.jsonl` as it ends, so a test goes on after
any stop and on any machine that has these files. What a short limit leaves can be tried again with
a longer one.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from regoal.errors import EXIT_DONE, UsageError
from regoal.planning.problem_files import problem_files
from regoal.records.results import Outcome, PlanResult
from regoal.records.run_record import read_results
from regoal.sweeps.commands import option_words
from regoal.sweeps.options import Value
from regoal.sweeps.run_sweep import PROGRAM
from regoal.system.files import natural_key
from regoal.system.units import seconds

LIMITS: Mapping[str, Value] = {"memory_limit": "8G"}


def read_domain(folder: Path, domain: str) -> list[PlanResult]:
    """Read the records of a domain, of all time limits.

    A problem has one record: the one with a plan if there is one, else the one of the longest try.
    """
    best: dict[str, PlanResult] = {}
    for path in sorted(folder.glob(f"{domain}.*.jsonl")):
        for result in read_results(path):
            known = best.setdefault(result.problem, result)
            if not known.solved and (result.solved or result.seconds > known.seconds):
                best[result.problem] = result
    return sorted(best.values(), key=lambda result: natural_key(result.problem))


def find_limit(folder: Path, domain: str) -> str:
    """Find the time that a problem had: the longest limit that has been tried on all that was left.

    It is a range if a longer one has been tried on some of them, and empty if there are no records.
    """
    late = {r.problem for r in read_domain(folder, domain) if r.outcome is Outcome.TIME_LIMIT}
    tried = {
        path.name.removeprefix(f"{domain}.").removesuffix(".jsonl"): _list_tried(path)
        for path in folder.glob(f"{domain}.*.jsonl")
    }
    limits = sorted(tried, key=seconds)
    complete = [limit for limit in limits if late <= tried[limit]]
    return " to ".join(dict.fromkeys([*complete[-1:], *limits[-1:]]))


def find_left(folder: Path, domain: str, limit: str, problems: Path) -> list[Path]:
    """Find the files of a test with a time limit; none if all have their records.

    Problems that a run with another limit has solved, or that have ended before its time, are not
    part of it.
    """
    tried = _list_tried(folder / f"{domain}.{limit}.jsonl")
    again = (Outcome.TIME_LIMIT, Outcome.ERROR)
    ended = {r.problem for r in read_domain(folder, domain) if r.outcome not in again}
    files = [p for p in problem_files(problems) if p.stem in tried or p.stem not in ended]
    left = sum(path.stem not in tried for path in files)
    print(f"{folder.name} {domain}: {left} problems left, {limit} each", flush=True)
    return files if left else []


def _list_tried(records: Path) -> set[str]:
    """Return the problems that have a record, but not those that are to be run again."""
    return {r.problem for r in read_results(records) if r.outcome is not Outcome.ERROR}


def run_test(
    command: Sequence[str], files: Sequence[Path], folder: Path, domain: str, limit: str
) -> None:
    """Run `regoal evaluate` or `regoal lama` on the files of one test, which may have begun.

    The domain file is next to them. Raises `UsageError` if the test ends with an error.
    """
    place = files[0].parent.parent / f"{folder.name}-{limit}"
    chosen = link_files([files[0].with_name("domain.pddl"), *files], place)
    records = folder / f"{domain}.{limit}.jsonl"
    words = [word for item in sorted(LIMITS.items()) for word in option_words(*item)]
    words += ["--time-limit", limit, "--problems", str(chosen), "--out", str(records), "--resume"]
    code = run_and_wait([*PROGRAM, *command, *words])
    if code != EXIT_DONE:
        raise UsageError(f"The test of {folder.name} on {domain} ended with exit code {code}.")


def link_files(files: Sequence[Path], folder: Path) -> Path:
    """Make a folder with links to these files and nothing else; returns it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in files:
        (folder / path.name).symlink_to(path.resolve())
    return folder


def run_and_wait(command: list[str]) -> int:
    """Run a command with one thread and return its exit code.

    It ends if this process is interrupted or terminated.
    """
    process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()  # a terminal has interrupted it too
        raise
    finally:
        process.terminate()
        process.wait()
