"""Ground the rules of a domain over the objects of a task.

Atoms are taken one after the other and joined with earlier ones. A ground rule is therefore found
with the last of its atoms. Conditions that are negative or about all objects bind no variables. A
ground rule names them, but grounding does not decide whether they are possible.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from regoal.planning.datalog.rules import Rule, Rules
from regoal.planning.goals import Atom
from regoal.planning.pddl.model import Literal, Variable, objects_of
from regoal.system.cancellation import check

Binding = dict[str, str]
Fact = tuple[Atom, bool]
"""An atom, and whether it is true or false."""
GroundRule = tuple[Fact, tuple[Fact, ...]]
"""A fact, and the facts that together make it possible. Atoms that never change are omitted."""

MOST_STEPS = 200_000
"""Most matches tried for one task; they take about a second, and their rules 20 MB."""
CHECK_EVERY = 1000
"""Number of matches between two checks whether the work is to end."""


class TooManyRulesError(Exception):
    """Raised if a task has so many ground rules that finding them takes too long."""


def ground(
    rules: Rules,
    static: Iterable[Atom],
    initial: Iterable[Atom],
    types: Mapping[str, Sequence[str]],
    most_rules: float = math.inf,
) -> tuple[list[GroundRule], set[Atom]]:
    """Return the ground rules over atoms that are possible from a state, and these atoms.

    `static` holds the atoms that never change, `initial` the other atoms of the state. `types`
    gives the types of each object. Later states make nothing else possible, so the rules are valid
    for them too. Raises `TooManyRulesError` if there are more than `most_rules`, or more matches
    than `MOST_STEPS`, and `StoppedError` if `regoal.system.cancellation` ends the work.
    """
    grounder = _Grounder(rules, static, types, most_rules)
    for atom in initial:
        grounder.reach(atom)
    grounder.run()
    return list(grounder.found), grounder.reached


class _JoinStep(NamedTuple):
    """A literal to match; the terms at `places` are bound before."""

    literal: Literal
    places: tuple[int, ...]


class _Join(NamedTuple):
    """The order in which variables of a rule are bound: by `first`, by `steps`, then the `free`."""

    rule: Rule
    first: Literal | None
    steps: tuple[_JoinStep, ...]
    free: tuple[Variable, ...]


class _Grounder:
    def __init__(
        self,
        rules: Rules,
        static: Iterable[Atom],
        types: Mapping[str, Sequence[str]],
        most_rules: float,
    ) -> None:
        self.found: dict[GroundRule, None] = {}
        self.reached: set[Atom] = set()
        self._waiting: list[Atom] = []
        self._static = frozenset(static)
        self._changing = rules.changing
        self._types = types
        self._objects_of_types: dict[tuple[str, ...], dict[str, None]] = {}
        self._steps_left = MOST_STEPS
        self._most_rules = most_rules
        joins = [join for rule in rules.rules for join in _make_joins(rule, rules.changing)]
        self._triggered: dict[str, list[tuple[Literal, _Join]]] = defaultdict(list)
        self._matches: dict[str, dict[tuple[int, ...], dict[tuple[str, ...], list[Atom]]]]
        """Atoms by predicate and by the objects at some places."""
        self._matches = defaultdict(dict)
        for join in joins:
            if join.first is not None:
                self._triggered[join.first.predicate].append((join.first, join))
            for step in join.steps:
                self._matches[step.literal.predicate][step.places] = defaultdict(list)
        for atom in self._static:
            self._insert(atom)
        for join in joins:
            if join.first is None:
                self._apply(join, {})

    def reach(self, atom: Atom) -> None:
        """Make an atom possible."""
        if atom not in self.reached:
            self.reached.add(atom)
            self._waiting.append(atom)

    def run(self) -> None:
        """Find all rules over possible atoms, and the atoms that they make possible in turn."""
        while self._waiting:
            atom = self._waiting.pop()
            self._insert(atom)
            for literal, join in self._triggered.get(atom.predicate, ()):
                binding = _match(literal, atom, {})
                if binding is not None:
                    self._apply(join, binding)

    def _insert(self, atom: Atom) -> None:
        for places, atoms in self._matches.get(atom.predicate, {}).items():
            atoms[tuple(atom.objects[i] for i in places)].append(atom)

    def _apply(self, join: _Join, binding: Binding) -> None:
        """Add the ground rules that follow from a binding of the first literal of a join."""
        head = join.rule.head
        for found in self._find_bindings(join, binding, 0):
            body = self._ground_body(join.rule, found)
            if body is not None:
                atom = head.ground(found)
                self.found[(atom, head.positive), body] = None
                if len(self.found) > self._most_rules:
                    raise TooManyRulesError
                if head.positive:
                    self.reach(atom)

    def _find_bindings(self, join: _Join, binding: Binding, depth: int) -> Iterator[Binding]:
        """Yield the bindings of all variables that the steps from `depth` on allow."""
        if depth == len(join.steps):
            yield from self._extend(binding, join.free)
            return
        literal, places = join.steps[depth]
        known = tuple(binding.get(literal.terms[i], literal.terms[i]) for i in places)
        for atom in tuple(self._matches[literal.predicate][places].get(known, ())):
            self._count_step()
            extended = _match(literal, atom, binding)
            if extended is not None:
                yield from self._find_bindings(join, extended, depth + 1)

    def _extend(self, binding: Binding, variables: Sequence[Variable]) -> Iterator[Binding]:
        """Yield the binding with every choice of objects for more variables."""
        for objects in product(*map(self._list_objects, variables)):
            self._count_step()
            yield binding | {v.name: name for v, name in zip(variables, objects, strict=True)}

    def _ground_body(self, rule: Rule, binding: Binding) -> tuple[Fact, ...] | None:
        """Return the body of a ground rule, or None if types or static atoms exclude it."""
        if any(binding[v.name] not in self._list_objects(v) for v in rule.variables):
            return None
        facts: dict[Fact, None] = {}
        for literal, every in rule.body:
            for bound in self._extend(binding, every) if every else (binding,):
                fact = self._ground_literal(literal, bound)
                if fact is False:
                    return None
                if fact is not True:
                    facts[fact] = None
        return tuple(facts)

    def _ground_literal(self, literal: Literal, binding: Binding) -> Fact | bool:
        """Return the fact that a literal needs, or its truth if that is equal in all states."""
        atom = literal.ground(binding)
        if atom.predicate == "=":
            return (atom.objects[0] == atom.objects[1]) == literal.positive
        if atom.predicate not in self._changing:
            return (atom in self._static) == literal.positive
        return atom, literal.positive

    def _list_objects(self, variable: Variable) -> dict[str, None]:
        """Return the objects that a variable may stand for."""
        types = variable.types
        if types not in self._objects_of_types:
            self._objects_of_types[types] = dict.fromkeys(objects_of(self._types, types))
        return self._objects_of_types[types]

    def _count_step(self) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise TooManyRulesError
        if self._steps_left % CHECK_EVERY == 0:
            check()


def _make_joins(rule: Rule, changing: frozenset[str]) -> Iterator[_Join]:
    """Yield a join for each literal that can be the last to become possible.

    If there is no such literal, yield one join without a first literal.
    """
    binding = [literal for literal, every in rule.body if _can_bind(literal) and not every]
    firsts: list[Literal | None] = [x for x in binding if x.predicate in changing]
    for first in firsts or [None]:
        yield _order_join(rule, first, [literal for literal in binding if literal is not first])


def _can_bind(literal: Literal) -> bool:
    return literal.positive and literal.predicate != "="


def _order_join(rule: Rule, first: Literal | None, others: list[Literal]) -> _Join:
    """Order a join: next comes the literal with the fewest new variables, then the most terms."""
    known = set(first.terms if first else ())
    steps = []
    while others:
        literal = min(others, key=lambda x: (len({*_find_unbound(x, known)}), -len(x.terms)))
        others.remove(literal)
        unknown = {*_find_unbound(literal, known)}
        steps.append(
            _JoinStep(literal, tuple(i for i, t in enumerate(literal.terms) if t not in unknown))
        )
        known |= unknown
    return _Join(rule, first, tuple(steps), tuple(v for v in rule.variables if v.name not in known))


def _find_unbound(literal: Literal, known: set[str]) -> Iterator[str]:
    return (term for term in literal.terms if term[0] == "?" and term not in known)


def _match(literal: Literal, atom: Atom, binding: Binding) -> Binding | None:
    """Extend a binding so that a literal becomes the atom; return None if it cannot."""
    found = dict(binding)
    for term, name in zip(literal.terms, atom.objects, strict=True):
        if found.setdefault(term, name) != name if term[0] == "?" else term != name:
            return None
    return found
