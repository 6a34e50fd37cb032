"""Boltzmann exploration: several trajectories side by side, one forward pass a step."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from regoal.learning.trajectory import Mistake, Trajectory
from regoal.networks.encoder import Encoder
from regoal.planning.actions import DUMMY_ACTION
from regoal.planning.dead_ends import DeadEndsOfTasks
from regoal.planning.goals import Goal
from regoal.planning.task import State, Task

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
    dead_ends: DeadEndsOfTasks | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> list[Trajectory]:
    """One trajectory a task, from its initial state until its goal, a dead end or the horizon.

    With `dead_ends`, steps into states that these tests prove dead are taken back, and kept as the
    trajectory's mistakes. `temperatures` and `rngs` have one entry a task; several tasks may share
    a stream. `stop` is asked before every step; if it is true, nothing is returned.
    """
    states = [[task.initial_state] for task in tasks]
    visited = [Counter([task.initial_state]) for task in tasks]
    actions: list[list[int]] = [[] for _ in tasks]
    mistakes: list[list[Mistake]] = [[] for _ in tasks]
    active = [i for i, t in enumerate(tasks) if not _has_ended(t, t.initial_state, encoder)]
    for _ in range(horizon):
        if not active:
            break
        if stop():
            return []
        values = q_values([(states[i][-1], tasks[i].goal) for i in active])
        for i, q in zip(active, values, strict=True):
            odds = boltzmann(q, temperatures[i])
            before = states[i][-1]

            def is_dead(state: State, task: Task = tasks[i]) -> bool:
                return dead_ends is not None and not dead_ends[task].reaches(state, task.goal)

            action, after, dead = _step(before, visited[i], odds, encoder, rngs[i], is_dead)
            mistakes[i] += [Mistake(len(actions[i]), *mistake) for mistake in dead.items()]
            actions[i].append(action)
            states[i].append(after)
            visited[i][after] += 1
        active = [i for i in active if not _has_ended(tasks[i], states[i][-1], encoder)]
    return [
        Trajectory(tuple(s), tuple(a), task.goal, tuple(m))
        for s, a, task, m in zip(states, actions, tasks, mistakes, strict=True)
    ]


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


def _step(
    state: State,
    visited: Mapping[State, int],
    odds: npt.NDArray[np.float64],
    encoder: Encoder,
    rng: np.random.Generator,
    is_dead: Callable[[State], bool],
) -> tuple[int, State, dict[int, State]]:
    """An action and its successor, drawn among those whose successor is new, or else those whose
    successor was visited least often, so that a walk leaves a blind end as it came.

    Actions are drawn one after the other without the rejected ones, which gives the same odds as
    looking at every successor first. Those into dead ends are rejected too, and come last with
    their successors; one of them is taken only if there is nothing else.
    """
    applicable, left = encoder.state(state).actions, odds.copy()
    dead: dict[int, State] = {}
    while left.any():
        action = _sample_index(left, rng)
        after = state.task.successor(state, applicable[action])
        if after not in visited:
            if not is_dead(after):
                return action, after, dead
            dead[action] = after
        left[action] = 0.0
    successors = [state.task.successor(state, action) for action in applicable]
    visits = np.array([visited[after] for after in successors], float)
    if len(dead) < len(applicable):
        visits[list(dead)] = np.inf
    action = _sample_index(np.where(visits == visits.min(), odds, 0.0), rng)
    return action, successors[action], dead


def _sample_index(odds: npt.NDArray[np.float64], rng: np.random.Generator) -> int:
    """A position, as likely as its share of the odds, which need not add up to 1."""
    up_to = odds.cumsum()
    return int((up_to / up_to[-1]).searchsorted(rng.random(), side="right"))


def _has_ended(task: Task, state: State, encoder: Encoder) -> bool:
    # From a dead end only the dummy action leads on, to the same state: no part of a trajectory
    # may hold such a step, so that nothing is lost by stopping.
    return state.satisfies(task.goal) or encoder.state(state).actions[0] is DUMMY_ACTION
