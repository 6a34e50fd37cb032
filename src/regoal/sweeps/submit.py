"""Running a sweep as an array of jobs of a cluster, by the library submitit.

A job that the cluster is about to stop passes that on to its training, which saves. The cluster
then runs the job again, and the training goes on from there.
"""

import logging
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from regoal.errors import EXIT_INTERNAL, UsageError
from regoal.sweeps.cell import Failure, run_cell
from regoal.sweeps.run_sweep import PROGRAM, prepare
from regoal.sweeps.sweep_file import RunSetting, Sweep
from regoal.system.processes import GRACE_S, Processes

if TYPE_CHECKING:
    import submitit

JOBS = "jobs"
"""The folder, in that of the sweep, for what submitit writes."""
POLL_S = 2.0
"""Seconds between two looks for jobs that have ended."""
MOST_TIMEOUTS = 20
"""How often the cluster runs a job again that has reached its time limit."""
TERMINATED = (-signal.SIGTERM, 128 + signal.SIGTERM)


class CellJob:
    """One run of a sweep as a job, which can be pickled; submitit calls it, and `checkpoint`."""

    def __init__(self, sweep: Sweep, setting: RunSetting, program: Sequence[str]) -> None:
        self._cell = (sweep, setting, program)
        self._processes: Processes | None = None
        self._running: Future[Failure | str] | None = None

    def __call__(self) -> Failure | str:
        """Run it; the result is that of `run_cell`."""
        cores = os.environ.get("SLURM_CPUS_PER_TASK", "1")
        processes = self._processes = Processes({"OMP_NUM_THREADS": cores})
        # The main thread has to be free for signals: see `checkpoint`.
        with ThreadPoolExecutor(max_workers=1) as pool:
            self._running = pool.submit(self._run, processes)
            ended = self._running.result()
        if isinstance(ended, Failure) and ended.exit_code in TERMINATED:
            # The cluster has signalled all processes of the job. It will soon stop or requeue it,
            # which must not be mistaken for a failure of the training.
            time.sleep(GRACE_S)
        return ended

    def checkpoint(self) -> "submitit.helpers.DelayedSubmission":
        """Let the training save and end; returns the job that goes on."""
        from submitit.helpers import DelayedSubmission

        if self._processes is not None:
            self._processes.stop()
        if self._running is not None:
            wait([self._running], GRACE_S)  # until it has released its claim
        return DelayedSubmission(CellJob(*self._cell))

    def _run(self, processes: Processes) -> Failure | str:
        # Clusters signal all processes of a job. These signals are for the main thread alone, and
        # the commands, which inherit this, would end without saving.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR1, signal.SIGUSR2))
        sweep, setting, program = self._cell
        return run_cell(sweep, setting, processes, program, _print_line)


def submit_sweep(
    sweep: Sweep,
    *,
    options: Mapping[str, str],
    jobs: int = 0,
    tell: Callable[[str], None] = print,
    program: Sequence[str] = PROGRAM,
) -> list[Failure]:
    """Submit what is not finished, wait for it, and return what failed.

    `options` are parameters of submitit's `AutoExecutor.update_parameters`, and `cluster`: `slurm`
    unless it says `local` or `debug`. At most `jobs` run at a time if that is above 0. The problems
    are made before, on this machine. Jobs stay in the queue if this process ends. Without SLURM's
    accounting, a job that was cancelled is waited for in vain. Raises
    `UsageError` if submitit is not installed, an option is wrong, or the cluster takes no jobs.
    """
    executor = _executor(sweep, options, jobs)
    failures: list[Failure] = []
    processes = Processes({})
    try:
        waiting = prepare(sweep, processes, program, tell, failures)
    finally:
        processes.stop()
    if not waiting:
        return failures
    submitted = _submit(executor, [CellJob(sweep, setting, program) for setting in waiting])
    # It warns at each look if the cluster keeps no accounts; results are found without them.
    logging.getLogger("submitit").setLevel(logging.ERROR)
    numbers = ", ".join(dict.fromkeys(str(job.job_id).split("_")[0] for job in submitted))
    tell(f"submitted to {executor.cluster} as job {numbers}; its output goes to {executor.folder}")
    pending = dict(zip(submitted, waiting, strict=True))
    while pending:
        for job in [job for job in pending if job.done()]:
            ended = _result(job, pending.pop(job))
            failures += [ended] if isinstance(ended, Failure) else []
            tell(f"{len(submitted) - len(pending)}/{len(submitted)} {ended}")
        if pending:
            time.sleep(POLL_S)
    return failures


def _executor(sweep: Sweep, options: Mapping[str, str], jobs: int) -> "submitit.AutoExecutor":
    try:
        import submitit
    except ImportError as error:
        raise UsageError("submitit is not installed: pip install 'regoal[cluster]'.") from error

    parameters = {name: _value(text) for name, text in options.items() if name != "cluster"}
    minutes = max((setting.budget_minutes for setting in sweep.settings), default=0)
    # The last validation and the test come on top of the budget.
    parameters.setdefault("timeout_min", math.ceil(2 * minutes) + 30)
    parameters.setdefault("name", "regoal")
    if jobs > 0:
        parameters.setdefault("slurm_array_parallelism", jobs)
    try:
        executor = submitit.AutoExecutor(
            sweep.out / JOBS,
            cluster=options.get("cluster", "slurm"),
            slurm_max_num_timeout=MOST_TIMEOUTS,
        )
        executor.update_parameters(**parameters)
    except (AssertionError, NameError, RuntimeError, ValueError) as error:
        raise UsageError(f"submitit: {error}") from error
    return executor


def _submit(
    executor: "submitit.AutoExecutor", cells: Sequence[CellJob]
) -> "list[submitit.Job[Failure | str]]":
    from submitit.core.utils import FailedJobError, FailedSubmissionError

    try:
        with executor.batch():
            return [executor.submit(cell) for cell in cells]
    except (FailedJobError, FailedSubmissionError, OSError) as error:
        raise UsageError(f"{executor.cluster} does not take the jobs: {error}") from error


def _result(job: "submitit.Job[Failure | str]", setting: RunSetting) -> Failure | str:
    """How a job ended; one that has left no result was cancelled, or has failed itself."""
    from submitit.core.utils import FailedJobError, UncompletedJobError

    try:
        return job.result()
    except (FailedJobError, UncompletedJobError):
        return Failure(f"{setting.name} as job {job.job_id}", EXIT_INTERNAL, job.paths.stderr)


def _value(text: str) -> Any:
    """An option as submitit wants it: a whole number, a number, a truth value or a text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), text)


def _print_line(text: str) -> None:
    print(text, file=sys.stdout, flush=True)
