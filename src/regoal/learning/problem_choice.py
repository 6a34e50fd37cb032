"""Which training problems an episode explores: random ones, small ones first (the curriculum)."""

import math
from collections.abc import Sequence

import numpy as np

from regoal.config import TrainConfig
from regoal.planning.task import Task


def choose_problems(
    tasks: Sequence[Task], config: TrainConfig, episode: int, rng: np.random.Generator
) -> list[Task]:
    """Draw a problem for each trajectory of an episode, with replacement."""
    allowed = smallest(tasks, config.curriculum(episode))
    return [allowed[i] for i in rng.integers(len(allowed), size=config.trajectories)]


def smallest(tasks: Sequence[Task], share: float) -> list[Task]:
    """The share of the tasks with the fewest objects, at least one, in the order that they have.

    All of a size are in it, or none.
    """
    sizes = sorted(len(task.objects) for task in tasks)
    most = sizes[min(len(tasks), max(1, math.ceil(share * len(tasks)))) - 1]
    return [task for task in tasks if len(task.objects) <= most]
