"""The learner: the online and the target network, and one optimisation step on a sample."""

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from regoal.config import TrainConfig
from regoal.distributed.collectives import ALONE, Workers
from regoal.errors import lacks_memory
from regoal.learning import td_learning
from regoal.learning.replay import Sample
from regoal.learning.trajectory import Transition
from regoal.networks.encoder import Encoder
from regoal.networks.q_network import QNetwork
from regoal.planning.goals import Goal
from regoal.planning.task import State

T = TypeVar("T")

log = logging.getLogger(__name__)

MISTAKE_MARGIN = 5.0
"""By how many steps a step into a dead end is learnt to be worse than its state's other actions."""


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
        self.target = copy.deepcopy(network).requires_grad_(False)
        self.averaged = copy.deepcopy(self.target) if config.average else network
        """The network whose weights make the policy: averaged over steps, or simply the last."""
        self.optimizer = torch.optim.Adam(
            network.parameters(), lr=config.learning_rate.start, fused=True
        )
        self._target_values: dict[tuple[State, Goal], Tensor] = {}
        """Q-values of the target network for all applicable actions, since the last sync."""
        self.calm = 1.0
        """The factor on the learning rate's schedule, which falls once validations are complete."""
        self.halves = False
        """Whether memory ran out, so that samples are computed in halves."""
        self.sync_target()

    def sync_target(self) -> None:
        """Copy the online weights into the target network; its remembered values end."""
        self.target.load_state_dict(self.online.state_dict())
        self._target_values.clear()

    def networks(self) -> dict[str, QNetwork]:
        """All networks by name, the averaged one if it is not the online one."""
        networks = {"online": self.online, "target": self.target}
        return networks | ({"averaged": self.averaged} if self.config.average else {})

    def state(self) -> dict[str, Tensor]:
        """Copy what optimisation changes: all weights by network, Adam's moments as `adam/NAME`."""
        weights = {name: network.weights for name, network in self.networks().items()}
        moments = self.optimizer.state.get(self.online.weights, {})
        state = weights | {f"adam/{name}": moment for name, moment in moments.items()}
        return {name: tensor.detach().clone() for name, tensor in state.items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go back to what `state` returned, on whichever device. Raises `ValueError`, `KeyError`.

        Remembered target values end.
        """
        self._target_values.clear()
        with torch.no_grad():
            for name, network in self.networks().items():
                network.weights.copy_(_of_shape(state[name], network.weights))
        moments = {k.removeprefix("adam/"): v for k, v in state.items() if k.startswith("adam/")}
        # Adam counts its steps on the CPU, wherever the weights are.
        self.optimizer.state[self.online.weights] = {
            name: moment.clone() if name == "step" else moment.to(self.device, copy=True)
            for name, moment in moments.items()
        }

    def forget_states(self) -> None:
        """Drop what is remembered of states: their encodings and target values."""
        self.encoder.forget_states()
        self._target_values.clear()

    def trained_weights(self) -> Tensor:
        """A copy of the policy's weights, zero for the relations that no update has touched yet.

        It lies on the CPU. The random weights of the others would only disturb: think of goals
        with predicates that no training goal has.
        """
        weights, layout = self.averaged.weights.detach().cpu().clone(), self.online.layout
        moments = self.optimizer.state[self.online.weights].get("exp_avg_sq")
        for i in range(len(layout.arities)):
            touched = moments is not None and layout.part(moments, f"message.{i}.bias_out").any()
            if not touched:
                for part in layout.mlp(weights, f"message.{i}"):
                    part.zero_()
        return weights

    def q_values(self, pairs: Sequence[tuple[State, Goal]]) -> list[Tensor]:
        """Q-values of every applicable action of each pair, from the online network."""
        return self._q_values(self.online, pairs)

    def _q_values(self, network: QNetwork, pairs: Sequence[tuple[State, Goal]]) -> list[Tensor]:
        def compute(part: slice) -> list[Tensor]:
            return network.q_values(self.encoder.batch(pairs[part]), self.config.layers)

        return [q for found in self._run_or_halve(compute, slice(0, len(pairs))) for q in found]

    def update(self, sample: Sample, depth: int) -> tuple[float, Tensor]:
        """One optimisation step; the loss is taken after `depth` layers too (paper, "Model").

        Each worker takes a part of the sample, of which there must be one for each, and all take
        the step of the whole. Returns the loss, and the TD errors [B] of the last layer on the CPU.
        """
        size = len(sample.transitions)
        targets = self._targets(sample.transitions)
        self.online.weights.grad = None
        all_errors = torch.zeros(size, device=self.device)

        def add(part: slice) -> Tensor:
            loss, all_errors[part] = self._add_gradient(sample, part, targets[part], depth)
            return loss

        loss = torch.stack(self._run_or_halve(add, self.workers.share(size))).sum()
        weights = self.online.weights
        assert weights.grad is not None
        weights.grad, loss, all_errors = self.workers.sum(weights.grad, loss, all_errors)
        self.optimizer.step()
        if self.config.average:
            self._average(self.config.average)
        return loss.item(), all_errors.cpu()

    def _average(self, decay: float) -> None:
        """Move the averaged weights towards the online ones, faster in the first steps."""
        steps = float(self.optimizer.state[self.online.weights]["step"])
        kept = min(decay, steps / (steps + 9.0))
        with torch.no_grad():
            self.averaged.weights.lerp_(self.online.weights, 1.0 - kept)

    def _targets(self, transitions: Sequence[Transition]) -> Tensor:
        """Return the values that Q(s, a, g) is drawn towards, [B]."""
        config = self.config
        next_value, gap = self._target_view(transitions)
        solved = torch.tensor([t.solved for t in transitions])
        target = td_learning.td_target(next_value, solved, discount=config.discount)
        if config.bound_targets:
            remaining = torch.tensor([t.remaining for t in transitions])
            target = td_learning.at_most(target, remaining, discount=config.discount)
            target = td_learning.at_least(target, remaining, discount=config.discount)
        target = td_learning.advantage_learning(target, gap, share=config.advantage)
        for i, transition in enumerate(transitions):
            if transition.mistaken:
                best_other = self._best_other(transition)
                target[i] = td_learning.below_others(best_other, margin=MISTAKE_MARGIN)
        return target

    def _add_gradient(
        self, sample: Sample, part: slice, target: Tensor, depth: int
    ) -> tuple[Tensor, Tensor]:
        """Add the gradient of a part of a sample; returns its share of the loss, and TD errors."""
        config, transitions = self.config, sample.transitions[part]
        target = target.to(self.device)
        weight = torch.from_numpy(sample.weights[part]).float().to(self.device)
        errors = td_learning.td_error(self._values(transitions, depth), target)
        losses = td_learning.huber_loss(errors, delta=config.huber_delta)
        loss = td_learning.weighted_mean(losses, weight).sum()
        loss = loss * (len(transitions) / len(sample.transitions))
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach(), errors[-1].detach()

    def _run_or_halve(self, compute: Callable[[slice], T], whole: slice) -> list[T]:
        """Compute a part of a batch at once, or in two halves.

        Halves are taken from when memory has run out, which the log says once; if it runs out
        again, the error is raised.
        """
        if not self.halves:
            try:
                return [compute(whole)]
            except (MemoryError, RuntimeError) as error:
                if whole.stop - whole.start <= 1 or not lacks_memory(error):
                    raise
            # Out here the error and what it keeps alive are gone.
            log.warning("memory ran out: training goes on with half batches, which takes longer")
            self.halves = True
        middle = (whole.start + whole.stop) // 2
        halves = (slice(whole.start, middle), slice(middle, whole.stop))
        return [compute(half) for half in halves if half.start < half.stop]

    def _values(self, transitions: Sequence[Transition], depth: int) -> Tensor:
        """Q(s, a, g) [C, B] after `depth` layers and after all; C is 1 if these are one."""
        batch = self.encoder.batch((t.state, t.goal) for t in transitions)
        starts = np.cumsum((0, *batch.action_counts[:-1]))
        chosen = starts + [t.action for t in transitions]
        values: Tensor = self.online(batch.only(chosen), sorted({depth, self.config.layers}))
        return values

    def _target_view(self, transitions: Sequence[Transition]) -> tuple[Tensor, Tensor]:
        """Return what the target network says of these transitions, two tensors [B].

        The first is the value of s', 0 for a step that reaches its goal. The second is
        max_b Q(s, b, g) - Q(s, a, g), how far the action is from the best one; 0 if nobody asks.
        """
        nexts = [None if t.solved or t.mistaken else (t.next_state, t.goal) for t in transitions]
        asked = self.config.advantage > 0.0
        befores = [(t.state, t.goal) if asked or t.mistaken else None for t in transitions]
        self._ask_target([pair for pair in (*nexts, *befores) if pair is not None])
        known = self._target_values
        next_value = [0.0 if pair is None else float(known[pair].max()) for pair in nexts]
        gap = [
            0.0 if pair is None else float(known[pair].max() - known[pair][t.action])
            for t, pair in zip(transitions, befores, strict=True)
        ]
        return torch.tensor(next_value), torch.tensor(gap)

    def _best_other(self, transition: Transition) -> Tensor:
        """Return the highest value of another action, or of this one if there is no other."""
        values = self._target_values[transition.state, transition.goal]
        others = torch.arange(len(values)) != transition.action
        return (values[others] if others.any() else values).max()

    def _ask_target(self, pairs: Sequence[tuple[State, Goal]]) -> None:
        """Compute the target network's Q-values for these pairs, once between two syncs.

        Each worker computes a part of the unknown ones, and all know all of them.
        """
        unknown = list(dict.fromkeys(p for p in pairs if p not in self._target_values))
        if unknown:
            mine = unknown[self.workers.share(len(unknown))]
            values = self._q_values(self.target, mine) if mine else []
            found = [q for part in self.workers.gather(values) for q in part]
            self._target_values.update(zip(unknown, found, strict=True))


def _of_shape(tensor: Tensor, like: Tensor) -> Tensor:
    if tensor.shape != like.shape:
        raise ValueError(f"it has {len(tensor)} weights where {len(like)} are needed")
    return tensor
