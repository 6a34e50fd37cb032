"""Making the problems of a sweep, and making one run of it; each is done by one process only.

Several processes on one or many machines may work at one sweep in a shared folder. Each piece of
work is claimed first, so that no file is written by two.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from regoal.records.json_lines import write_json
from regoal.records.run_record import DONE
from regoal.sweeps.commands import (
    done_record,
    finished,
    generate_arguments,
    give_final_name,
    steps_of,
)
from regoal.sweeps.sweep_file import RunSetting, Sweep
from regoal.system.claims import Claim, holder_of, take
from regoal.system.processes import Processes

WAIT_S = 1.0
"""Seconds between two looks whether another process has made the problems."""


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


def make_instances(
    sweep: Sweep, domain: str, processes: Processes, program: Sequence[str]
) -> Failure | None:
    """Make the problems of one domain, or wait until another process has made them."""
    for split in sweep.splits(domain) if domain not in sweep.given else ():
        folder = sweep.instances(domain, split)
        while not folder.is_dir():
            claim = take(folder)
            if claim is None:
                time.sleep(WAIT_S)
                continue
            try:
                if folder.is_dir():  # made between the look and the claim
                    break
                if failure := _make_split(sweep, domain, split, claim, processes, program):
                    return failure
            finally:
                claim.release()
    return None


def _make_split(
    sweep: Sweep,
    domain: str,
    split: str,
    claim: Claim,
    processes: Processes,
    program: Sequence[str],
) -> Failure | None:
    folder = sweep.instances(domain, split)
    unfinished = claim.path.with_name(f"{claim.path.name}.tmp")
    log = folder.with_name(f"{split}.log")
    arguments = generate_arguments(sweep, domain, split, unfinished)
    if code := processes.run([*program, *arguments], log, claim.renew):
        return Failure(f"generate {domain} --split {split}", code, log)
    give_final_name(unfinished, folder)
    return None


def run_cell(
    sweep: Sweep,
    setting: RunSetting,
    processes: Processes,
    program: Sequence[str],
    tell: Callable[[str], None],
) -> Failure | str:
    """Train and test one run; returns the failure, or one line for the user on how it ended.

    A run that is finished, or at work in another process, is left as it is.
    """
    folder = sweep.folder(setting)
    claim = take(folder)
    if claim is None:
        return f"{setting.name} is left to {holder_of(folder) or 'another process'}"
    try:
        if finished(sweep, setting):
            return f"{setting.name} was finished by another process"
        log = folder.with_name(f"{folder.name}.log")
        tell(f"{setting.name} begins; its output goes to {log}")
        for step in steps_of(sweep, setting):
            arguments = step(sweep, setting)
            if code := processes.run([*program, *arguments], log, claim.renew):
                return Failure(f"{setting.name} {arguments[0]}", code, log)
        write_json(folder / DONE, done_record(sweep, setting))
        return f"{setting.name} finished"
    finally:
        claim.release()
