"""The work on which both stacks are measured: the same problems, walks, goals and batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

import numpy as np
import torch

from regoal.config import PAPER, Decay, TrainConfig
from regoal.domains import visitall
from regoal.domains.splits import domain_pddl, write_split
from regoal.learning.hindsight import hindsight_goals, relabel
from regoal.learning.trajectory import Trajectory, Transition
from regoal.planning.actions import GroundAction
from regoal.planning.load import load_domain, load_task
from regoal.planning.task import Task
from regoal.system.files import write_text_atomically

LARGE = "visitall-20x20"
"""A domain of large states: four grids of 400 cells instead of a split."""
DOMAINS = ("blocks", "gripper", "miconic", LARGE)

BATCHES = 8
SIDE_BY_SIDE = 4
"""Trajectories explored at the same time (paper, "Hyperparameters")."""
GREEDY_PROBLEMS = 8
WALKS = 32
ENCODED = 64
"""The most states on which encoding is timed."""
LARGE_BATCH = 4
UNIFORM = 1000.0
"""A temperature at which actions are drawn evenly, as an untrained network of ours does. So both
stacks walk alike, whatever their initial Q-values are."""


class Timed(NamedTuple):
    """One measurement."""

    seconds: float
    units: int
    """Optimisation steps, exploration steps, or whatever the seconds are divided by."""
    actions: int = 0
    """Actions taken meanwhile, which show that both stacks did equal work."""

    @property
    def each(self) -> float:
        """Seconds per unit."""
        return self.seconds / self.units


class Stack(Protocol):
    """One of the two implementations, ready to be measured on a `Work`."""

    layers: int

    def use_threads(self, count: int) -> None:
        """Compute with this many threads from now on."""

    def optimise(self, turn: int) -> Timed:
        """Time one optimisation step on batch `turn`, without target values known before."""

    def explore(self, steps: int) -> Timed:
        """Time exploration; a step is one action in each of the trajectories."""

    def warm_up_episode(self) -> None:
        """Explore once, so that there is something to replay."""

    def episode(self) -> Timed:
        """Time one training episode: rollouts, relabelling and optimisation steps."""

    def greedy(self, steps: int) -> Timed:
        """Time greedy execution on the test problems; a unit is one action."""

    def encode(self) -> Timed:
        """Time the encoding of new states, with applicable actions and goals, as input tensors."""

    def encode_again(self) -> Timed:
        """Time the encoding of the last `encode`'s states once more, as replay does."""


@dataclass(frozen=True)
class Work:
    """The problems of one domain, and what was drawn from them with a fixed seed."""

    name: str
    domain: Path
    tasks: tuple[Task, ...]
    """Training problems, in the order of the split."""
    test_tasks: tuple[Task, ...]
    """The test problems for greedy execution."""
    explored: tuple[int, ...]
    """Positions of the training problems on which exploration is measured."""
    walks: tuple[Trajectory, ...]
    """Random walks in training problems."""
    batches: tuple[tuple[Transition, ...], ...]
    """Relabelled steps of these walks, with a batch for each optimisation step."""
    batch_size: int
    encoded: frozenset[tuple[int, int]]
    """Steps (walk, position) to a state that no earlier step reaches."""

    def config(self, layers: int) -> TrainConfig:
        """Return the paper's hyperparameters at this depth, with even exploration and no end."""
        return TrainConfig(
            layers=layers,
            batch_size=self.batch_size,
            temperature=Decay(start=UNIFORM, end=UNIFORM, episodes=1),
            learning_rate=Decay(start=1e-4, end=1e-4, episodes=1),
            episodes=1_000_000,
        )

    def depth(self, turn: int, layers: int) -> int:
        """Draw the layer for the second readout of an optimisation step."""
        return int(np.random.default_rng(turn).integers(1, layers))


