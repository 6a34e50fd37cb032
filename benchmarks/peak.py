"""How much memory a few optimisation steps need at most, in a process of their own.

`python -m benchmarks.peak ours blocks 30` prints one number: the peak above what the process held
before the first step, in MB.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import ROOT, forget_peak, peak_mb, resident_mb
from benchmarks.ours import Ours
from benchmarks.theirs import Theirs
from benchmarks.work import DOMAINS, prepare

STEPS = 2


def measured(side: str, domain: str, layers: int) -> float:
    """The peak in a new process, MB."""
    command = [sys.executable, "-m", "benchmarks.peak", side, domain, str(layers)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{result.stderr[-2000:]}")
    return float(result.stdout)


def main() -> None:
    """Measure in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=("ours", "theirs"))
    parser.add_argument("domain", choices=DOMAINS)
    parser.add_argument("layers", type=int)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = prepare(arguments.domain, Path(folder))
        stack = (Ours if arguments.side == "ours" else Theirs)(work, arguments.layers)
        stack.use_threads(1)
        forget_peak()
        before = resident_mb()
        for turn in range(STEPS):
            stack.optimise(turn)
    print(round(peak_mb() - before, 1))


if __name__ == "__main__":
    main()
