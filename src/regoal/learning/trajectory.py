"""Trajectories of rollouts: states, actions, and the goal they are judged by."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from regoal.planning.goals import Goal
from regoal.planning.task import State


class Transition(NamedTuple):
    """One step as the replay buffer keeps it: ⟨s, a, s', g⟩; the reward is always -1."""

    state: State
    action: int
    """Position in the state's applicable actions."""
    next_state: State
    goal: Goal
    remaining: int
    """Steps, this one included, to the trajectory's next goal state; 0 if none follows."""

    @property
    def solved(self) -> bool:
        """Whether `next_state` is a goal state for `goal`, so that nothing follows."""
        return self.remaining == 1


@dataclass(frozen=True)
class Trajectory:
    """`states[i]`, then `actions[i]`, then `states[i + 1]`; one state more than actions."""

    states: tuple[State, ...]
    actions: tuple[int, ...]
    """Positions in each state's applicable actions."""
    goal: Goal

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
