"""Plan files of the International Planning Competition, and step-by-step validation."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

from regoal.errors import PddlError, RegoalError, UsageError
from regoal.planning.pddl.domain import parse_domain
from regoal.planning.pddl.problem import parse_problem
from regoal.planning.plain.faults import faults
from regoal.planning.plain.problem import Problem, read_problem
from regoal.planning.plain.state import State, cost, room_for_calls
from regoal.planning.task import Task
from regoal.planning.text import is_undecoded, read_text
from regoal.system.files import is_special, write_text_atomically
from regoal.system.units import number_text

_STEP = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?)\s*:)?\s*"
    r"\(\s*(?P<words>[^\s()]+(?:\s+[^\s()]+)*)\s*\)\s*(?:\[\s*\d+(?:\.\d*)?\s*\])?\s*"
)


MOST_TOLD = 2000
"""Most characters of what a verdict says."""


class Step(Protocol):
    """What a plan is made of: a `GroundAction` or a `PlanStep`."""

    @property
    def name(self) -> str:
        """The action schema's name."""

    @property
    def objects(self) -> tuple[str, ...]:
        """The arguments, by name."""


@dataclass(frozen=True)
class PlanStep:
    """A step as a plan file names it, in lower case, which need not exist in any domain."""

    name: str
    objects: tuple[str, ...]
    line: int = 0
    """Where it stands in the file, counted from 1."""


@dataclass(frozen=True)
class Verdict:
    """What validation found."""

    valid: bool
    reason: str
    """One or two sentences for the user."""
    step: int | None
    """The step that fails, counted from 1; None where every step can be executed."""
    cost: float
    """Cost of the steps that could be executed; each costs 1 where the problem has no metric."""
    unit_cost: bool = True
    """Whether each of these steps costs 1."""


def cost_text(cost: float) -> str:
    """A plan's cost as a plan file gives it: whole, to nine decimal places."""
    return number_text(float(round(cost, 9)))


def format_plan(steps: Sequence[Step], cost: float, unit_cost: bool) -> str:
    """The text of a plan file: one step a line, then the cost as a comment of its own.

    Fast Downward knows whole costs only, so that a broken one is rounded up in its line, and
    another line before it gives it exactly.
    """
    lines = [_written(step) for step in steps]
    exact = float(round(cost, 9))
    if not exact.is_integer():
        lines.append(f"; exact cost = {cost_text(cost)}")
    lines.append(f"; cost = {math.ceil(exact)} ({'unit' if unit_cost else 'general'} cost)")
    return "\n".join(lines) + "\n"


def write_plan(path: Path, task: Task, steps: Sequence[Step]) -> Verdict:
    """Validate a plan of `task` and write it to `path`, all of it or nothing.

    Raises `RegoalError`, with nothing written, if the plan is invalid: whoever made it has a bug.
    """
    verdict = validate_plan(task, steps)
    if not verdict.valid:
        raise RegoalError(
            f"internal error, no plan written: the plan found for {task.path} is invalid, "
            f"{verdict.reason}"
        )
    write_text_atomically(path, format_plan(steps, verdict.cost, verdict.unit_cost))
    return verdict


def read_plan(path: Path) -> list[PlanStep]:
    """Read a plan file. Raises as `read_text` and `parse_plan` do."""
    return parse_plan(read_text(path, "plan"), str(path))


def parse_plan(text: str, source: str = "plan") -> list[PlanStep]:
    """Read the text of a plan file, `source` being its name in messages.

    Upper case, any line ends, a byte order mark, blank lines, comments, step numbers `0:` or
    `0.000:` and durations `[1]` are read as VAL reads them. Raises `PddlError` with the line.
    """
    steps: list[PlanStep] = []
    latest = -math.inf
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for line, content in enumerate(lines, start=1):
        words = content.split(";")[0].strip().lower()
        if not words:
            continue
        if any(map(is_undecoded, words)):
            raise PddlError(
                f"{source}, line {line}: a byte that is not UTF-8 stands in a name; save the plan "
                "as UTF-8."
            )
        found = _STEP.fullmatch(words)
        if found is None:
            raise PddlError(
                f"{source}, line {line}: expected one step such as (move a b), found {words[:60]!r}"
            )
        number = float(found["number"] or latest)
        if number < latest:
            raise PddlError(
                f"{source}, line {line}: step number {found['number']} is lower than the one "
                "before; put the steps in order"
            )
        latest = number
        name, *objects = found["words"].split()
        steps.append(PlanStep(name, tuple(objects), line))
    return steps


