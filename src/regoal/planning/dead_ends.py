"""Prove that a goal is out of reach: by delete relaxation, and by visiting every state.

The relaxation is quick but knows nothing of counts: one spanner tightens every nut in it. A dead
end leaves few states to go to, as a rule, so that seeing all of them is proof enough.
"""

from collections.abc import Sequence

from regoal.errors import TooWideError
from regoal.planning.goals import Goal
from regoal.planning.relaxation import Relaxation, Relaxations
from regoal.planning.task import State

MOST_STATES = 500
"""Most states that are visited to prove one dead."""


def first_dead_end(states: Sequence[State], goal: Goal, relaxations: Relaxations) -> int | None:
    """Return the position of the first state of a trajectory that is proven dead, or None.

    The goal can be reached from a state if it can be reached from a later one, so binary search
    finds the position. Earlier states may be dead without a proof.
    """
    relaxation, last = relaxations[states[0].task], len(states) - 1
    if not is_dead(states[last], goal, relaxation):
        return None
    unproven, dead = -1, last
    while dead - unproven > 1:
        middle = (unproven + dead) // 2
        if is_dead(states[middle], goal, relaxation):
            dead = middle
        else:
            unproven = middle
    return dead


def is_dead(
    state: State, goal: Goal, relaxation: Relaxation, most_states: int = MOST_STATES
) -> bool:
    """Return whether it is proven that no plan leads from a state to the goal.

    Visits at most `most_states` states, and none behind a state that the relaxation calls dead.
    """
    task, seen, waiting = state.task, {state}, [state]
    while waiting:
        state = waiting.pop()
        if state.satisfies(goal):
            return False
        if not relaxation.reaches(state, goal):
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
