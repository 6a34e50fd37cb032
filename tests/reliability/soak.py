"""The long soak, `make soak`: everything in this folder, for SOAK_MINUTES (10 unless set).

The last line of its report counts kills of trainings, resumes, inputs read and faults found. The
fuzz runs in a process beside the rest. Ends with exit code 1 where there was a fault.
"""

import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from reliability import watch
from reliability.evaluators import compare
from reliability.full_disk import fill_others, fill_trainings
from reliability.kills import kill_soak
from reliability.plans import judge_plans

MOST_INPUTS = 10**9
GRAMMAR_SHARE = 0.1
KILL_SHARE = 0.3
EVALUATOR_SHARE = 0.1
DISK_SHARE = 0.4
"""Shares of the time."""


def main() -> int:
    """Run everything; the exit code."""
    minutes = float(os.environ.get("SOAK_MINUTES", "10"))
    seed = int(os.environ.get("SOAK_SEED", str(time.time_ns() % 10**6)))
    folder = Path(tempfile.mkdtemp(prefix="regoal-soak-"))
    print(f"seed {seed}, {minutes:g} minutes, files in {folder}", flush=True)
    start, reports = time.monotonic(), []
    fuzz = threading.Thread(target=_fuzz, args=(folder, seed, 60 * minutes, reports))
    fuzz.start()

    def left() -> float:
        return 60 * minutes - (time.monotonic() - start)

    faults: list[str] = []
    killed = kill_soak(
        folder / "kill", seed=seed, kills=10**6, seconds=60 * minutes * KILL_SHARE, episodes=16
    )
    _tell(
        f"kills: {killed.kills} in {killed.trainings} trainings, {killed.in_writing} of them at a "
        f"write call, and {killed.terminated} SIGTERM",
        left(),
    )
    compared = compare(domains=10**9, seed=seed, seconds=60 * minutes * EVALUATOR_SHARE)
    _tell(f"engine and plain evaluator: {compared}", left())
    judged = judge_plans(
        seed=seed, right=int(52 * minutes), seconds_left=lambda: left() - 60 * minutes * DISK_SHARE
    )
    _tell(f"plans: {judged.right} right and {judged.mutated} mutated ones", left())
    _tell(f"  {dict(sorted((f'{k} {v}', n) for (k, v), n in judged.counts.items()))}", left())
    filled = fill_trainings(folder / "disk", seconds=left() * 0.75)
    run, files = folder / "disk" / "whole", folder / "disk" / "files"
    others = fill_others(folder / "other", run, files, most=max(2, int(minutes / 2)))
    _tell(f"full disk: {filled.runs} trainings and {others.runs} other commands", left())
    _tell(f"  write calls of each: {filled.calls | others.calls}", left())
    fuzz.join()
    for kind, report in zip(("mutated", "from grammars"), reports, strict=True):
        _tell(f"inputs {kind}: {report.inputs}, the slowest {report.slowest_s:.2f} s", left())
        faults += [str(fault) for fault in report.faults]
    faults += filled.faults + others.faults + judged.faults + killed.faults + compared.faults
    for fault in faults:
        print(f"fault: {fault}")
    if not faults:
        shutil.rmtree(folder)
    inputs = sum(report.inputs for report in reports)
    resumes = killed.resumes + filled.resumes
    print(f"soak: {killed.kills} kills, {resumes} resumes, {inputs} inputs, {len(faults)} faults")
    return 1 if faults else 0


def _fuzz(folder: Path, seed: int, seconds: float, reports: list[watch.Report]) -> None:
    shares = ((1 - GRAMMAR_SHARE, ()), (GRAMMAR_SHARE, watch.GRAMMAR))
    for share, extra in shares:
        # The grammars come in turn, each a part of the whole number.
        count = int(100 * seconds * share) if extra else MOST_INPUTS
        place = folder / ("grammar" if extra else "fuzz")
        reports.append(
            watch.fuzz(place, seed=seed, count=count, seconds=seconds * share, extra=extra)
        )


def _tell(text: str, left_s: float) -> None:
    print(f"{text} ({max(left_s, 0):.0f} s left)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
