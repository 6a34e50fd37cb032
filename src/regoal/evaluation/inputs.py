"""The network's inputs for the states of one task and one goal, and the ranking of their actions.

If many objects are interchangeable, an input has only representatives of them and the actions over
these. Nothing is lost by this, see `regoal.planning.symmetry`.
"""

from collections.abc import Iterator
from functools import cached_property
from heapq import merge
from itertools import groupby
from typing import NamedTuple

import numpy as np

from regoal.networks.batch import Input
from regoal.networks.encoder import Encoder
from regoal.networks.q_function import QValues
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.goals import Goal
from regoal.planning.pddl.conjunctions import is_plain
from regoal.planning.symmetry import Representatives, Symmetry
from regoal.planning.task import State, Task

LEAST_DROPPED = 0.1
"""Objects are left out of the input only if they are at least this share of all objects."""


class StateInput(NamedTuple):
    """One state and one goal as the network sees them."""

    input: Input
    representatives: Representatives | None
    """The representatives in the input; None if the input has the whole state."""

    @property
    def actions(self) -> tuple[GroundAction, ...]:
        """The applicable actions; over representatives, each stands for all equal to it."""
        return self.input[0].actions

    def rank(self, q_values: QValues) -> Iterator[GroundAction]:
        """Yield all applicable actions, best first; for equal values, in the order of actions."""
        order = np.argsort(-q_values, kind="stable")
        if self.representatives is None:
            yield from (self.actions[i] for i in order)
            return
        for _, equal in groupby(order, q_values.__getitem__):
            yield from merge(*(self.representatives.equal_actions(self.actions[i]) for i in equal))

    def rank_unequal(self, q_values: QValues) -> tuple[list[GroundAction], QValues]:
        """Return one action of each set of equal ones, best first, and their Q-values.

        An omitted action leads to a state that equals the successor of the one that stays, up to
        exchanging objects. The dummy is omitted too.
        """
        order = np.argsort(-q_values, kind="stable")
        kept = [i for i in order if self._stays(self.actions[i])]
        return [self.actions[i] for i in kept], q_values[kept]

    def _stays(self, action: GroundAction) -> bool:
        if action is DUMMY_ACTION:
            return False
        return self.representatives is None or self.representatives.is_first(action)


class Inputs:
    """Makes the inputs for the states of one task and one goal."""

    def __init__(self, task: Task, goal: Goal) -> None:
        self.task = task
        self.goal = goal

    def of(self, state: State, encoder: Encoder) -> StateInput:
        """Encode a state with the goal; over representatives if they leave out enough objects."""
        found = self._find_representatives(state)
        if found is None:
            return StateInput(encoder.input(state, self.goal), None)
        return StateInput(encoder.input_over(found, self.goal), found)

    @cached_property
    def symmetry(self) -> Symmetry | None:
        """The interchangeable objects; None if the domain or the task has too few to matter."""
        if not is_plain(self.task.domain.text.content):
            return None
        found = Symmetry(self.task, self.goal)
        return found if found.most_dropped >= self._least else None

    @property
    def _least(self) -> float:
        return max(1, LEAST_DROPPED * len(self.task.objects))

    def _find_representatives(self, state: State) -> Representatives | None:
        """Find representatives; None if they leave out too few objects to be worth the work."""
        if self.symmetry is None:
            return None
        found = self.symmetry.representatives(state)
        return found if found.dropped >= self._least else None


class Situation:
    """A state with a goal. Its input is made at the first use, and can be given up after it."""

    __slots__ = ("_made", "inputs", "state")

    def __init__(self, inputs: Inputs, state: State) -> None:
        self.inputs = inputs
        self.state = state
        self._made: StateInput | None = None

    def make(self, encoder: Encoder) -> StateInput:
        """Return the input and its representatives; done once."""
        if self._made is None:
            self._made = self.inputs.of(self.state, encoder)
        return self._made

    def input(self, encoder: Encoder) -> Input:
        """Return the network's input; done once."""
        return self.make(encoder).input

    def give_up(self) -> None:
        """Drop the input, to save memory."""
        self._made = None
