"""DQN with hindsight: the learner and the training loop (paper, "Deep Q-Network for GCRL")."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regoal.config import TrainConfig
from regoal.learning import td_learning
from regoal.learning.hindsight import hindsight_goals, into_dead_end, relabel
from regoal.learning.parallel import ALONE, Workers
from regoal.learning.replay import Replay, Sample
from regoal.learning.rollout import replayed, rollout
from regoal.learning.trajectory import Trajectory, Transition
from regoal.networks.encoding import Encoder
from regoal.networks.q_network import QNetwork
from regoal.planning.goals import Goal
from regoal.planning.task import State, Task

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


class Learner:
    """The online and the target network, and one optimisation step on a sample."""

    def __init__(
        self,
        network: QNetwork,
        encoder: Encoder,
        config: TrainConfig,
        workers: Workers = ALONE,
    ) -> None:
        self.config = config
        self.encoder = encoder
        self.workers = workers
        self.online = network
        self.device = network.weights.device
        self.target = QNetwork(network.relations, network.layout.size, seed=0).to(self.device)
        self.target.requires_grad_(False)
        self.optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate.start)
        self._target_values: dict[tuple[State, Goal], float] = {}
        self.sync_target()

    def sync_target(self) -> None:
        """Copy the online weights into the target network; its remembered values end."""
        self.target.load_state_dict(self.online.state_dict())
        self._target_values.clear()

    def forget_states(self) -> None:
        """Drop what is remembered of states: their encodings and target values."""
        self.encoder.forget_states()
        self._target_values.clear()

    def trained_weights(self) -> Tensor:
        """A copy of the online weights, zero for the relations that no update has touched yet.

        It lies on the CPU. The random weights of the others would only disturb: think of goals
        with predicates that no training goal has.
        """
        weights, layout = self.online.weights.detach().cpu().clone(), self.online.layout
        moments = self.optimizer.state[self.online.weights].get("exp_avg_sq")
        for i in range(len(layout.arities)):
            touched = moments is not None and layout.part(moments, f"message.{i}.bias_out").any()
            if not touched:
                for part in layout.mlp(weights, f"message.{i}"):
                    part.zero_()
        return weights

    def q_values(self, pairs: Sequence[tuple[State, Goal]]) -> list[Tensor]:
        """Q-values of every applicable action of each pair, from the online network."""
        return self.online.q_values(self.encoder.batch(pairs), self.config.layers)

    def update(self, sample: Sample, depth: int) -> tuple[float, Tensor]:
        """One optimisation step; the loss is taken after `depth` layers too (paper, "Model").

        Each worker takes a part of the sample, of which there must be one for each, and all take
        the step of the whole. Returns the loss and the TD errors [B] of the last layer, on the CPU.
        """
        config, size = self.config, len(sample.transitions)
        mine = self.workers.share(size)
        transitions = sample.transitions[mine]
        solved = torch.tensor([t.solved for t in transitions])
        next_value = self._next_values(sample.transitions)[mine]
        target = td_learning.td_target(next_value, solved, discount=config.discount)
        target = target.to(self.device)
        weight = torch.from_numpy(sample.weights[mine]).float().to(self.device)
        values = self._values(transitions, depth)
        errors = [td_learning.td_error(value, target) for value in values]
        losses = [
            td_learning.weighted_mean(
                td_learning.huber_loss(error, delta=config.huber_delta), weight
            )
            for error in errors
        ]
        loss = torch.stack(losses).sum() * (len(transitions) / size)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        all_errors = loss.new_zeros(size)
        all_errors[mine] = errors[-1].detach()
        weights = self.online.weights
        assert weights.grad is not None
        weights.grad, loss, all_errors = self.workers.sum(weights.grad, loss.detach(), all_errors)
        if config.gradient_norm:
            torch.nn.utils.clip_grad_norm_(self.online.parameters(), config.gradient_norm)
        self.optimizer.step()
        return loss.item(), all_errors.cpu()

    def _values(self, transitions: Sequence[Transition], depth: int) -> list[Tensor]:
        """Q(s, a, g) [B] after `depth` layers and after all."""
        batch = self.encoder.batch((t.state, t.goal) for t in transitions)
        starts = np.cumsum((0, *batch.action_counts[:-1]))
        chosen = torch.from_numpy(starts + [t.action for t in transitions]).to(self.device)
        depths = sorted({depth, self.config.layers})
        return [q[chosen] for q in self.online(batch, depths)]

    def _next_values(self, transitions: Sequence[Transition]) -> Tensor:
        """max_a' Q(s', a', g) [B] of the target network, computed once between two syncs.

        Each worker computes a part of the unknown ones, and all know all of them.
        """
        known = self._target_values
        pairs = [(t.next_state, t.goal) for t in transitions]
        unknown = list(
            dict.fromkeys(
                pair
                for pair, t in zip(pairs, transitions, strict=True)
                if not t.solved and pair not in known
            )
        )
        if unknown:
            mine = self.workers.share(len(unknown))
            best = torch.zeros(len(unknown))
            if unknown[mine]:
                values = self.target.q_values(self.encoder.batch(unknown[mine]), self.config.layers)
                best[mine] = torch.stack([q.max() for q in values])
            (best,) = self.workers.sum(best)
            known.update(zip(unknown, best.tolist(), strict=True))
        return torch.tensor([known.get(pair, 0.0) for pair in pairs])


def train(
    tasks: Sequence[Task],
    learner: Learner,
    replay: Replay,
    streams: Streams,
    first_episode: int = 0,
) -> Iterator[EpisodeStats]:
    """Train until `config.episodes`; after each episode everything may be saved or evaluated."""
    config = learner.config
    hindsight_goal = hindsight_goals(config.hindsight, streams.hindsight)
    for episode in range(first_episode, config.episodes):
        if episode % FORGET_EVERY == 0 and episode > first_episode:
            forget_states(tasks, learner, replay)
        start = time.perf_counter()
        chosen = [tasks[i] for i in streams.problems.integers(len(tasks), size=config.trajectories)]
        trajectories = _explore(chosen, learner, streams, episode)
        parts = [part for t in trajectories for part in relabel(t, hindsight_goal)]
        lessons = [*parts, *(_dead_ends(trajectories) if config.learn_dead_ends else ())]
        for lesson in lessons:
            replay.extend(lesson.transitions())
        explored = time.perf_counter()
        learning_rate = config.learning_rate(episode)
        losses = _optimise(learner, replay, streams, learning_rate)
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


def _explore(
    tasks: Sequence[Task], learner: Learner, streams: Streams, episode: int
) -> list[Trajectory]:
    """A trajectory a task; each worker makes some and learns the others' actions.

    One worker has one stream for all, as always; several have one a trajectory, whoever makes it.
    """
    config, workers = learner.config, learner.workers
    mine = workers.share(len(tasks))
    rngs = [streams.exploration] * len(tasks)
    if workers.count > 1:
        rngs = [np.random.default_rng((config.seed, episode, i)) for i in range(len(tasks))]
    own = rollout(
        tasks[mine],
        learner.q_values,
        learner.encoder,
        temperature=config.temperature(episode),
        horizon=config.horizon,
        rngs=rngs[mine],
    )
    actions = [t for part in workers.gather([t.actions for t in own]) for t in part]
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


def _dead_ends(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Those that ended where nothing is applicable, short of their goal."""
    return [
        into_dead_end(t)
        for t in trajectories
        if not t.solved and t.states[-1].task.is_dead_end(t.states[-1])
    ]


def _optimise(
    learner: Learner, replay: Replay, streams: Streams, learning_rate: float
) -> list[float]:
    """The optimisation steps of one episode; returns their losses."""
    config = learner.config
    for group in learner.optimizer.param_groups:
        group["lr"] = learning_rate
    losses = []
    for step in range(1, config.updates + 1 if len(replay) else 1):
        sample = replay.sample(config.batch_size, streams.replay)
        depth = int(streams.depth.integers(1, config.layers)) if config.layers > 1 else 1
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
