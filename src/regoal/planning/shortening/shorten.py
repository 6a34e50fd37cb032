"""Take out of a plan what was not needed: loops, and steps without which the rest is still a plan.

Policies wander, and so their plans have loops and useless steps. The shorter plan is a part of the
given one, in its order. No new step is added.
"""

import logging
import math
import time
from collections.abc import Sequence
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

    The result is never longer and never costs more. First the cheapest way through the visited
    states is taken, which has no loops. Then a step is removed together with all later ones that
    become inapplicable, again and again. The set that saves most comes first. This is greedy action
    elimination (Nakhost and Müller, ICAPS 2010; Balyo, Chrpa and Kilani, SoCS 2014). Both are
    repeated while they help.

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
    goal, watched_goal = grounder.ground_goal()

    def follow() -> Trajectory:
        return Trajectory(steps, grounder.initial, goal, watched_goal, grounder.predicates)

    length = math.inf
    while len(steps) < length and time.perf_counter() < deadline:
        length = len(steps)
        steps = [steps[position] for position in find_cheapest_way(follow(), steps)]
        trajectory = follow()
        remove_useless_steps(trajectory, deadline)
        steps = [steps[position] for position in trajectory.kept]
    return steps


def find_cheapest_way(trajectory: Trajectory, steps: Sequence[GroundStep]) -> list[int]:
    """Return the positions of the steps on a cheapest way through the states of a trajectory.

    Of equally cheap ways it is one with fewest steps. A way has no loops (Dijkstra's algorithm).
    """
    states = trajectory.list_states()
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
                heappush(waiting, (cost + steps[position].cost, length + 1, position))
    way: list[int] = []
    latest = came[states[-1]]
    while latest >= 0:
        way.append(latest)
        latest = came[states[latest]]
    return way[::-1]


def remove_useless_steps(trajectory: Trajectory, deadline: float = math.inf) -> None:
    """Remove steps while any can be removed, the largest gain first, up to a deadline.

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
