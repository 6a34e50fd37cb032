"""Ground the steps of a plan into numbered atoms: which ones they need, and which ones they set."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from regoal.planning.actions import GroundAction
from regoal.planning.goals import Atom
from regoal.planning.pddl.model import (
    Effect,
    Formula,
    Junction,
    Literal,
    Quantified,
    Types,
    Variable,
    objects_of,
)
from regoal.planning.task import Task

MOST_PARTS = 10_000
"""A precondition with more ground literals than this is not evaluated but only watched."""
MOST_EFFECTS = 1_000_000
"""Most ground literals in the effects of all different actions of a plan."""


class UnclearError(Exception):
    """The effects of a step are too many, or depend on derived predicates."""


class _TooLargeError(Exception):
    """A condition has too many ground literals."""


class AtomTest(NamedTuple):
    """A condition on one atom, by number: whether it must be true or false."""

    atom: int
    positive: bool


class Group(NamedTuple):
    """A condition that holds if all of its parts hold, or if any does."""

    every: bool
    parts: "tuple[Condition, ...]"


Condition = bool | AtomTest | Group


@dataclass(frozen=True)
class GroundStep:
    """A step of a plan. Static conditions are left out, because they hold in every state."""

    action: GroundAction
    cost: float
    literals: tuple[AtomTest, ...]
    """The literals that must hold."""
    others: tuple[Condition, ...]
    """Conditions with `or` that must hold, too."""
    watched: frozenset[str]
    """Predicates that further conditions depend on, which are too large or derived."""
    effects: tuple[tuple[Condition, int, bool], ...]
    """Condition, atom and new value of each change; atoms that are set to false come first."""
    conditional: bool
    """Whether some effect depends on the state."""
    reads: frozenset[int]
    """The atoms in `literals`."""
    writes: frozenset[int]
    """The atoms that `effects` may set."""
    touches: frozenset[int]
    """All atoms that the step reads, also in conditions of effects, or writes."""

    def compute_settings(self, is_true: Callable[[int], bool]) -> dict[int, bool]:
        """Return which atoms the step sets to what in a state; additions win over deletions."""
        return {atom: value for when, atom, value in self.effects if holds(when, is_true)}


def holds(condition: Condition, is_true: Callable[[int], bool]) -> bool:
    """Return whether a condition holds if exactly the atoms are true that `is_true` says."""
    if isinstance(condition, bool):
        return condition
    if isinstance(condition, AtomTest):
        return is_true(condition.atom) is condition.positive
    found = (holds(part, is_true) for part in condition.parts)
    return all(found) if condition.every else any(found)


class Grounder:
    """Grounds the steps of plans for one task, and numbers the atoms that they can change."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._domain = task.domain.text.content
        derived = self._domain.symbols.derived
        fluent = (a for a in task.initial_state.fluent_atoms if a.predicate not in derived)
        self._initial = task.static_atoms.union(fluent)
        self._numbers: dict[Atom, int] = {}
        self.predicates: list[str] = []
        """The predicate of each atom, by number."""
        self._objects: dict[Types, tuple[str, ...]] = {}
        self._steps: dict[GroundAction, GroundStep] = {}
        self._left = self._effects_left = MOST_EFFECTS

    @property
    def initial(self) -> set[int]:
        """The numbered atoms that hold in the initial state."""
        return {number for atom, number in self._numbers.items() if atom in self._initial}

    def ground_goal(self) -> tuple[frozenset[int], frozenset[str]]:
        """Return the goal's changeable atoms, and the predicates its derived ones depend on."""
        derived, changing = self._domain.symbols.derived, self._domain.changing
        atoms = [atom for atom, _ in self._task.goal.literals() if atom.predicate in changing]
        watched = {atom.predicate for atom in atoms if atom.predicate in derived}
        known = (atom for atom in atoms if atom.predicate not in derived)
        return frozenset(map(self._number, known)), self._find_support(watched)

    def ground(self, action: GroundAction) -> GroundStep:
        """Ground one step. Raises `UnclearError` if its effects cannot be listed."""
        if action not in self._steps:
            self._steps[action] = self._ground(action)
        return self._steps[action]

    def _ground(self, action: GroundAction) -> GroundStep:
        schema = self._task.definition(action)
        binding = schema.bind(action.objects)
        literals: list[AtomTest] = []
        others: list[Condition] = []
        watched: set[str] = set()
        for part in _split(schema.precondition):
            condition = self._ground_or_watch(part, binding, watched)
            for each in _list_parts(condition):
                if isinstance(each, AtomTest):
                    literals.append(each)
                elif each is not True:
                    others.append(each)
        effects = sorted(
            (found for effect in schema.effects for found in self._ground_effect(effect, binding)),
            key=lambda effect: effect[2],
        )
        writes = frozenset(atom for _, atom, _ in effects)
        reads = frozenset(test.atom for test in literals)
        conditions = (*others, *(when for when, _, _ in effects))
        return GroundStep(
            action,
            self._task.cost(self._task.initial_state, action),
            tuple(literals),
            tuple(others),
            self._find_support(watched),
            tuple(effects),
            any(when is not True for when, _, _ in effects),
            reads,
            writes,
            reads.union(writes, *map(_list_atoms, conditions)),
        )

    def _ground_or_watch(
        self, formula: Formula, binding: dict[str, str], watched: set[str]
    ) -> Condition:
        """Ground a precondition; if it is large or derived, add its predicates to `watched`."""
        predicates = set(_list_predicates(formula))
        self._left = MOST_PARTS
        try:
            if predicates.isdisjoint(self._domain.symbols.derived):
                return self._ground_formula(formula, binding)
        except _TooLargeError:
            pass
        watched |= predicates
        return True

    def _ground_effect(
        self, effect: Effect, binding: dict[str, str]
    ) -> Iterator[tuple[Condition, int, bool]]:
        if not self._domain.symbols.derived.isdisjoint(_list_predicates(effect.condition)):
            raise UnclearError("effects depend on derived predicates")
        self._left = self._effects_left
        try:
            for inner in self._list_bindings(effect.variables, binding):
                when = self._ground_formula(effect.condition, inner)
                self._count()
                if when is not False:
                    for literal in effect.literals:
                        yield when, self._number(literal.ground(inner)), literal.positive
        except _TooLargeError:
            raise UnclearError("effects name too many atoms") from None
        self._effects_left = self._left

    def _ground_formula(self, formula: Formula, binding: dict[str, str]) -> Condition:
        if isinstance(formula, Literal):
            return self._ground_literal(formula, binding)
        if isinstance(formula, Junction):
            parts = (self._ground_formula(part, binding) for part in formula.parts)
            return _join(formula.connective == "and", parts)
        cases = self._list_bindings(formula.variables, binding)
        parts = (self._ground_formula(formula.body, inner) for inner in cases)
        return _join(formula.quantifier == "forall", parts)

    def _ground_literal(self, literal: Literal, binding: dict[str, str]) -> Condition:
        self._count()
        atom = literal.ground(binding)
        if literal.predicate == "=":
            return (atom.objects[0] == atom.objects[1]) is literal.positive
        if literal.predicate not in self._domain.changing:
            return (atom in self._initial) is literal.positive
        return AtomTest(self._number(atom), literal.positive)

    def _list_bindings(
        self, variables: Sequence[Variable], binding: dict[str, str]
    ) -> Iterator[dict[str, str]]:
        names = [variable.name for variable in variables]
        for objects in product(*(self._list_objects(variable.types) for variable in variables)):
            yield {**binding, **dict(zip(names, objects, strict=True))}

    def _list_objects(self, types: Types) -> tuple[str, ...]:
        if types not in self._objects:
            self._objects[types] = tuple(objects_of(self._task.types_of, types))
        return self._objects[types]

    def _find_support(self, predicates: Iterable[str]) -> frozenset[str]:
        """Return these predicates, and all those that rules for derived ones of them need."""
        found: set[str] = set()
        waiting = list(predicates)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                rules = (rule for rule in self._domain.derived if rule.predicate == name)
                waiting += (p for rule in rules for p in _list_predicates(rule.body))
        return frozenset(found & self._domain.changing) - self._domain.symbols.derived

    def _number(self, atom: Atom) -> int:
        if atom not in self._numbers:
            self._numbers[atom] = len(self._numbers)
            self.predicates.append(atom.predicate)
        return self._numbers[atom]

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _TooLargeError


