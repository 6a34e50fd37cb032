"""Trajectories of rollouts: states, actions, and the goal they are judged by."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from regoal.planning.goals import Goal
from regoal.planning.task import State

MISTAKE = -1
"""Stands for the steps to the goal behind a step into a proven dead end."""


class Transition(NamedTuple):
    """One step as the replay buffer keeps it: ⟨s, a, s', g⟩; the reward is always -1."""

    state: State
    action: int
    """Position in the state's applicable actions."""
    next_state: State
    goal: Goal
    remaining: int
    """Steps, this one included, to the trajectory's next goal state; 0 if none follows, and
    `MISTAKE` if `next_state` is proven to be a dead end."""

    @property
    def solved(self) -> bool:
        """Whether `next_state` is a goal state for `goal`, so that nothing follows."""
        return self.remaining == 1

    @property
    def mistaken(self) -> bool:
        """Whether `next_state` is proven to be a dead end."""
        return self.remaining == MISTAKE


class Mistake(NamedTuple):
    """A step into a proven dead end, which was taken back at once."""

    step: int
    """Position of the state in the trajectory."""
    action: int
    """Position in the state's applicable actions."""
    next_state: State
    """The dead end."""


@dataclass(frozen=True)
class Trajectory:
    """`states[i]`, then `actions[i]`, then `states[i + 1]`; one state more than actions."""

    states: tuple[State, ...]
    actions: tuple[int, ...]
    """Positions in each state's applicable actions."""
    goal: Goal
    mistakes: tuple[Mistake, ...] = ()

    def __post_init__(self) -> None:
        if len(self.states) != len(self.actions) + 1:
            raise ValueError(
                f"a trajectory has one state more than actions, "
                f"got {len(self.states)} and {len(self.actions)}"
            )

    def __len__(self) -> int:
        """How many actions it takes."""
        return len(self.actions)

    @property
    def solved(self) -> bool:
        """Whether it ends in a goal state."""
        return self.states[-1].satisfies(self.goal)

    def part(self, start: int, end: int, goal: Goal) -> "Trajectory":
        """The steps from state `start` to state `end`, judged by another goal."""
        return Trajectory(self.states[start : end + 1], self.actions[start:end], goal)

    def transitions(self) -> Iterator[Transition]:
        """Its steps one by one; `remaining` counts up to the next goal state."""
        remaining = [0]
        for state in reversed(self.states[1:]):
            known = 1 if state.satisfies(self.goal) else remaining[-1] and remaining[-1] + 1
            remaining.append(known)
        steps = zip(self.states, self.actions, self.states[1:], reversed(remaining), strict=False)
        for before, action, after, known in steps:
            yield Transition(before, action, after, self.goal, known)

    def mistaken_transitions(self) -> Iterator[Transition]:
        """The steps that were taken back, without repetitions."""
        mistakes = {(self.states[m.step], m.action): m.next_state for m in self.mistakes}
        for (before, action), after in mistakes.items():
            yield Transition(before, action, after, self.goal, MISTAKE)
