"""Prove that a goal is out of reach: by delete relaxation, by pairs, and by visiting every state.

The relaxation is quick but knows nothing of counts: one spanner tightens every nut in it. Pairs of
facts cost more, and see that. They see nothing of counts if what is used up is made by actions. A
dead end leaves few states to go to, as a rule, so that seeing all of them is proof enough.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from regoal.errors import TooWideError
from regoal.planning.goals import Goal
from regoal.planning.pairs import Pairs
from regoal.planning.relaxation import Relaxation
from regoal.planning.task import State, Task

MOST_STATES = 500
"""Most states that are visited to prove one dead."""

TESTED_FIRST = 200
"""States that a test is asked about; if it calls none of them dead, it is given up."""
CELLS_FIRST = 100_000_000
"""Cells of all states that pairs are asked about before they are given up; 2 or 3 seconds. Cells
are counted and no time is taken, so that equal calls have equal results."""


class DeadEnds:
    """The tests for dead ends of one task, each made at its first use."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._dead: set[State] = set()
        self._left: dict[Relaxation | Pairs, float] = {}

    @cached_property
    def relaxation(self) -> Relaxation:
        """The delete relaxation."""
        return Relaxation(self.task)

    @cached_property
    def _pairs(self) -> Pairs:
        return Pairs(self.task)

    def _list_tests(self) -> Iterator[tuple[Relaxation | Pairs, int]]:
        """Yield the tests, the quick one first, and how many states each is asked about first."""
        yield self.relaxation, TESTED_FIRST
        yield self._pairs, min(TESTED_FIRST, CELLS_FIRST // max(1, self._pairs.cells))

    def reaches(self, state: State, goal: Goal) -> bool:
        """Return whether both tests leave it possible to reach a goal from a state."""
        return all(test.reaches(state, goal) for test, _ in self._list_tests())

    def has(self, state: State) -> bool:
        """Return whether it is proven that no plan leads from the state to the task's goal.

        A test that has called none of its first states dead is given up: dead ends seem to be rare.
        The answer for a state that is alive may be asked for again; dead states are remembered.
        Raises `StoppedError` if `regoal.system.cancellation` ends the work.
        """
        if state in self._dead:
            return True
        for test, first in self._list_tests():
            left = self._left.setdefault(test, first)
            if not left:
                continue
            if not test.reaches(state, self.task.goal):
                self._left[test] = math.inf
                self._dead.add(state)
                state.forget_atoms()
                return True
            self._left[test] = left - 1
        return False


class DeadEndsOfTasks(dict[Task, DeadEnds]):
    """The tests of each task, made at its first use."""

    def __missing__(self, task: Task) -> DeadEnds:
        return self.setdefault(task, DeadEnds(task))

    def prove(self, state: State) -> bool:
        """Return whether both tests prove that the goal of a state's task is out of reach."""
        return not self[state.task].reaches(state, state.task.goal)


def first_dead_end(states: Sequence[State], goal: Goal, tests: DeadEnds) -> int | None:
    """Return the position of the first state of a trajectory that is proven dead, or None."""
    return find_first(states, lambda state: is_dead(state, goal, tests))


def find_first(states: Sequence[State], proves: Callable[[State], bool]) -> int | None:
    """Return the position of the first state of a trajectory that a test proves dead, or None.

    The goal can be reached from a state if it can be reached from a later one, so binary search
    finds the position. Earlier states may be dead without a proof.
    """
    last = len(states) - 1
    if not proves(states[last]):
        return None
    unproven, dead = -1, last
    while dead - unproven > 1:
        middle = (unproven + dead) // 2
        if proves(states[middle]):
            dead = middle
        else:
            unproven = middle
    return dead


def is_dead(state: State, goal: Goal, tests: DeadEnds, most_states: int = MOST_STATES) -> bool:
    """Return whether it is proven that no plan leads from a state to the goal.

    Asks both tests about the state. If they prove nothing, visits at most `most_states` states, and
    none behind a state that the relaxation calls dead.
    """
    if not tests.reaches(state, goal):
        return True
    task, seen, waiting = state.task, {state}, [state]
    while waiting:
        state = waiting.pop()
        if state.satisfies(goal):
            return False
        if not tests.relaxation.reaches(state, goal):
            continue
        try:
            actions = task.applicable_actions(state)
        except TooWideError:
            return False
        new = {task.successor(state, action) for action in actions} - seen
        seen |= new
        if len(seen) > most_states:
            return False
        waiting += new
    return True
