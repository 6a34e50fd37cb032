"""The states along a plan: the first one, and what each step changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regoal.planning.plain.problem import Expression, Fact, Problem
from regoal.planning.plain.state import State, allow_nested_calls


@dataclass(frozen=True)
class Change:
    """A step of a plan, and the facts that it makes true and false."""

    step: Fact
    """The action's name and its objects, e.g. `("stack", "a", "b")`."""
    added: tuple[Fact, ...]
    removed: tuple[Fact, ...]


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A plan with its states, from the first one to that after the last step.

    Derived facts are left out.
    """

    domain: str
    """The domain's name in its file."""
    problem: str
    """The problem's name in a report."""
    objects: Mapping[str, frozenset[str]]
    """All types of each object."""
    predicates: Mapping[str, int]
    """The number of arguments of each predicate."""
    initial: frozenset[Fact]
    changes: tuple[Change, ...]
    goal: tuple[tuple[Fact, bool], ...]
    """The literals of the goal: a fact, and whether it must hold."""
    other_goals: int
    """How many parts of the goal are no literals, for instance quantified conditions."""
    cost: float
    """The cost of all steps."""
    fault: str
    """Why the plan is invalid; empty if it is valid."""


def trace_changes(problem: Problem, steps: Sequence[Fact]) -> tuple[Change, ...]:
    """Execute steps from the initial state, and return what each of them changes.

    Every step must name an action of the problem and its objects. Preconditions are not checked;
    `plans.validate_plan` does that.
    """
    state = State(problem, problem.initial)
    with allow_nested_calls(problem):
        return tuple(_execute(state, step) for step in steps)


def _execute(state: State, step: Fact) -> Change:
    name, *objects = step
    action = state.problem.actions[name]
    binding = action.bind(objects)
    changes = list(state.find_changes(action.effect, binding))
    wanted = {fact for fact, added in changes if added}
    deleted = {fact for fact, added in changes if not added} - wanted
    added = tuple(sorted(fact for fact in wanted if fact not in state.facts))
    removed = tuple(sorted(fact for fact in deleted if fact in state.facts))
    state.execute(action, binding)
    return Change(step, added, removed)


def split_goal(goal: Expression) -> tuple[tuple[tuple[Fact, bool], ...], int]:
    """Return the literals of a goal, and the number of its other parts.

    >>> split_goal(["and", ["on", "a", "b"], ["not", ["lit", "c"]], ["or", ["lit", "d"]]])
    (((('on', 'a', 'b'), True), (('lit', 'c'), False)), 1)
    """
    literals: list[tuple[Fact, bool]] = []
    others = 0
    parts = [goal] if goal else []
    while parts:
        part = parts.pop(0)
        body = part[1] if part[0] == "not" else part
        if part[0] == "and":
            parts = [*part[1:], *parts]
        elif body[0] in ("and", "or", "not", "imply", "forall", "exists", "="):
            others += 1
        else:
            literals.append((tuple(body), body is part))
    return tuple(literals), others