def prepare(name: str, folder: Path, seed: int = 0, batch_size: int | None = None) -> Work:
    """Write the problems of `name` into `folder` and draw walks and batches from them.

    Unless `batch_size` is given, batches have the paper's size, and 4 on the large domain.
    """
    train, test = (
        _write_large(folder, seed) if name == LARGE else _write_problems(name, folder, seed)
    )
    domain = load_domain(train[0].parent / "domain.pddl")
    tasks = tuple(load_task(domain, path) for path in train)
    by_size = sorted(range(len(tasks)), key=lambda i: len(tasks[i].objects))
    rng = np.random.default_rng(seed)
    walks = tuple(
        random_walk(tasks[i], PAPER.horizon, rng) for i in rng.integers(len(tasks), size=WALKS)
    )
    batch_size = batch_size or (LARGE_BATCH if name == LARGE else PAPER.batch_size)
    return Work(
        name=name,
        domain=domain.path,
        tasks=tasks,
        test_tasks=tuple(load_task(domain, path) for path in test),
        explored=tuple(by_size[i] for i in _spread(len(tasks) // 2, len(tasks), SIDE_BY_SIDE)),
        walks=walks,
        batches=draw_batches(walks, BATCHES, batch_size, rng),
        batch_size=batch_size,
        encoded=frozenset(_find_new_steps(walks)),
    )


def random_walk(task: Task, length: int, rng: np.random.Generator) -> Trajectory:
    """Walk from the initial state by evenly drawn actions, at most `length`."""
    states, actions = [task.initial_state], []
    for _ in range(length):
        applicable = task.applicable_actions(states[-1])
        actions.append(int(rng.integers(len(applicable))))
        states.append(task.successor(states[-1], applicable[actions[-1]]))
    return Trajectory(tuple(states), tuple(actions), task.goal)


def actions_of(walk: Trajectory) -> list[GroundAction]:
    """Return the walk's actions as values."""
    return [
        state.task.applicable_actions(state)[action]
        for state, action in zip(walk.states, walk.actions, strict=False)
    ]


def draw_batches(
    walks: Sequence[Trajectory], count: int, size: int, rng: np.random.Generator
) -> tuple[tuple[Transition, ...], ...]:
    """Draw batches of the walks' steps, relabelled with lifted hindsight goals."""
    hindsight_goal = hindsight_goals("lifted", rng)
    parts = [part for walk in walks for part in relabel(walk, hindsight_goal)]
    pool = [transition for part in parts for transition in part.transitions()]
    return tuple(tuple(pool[i] for i in rng.integers(len(pool), size=size)) for _ in range(count))


def finish(device: torch.device) -> None:
    """Wait until a GPU has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _find_new_steps(walks: Sequence[Trajectory]) -> list[tuple[int, int]]:
    """Find at most `ENCODED` steps to new states, evenly spread over the walks."""
    seen = {walk.states[0] for walk in walks}
    found = []
    for i, walk in enumerate(walks):
        for j, state in enumerate(walk.states[1:]):
            if state not in seen:
                seen.add(state)
                found.append((i, j))
    return found[:: -(-len(found) // ENCODED)]


def _write_problems(name: str, folder: Path, seed: int) -> tuple[list[Path], list[Path]]:
    train = write_split(name, "train", folder / "train", seed)
    test = write_split(name, "test", folder / "test", seed)
    return train, [test[i] for i in _spread(0, len(test), GREEDY_PROBLEMS)]


def _write_large(folder: Path, seed: int) -> tuple[list[Path], list[Path]]:
    folder.mkdir(parents=True, exist_ok=True)
    write_text_atomically(folder / "domain.pddl", domain_pddl("visitall"))
    paths = []
    for i in range(SIDE_BY_SIDE):
        instance = visitall.generate(Random(f"{LARGE} {seed} {i}"), side=20)
        paths.append(folder / f"p{i + 1:03}.pddl")
        write_text_atomically(paths[-1], instance.to_pddl())
    return paths, paths


def _spread(first: int, end: int, count: int) -> list[int]:
    """Spread `count` positions from `first` to `end - 1` as evenly as possible."""
    return [round(x) for x in np.linspace(first, end - 1, count)]
