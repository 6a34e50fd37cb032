"""DQN with hindsight: the training loop (paper, "Deep Q-Network for GCRL")."""

import math
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from regoal.learning import td_learning
from regoal.learning.episode_stats import EpisodeStats
from regoal.learning.exploration import explore
from regoal.learning.hindsight import (
    HindsightGoal,
    dead_ends,
    have_dead_ends,
    hindsight_goals,
    other_transitions,
    relabel,
)
from regoal.learning.learner import Learner
from regoal.learning.problem_choice import choose_problems
from regoal.learning.replay import Replay
from regoal.learning.rollout import IsDead
from regoal.learning.snapshot import Training
from regoal.learning.streams import Streams
from regoal.planning.dead_ends import DeadEndsOfTasks
from regoal.planning.task import Task
from regoal.system.cancellation import StoppedError, stopping

FORGET_EVERY = 50
"""Episodes after which states that replay no longer holds are released."""


def train(
    tasks: Sequence[Task],
    learner: Learner,
    replay: Replay,
    streams: Streams,
    first_episode: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[EpisodeStats]:
    """Train until `config.episodes`; after each episode everything may be saved or evaluated.

    `stop` is asked between the steps of exploration and of optimisation. When true, the episode is
    undone and the iterator ends: everything is as it was after the episode before.
    """
    training = Training(tasks, learner, replay, streams)
    hindsight_goal = hindsight_goals(learner.config.hindsight, streams.hindsight)
    tests = DeadEndsOfTasks()
    is_careful = learner.config.learn_dead_ends and have_dead_ends(tasks, tests)
    is_dead = tests.prove if is_careful else None
    for episode in range(first_episode, learner.config.episodes):
        if episode % FORGET_EVERY == 0 and episode > first_episode:
            training.forget_states()
        before = training.state()
        try:
            stats = _episode(training, episode, hindsight_goal, tests, is_dead, stop)
        except StoppedError:
            training.restore(before)
            return
        yield stats


def _episode(
    training: Training,
    episode: int,
    hindsight_goal: HindsightGoal,
    tests: DeadEndsOfTasks,
    is_dead: IsDead | None,
    stop: Callable[[], bool],
) -> EpisodeStats:
    """Explore, relabel, store, optimise. Raises `StoppedError` once `stop` is true."""
    tasks, learner, replay, streams = training
    config = learner.config
    started = time.perf_counter()
    problems = choose_problems(tasks, config, episode, streams.problems)
    trajectories = explore(problems, learner, streams.exploration, episode, stop, is_dead)
    parts = [part for t in trajectories for part in relabel(t, hindsight_goal)]
    ways = dead_ends(trajectories, tests) if config.learn_dead_ends else []
    for lesson in [*parts, *ways]:
        replay.extend(lesson.transitions())
    for part in parts if config.learn_others else ():
        replay.extend(other_transitions(part, streams.others, tests if is_dead else None))
    for trajectory in trajectories:
        replay.extend(trajectory.mistaken_transitions())
    explored = time.perf_counter()
    learning_rate = config.learning_rate(episode) * learner.calm
    losses = _optimise(learner, replay, streams, learning_rate, stop)
    return EpisodeStats(
        episode=episode + 1,
        trajectories=len(trajectories),
        solved=sum(t.solved for t in trajectories),
        parts=len(parts),
        transitions=sum(len(part) for part in parts),
        goal_size=_mean([len(part.goal) for part in parts]),
        trajectory_length=_mean([len(part) for part in parts]),
        loss=_mean(losses),
        temperature=config.temperature(episode),
        learning_rate=learning_rate,
        explore_seconds=explored - started,
        optimise_seconds=time.perf_counter() - explored,
    )


def _optimise(
    learner: Learner,
    replay: Replay,
    streams: Streams,
    learning_rate: float,
    stop: Callable[[], bool],
) -> list[float]:
    """Take the optimisation steps of one episode; returns their losses. Raises `StoppedError`."""
    config, workers = learner.config, learner.workers
    for group in learner.optimizer.param_groups:
        group["lr"] = learning_rate
    losses = []
    for step in range(1, config.updates + 1 if len(replay) else 1):
        if any(workers.gather(stop())):
            raise StoppedError
        sample = replay.sample(config.batch_size, streams.replay)
        depth = int(streams.depth.integers(1, config.layers)) if config.layers > 1 else 1
        # Several workers finish a step together, or one would wait for another.
        with stopping(stop if workers.count == 1 else lambda: False):
            loss, errors = learner.update(sample, depth)
        losses.append(loss)
        if step % config.target_every == 0 or step == config.updates:
            learner.sync_target()
        if not math.isfinite(loss):
            break  # no priority can follow from it; whoever reads the statistics must stop
        replay.update(sample.slots, td_learning.priority(errors).double().numpy())
    return losses


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
