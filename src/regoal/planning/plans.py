"""Plan files of the International Planning Competition, and step-by-step validation."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol

from regoal.errors import PddlError, RegoalError, UsageError
from regoal.planning.goals import Atom
from regoal.planning.task import GroundAction, Task, load_domain, load_task
from regoal.system.files import is_special, read_bytes, write_text_atomically

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


def format_plan(steps: Sequence[Step], cost: float, unit_cost: bool) -> str:
    """The text of a plan file: one step a line, then the cost as a comment of its own.

    Fast Downward knows whole costs only, so that a broken one is rounded up in its line, and
    another line before it gives it exactly.
    """
    lines = [_written(step) for step in steps]
    exact = round(cost, 9)
    if not float(exact).is_integer():
        lines.append(f"; exact cost = {exact!r}")
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
    """Read a plan file. Raises `UsageError` if there is none, `PddlError` as `parse_plan` does."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder; give a plan file.") from None
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PddlError(f"{path} is not a plan in UTF-8: save it as UTF-8 text") from error
    return parse_plan(text, str(path))


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
    """Execute `steps` from the initial state of `task` and look whether the goal holds then."""
    replay = _Replay(task)
    for number, step in enumerate(steps, start=1):
        fault = replay.fault(step)
        if fault is not None:
            at = f" (line {step.line})" if isinstance(step, PlanStep) and step.line else ""
            reason = _shortened(f"step {number}{at}, {_written(step)}: {fault}")
            return Verdict(False, reason, number, replay.cost, replay.unit_cost)
    missing = replay.missing_goals()
    if missing:
        reason = _shortened(f"after the last step the goal is missed: {', '.join(missing)}")
        return Verdict(False, reason, None, replay.cost, replay.unit_cost)
    reason = f"length {len(steps)}, cost {replay.cost:g}"
    return Verdict(True, reason, None, replay.cost, replay.unit_cost)


def _shortened(reason: str) -> str:
    """At most `MOST_TOLD` characters: names in a plan may have any length."""
    return reason if len(reason) <= MOST_TOLD else f"{reason[:MOST_TOLD]} ..."


def check_plan_file(domain: Path, problem: Path, plan: Path) -> Verdict:
    """Read the three files and validate. Raises as `load_task` and `read_plan` do."""
    return validate_plan(load_task(load_domain(domain), problem), read_plan(plan))


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


