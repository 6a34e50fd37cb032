"""What an episode changes, as it was before: an episode that is cut leaves no trace."""

from dataclasses import fields
from typing import TYPE_CHECKING

import torch

from regoal.learning.replay import Replay

if TYPE_CHECKING:
    from regoal.learning.dqn import Streams
    from regoal.learning.learner import Learner


class Before:
    """The learner's weights and moments, replay and random streams, as they are now."""

    def __init__(self, learner: "Learner", replay: Replay, streams: "Streams") -> None:
        self._learner, self._replay, self._streams = learner, replay, streams
        self._weights = {k: x.weights.detach().clone() for k, x in learner.networks().items()}
        moments = learner.optimizer.state.get(learner.online.weights, {})
        self._moments = {name: value.clone() for name, value in moments.items()}
        self._transitions, self._priorities = list(replay.transitions), replay.priorities.copy()
        self._slot, self._largest = replay.next_slot, replay.largest
        self._states = {
            f.name: getattr(streams, f.name).bit_generator.state for f in fields(streams)
        }

    def restore(self) -> None:
        """Bring it back."""
        learner, replay = self._learner, self._replay
        learner.sync_target()  # forgets the remembered target values
        with torch.no_grad():
            for name, network in learner.networks().items():
                network.weights.copy_(self._weights[name])
        learner.optimizer.state[learner.online.weights] = self._moments
        replay.transitions, replay.priorities = self._transitions, self._priorities
        replay.next_slot, replay.largest = self._slot, self._largest
        for name, state in self._states.items():
            getattr(self._streams, name).bit_generator.state = state
