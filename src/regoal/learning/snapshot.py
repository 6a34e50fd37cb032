"""Everything that a training changes, and its state between two episodes.

Each part says itself what is mutable in it: `state` copies that, `restore` brings it back. An
episode that is cut is undone with it, and a checkpoint writes it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from regoal.learning.learner import Learner
from regoal.learning.replay import Replay, ReplayState
from regoal.learning.streams import Streams, StreamStates
from regoal.planning.task import Task


class TrainingState(NamedTuple):
    """The state of a training's parts, which later steps do not change."""

    learner: Mapping[str, Tensor]
    replay: ReplayState
    streams: StreamStates


class Training(NamedTuple):
    """The problems of a training and everything that it changes."""

    tasks: Sequence[Task]
    learner: Learner
    replay: Replay
    streams: Streams

    def state(self) -> TrainingState:
        """Copy what an episode changes."""
        return TrainingState(self.learner.state(), self.replay.state(), self.streams.state())

    def restore(self, state: TrainingState) -> None:
        """Go back to what `state` returned. Raises `ValueError` if it does not fit."""
        self.learner.restore(state.learner)
        self.replay.restore(state.replay)
        self.streams.restore(state.streams)

    def forget_states(self) -> None:
        """Release every state but those in replay, as the library keeps all that a task ever met.

        Those in replay are made again from their atoms; nothing computed from them changes.
        """
        atoms = [(state, state.fluent_atoms) for state in self.replay.states()]
        for task in self.tasks:
            task.forget_states()
        self.replay.replace_states({state: state.task.state_of(known) for state, known in atoms})
        self.learner.forget_states()
