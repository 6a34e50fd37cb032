"""Does memory grow during training? Measures resident memory after every episode of a run.

Run `python -m benchmarks.memory [--episodes 500] [--out build/memory]`. It trains on the paper's
Blocks problems: LAPTOP preset with 3 layers, a validation every 50 episodes, one thread. It writes
a JSON file and a figure. Every 50 episodes, the states that replay does not hold are forgotten. So
memory swings, and the highest value in each 50 episodes counts. Replay and the memory of states
fill up in the first part of the run.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import machine
from regoal.cli import script
from regoal.config import LAPTOP
from regoal.domains.splits import write_split
from regoal.learning.dqn import FORGET_EVERY
from regoal.runs.news import Progress
from regoal.runs.settings import RunSettings
from regoal.runs.training_run import run_training
from regoal.system.files import write_text_atomically

DOMAIN = "blocks"
LAYERS = 3
SHOWN_EVERY = 10


def measure(episodes: int) -> list[float]:
    """Measure resident memory in MB, before the first episode and after each."""
    memory = [machine.resident_mb()]

    def tell(news: str | Progress) -> None:
        if isinstance(news, Progress):
            memory.append(machine.resident_mb())
            if news.episode % FORGET_EVERY == 0:
                print(f"after {news.episode:4} episodes {memory[-1]:8.1f} MB", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for split in ("train", "validation"):
            write_split(DOMAIN, split, folder / split)
        settings = RunSettings(
            domain=folder / "train" / "domain.pddl",
            problems=folder / "train",
            validation=folder / "validation",
            out=folder / "run",
            config=replace(
                LAPTOP, layers=LAYERS, episodes=episodes, patience=0, validate_every=FORGET_EVERY
            ),
            preset="laptop",
            name=DOMAIN,
        )
        summary = run_training(settings, tell)
    if summary.signal is not None:
        sys.exit(summary.exit_code)
    return memory


def highest(memory: Sequence[float]) -> list[float]:
    """Return the highest value in each run of episodes between two times that states are forgotten.

    >>> highest([9.0] + [10.0] * 49 + [30.0] + [20.0] * 50)
    [30.0, 20.0]
    """
    return [
        max(memory[i : i + FORGET_EVERY])
        for i in range(1, len(memory) - FORGET_EVERY + 1, FORGET_EVERY)
    ]


def growth(memory: Sequence[float]) -> float:
    """Return the MB per episode, by least squares through the second half of the highest values.

    >>> growth([float(i // 50) for i in range(501)])
    0.02
    """
    half = highest(memory)[len(highest(memory)) // 2 :]
    if len(half) < 2:
        return 0.0
    return round(float(np.polyfit(range(len(half)), half, 1)[0]) / FORGET_EVERY, 6)


def draw(memory: Sequence[float], out: Path) -> None:
    """Draw memory over episodes."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
    axes.plot(memory)
    axes.set(xlabel="episode", ylabel="resident memory, MB", ylim=(0, 1.15 * max(memory)))
    title = f"highest of each {FORGET_EVERY} episodes, second half: "
    title += f"{1000 * growth(memory):+.0f} kB an episode"
    axes.set_title(title, fontsize="medium")
    axes.grid(color="#e6e6e6", linewidth=0.6)
    figure.savefig(out, dpi=100)
    plt.close(figure)


def main() -> None:
    """Train, print the memory now and then, and write the JSON file and the figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("build/memory"), help="path of the files, without ending"
    )
    parser.add_argument("--episodes", type=int, default=500)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    description = machine.description()
    memory = measure(arguments.episodes)
    record: dict[str, Any] = description | {
        "domain": DOMAIN,
        "layers": LAYERS,
        "resident_mb": {i: round(memory[i], 1) for i in range(0, len(memory), SHOWN_EVERY)},
        "highest_mb": [round(x, 1) for x in highest(memory)],
        "mb_an_episode_in_the_second_half": growth(memory),
        "peak_mb": round(machine.peak_mb(), 1),
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(arguments.out.with_suffix(".json"), json.dumps(record, indent=1) + "\n")
    draw(memory, arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    script(main)