class _Replay:
    """The state that a plan has led to so far, and what it has cost."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._problem = task.native
        self._state = task.initial_state
        self._names = _Names(task)
        self.cost = 0.0
        self.unit_cost = True

    def fault(self, step: Step) -> str | None:
        """Execute `step`; what is wrong with it if it cannot be executed."""
        schemas = self._names.schemas.get(step.name)  # several if the precondition is a disjunction
        if schemas is None:
            close = get_close_matches(step.name, sorted(self._names.schemas), n=1)
            hint = f", did you mean {close[0]}?" if close else ""
            return f"the domain has no such action{hint}"
        arity = self._names.arity[step.name]
        if len(step.objects) != arity:
            return f"{step.name} takes {arity} object(s), the plan gives {len(step.objects)}"
        unknown = [name for name in step.objects if name not in self._names.objects]
        if unknown:
            return f"the problem has no object {', '.join(unknown)}"
        for schema in schemas:
            native = self._applicable(schema, step.objects)
            if native is not None:
                inner = native._advanced_ground_action
                self._execute(GroundAction(step.name, step.objects, inner))
                return None
        faults = [self._broken(schema, step.objects) for schema in schemas]
        return ", or ".join("; ".join(broken) for broken in dict.fromkeys(map(tuple, faults)))

    def missing_goals(self) -> list[str]:
        """The literals of the goal that do not hold, in a fixed order."""
        literals = self._problem.get_goal_condition().get_literals()
        missing = [x for x in literals if not self._state.wrapped.literal_holds(x)]
        return sorted(self._names.told(x, self._names.terms(x)) for x in missing)

    def _execute(self, action: GroundAction) -> None:
        cost = self._task.cost(self._state, action)
        self.cost += cost
        self.unit_cost = self.unit_cost and cost == 1.0
        self._state = self._task.successor(self._state, action)

    def _applicable(self, schema: Any, objects: tuple[str, ...]) -> Any:
        """The library's action of `schema` with these arguments if it is applicable, else None.

        The library adds the existential variables of a precondition to the parameters.
        """
        natives = [self._names.objects[name] for name in objects]
        state = self._state.wrapped
        if schema.get_arity() == len(objects):
            action = self._problem.new_ground_action(schema, natives)
            return action if action.is_applicable(state) else None
        self._task.check_width(self._state)
        for action in state.generate_applicable_actions(False):
            if action.get_action() == schema and action.get_objects()[: len(objects)] == natives:
                return action
        return None

    def _broken(self, schema: Any, objects: tuple[str, ...]) -> list[str]:
        """Every precondition literal that does not hold, in words, types first."""
        variables = [variable.get_name() for variable in schema.get_parameters()]
        value = dict(zip(variables, objects, strict=False))
        types: list[str] = []
        others: list[str] = []
        for literal in schema.get_precondition().get_literals():
            terms = self._names.terms(literal)
            if any(term in variables[len(objects) :] for term in terms):
                continue  # about an existential variable
            names = [value.get(term, term) for term in terms]
            predicate = literal.get_atom().get_predicate()
            natives = [self._names.objects[name] for name in names]
            atom = self._problem.new_ground_atom(predicate, natives)
            ground = self._problem.new_ground_literal(atom, literal.get_polarity())
            if not self._state.wrapped.literal_holds(ground):
                told = self._names.told(literal, names)
                (types if self._names.type_of(literal) else others).append(told)
        return sorted(types) + sorted(others) or ["no object fulfils its existential precondition"]


class _Names:
    """The library's actions, objects and predicates under the names of the files."""

    def __init__(self, task: Task) -> None:
        self._text = task.domain.text
        domain = task.domain.native
        actions: dict[str, str] = getattr(self._text, "actions", {})
        self._renamed: dict[str, str] = getattr(getattr(task, "_text", None), "objects", {})
        self._predicates = {name for name, _ in task.domain.predicates}
        self.arity = dict(task.domain.actions)
        self.schemas: dict[str, list[Any]] = {}
        for schema in domain.get_actions():
            name = actions.get(schema.get_name(), schema.get_name())
            self.schemas.setdefault(name, []).append(schema)
        self.objects = {
            self._renamed.get(native.get_name(), native.get_name()): native
            for native in (*domain.get_constants(), *task.native.get_objects())
        }

    def terms(self, literal: Any) -> list[str]:
        """Variables and objects of a literal."""
        names = [term.get_name() for term in literal.get_atom().get_terms()]
        return [self._renamed.get(name, name) for name in names]

    def type_of(self, literal: Any) -> str | None:
        """The type that a literal is about, if it is about one."""
        name = literal.get_atom().get_predicate().get_name()
        if re.fullmatch(r"either-\d+", name) and name not in self._text.predicates:
            return "any of the types asked for"
        return self._text.types.get(name)

    def told(self, literal: Any, terms: list[str]) -> str:
        """A literal that does not hold of `terms`, in words."""
        predicate, positive = literal.get_atom().get_predicate(), literal.get_polarity()
        name = predicate.get_name()
        if self.type_of(literal) is not None:
            return f"{terms[0]} is not of type {self.type_of(literal)}"
        if name == "=":
            return f"{' and '.join(terms)} must {'be the same' if positive else 'differ'}"
        written = self._text.predicates.get(name, name)
        if written not in self._predicates or re.fullmatch(r"axiom_\d+", name):
            return "a quantified condition does not hold"  # made into an axiom
        atom = Atom(written, tuple(terms))
        return f"{atom} does not hold" if positive else f"{atom} holds but must not"


def _written(step: Step) -> str:
    return f"({' '.join((step.name, *step.objects))})"
