"""The peak memory of a few optimisation steps, measured in a new process.

`python -m benchmarks.peak ours blocks 30` prints one number: by how many MB the peak is above what
the process held before the first step.
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


def measure_in_new_process(side: str, domain: str, layers: int) -> float:
    """Measure the peak in a new process, in MB."""
    command = [sys.executable, "-m", "benchmarks.peak", side, domain, str(layers)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{result.stderr[-2000:]}")
    return float(result.stdout)


def main() -> None:
    """Measure in this process, and print the peak."""
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
