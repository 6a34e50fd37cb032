"""Does memory grow while training? Resident memory after every episode.

Run `python -m benchmarks.memory [--episodes 500] [--out build/memory]`: trains on Blocks problems
with 2 to 6 blocks and 3 layers, and writes a JSON file and a figure. Replay and the encoder's
memory of states fill in the first part; what the second half adds an episode is the answer.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import machine
from regoal.config import TrainConfig
from regoal.domains.splits import write_split
from regoal.files import write_text_atomically
from regoal.learning.dqn import Streams, train
from regoal.learning.learner import Learner
from regoal.learning.replay import Replay
from regoal.networks import native
from regoal.networks.encoding import Encoder
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.planning.schema import schema_of
from regoal.planning.task import load_domain, load_task

LAYERS = 3
MOST_BLOCKS = 6


def resident(episodes: int) -> Iterator[float]:
    """Resident memory in MB before the first and after each episode."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write_split("blocks", "train", Path(folder))
        domain = load_domain(Path(folder) / "domain.pddl")
        tasks = [load_task(domain, path) for path in paths]
    tasks = [task for task in tasks if len(task.objects) <= MOST_BLOCKS]
    relations = relations_of(schema_of(domain))
    config = TrainConfig(layers=LAYERS, episodes=episodes)
    network = QNetwork(relations, config.embedding_size, seed=0)
    learner = Learner(network, Encoder(relations), config)
    replay = Replay(
        config.replay_capacity, exponent=config.priority_exponent, weight=config.priority_weight
    )
    yield machine.resident_mb()
    for _ in train(tasks, learner, replay, Streams.from_seed(0)):
        yield machine.resident_mb()


def growth(memory: list[float]) -> float:
    """MB an episode over the second half, by least squares.

    >>> round(growth([9.0, 10.0, 11.0, 12.0]), 3)
    1.0
    """
    half = memory[len(memory) // 2 :]
    return float(np.polyfit(range(len(half)), half, 1)[0]) if len(half) > 1 else 0.0


def draw(memory: list[float], out: Path) -> None:
    """Memory over episodes."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
    axes.plot(memory)
    axes.set(xlabel="episode", ylabel="resident memory, MB", ylim=(0, 1.15 * max(memory)))
    axes.set_title(f"second half: {1000 * growth(memory):+.1f} kB an episode", fontsize="medium")
    axes.grid(color="#e6e6e6", linewidth=0.6)
    figure.savefig(out, dpi=150)
    plt.close(figure)


def main() -> None:
    """Train, print now and then, and write the JSON file and the figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/memory"), help="without ending")
    parser.add_argument("--episodes", type=int, default=500)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    native.use_threads(1)
    memory: list[float] = []
    for megabytes in resident(arguments.episodes):
        memory.append(megabytes)
        if len(memory) % 50 == 1:
            print(f"after {len(memory) - 1:4} episodes {megabytes:8.1f} MB", flush=True)
    record: dict[str, Any] = machine.description() | {
        "layers": LAYERS,
        "resident_mb": memory,
        "mb_an_episode_in_the_second_half": growth(memory),
        "peak_mb": machine.peak_mb(),
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(arguments.out.with_suffix(".json"), json.dumps(record, indent=1) + "\n")
    draw(memory, arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
