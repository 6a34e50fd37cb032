"""Running a sweep in processes of this machine, one for each step.

What is finished is skipped, what was stopped goes on, and a run that fails stops no other.
"""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from regoal.sweeps.cell import Failure, make_instances, run_cell
from regoal.sweeps.commands import copy_given_problems, finished
from regoal.sweeps.sweep_file import RunSetting, Sweep
from regoal.system.processes import Processes
from regoal.system.units import duration_text

PROGRAM = (sys.executable, "-m", "regoal.cli")


def run_sweep(
    sweep: Sweep,
    *,
    jobs: int = 1,
    tell: Callable[[str], None] = print,
    program: Sequence[str] = PROGRAM,
) -> list[Failure]:
    """Run what is not finished, `jobs` at a time, and return what failed.

    Each run's output goes to a log next to its folder. On an interrupt every running process is
    terminated, so that it can save, and killed after a minute. Raises `UsageError` if PDDL files
    are missing that the sweep file names.
    """
    # More threads than cores make small kernels several times slower.
    processes = Processes({"OMP_NUM_THREADS": "1"} if jobs > 1 else {})
    failures: list[Failure] = []
    with ThreadPoolExecutor(max_workers=max(jobs, 1)) as pool:
        try:
            waiting = prepare(sweep, processes, program, tell, failures)
            started = time.monotonic()
            futures = [pool.submit(run_cell, sweep, s, processes, program, tell) for s in waiting]
            for number, future in enumerate(as_completed(futures), start=1):
                ended = future.result()
                failures += [ended] if isinstance(ended, Failure) else []
                left = _say_time_left(number, len(waiting), time.monotonic() - started)
                tell(f"{number}/{len(waiting)} {ended}{left}")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.stop()
    return failures


def prepare(
    sweep: Sweep,
    processes: Processes,
    program: Sequence[str],
    tell: Callable[[str], None],
    failures: list[Failure],
) -> list[RunSetting]:
    """Make the problems of all runs that are not finished, and return these runs.

    If the problems of a domain cannot be made, that is added to `failures`, and its runs are left
    out. Raises `UsageError` if PDDL files are missing that the sweep file names.
    """
    copy_given_problems(sweep)
    waiting = [setting for setting in sweep.settings if not finished(sweep, setting)]
    tell(f"{len(sweep.settings)} runs, {len(sweep.settings) - len(waiting)} of them finished")
    for domain in dict.fromkeys(setting.domain for setting in waiting):
        if failure := make_instances(sweep, domain, processes, program):
            failures.append(failure)
            waiting = [setting for setting in waiting if setting.domain != domain]
            tell(str(failure))
    return waiting


def _say_time_left(ended: int, runs: int, seconds: float) -> str:
    """Say about how long the other runs take if they are like those that have ended."""
    if ended == runs:
        return ""
    return f", about {duration_text(seconds / ended * (runs - ended))} left"
