"""Read, write and validate plan files of the International Planning Competition."""

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
from regoal.planning.plain.faults import find_faults
from regoal.planning.plain.problem import Problem, read_problem
from regoal.planning.plain.state import State, allow_nested_calls, cost
from regoal.planning.task import Task
from regoal.planning.text import is_undecoded, read_text
from regoal.system.files import is_special, write_text_atomically
from regoal.system.units import number_text

_STEP = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?)\s*:)?\s*"
    r"\(\s*(?P<words>[^\s()]+(?:\s+[^\s()]+)*)\s*\)\s*(?:\[\s*\d+(?:\.\d*)?\s*\])?\s*"
)


MAX_REASON = 2000
"""Most characters of a verdict's reason."""


class Step(Protocol):
    """One step of a plan: a `GroundAction` or a `PlanStep`."""

    @property
    def name(self) -> str:
        """The action schema's name."""

    @property
    def objects(self) -> tuple[str, ...]:
        """The arguments, by name."""


@dataclass(frozen=True)
class PlanStep:
    """A step of a plan file, in lower case; the domain may lack its action."""

    name: str
    objects: tuple[str, ...]
    line: int = 0
    """The step's line in the file, counted from 1; 0 if there is no file."""


@dataclass(frozen=True)
class Verdict:
    """The result of validating a plan."""

    valid: bool
    reason: str
    """One or two sentences for the user."""
    step: int | None
    """The step that fails, counted from 1; None if every step can be executed."""
    cost: float
    """Total cost of the executed steps; each costs 1 if the problem has no metric."""
    unit_cost: bool = True
    """Whether each executed step costs 1."""


def cost_text(cost: float) -> str:
    """Write a plan's cost for a plan file, to at most nine decimal places."""
    return number_text(float(round(cost, 9)))


def format_plan(steps: Sequence[Step], cost: float, unit_cost: bool) -> str:
    """Return the text of a plan file: one step per line, then a comment line with the cost.

    Fast Downward supports whole costs only. A fractional cost is therefore rounded up in its line,
    and a line before it gives the exact cost.
    """
    lines = [_format_step(step) for step in steps]
    exact = float(round(cost, 9))
    if not exact.is_integer():
        lines.append(f"; exact cost = {cost_text(cost)}")
    lines.append(f"; cost = {math.ceil(exact)} ({'unit' if unit_cost else 'general'} cost)")
    return "\n".join(lines) + "\n"


def write_plan(path: Path, task: Task, steps: Sequence[Step]) -> Verdict:
    """Validate a plan of `task` and write it to `path`, completely or not at all.

    Raises `RegoalError` and writes nothing if the plan is invalid, which is a bug in its maker.
    """
    verdict = check_own_plan(task, steps)
    write_text_atomically(path, format_plan(steps, verdict.cost, verdict.unit_cost))
    return verdict


def check_own_plan(task: Task, steps: Sequence[Step]) -> Verdict:
    """Validate a plan that regoal has found. Raises `RegoalError` if it is invalid: a bug."""
    verdict = validate_plan(task, steps)
    if not verdict.valid:
        raise RegoalError(
            f"internal error, no plan written: the plan found for {task.path} is invalid, "
            f"{verdict.reason}"
        )
    return verdict


def read_plan(path: Path) -> list[PlanStep]:
    """Read a plan file. Raises the errors of `read_text` and `parse_plan`."""
    return parse_plan(read_text(path, "plan"), str(path))


def parse_plan(text: str, source: str = "plan") -> list[PlanStep]:
    """Read the text of a plan file; `source` is its name in messages.

    Accepts what VAL accepts: upper case, any line ends, a byte order mark, blank lines, comments,
    step numbers `0:` or `0.000:`, and durations `[1]`. Raises `PddlError` with the line of the
    first fault.
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
    """Execute `steps` from the initial state of `task`, and check whether the goal holds then.

    The plain evaluator in `planning/plain` does this, whatever engine found the steps. Raises
    `PddlError` if the cost of a step is undefined.
    """
    return judge_plan(read_problem(*task.sources), task.path, steps)


def check_plan_file(domain: Path, problem: Path, plan: Path) -> Verdict:
    """Read the three files and validate the plan, without the PDDL library.

    Raises the errors of `load_task` and `read_plan`.
    """
    checked = parse_domain(domain)
    source = parse_problem(problem, checked, domain).source
    return judge_plan(read_problem(checked.source, source), problem, read_plan(plan))


def check_plan_text(domain: str, problem: str, steps: Sequence[Step]) -> Verdict:
    """Validate a plan of a problem in the texts of two well-formed files.

    Nothing checks the texts, so they should come from a program. Their goal may leave choices,
    which no `Task` supports. Raises `PddlError` if the cost of a step is undefined.
    """
    return judge_plan(read_problem(domain, problem), Path("the problem"), steps)


def judge_plan(problem: Problem, path: Path, steps: Sequence[Step]) -> Verdict:
    """Validate a plan of a plain problem as `validate_plan` does; `path` is for messages."""
    with allow_nested_calls(problem):
        return _execute(problem, path, steps)


def _execute(problem: Problem, path: Path, steps: Sequence[Step]) -> Verdict:
    """Execute a plan step by step until one cannot be, and look at the goal at the end."""
    state, total, unit_cost = State(problem, problem.initial), 0.0, True
    for number, step in enumerate(steps, start=1):
        fault = _find_fault(state, step)
        if fault is not None:
            at = f" (line {step.line})" if isinstance(step, PlanStep) and step.line else ""
            reason = _shorten(f"step {number}{at}, {_format_step(step)}: {fault}")
            return Verdict(False, reason, number, total, unit_cost)
        action = problem.actions[step.name]
        binding = action.bind(step.objects)
        paid = cost(problem, action, binding)
        if paid is None:
            raise PddlError(
                f"{path}: :init gives the cost of {_format_step(step)} no value; add it."
            )
        total, unit_cost = total + paid, unit_cost and paid == 1.0
        state.execute(action, binding)
    missing = sorted(find_faults(state, problem.goal, {}))
    if missing:
        reason = _shorten(f"after the last step the goal is missed: {', '.join(missing)}")
        return Verdict(False, reason, None, total, unit_cost)
    reason = f"length {len(steps)}, cost {cost_text(total)}"
    return Verdict(True, reason, None, total, unit_cost)


def _find_fault(state: State, step: Step) -> str | None:
    """Return why a step cannot be executed, or None if it can."""
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
    others = sorted(find_faults(state, action.precondition, action.bind(step.objects)))
    return "; ".join([*dict.fromkeys(types), *others]) or None


def _shorten(reason: str) -> str:
    """Cut a reason to at most `MAX_REASON` characters; names in a plan may have any length."""
    return reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]} ..."


def prepare_plan_file(path: Path, inputs: Sequence[Path]) -> None:
    """Remove the plan of an earlier call, so that no plan remains if none is found now.

    Raises `UsageError` if no plan can be written to `path`, or if `path` is one of the inputs.
    """
    if path.is_dir():
        raise UsageError(f"no plan can be written to {path}: it is a folder; give a file name.")
    if not path.parent.is_dir():
        raise UsageError(f"no plan can be written to {path}: there is no folder {path.parent}.")
    if any(path.exists() and file.exists() and path.samefile(file) for file in inputs):
        raise UsageError(f"{path} is an input; give the plan another name with --out.")
    if not is_special(path):  # never a device or a pipe
        path.resolve().unlink(missing_ok=True)


def _format_step(step: Step) -> str:
    return f"({' '.join((step.name, *step.objects))})"
