"""How the time of one optimisation step grows with the problem and with the batch.

Run `python -m benchmarks.growth [--out build/growth] [--largest 1000]`. It writes a JSON file and a
figure in a few minutes. By objects: batches of 8 transitions of one problem with 10 to 1000
objects, which are balls of Gripper or cells of Visitall. By batch: 1 to 256 transitions of Blocks'
training problems. Both are drawn against the atoms of the online network's input, on logarithmic
axes. There are 30 layers, one thread, and no target values known before. The time is the least
processor time of several steps, which other jobs on the machine hardly change.
"""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from benchmarks import machine
from benchmarks.work import draw_batches, prepare, random_walk
from regoal.cli import script
from regoal.config import TrainConfig
from regoal.domains import gripper, visitall
from regoal.domains.splits import domain_pddl
from regoal.learning.learner import Learner
from regoal.learning.replay import Sample
from regoal.learning.trajectory import Transition
from regoal.networks.encoder import Encoder
from regoal.networks.kernels.cpu import kernel as cpu_kernel
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.task import Task
from regoal.system.files import write_text_atomically

LAYERS = 30
OBJECTS = (10, 18, 32, 56, 100, 178, 316, 562, 1000)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
REPEATS = 5
Point = dict[str, float]


def measure_step(transitions: Sequence[Transition]) -> Point:
    """Measure the input's atoms, and the processor seconds of one optimisation step on it."""
    relations = relations_of(schema_of(transitions[0].state.task.domain))
    encoder, config = Encoder(relations), TrainConfig(layers=LAYERS)
    learner = Learner(QNetwork(relations, config.embedding_size, seed=0), encoder, config)
    batch = encoder.batch((t.state, t.goal) for t in transitions)
    size = len(transitions)
    sample = Sample(np.arange(size), list(transitions), np.ones(size))
    seconds = []
    for _ in range(REPEATS + 1):  # the first one also encodes and allocates: left out
        learner.sync_target()
        start = time.process_time()
        learner.update(sample, LAYERS // 2)
        seconds.append(time.process_time() - start)
    return {
        "batch": size,
        "objects": len(transitions[0].state.task.objects),
        "nodes": batch.nodes,
        "atoms": int(batch.atom_counts.sum()),
        "seconds": min(seconds[1:]),
        "slowest": max(seconds[1:]),
    }


def by_objects(domain: str, largest: int) -> Iterator[Point]:
    """Yield a point for each problem size: steps of short random walks under the problem's goal."""
    for objects in (n for n in OBJECTS if n <= largest):
        with tempfile.TemporaryDirectory() as folder:
            task = make_task(domain, objects, Path(folder))
            rng = np.random.default_rng(0)
            steps = [step for _ in range(8) for step in random_walk(task, 20, rng).transitions()]
            yield measure_step([steps[i] for i in rng.integers(len(steps), size=8)])


def make_task(domain: str, objects: int, folder: Path) -> Task:
    """Write and load a problem with about this many objects."""
    if domain == "gripper":
        instance = gripper.generate(Random(0), balls=objects - 4)
    else:
        instance = visitall.generate(Random(0), side=round(math.sqrt(objects)))
    for name, text in (("domain", domain_pddl(domain)), ("problem", instance.to_pddl())):
        write_text_atomically(folder / f"{name}.pddl", text)
    return load_task(load_domain(folder / "domain.pddl"), folder / "problem.pddl")


def by_batch() -> Iterator[Point]:
    """Yield a point for each batch size."""
    with tempfile.TemporaryDirectory() as folder:
        work = prepare("blocks", Path(folder))
        rng = np.random.default_rng(0)
        for size in BATCHES:
            yield measure_step(draw_batches(work.walks, 1, size, rng)[0])


def fit(points: Sequence[Point]) -> dict[str, float]:
    """Fit the growth of the time with the atoms, by least squares.

    `power` is the slope on logarithmic axes over the larger half of the points; in smaller batches,
    the fixed cost of each call hides the growth. `ms` and `us_an_atom` describe the line through
    all points, and `r2` is its share of the variance.

    >>> fit([{"atoms": float(n), "seconds": 0.001 + 2e-6 * n} for n in (1, 10, 10**8, 10**9)])
    {'power': 1.0, 'ms': 1.0, 'us_an_atom': 2.0, 'r2': 1.0}
    """
    x, y = (np.array([p[key] for p in points]) for key in ("atoms", "seconds"))
    half = len(points) // 2
    power = np.polyfit(np.log(x[half:]), np.log(y[half:]), 1)[0]
    slope, start = np.polyfit(x, y, 1)
    left = np.sum((y - start - slope * x) ** 2) / np.sum((y - y.mean()) ** 2)
    found = {"power": power, "ms": 1e3 * start, "us_an_atom": 1e6 * slope, "r2": 1 - left}
    return {name: round(float(value), 3) for name, value in found.items()}


def draw(series: dict[str, list[Point]], out: Path) -> None:
    """Draw seconds against atoms, with a line for each series."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 4), layout="constrained")
    for (name, points), marker in zip(series.items(), "os^", strict=True):
        axes.plot(
            [p["atoms"] for p in points], [1000 * p["seconds"] for p in points],
            marker=marker, label=f"{name}: power {fit(points)['power']:.2f}",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="atoms in the batch's input")
    axes.set(ylabel="one optimisation step, processor ms", title=f"{LAYERS} layers, one thread")
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.legend(frameon=False)
    figure.savefig(out, dpi=100)
    plt.close(figure)


def main() -> None:
    """Measure, print, and write the JSON file and the figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("build/growth"), help="path of the files, without ending"
    )
    parser.add_argument(
        "--largest", type=int, default=OBJECTS[-1], help="most objects of a problem"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cpu_kernel.use_threads(1)
    series: dict[str, list[Point]] = {}
    record: dict[str, Any] = machine.description() | {"layers": LAYERS, "series": series}
    for name, points in (
        ("Gripper, 10 to 1000 objects", by_objects("gripper", arguments.largest)),
        ("Visitall, 10 to 1000 objects", by_objects("visitall", arguments.largest)),
        ("Blocks, batch 1 to 256", by_batch()),
    ):
        series[name] = []
        for point in points:
            series[name].append(point)
            print(
                f"{name:30} {point['atoms']:8.0f} atoms {1000 * point['seconds']:9.2f} ms",
                flush=True,
            )
    record["fits"] = {name: fit(points) for name, points in series.items()}
    print(json.dumps(record["fits"], indent=1))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(arguments.out.with_suffix(".json"), json.dumps(record, indent=1) + "\n")
    draw(series, arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    script(main)