def validate_plan(task: Task, steps: Sequence[Step]) -> Verdict:
    """Execute `steps` from the initial state of `task` and look whether the goal holds then.

    This is done by the plain evaluator of `planning/plain`, whatever engine found the steps.
    Raises `PddlError` if the cost of a step is undefined.
    """
    return _judge(read_problem(*task.sources), task.path, steps)


def check_plan_file(domain: Path, problem: Path, plan: Path) -> Verdict:
    """Read the three files and validate. Raises as `load_task` and `read_plan` do.

    The PDDL library has no part in it.
    """
    checked = parse_domain(domain)
    source = parse_problem(problem, checked, domain).source
    return _judge(read_problem(checked.source, source), problem, read_plan(plan))


def _judge(problem: Problem, path: Path, steps: Sequence[Step]) -> Verdict:
    with room_for_calls(problem):
        return _executed(problem, path, steps)


def _executed(problem: Problem, path: Path, steps: Sequence[Step]) -> Verdict:
    """Execute a plan step by step until one cannot be, and look at the goal at the end."""
    state, total, unit_cost = State(problem, problem.initial), 0.0, True
    for number, step in enumerate(steps, start=1):
        fault = _fault(state, step)
        if fault is not None:
            at = f" (line {step.line})" if isinstance(step, PlanStep) and step.line else ""
            reason = _shortened(f"step {number}{at}, {_written(step)}: {fault}")
            return Verdict(False, reason, number, total, unit_cost)
        action = problem.actions[step.name]
        binding = action.binding(step.objects)
        paid = cost(problem, action, binding)
        if paid is None:
            raise PddlError(f"{path}: :init gives the cost of {_written(step)} no value; add it.")
        total, unit_cost = total + paid, unit_cost and paid == 1.0
        state.execute(action, binding)
    missing = sorted(faults(state, problem.goal, {}))
    if missing:
        reason = _shortened(f"after the last step the goal is missed: {', '.join(missing)}")
        return Verdict(False, reason, None, total, unit_cost)
    reason = f"length {len(steps)}, cost {cost_text(total)}"
    return Verdict(True, reason, None, total, unit_cost)


def _fault(state: State, step: Step) -> str | None:
    """Why a step cannot be executed; None if it can be."""
    problem = state.problem
    action = problem.actions.get(step.name)
    if action is None:
        close = get_close_matches(step.name, sorted(problem.actions), n=1)
        hint = f", did you mean {close[0]}?" if close else ""
        return f"the domain has no such action{hint}"
    if len(step.objects) != len(action.parameters):
        return (
            f"{step.name} takes {len(action.parameters)} object(s), "
            f"the plan gives {len(step.objects)}"
        )
    unknown = [name for name in step.objects if name not in problem.objects]
    if unknown:
        return f"the problem has no object {', '.join(unknown)}"
    types = [
        f"{name} is not of type {' or '.join(sorted(of))}"
        for (_, of), name in zip(action.parameters, step.objects, strict=True)
        if not problem.objects[name] & of
    ]
    others = sorted(faults(state, action.precondition, action.binding(step.objects)))
    return "; ".join([*dict.fromkeys(types), *others]) or None


def _shortened(reason: str) -> str:
    """At most `MOST_TOLD` characters: names in a plan may have any length."""
    return reason if len(reason) <= MOST_TOLD else f"{reason[:MOST_TOLD]} ..."


def prepare_plan_file(path: Path, inputs: Sequence[Path]) -> None:
    """Remove the plan of an earlier call, so that none is there when no plan is found now.

    Raises `UsageError` where a plan could not be written to `path`, or `path` is one of the inputs.
    """
    if path.is_dir():
        raise UsageError(f"no plan can be written to {path}: it is a folder; give a file name.")
    if not path.parent.is_dir():
        raise UsageError(f"no plan can be written to {path}: there is no folder {path.parent}.")
    if any(path.exists() and file.exists() and path.samefile(file) for file in inputs):
        raise UsageError(f"{path} is an input; give the plan another name with --out.")
    if not is_special(path):  # never a device or a pipe
        path.resolve().unlink(missing_ok=True)


def _written(step: Step) -> str:
    return f"({' '.join((step.name, *step.objects))})"
