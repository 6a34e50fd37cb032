"""DQN with hindsight: the training loop (paper, "Deep Q-Network for GCRL")."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regoal.learning import td_learning
from regoal.learning.hindsight import hindsight_goals, into_dead_end, relabel
from regoal.learning.learner import Learner
from regoal.learning.replay import Replay
from regoal.learning.rollout import replayed, rollout
from regoal.learning.snapshot import Before
from regoal.learning.trajectory import Trajectory
from regoal.planning.relaxation import Relaxations
from regoal.planning.task import Task
from regoal.system.cancellation import StoppedError, stopping

FORGET_EVERY = 50
"""Episodes after which states that replay no longer holds are let go."""


@dataclass(frozen=True)
class Streams:
    """Independent random streams: one more draw in one shifts no other."""

    problems: np.random.Generator
    exploration: np.random.Generator
    hindsight: np.random.Generator
    replay: np.random.Generator
    depth: np.random.Generator
    ties: np.random.Generator

    @classmethod
    def from_seed(cls, seed: int) -> "Streams":
        """All streams from one seed."""
        return cls(*(np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(6)))


@dataclass(frozen=True)
class EpisodeStats:
    """What happened in one episode."""

    episode: int
    """Counted from 1."""
    trajectories: int
    solved: int
    """Trajectories that reached the problem's own goal."""
    parts: int
    """Relabelled parts of trajectories, stored for replay."""
    transitions: int
    """Steps in all parts together."""
    goal_size: float
    """Mean number of literals of the parts' goals."""
    trajectory_length: float
    """Mean number of steps of the parts."""
    loss: float
    """Mean loss of the optimisation steps; 0 while there is nothing to learn from."""
    temperature: float
    learning_rate: float
    explore_seconds: float
    optimise_seconds: float


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
    config = learner.config
    hindsight_goal = hindsight_goals(config.hindsight, streams.hindsight)
    relaxations = Relaxations()
    for episode in range(first_episode, config.episodes):
        if episode % FORGET_EVERY == 0 and episode > first_episode:
            forget_states(tasks, learner, replay)
        before = Before(learner, replay, streams)
        start = time.perf_counter()
        drawn = smallest(tasks, config.curriculum(episode))
        chosen = [drawn[i] for i in streams.problems.integers(len(drawn), size=config.trajectories)]
        trajectories = _explore(chosen, learner, streams, episode, stop)
        if not trajectories:
            before.restore()
            return
        parts = [part for t in trajectories for part in relabel(t, hindsight_goal)]
        dead_ends = _dead_ends(trajectories, relaxations) if config.learn_dead_ends else []
        for lesson in [*parts, *dead_ends]:
            replay.extend(lesson.transitions())
        explored = time.perf_counter()
        learning_rate = config.learning_rate(episode)
        losses = _optimise(learner, replay, streams, learning_rate, stop)
        if losses is None:
            before.restore()
            return
        yield EpisodeStats(
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
            explore_seconds=explored - start,
            optimise_seconds=time.perf_counter() - explored,
        )


def smallest(tasks: Sequence[Task], share: float) -> list[Task]:
    """The share of the tasks with the fewest objects, at least one, in the order that they have.

    All of a size are in it, or none.
    """
    sizes = sorted(len(task.objects) for task in tasks)
    most = sizes[min(len(tasks), max(1, math.ceil(share * len(tasks)))) - 1]
    return [task for task in tasks if len(task.objects) <= most]


def _explore(
    tasks: Sequence[Task],
    learner: Learner,
    streams: Streams,
    episode: int,
    stop: Callable[[], bool],
) -> list[Trajectory]:
    """A trajectory a task; each worker makes some and learns the others' actions.

    One worker has one stream for all, as always; several have one a trajectory, whoever makes it.
    Where `stop` was true for one, nothing is returned.
    """
    config, workers = learner.config, learner.workers
    mine = workers.share(len(tasks))
    rngs = [streams.exploration] * len(tasks)
    if workers.count > 1:
        rngs = [np.random.default_rng((config.seed, episode, i)) for i in range(len(tasks))]
    temperatures = [config.temperature(episode)] * len(tasks)
    if config.ladder:
        temperatures = config.temperature.ladder(episode, len(tasks))
    own: list[Trajectory] = []
    with contextlib.suppress(StoppedError), stopping(stop):
        own = rollout(
            tasks[mine],
            learner.q_values,
            learner.encoder,
            temperatures=temperatures[mine],
            horizon=config.horizon,
            rngs=rngs[mine],
            stop=stop,
        )
    actions = [t for part in workers.gather([t.actions for t in own]) for t in part]
    if len(actions) < len(tasks):
        return []
    found = dict(zip(range(len(tasks))[mine], own, strict=True))
    return [
        found[i] if i in found else replayed(task, actions[i], learner.encoder)
        for i, task in enumerate(tasks)
    ]


def forget_states(tasks: Sequence[Task], learner: Learner, replay: Replay) -> None:
    """Let go of every state but those in replay, as the library keeps all that a task ever met.

    Those are made anew from their atoms; nothing that is computed from them changes.
    """
    atoms = [(state, state.fluent_atoms) for state in replay.states()]
    for task in tasks:
        task.forget_states()
    replay.replace_states({state: state.task.state_of(known) for state, known in atoms})
    learner.forget_states()


def _dead_ends(trajectories: Sequence[Trajectory], relaxations: Relaxations) -> list[Trajectory]:
    """The ways into a dead end that trajectories took which missed their goal."""
    ended = [into_dead_end(t, relaxations) for t in trajectories if not t.solved]
    return [t for t in ended if t is not None]


def _optimise(
    learner: Learner,
    replay: Replay,
    streams: Streams,
    learning_rate: float,
    stop: Callable[[], bool],
) -> list[float] | None:
    """The optimisation steps of one episode; returns their losses, None where `stop` was true."""
    config = learner.config
    for group in learner.optimizer.param_groups:
        group["lr"] = learning_rate
    losses = []
    for step in range(1, config.updates + 1 if len(replay) else 1):
        if any(learner.workers.gather(stop())):
            return None
        sample = replay.sample(config.batch_size, streams.replay)
        depth = int(streams.depth.integers(1, config.layers)) if config.layers > 1 else 1
        try:
            with stopping(stop if learner.workers.count == 1 else lambda: False):
                loss, errors = learner.update(sample, depth)
        except StoppedError:
            return None
        losses.append(loss)
        if step % config.target_every == 0 or step == config.updates:
            learner.sync_target()
        if not math.isfinite(loss):
            break  # no priority can follow from it; whoever reads the statistics must stop
        replay.update(sample.slots, td_learning.priority(errors).double().numpy())
    return losses


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
