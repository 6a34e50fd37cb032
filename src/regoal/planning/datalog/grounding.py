"""The rules of a domain over the objects of a task.

Facts are taken one after the other and joined with those before, so that a ground rule is found
when the last of its atoms is. Negative conditions, and those on all objects, bind no variables: a
ground rule names them, and whether they are possible is left open.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from regoal.planning.datalog.rules import Rule, Rules
from regoal.planning.goals import Atom
from regoal.planning.pddl.formulas import Literal, Variable
from regoal.system.cancellation import check

Binding = dict[str, str]
Fact = tuple[Atom, bool]
"""An atom, and whether it is true or false."""
GroundRule = tuple[Fact, tuple[Fact, ...]]
"""A fact, and the facts that make it possible together. Atoms that never change are left out."""

MOST_STEPS = 200_000
"""Most matches to be tried for one task; they take about a second, and their rules 20 MB."""
CHECK_EVERY = 1000
"""Matches between two questions whether work is to end."""


class TooManyRulesError(Exception):
    """A task has more ground rules than time is spent on."""


def ground(
    rules: Rules,
    static: Iterable[Atom],
    initial: Iterable[Atom],
    types: Mapping[str, Sequence[str]],
) -> tuple[list[GroundRule], set[Atom]]:
    """The ground rules over atoms that are possible from a state, and these atoms.

    `static` holds the atoms that never change, `initial` the others of the state; `types` gives the
    types of each object. Later states make no more possible, so that the rules serve for them too.
    Raises `TooManyRulesError`, and `StoppedError` as `regoal.system.cancellation` has it.
    """
    grounder = _Grounder(rules, static, types)
    for atom in initial:
        grounder.reach(atom)
    grounder.run()
    return list(grounder.found), grounder.reached


class _Step(NamedTuple):
    """A literal to be matched; the terms at `places` are known by then."""

    literal: Literal
    places: tuple[int, ...]


class _Plan(NamedTuple):
    """How the variables of a rule are bound: by `first`, by `steps`, then the `free` ones."""

    rule: Rule
    first: Literal | None
    steps: tuple[_Step, ...]
    free: tuple[Variable, ...]


class _Grounder:
    def __init__(
        self, rules: Rules, static: Iterable[Atom], types: Mapping[str, Sequence[str]]
    ) -> None:
        self.found: dict[GroundRule, None] = {}
        self.reached: set[Atom] = set()
        self._waiting: list[Atom] = []
        self._static = frozenset(static)
        self._changing = rules.changing
        self._types = types
        self._domains: dict[tuple[str, ...], dict[str, None]] = {}
        self._steps_left = MOST_STEPS
        plans = [plan for rule in rules.rules for plan in _plans(rule, rules.changing)]
        self._triggered: dict[str, list[tuple[Literal, _Plan]]] = defaultdict(list)
        self._matches: dict[str, dict[tuple[int, ...], dict[tuple[str, ...], list[Atom]]]]
        """Atoms by predicate and by the objects at some places."""
        self._matches = defaultdict(dict)
        for plan in plans:
            if plan.first is not None:
                self._triggered[plan.first.predicate].append((plan.first, plan))
            for step in plan.steps:
                self._matches[step.literal.predicate][step.places] = defaultdict(list)
        for atom in self._static:
            self._insert(atom)
        for plan in plans:
            if plan.first is None:
                self._apply(plan, {})

    def reach(self, atom: Atom) -> None:
        """Make an atom possible."""
        if atom not in self.reached:
            self.reached.add(atom)
            self._waiting.append(atom)

    def run(self) -> None:
        """Find all rules over what is possible, and what they make possible in turn."""
        while self._waiting:
            atom = self._waiting.pop()
            self._insert(atom)
            for literal, plan in self._triggered.get(atom.predicate, ()):
                binding = _matched(literal, atom, {})
                if binding is not None:
                    self._apply(plan, binding)

    def _insert(self, atom: Atom) -> None:
        for places, atoms in self._matches.get(atom.predicate, {}).items():
            atoms[tuple(atom.objects[i] for i in places)].append(atom)

    def _apply(self, plan: _Plan, binding: Binding) -> None:
        """Add the ground rules that a plan makes of a binding of its first literal."""
        head = plan.rule.head
        for found in self._bindings(plan, binding, 0):
            body = self._body(plan.rule, found)
            if body is not None:
                atom = head.ground(found)
                self.found[(atom, head.positive), body] = None
                if head.positive:
                    self.reach(atom)

    def _bindings(self, plan: _Plan, binding: Binding, depth: int) -> Iterator[Binding]:
        """The bindings of all variables that the steps from `depth` on allow."""
        if depth == len(plan.steps):
            yield from self._extended(binding, plan.free)
            return
        literal, places = plan.steps[depth]
        known = tuple(binding.get(literal.terms[i], literal.terms[i]) for i in places)
        for atom in tuple(self._matches[literal.predicate][places].get(known, ())):
            self._count_step()
            matched = _matched(literal, atom, binding)
            if matched is not None:
                yield from self._bindings(plan, matched, depth + 1)

    def _extended(self, binding: Binding, variables: Sequence[Variable]) -> Iterator[Binding]:
        """The binding with every choice of objects for more variables."""
        for objects in product(*map(self._domain, variables)):
            self._count_step()
            yield binding | {v.name: name for v, name in zip(variables, objects, strict=True)}

    def _body(self, rule: Rule, binding: Binding) -> tuple[Fact, ...] | None:
        """What a ground rule needs; None if types or atoms that never change rule it out."""
        if any(binding[v.name] not in self._domain(v) for v in rule.variables):
            return None
        facts: dict[Fact, None] = {}
        for literal, every in rule.body:
            for bound in self._extended(binding, every) if every else (binding,):
                fact = self._fact(literal, bound)
                if fact is False:
                    return None
                if fact is not True:
                    facts[fact] = None
        return tuple(facts)

    def _fact(self, literal: Literal, binding: Binding) -> Fact | bool:
        """The fact that a literal asks for, or whether the literal holds in all states."""
        atom = literal.ground(binding)
        if atom.predicate == "=":
            return (atom.objects[0] == atom.objects[1]) == literal.positive
        if atom.predicate not in self._changing:
            return (atom in self._static) == literal.positive
        return atom, literal.positive

    def _domain(self, variable: Variable) -> dict[str, None]:
        """The objects that a variable ranges over."""
        types = variable.types
        if types not in self._domains:
            self._domains[types] = {
                name: None
                for name, of in self._types.items()
                if "object" in types or not set(of).isdisjoint(types)
            }
        return self._domains[types]

    def _count_step(self) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise TooManyRulesError
        if self._steps_left % CHECK_EVERY == 0:
            check()


def _plans(rule: Rule, changing: frozenset[str]) -> Iterator[_Plan]:
    """A plan for each literal that can be the last to become possible, or one without such."""
    binding = [literal for literal, every in rule.body if _binds(literal) and not every]
    firsts: list[Literal | None] = [x for x in binding if x.predicate in changing]
    for first in firsts or [None]:
        yield _plan(rule, first, [literal for literal in binding if literal is not first])


def _binds(literal: Literal) -> bool:
    return literal.positive and literal.predicate != "="


def _plan(rule: Rule, first: Literal | None, others: list[Literal]) -> _Plan:
    """Match next what has the fewest new variables, and of these what has the most terms."""
    known = set(first.terms if first else ())
    steps = []
    while others:
        literal = min(others, key=lambda x: (len({*_new(x, known)}), -len(x.terms)))
        others.remove(literal)
        unknown = {*_new(literal, known)}
        steps.append(
            _Step(literal, tuple(i for i, t in enumerate(literal.terms) if t not in unknown))
        )
        known |= unknown
    return _Plan(rule, first, tuple(steps), tuple(v for v in rule.variables if v.name not in known))


def _new(literal: Literal, known: set[str]) -> Iterator[str]:
    return (term for term in literal.terms if term[0] == "?" and term not in known)


def _matched(literal: Literal, atom: Atom, binding: Binding) -> Binding | None:
    """The binding with a literal's variables bound so that it is the atom; None if it is not."""
    found = dict(binding)
    for term, name in zip(literal.terms, atom.objects, strict=True):
        if found.setdefault(term, name) != name if term[0] == "?" else term != name:
            return None
    return found
