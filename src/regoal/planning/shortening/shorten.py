"""Take out of a plan what was not needed: loops, and steps without which the rest is still a plan.

Policies wander, and so their plans have loops and useless steps. The shorter plan is a part of the
given one, in its order. No new step is added.
"""

import logging
import math
import time
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from regoal.planning.actions import GroundAction
from regoal.planning.plans import Verdict, validate_plan
from regoal.planning.shortening.grounding import Grounder, GroundStep, UnclearError
from regoal.planning.shortening.trajectory import Trajectory
from regoal.planning.task import Task

SECONDS = 10.0
"""The usual limit on the time for one plan."""

OUT_OF_TIME = "the time for it was over"


_Cut = Callable[[Trajectory, float], list[int]]

log = logging.getLogger(__name__)


class Reduced(NamedTuple):
    """A plan without the steps that were found useless, and the note of `Shortened`."""

    actions: Sequence[GroundAction]
    note: str


class Shortened(NamedTuple):
    """A plan without the steps that were found useless, after validation."""

    actions: Sequence[GroundAction]
    verdict: Verdict
    note: str
    """Why steps may be left that are useless, for the user; empty if all was tried."""


def time_to_shorten(left: float) -> float:
    """Return the seconds for shortening if `left` seconds are left: half of them, 10 at most.

    >>> time_to_shorten(5.0), time_to_shorten(60.0)
    (2.5, 10.0)
    """
    return min(SECONDS, left / 2)


def shorten(task: Task, plan: Sequence[GroundAction], seconds: float = SECONDS) -> Shortened:
    """Return the plan that `reduce` makes of a valid plan, if the validator accepts it.

    If not, which is a fault of regoal, a warning says so and the plan stays as it is. The time for
    validating it is not limited. Raises `PddlError` if the cost of a step is undefined.
    """
    actions, note = reduce(task, plan, seconds)
    verdict = validate_plan(task, actions)
    if verdict.valid:
        return Shortened(actions, verdict, note)
    log.warning(
        "%s: the plan was not shortened, because the shorter one is not valid (%s). "
        "Please report this fault of regoal with the domain and the problem.",
        *(task.path, verdict.reason),
    )
    return Shortened(plan, validate_plan(task, plan), "the shorter plan was not valid")


def reduce(task: Task, plan: Sequence[GroundAction], seconds: float = math.inf) -> Reduced:
    """Remove loops and useless steps from a valid plan of `task`, within some wall-clock seconds.

    The result is never longer and never costs more. Two things are repeated while they help. One
    takes the cheapest way through the visited states, which has no loops. The other removes a step
    together with all later ones that become inapplicable, again and again. The set that saves most
    comes first (greedy action elimination: Nakhost and Müller, ICAPS 2010; Balyo, Chrpa and Kilani,
    SoCS 2014).

    Conditions on derived predicates are not evaluated. A step with such a condition counts as
    inapplicable if the facts differ that the predicate depends on. Plans with effects that depend
    on derived predicates, or that set too many atoms, are left as they are.
    """
    deadline = time.perf_counter() + seconds
    grounder, steps = Grounder(task), list[GroundStep]()
    try:
        for action in plan:
            if time.perf_counter() > deadline:
                return Reduced(plan, OUT_OF_TIME)
            steps.append(grounder.ground(action))
        steps = _reduce(grounder, steps, deadline)
    except UnclearError as error:
        return Reduced(plan, str(error))
    late = time.perf_counter() > deadline
    return Reduced([step.action for step in steps], OUT_OF_TIME if late else "")


def _reduce(grounder: Grounder, steps: list[GroundStep], deadline: float) -> list[GroundStep]:
    """Return the best of the plans that two orders of work lead to; neither is always better."""
    goal, watched_goal = grounder.ground_goal()

    def repeat(cuts: Sequence[_Cut]) -> list[GroundStep]:
        plan, length = steps, math.inf
        while len(plan) < length and time.perf_counter() < deadline:
            length = len(plan)
            for cut in cuts:
                trajectory = Trajectory(
                    plan, grounder.initial, goal, watched_goal, grounder.predicates
                )
                plan = [plan[position] for position in cut(trajectory, deadline)]
        return plan

    orders = ((cut_loops, remove_useless_steps), (remove_useless_steps, cut_loops))
    plans = [steps, *map(repeat, orders)]
    return min(plans, key=lambda plan: (sum(step.cost for step in plan), len(plan)))


def cut_loops(trajectory: Trajectory, deadline: float = math.inf) -> list[int]:
    """Return the positions of the steps on a cheapest way through the states of a trajectory.

    Of equally cheap ways it is one with fewest steps (Dijkstra's algorithm). It takes about as long
    as reading the plan, whatever the deadline.
    """
    del deadline
    states, costs = trajectory.list_states(), trajectory.costs
    leaving: dict[int, list[int]] = {}
    for position, state in enumerate(states[:-1]):
        leaving.setdefault(state, []).append(position)
    came: dict[int, int] = {}
    waiting = [(0.0, 0, -1)]
    while states[-1] not in came:
        cost, length, latest = heappop(waiting)
        state = states[latest + 1]
        if state not in came:
            came[state] = latest
            for position in leaving.get(state, ()):
                heappush(waiting, (cost + costs[position], length + 1, position))
    way: list[int] = []
    latest = came[states[-1]]
    while latest >= 0:
        way.append(latest)
        latest = came[states[latest]]
    return way[::-1]


def remove_useless_steps(trajectory: Trajectory, deadline: float = math.inf) -> list[int]:
    """Remove steps while any can be, the largest gain first, and return the positions of the rest.

    Gains found earlier may have changed since. A gain is therefore computed again before its steps
    are removed, and waits if another one is now larger.
    """
    removed = True
    while removed and (now := time.perf_counter()) < deadline:
        removed = False
        queue: list[tuple[float, int, int]] = []
        half_time = (now + deadline) / 2
        for position in trajectory.kept:
            if removal := trajectory.find_removal(position):
                queue.append(removal.rank)
            if time.perf_counter() > half_time:
                break  # the rest of the time is for removing what has been found
        heapify(queue)
        while queue and time.perf_counter() < deadline:
            _, _, position = heappop(queue)
            removal = trajectory.find_removal(position)
            if removal is None:
                continue
            if queue and removal.rank > queue[0]:
                heappush(queue, removal.rank)
                continue
            trajectory.remove(removal)
            removed = True
    return trajectory.kept
