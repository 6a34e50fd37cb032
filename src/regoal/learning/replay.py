"""Prioritized experience replay (Schaul et al., ICLR 2016) over the last transitions."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from regoal.learning.trajectory import Transition
from regoal.planning.task import State

Floats = npt.NDArray[np.float64]
Slots = npt.NDArray[np.int64]


class Sample(NamedTuple):
    """A batch: where each transition lies, the transitions, and their importance weights [B]."""

    slots: Slots
    transitions: list[Transition]
    weights: Floats


class ReplayState(NamedTuple):
    """The content of a replay buffer at some time."""

    transitions: list[Transition]
    priorities: Floats
    next_slot: int
    largest: float


class Replay:
    """The last `capacity` transitions; the oldest makes room for the newest.

    Transition i is drawn with probability p_i^α / Σ p^α and weighted by (n P(i))^-β / max.
    A new transition has the largest priority so far, so that it is soon seen.
    """

    def __init__(self, capacity: int, *, exponent: float, weight: float) -> None:
        self.capacity = capacity
        self.exponent = exponent
        self.weight = weight
        self.transitions: list[Transition] = []
        self.priorities: Floats = np.zeros(capacity)
        self.next_slot = 0
        self.largest = 1.0

    def __len__(self) -> int:
        """How many transitions are kept."""
        return len(self.transitions)

    def extend(self, transitions: Iterable[Transition]) -> None:
        """Add transitions, the oldest ones making room."""
        for transition in transitions:
            if len(self.transitions) < self.capacity:
                self.transitions.append(transition)
            else:
                self.transitions[self.next_slot] = transition
            self.priorities[self.next_slot] = self.largest
            self.next_slot = (self.next_slot + 1) % self.capacity

    def probabilities(self) -> Floats:
        """P(i) of every kept transition, [n]."""
        scaled = self.priorities[: len(self)] ** self.exponent
        return np.asarray(scaled / scaled.sum())

    def sample(self, batch_size: int, rng: np.random.Generator) -> Sample:
        """Draw transitions with replacement. Raises `ValueError` when there are none."""
        if not self.transitions:
            raise ValueError("cannot sample from an empty replay buffer")
        probabilities = self.probabilities()
        slots = rng.choice(len(self), size=batch_size, p=probabilities)
        weights = (len(self) * probabilities[slots]) ** -self.weight
        return Sample(slots, [self.transitions[i] for i in slots], weights / weights.max())

    def update(self, slots: Slots, priorities: Floats) -> None:
        """Set the priorities of sampled transitions, which must be positive."""
        self.priorities[slots] = priorities
        self.largest = max(self.largest, float(priorities.max()))

    def state(self) -> ReplayState:
        """Copy what the buffer holds."""
        return ReplayState(
            list(self.transitions),
            self.priorities.copy(),
            self.next_slot,
            self.largest,
        )

    def restore(self, state: ReplayState) -> None:
        """Go back to what `state` returned. Raises `ValueError` if it is not of such a buffer."""
        if state.priorities.shape != self.priorities.shape:
            room = len(state.priorities)
            raise ValueError(f"its replay buffer has room for {room} transitions")
        self.transitions, self.priorities = list(state.transitions), state.priorities.copy()
        self.next_slot, self.largest = state.next_slot, state.largest
        if faults := self.faults():
            raise ValueError("; ".join(faults))

    def states(self) -> set[State]:
        """All states of the kept transitions."""
        return {state for t in self.transitions for state in (t.state, t.next_state)}

    def replace_states(self, new: Mapping[State, State]) -> None:
        """Put the new state for each old one in every transition."""
        self.transitions = [
            t._replace(state=new[t.state], next_state=new[t.next_state]) for t in self.transitions
        ]

    def faults(self) -> list[str]:
        """Broken invariants, none when sound."""
        n = len(self)
        checks = {
            f"{n} transitions exceed the capacity {self.capacity}": n > self.capacity,
            "a kept transition has no priority": not (self.priorities[:n] > 0).all(),
            "a priority is not finite": not np.isfinite(self.priorities[:n]).all(),
            "an empty slot has a priority": bool(self.priorities[n:].any()),
            "the largest priority is too small": n > 0 and self.priorities.max() > self.largest,
            "the next slot is not the oldest one's": not (
                0 <= self.next_slot < self.capacity and n in (self.capacity, self.next_slot)
            ),
        }
        return [fault for fault, found in checks.items() if found]