def _join(every: bool, parts: Iterable[Condition]) -> Condition:
    """Join parts by `and` if `every`, else by `or`, without parts that do not matter."""
    found: list[Condition] = []
    for part in parts:
        if isinstance(part, bool):
            if part is not every:
                return part
        elif isinstance(part, Group) and part.every is every:
            found += part.parts
        else:
            found.append(part)
    if len(found) < 2:  # noqa: PLR2004 - a group has at least two parts
        return found[0] if found else every
    return Group(every, tuple(found))


def _split(formula: Formula) -> Iterator[Formula]:
    """Yield the parts of a conjunction, or the formula itself."""
    if isinstance(formula, Junction) and formula.connective == "and":
        for part in formula.parts:
            yield from _split(part)
    else:
        yield formula


def _list_parts(condition: Condition) -> tuple[Condition, ...]:
    every = isinstance(condition, Group) and condition.every
    return condition.parts if isinstance(condition, Group) and every else (condition,)


def _list_atoms(condition: Condition) -> Iterator[int]:
    if isinstance(condition, AtomTest):
        yield condition.atom
    elif isinstance(condition, Group):
        for part in condition.parts:
            yield from _list_atoms(part)


def _list_predicates(formula: Formula) -> Iterator[str]:
    if isinstance(formula, Literal):
        yield formula.predicate
    else:
        parts = (formula.body,) if isinstance(formula, Quantified) else formula.parts
        for part in parts:
            yield from _list_predicates(part)
