"""Boltzmann exploration: several trajectories side by side, one forward pass a step."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from regoal.learning.trajectory import Mistake, Trajectory
from regoal.networks.encoder import Encoder
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.goals import Goal
from regoal.planning.task import State, Task

IsDead = Callable[[State], bool]
"""Whether it is proven that the goal of a state's task is out of reach."""
QValues = Callable[[Sequence[tuple[State, Goal]]], list[Tensor]]
"""Q-values of the applicable actions of each (state, goal), in their order."""


def boltzmann(q_values: Tensor, temperature: float) -> npt.NDArray[np.float64]:
    """π(a | s, g) ∝ exp(Q(s, a, g) / T), [actions] (paper, "Experience Generation")."""
    scaled = q_values.double().numpy() / temperature
    odds = np.exp(np.maximum(scaled - scaled.max(), -500.0))
    return np.asarray(odds / odds.sum())


def rollout(
    tasks: Sequence[Task],
    q_values: QValues,
    encoder: Encoder,
    *,
    temperatures: Sequence[float],
    horizon: int,
    rngs: Sequence[np.random.Generator],
    is_dead: IsDead | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> list[Trajectory]:
    """One trajectory a task, from its initial state until its goal, a dead end or the horizon.

    With `is_dead`, steps into dead ends are taken back, and kept as the trajectory's mistakes.
    `temperatures` and `rngs` have one entry a task; several tasks may share a stream. `stop` is
    asked before every step; if it is true, nothing is returned.
    """
    walks = [_Walk(task, encoder, is_dead) for task in tasks]
    active = [i for i, walk in enumerate(walks) if not walk.has_ended]
    for _ in range(horizon):
        if not active:
            break
        if stop():
            return []
        values = q_values([(walks[i].state, tasks[i].goal) for i in active])
        for i, q in zip(active, values, strict=True):
            walks[i].step(boltzmann(q, temperatures[i]), rngs[i])
        active = [i for i in active if not walks[i].has_ended]
    return [walk.trajectory() for walk in walks]


class _Walk:
    """A trajectory in the making."""

    def __init__(self, task: Task, encoder: Encoder, is_dead: IsDead | None) -> None:
        self.task = task
        self._encoder, self._is_dead = encoder, is_dead
        self._states = [task.initial_state]
        self._actions: list[int] = []
        self._mistakes: list[Mistake] = []
        self._visited = Counter(self._states)

    @property
    def state(self) -> State:
        """The last state."""
        return self._states[-1]

    @property
    def has_ended(self) -> bool:
        """Whether the goal is reached, or nothing is applicable."""
        # From a dead end only the dummy action leads on, to the same state: no part of a trajectory
        # may hold such a step, so that nothing is lost by stopping.
        return self.state.satisfies(self.task.goal) or self._applicable[0] is DUMMY_ACTION

    @property
    def _applicable(self) -> Sequence[GroundAction]:
        return self._encoder.state(self.state).actions

    def trajectory(self) -> Trajectory:
        """The trajectory up to now."""
        states, actions, mistakes = self._states, self._actions, self._mistakes
        return Trajectory(tuple(states), tuple(actions), self.task.goal, tuple(mistakes))

    def step(self, odds: npt.NDArray[np.float64], rng: np.random.Generator) -> None:
        """Take a step, drawn among those whose successor is new, or else those whose successor was
        visited least often, so that a walk leaves a blind end as it came.

        Actions are drawn one after the other without the rejected ones, which gives the same odds
        as looking at every successor first. Those into dead ends are rejected too; one of them is
        taken only if there is nothing else.
        """
        left, dead = odds.copy(), dict[int, State]()
        while left.any():
            action = _sample_index(left, rng)
            after = self._successor(action)
            if after not in self._visited:
                if self._is_dead is None or not self._is_dead(after):
                    break
                dead[action] = after
            left[action] = 0.0
        else:
            action = self._draw_least_visited(odds, dead, rng)
            after = self._successor(action)
        if self._is_dead is not None:
            self._test_another(self._is_dead, action, dead, rng)
        self._mistakes += [Mistake(len(self._actions), *mistake) for mistake in dead.items()]
        self._actions.append(action)
        self._states.append(after)
        self._visited[after] += 1

    def _draw_least_visited(
        self, odds: npt.NDArray[np.float64], dead: Mapping[int, State], rng: np.random.Generator
    ) -> int:
        """An action into one of the states visited least often; the dead ends come last."""
        successors = [self._successor(action) for action in range(len(odds))]
        visits = np.array([self._visited[after] for after in successors], float)
        visits[list(dead)] = math.inf
        return _sample_index(np.where(visits == visits.min(), odds, 0.0), rng)

    def _test_another(
        self, is_dead: IsDead, chosen: int, dead: dict[int, State], rng: np.random.Generator
    ) -> None:
        """Add one more action to the dead ones, drawn by equal odds, if it leads into a dead end.

        A policy that makes no mistakes any more would forget what they are.
        """
        action = int(rng.integers(len(self._applicable)))
        if action not in (chosen, *dead) and is_dead(after := self._successor(action)):
            dead[action] = after

    def _successor(self, action: int) -> State:
        return self.task.successor(self.state, self._applicable[action])


def replayed(
    task: Task, actions: Sequence[int], mistakes: Sequence[tuple[int, int]], encoder: Encoder
) -> Trajectory:
    """The trajectory of these actions, found by a rollout elsewhere.

    `mistakes` have the positions of a state in the trajectory and of an action of this state.
    """

    def after(state: State, action: int) -> State:
        return task.successor(state, encoder.state(state).actions[action])

    states = [task.initial_state]
    for action in actions:
        states.append(after(states[-1], action))
    found = (Mistake(step, action, after(states[step], action)) for step, action in mistakes)
    return Trajectory(tuple(states), tuple(actions), task.goal, tuple(found))


def _sample_index(odds: npt.NDArray[np.float64], rng: np.random.Generator) -> int:
    """A position, as likely as its share of the odds, which need not add up to 1."""
    up_to = odds.cumsum()
    return int((up_to / up_to[-1]).searchsorted(rng.random(), side="right"))
