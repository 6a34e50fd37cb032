"""The trajectories of one episode: at one temperature or several, by one worker or several."""

import contextlib
from collections.abc import Callable, Sequence

import numpy as np

from regoal.config import TrainConfig
from regoal.learning.learner import Learner
from regoal.learning.rollout import IsDead, replayed, rollout
from regoal.learning.trajectory import Trajectory
from regoal.planning.task import Task
from regoal.system.cancellation import StoppedError, stopping


def explore(
    tasks: Sequence[Task],
    learner: Learner,
    rng: np.random.Generator,
    episode: int,
    stop: Callable[[], bool],
    is_dead: IsDead | None = None,
) -> list[Trajectory]:
    """Walk one trajectory a task. Raises `StoppedError` if `stop` is true for some worker.

    Each worker makes some trajectories and receives the actions of the others'. With `is_dead`,
    steps into dead ends are taken back.
    """
    mine = learner.workers.share(len(tasks))
    own: list[Trajectory] = []
    with contextlib.suppress(StoppedError), stopping(stop):
        own = rollout(
            tasks[mine],
            learner.q_values,
            learner.encoder,
            temperatures=_temperatures(learner.config, episode, len(tasks))[mine],
            horizon=learner.config.horizon,
            rngs=_rngs(learner, rng, episode, len(tasks))[mine],
            is_dead=is_dead,
            stop=stop,
        )
    reports = [(t.actions, [(m.step, m.action) for m in t.mistakes]) for t in own]
    all_reports = [report for part in learner.workers.gather(reports) for report in part]
    if len(all_reports) < len(tasks):
        raise StoppedError
    found = dict(zip(range(len(tasks))[mine], own, strict=True))
    return [
        found[i] if i in found else replayed(task, *all_reports[i], learner.encoder)
        for i, task in enumerate(tasks)
    ]


def _temperatures(config: TrainConfig, episode: int, trajectories: int) -> list[float]:
    """The temperature of each trajectory."""
    if config.ladder:
        return config.temperature.ladder(episode, trajectories)
    return [config.temperature(episode)] * trajectories


def _rngs(
    learner: Learner, rng: np.random.Generator, episode: int, trajectories: int
) -> list[np.random.Generator]:
    """The random stream of each trajectory.

    One worker has one stream for all. Several have one a trajectory, the same whoever makes it.
    """
    if learner.workers.count == 1:
        return [rng] * trajectories
    seed = learner.config.seed
    return [np.random.default_rng((seed, episode, i)) for i in range(trajectories)]
