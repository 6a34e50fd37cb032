"""Seconds per episode on Blocks: threads of one process against several workers, interleaved.

It also prints the processor time of the first process. If that process has one thread, this is the
time that an episode would take on an idle machine.

python -m benchmarks.workers --layers 30 100 --repeats 3 --episodes 6
"""

import argparse
import os
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from regoal.config import LAPTOP
from regoal.domains.splits import write_split
from regoal.runs.news import Progress
from regoal.runs.settings import RunSettings
from regoal.runs.training_run import run_training

KINDS = ((1, 1), (1, 2), (2, 1))
"""Pairs of a number of workers, and of threads in each."""
WARM = 2
"""How many first episodes do not count, because the replay buffer and the caches fill up."""


def measure_episodes(
    folder: Path, layers: int, kind: tuple[int, int], episodes: int
) -> list[tuple[float, float]]:
    """Measure wall-clock and processor seconds of each episode after the first ones."""
    at = []

    def tell(news: str | Progress) -> None:
        if isinstance(news, Progress):
            at.append((time.perf_counter(), time.process_time()))

    with tempfile.TemporaryDirectory() as out:
        config = replace(
            LAPTOP, layers=layers, episodes=WARM + episodes, validate_every=1000, validation_steps=1
        )
        settings = RunSettings(
            domain=folder / "train" / "domain.pddl",
            problems=folder / "train",
            validation=folder / "validation",
            out=Path(out) / "run",
            config=config,
            preset="laptop",
            name="blocks",
            workers=kind[0],
            threads=kind[1],
        )
        run_training(settings, tell)
    return [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(at[WARM - 1 :])]


def main() -> None:
    """Print a line for each number of layers and each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=6)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for split in ("train", "validation"):
            write_split("blocks", split, folder / split, 0)
        for layers in arguments.layers:
            times: dict[tuple[int, int], list[tuple[float, float]]] = {kind: [] for kind in KINDS}
            for _ in range(arguments.repeats):
                for kind in KINDS:
                    times[kind] += measure_episodes(folder, layers, kind, arguments.episodes)
            for (workers, threads), found in times.items():
                clock, processor = (sorted(x) for x in zip(*found, strict=True))
                print(
                    f"{layers} layers, {workers} worker(s) of {threads} thread(s), an episode: "
                    f"{median(clock):.2f} s ({clock[0]:.2f} to {clock[-1]:.2f}), processor "
                    f"{median(processor):.2f} s ({processor[0]:.2f} to {processor[-1]:.2f}); "
                    f"{len(clock)} episodes, load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
