"""Running a sweep, a subprocess for each step.

What is finished is skipped, what was stopped goes on, and a run that fails stops no other.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from regoal.records.json_lines import write_json
from regoal.records.run_record import DONE
from regoal.sweeps.commands import SPLITS, STEPS, done_record, finished, generate_arguments
from regoal.sweeps.sweep_file import RunSetting, Sweep
from regoal.system.processes import Processes
from regoal.system.units import duration_text

PROGRAM = (sys.executable, "-m", "regoal.cli")


@dataclass(frozen=True)
class Failure:
    """A step that did not end with exit code 0, and where its output is."""

    step: str
    exit_code: int
    log: Path

    def __str__(self) -> str:
        """One line for the user, with the last one of the output."""
        code = f"exit code {self.exit_code}{self._last_line()}"
        return f"{self.step} ended with {code}; its output is in {self.log}"

    def _last_line(self) -> str:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            return ""
        return f" ({lines[-1]})" if lines else ""


def run_sweep(
    sweep: Sweep,
    *,
    jobs: int = 1,
    tell: Callable[[str], None] = print,
    program: Sequence[str] = PROGRAM,
) -> list[Failure]:
    """Run what is not finished, `jobs` at a time, and return what failed.

    Each run's output goes to a log next to its folder. On an interrupt every running process is
    terminated, so that it can save, and killed after a minute.
    """
    waiting = [setting for setting in sweep.settings if not finished(sweep, setting)]
    tell(f"{len(sweep.settings)} runs, {len(sweep.settings) - len(waiting)} of them finished")
    processes = Processes(jobs)
    failures: list[Failure] = []
    started = time.monotonic()
    with ThreadPoolExecutor(max_workers=max(jobs, 1)) as pool:
        try:
            for domain in dict.fromkeys(setting.domain for setting in waiting):
                if failure := _generate(sweep, domain, processes, program):
                    failures.append(failure)
                    waiting = [setting for setting in waiting if setting.domain != domain]
                    tell(str(failure))
            futures = {pool.submit(_run, sweep, s, processes, program, tell): s for s in waiting}
            for number, future in enumerate(as_completed(futures), start=1):
                failure = future.result()
                failures += [failure] if failure else []
                outcome = failure or f"{futures[future].name} finished"
                left = _left(number, len(waiting), time.monotonic() - started)
                tell(f"{number}/{len(waiting)} {outcome}{left}")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.stop()
    return failures


def _left(ended: int, runs: int, seconds: float) -> str:
    """About how long the other runs take if they are like those that have ended."""
    if ended == runs:
        return ""
    return f", about {duration_text(seconds / ended * (runs - ended))} left"


def _generate(
    sweep: Sweep, domain: str, processes: Processes, program: Sequence[str]
) -> Failure | None:
    for split in SPLITS:
        folder = sweep.instances(domain, split)
        if folder.is_dir():
            continue
        # Only a whole set gets the final name: half of one would be taken for all of it.
        unfinished = folder.with_name(f".{split}.{os.getpid()}.tmp")
        arguments = generate_arguments(sweep, domain, split, unfinished)
        log = folder.with_name(f"{split}.log")
        if code := processes.run([*program, *arguments], log):
            return Failure(f"generate {domain} --split {split}", code, log)
        try:
            unfinished.replace(folder)
        except OSError:
            if not folder.is_dir():
                raise
            shutil.rmtree(unfinished)  # another sweep was quicker, with the same set
    return None


def _run(
    sweep: Sweep,
    setting: RunSetting,
    processes: Processes,
    program: Sequence[str],
    tell: Callable[[str], None],
) -> Failure | None:
    folder = sweep.folder(setting)
    log = folder.with_name(f"{folder.name}.log")
    tell(f"{setting.name} begins; its output goes to {log}")
    for step in STEPS:
        arguments = step(sweep, setting)
        if code := processes.run([*program, *arguments], log):
            return Failure(f"{setting.name} {arguments[0]}", code, log)
    write_json(folder / DONE, done_record(sweep, setting))
    return None
