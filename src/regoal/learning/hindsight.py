"""Goals that were reached after all (paper, "Hindsight Experience Replay Variations").

The three variants differ in one function, `HindsightGoal(s, g)`; the loop around it exists once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from regoal.learning.trajectory import MISTAKE, Trajectory, Transition
from regoal.planning.dead_ends import DeadEnds, DeadEndsOfTasks, first_dead_end
from regoal.planning.goals import Goal
from regoal.planning.lifting.goal_lifter import GoalLifter
from regoal.planning.task import State, Task

MOST_WALKS, STEPS_OF_WALK = 10, 100
"""Random walks, and steps of each, that find out whether problems have dead ends."""
STEPS_INSIDE = 5
"""Steps from a dead end on that are kept of a trajectory."""

HindsightGoal = Callable[[State, Goal], Goal | None]
"""A goal that holds in the state, derived from the original one; None if there is none (⊥)."""


def state_goal(state: State, goal: Goal) -> Goal:
    """The whole state, static atoms included (paper, "State HER")."""
    del goal
    return Goal(state.atoms)


def propositional_goal(state: State, goal: Goal) -> Goal | None:
    """The largest part of the goal that holds: g ∩ s (paper, "Propositional HER")."""
    achieved = Goal(
        frozenset(atom for atom in goal.atoms if state.holds(atom)),
        frozenset(atom for atom in goal.negative if not state.holds(atom)),
    )
    return achieved if len(achieved) else None


@dataclass
class LiftedGoals:
    """Ground(arg max |ĝ|) over the lifted subgoals of Algorithm 1 (paper, "Lifted HER").

    If the original goal holds, it is its own largest grounding. Which of several groundings is
    taken is drawn from `rng`.
    """

    rng: np.random.Generator
    _lifters: dict[tuple[Task, Goal], GoalLifter] = field(default_factory=dict)

    def __call__(self, state: State, goal: Goal) -> Goal | None:
        """The hindsight goal for a state reached under `goal`."""
        if state.satisfies(goal):
            return goal if len(goal) else None
        task = state.task
        lifter = self._lifters.get((task, goal))
        if lifter is None:
            lifter = GoalLifter(goal, task.types_of, task.domain.constants)
            self._lifters[task, goal] = lifter
        return lifter.hindsight(state.atoms, self.rng)

    @property
    def unproven(self) -> int:
        """How often the search's budget ended before the largest subgoal was certain."""
        return sum(lifter.unproven for lifter in self._lifters.values())


def hindsight_goals(name: str, rng: np.random.Generator) -> HindsightGoal:
    """The variant called `name`, one of `config.HINDSIGHTS`."""
    table: dict[str, HindsightGoal] = {
        "state": state_goal,
        "propositional": propositional_goal,
        "lifted": LiftedGoals(rng),
    }
    return table[name]


def relabel(trajectory: Trajectory, hindsight_goal: HindsightGoal) -> Iterator[Trajectory]:
    """Cut a trajectory into parts that reach a hindsight goal, from the back, longest first.

    The parts are cycle-free and do not overlap (neighbours may share a state), and each reaches
    its goal in its last state only.
    """
    end = len(trajectory)
    while end > 0:
        goal = hindsight_goal(trajectory.states[end], trajectory.goal)
        start = end if goal is None else first_state(trajectory, goal, end)
        if goal is not None and start < end:
            yield trajectory.part(start, end, goal)
        end = min(start, end - 1)


def other_transitions(
    part: Trajectory, rng: np.random.Generator, tests: DeadEndsOfTasks | None
) -> Iterator[Transition]:
    """Take one other action in each state of a part, drawn with equal odds, under its goal.

    States with a single action are left out. A part has no cycles, so where there is only one way,
    its own steps do not tell what is wrong. With `tests`, a step is a mistake if it is proven to
    lead into a dead end.
    """
    for state, action in zip(part.states, part.actions, strict=False):
        applicable = state.task.applicable_actions(state)
        if len(applicable) < 2:  # noqa: PLR2004
            continue
        other = int(rng.integers(len(applicable) - 1))
        other += other >= action
        after = state.task.successor(state, applicable[other])
        remaining = int(after.satisfies(part.goal))
        if tests is not None and not tests[state.task].reaches(after, part.goal):
            remaining = MISTAKE
        yield Transition(state, other, after, part.goal, remaining)


def first_state(trajectory: Trajectory, goal: Goal, end: int) -> int:
    """How far back the part that ends in state `end` reaches without a cycle or a goal state."""
    seen = {trajectory.states[end]}
    start = end
    while start > 0:
        before = trajectory.states[start - 1]
        if before in seen or before.satisfies(goal):
            break
        seen.add(before)
        start -= 1
    return start


def have_dead_ends(tasks: Sequence[Task], tests: DeadEndsOfTasks) -> bool:
    """Return whether a random walk ends in a proven dead end in some of these tasks.

    Equal tasks give equal answers. Walks all alive do not prove that there are no dead ends.
    """
    rng = np.random.default_rng(0)
    for task in tasks[:: max(1, len(tasks) // MOST_WALKS)]:
        state = task.initial_state
        for _ in range(STEPS_OF_WALK):
            applicable = task.applicable_actions(state)
            state = task.successor(state, applicable[rng.integers(len(applicable))])
        if not state.satisfies(task.goal) and tests.prove(state):
            return True
    return False


def dead_ends(trajectories: Iterable[Trajectory], tests: DeadEndsOfTasks) -> list[Trajectory]:
    """The unsolved trajectories that met a dead end, up to a few steps inside it."""
    unsolved = (t for t in trajectories if not t.solved)
    ended = (into_dead_end(t, tests[t.states[0].task]) for t in unsolved)
    return [way for way in ended if way is not None]


def into_dead_end(trajectory: Trajectory, tests: DeadEnds) -> Trajectory | None:
    """An unsolved trajectory under its own goal, up to a few steps inside a dead end if it has one.

    Values in there fall with every bootstrap, as no goal follows, and so do those that lead there.
    If nothing is applicable, the step inside is the dummy action, which stays.
    """
    dead = first_dead_end(trajectory.states, trajectory.goal, tests)
    if dead is None:
        return None
    way = trajectory.part(0, min(dead + STEPS_INSIDE, len(trajectory)), trajectory.goal)
    last = way.states[-1]
    if not last.task.is_dead_end(last):
        return way
    return Trajectory((*way.states, last), (*way.actions, 0), way.goal)
