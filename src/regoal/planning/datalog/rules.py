"""A domain without deletes as Datalog rules, which say how facts become possible.

A fact says that an atom is true, or that it is false. Both can be possible at once, since what was
possible stays so. There is a rule for every effect, with the action's precondition as its body.

Rules are split so that each has few variables (Helmert, AIJ 2009, "Concise finite-domain
representations for PDDL planning tasks"). So an effect that names one of five parameters does not
cost a ground rule for every choice of the other four.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from regoal.planning.pddl.domain import PddlDomain
from regoal.planning.pddl.formulas import Formula, Junction, Literal, Quantified, Variable


class Condition(NamedTuple):
    """A literal that a rule needs, for all objects in place of the variables `every`."""

    literal: Literal
    every: tuple[Variable, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The variables that the rule itself must bind."""
        return _variables(self.literal.terms).difference(_names(self.every))


class Rule(NamedTuple):
    """`head` is possible if all of `body` is, for some objects in place of `variables`."""

    head: Literal
    body: tuple[Condition, ...]
    variables: tuple[Variable, ...]


class Rules(NamedTuple):
    """The rules of a domain."""

    rules: tuple[Rule, ...]
    changing: frozenset[str]
    """Predicates whose atoms depend on the state; auxiliary ones are among them."""
    deleted: frozenset[str]
    """Predicates for which rules say how their atoms become false."""


def rules_of(domain: PddlDomain, negative: Collection[str] = ()) -> Rules:
    """The rules of a domain.

    They say how atoms become false if a condition asks for that, and for the predicates in
    `negative`. A negated atom of a derived predicate counts as possible in every state.
    """
    writer = _Writer(domain.symbols.derived)
    for rule in domain.derived:
        head = Literal(rule.predicate, _names(rule.parameters))
        writer.add(head, (rule.body,), rule.parameters)
    for action in domain.actions:
        for effect in action.effects:
            for head in effect.literals:
                formulas = (action.precondition, effect.condition)
                writer.add(head, formulas, action.parameters + effect.variables)
    literals = [condition.literal for rule in writer.rules for condition in rule.body]
    asked = {*negative, *(x.predicate for x in literals if not x.positive)}
    deleted = (domain.changing & asked) - domain.symbols.derived
    useful = [r for r in writer.rules if r.head.positive or r.head.predicate in deleted]
    split = tuple(part for i, rule in enumerate(useful) for part in _split(rule, f"part {i}"))
    auxiliary = {literal.predicate for literal in writer.auxiliary.values()}
    auxiliary |= {r.head.predicate for r in split} - domain.symbols.predicates.keys()
    return Rules(split, domain.changing | auxiliary, deleted)


@dataclass
class _Writer:
    """Turns formulas into rules. `or`, and `exists` in a `forall`, become auxiliary predicates."""

    derived: frozenset[str]
    rules: list[Rule] = field(default_factory=list)
    auxiliary: dict[tuple[Formula, tuple[Variable, ...]], Literal] = field(default_factory=dict)
    """The atom for each formula that has one. Its name cannot be written in PDDL."""

    def add(
        self, head: Literal, formulas: Iterable[Formula], variables: tuple[Variable, ...]
    ) -> None:
        """Add the rule that `head` is possible if all the formulas are."""
        scope = {variable.name: variable for variable in variables}
        body = dict.fromkeys(c for f in formulas for c in self._conditions(f, scope))
        self.rules.append(Rule(head, tuple(body), tuple(scope.values())))

    def _conditions(self, formula: Formula, scope: dict[str, Variable]) -> Iterator[Condition]:
        """The conditions that a formula comes to; variables that must exist enter `scope`."""
        if isinstance(formula, Literal):
            if formula.positive or formula.predicate not in self.derived:
                yield Condition(formula)
        elif isinstance(formula, Quantified) and formula.quantifier == "forall":
            yield from self._universal(formula, scope)
        elif isinstance(formula, Quantified):
            scope.update((variable.name, variable) for variable in formula.variables)
            yield from self._conditions(formula.body, scope)
        elif formula.connective == "and":
            for part in formula.parts:
                yield from self._conditions(part, scope)
        else:
            yield Condition(self._atom(formula, formula.parts, scope))

    def _universal(self, formula: Quantified, scope: Mapping[str, Variable]) -> Iterator[Condition]:
        outer = {**scope, **{variable.name: variable for variable in formula.variables}}
        inner = dict(outer)
        conditions = list(self._conditions(formula.body, inner))
        if len(inner) > len(outer):
            conditions = [Condition(self._atom(formula.body, (formula.body,), outer))]
        for condition in conditions:
            yield Condition(condition.literal, formula.variables + condition.every)

    def _atom(
        self, formula: Formula, cases: Iterable[Formula], scope: Mapping[str, Variable]
    ) -> Literal:
        """An auxiliary atom for a formula, possible if one of its cases is."""
        names = _free(formula)
        free = tuple(variable for name, variable in scope.items() if name in names)
        key = formula, free
        if key not in self.auxiliary:
            self.auxiliary[key] = Literal(f"case {len(self.auxiliary)}", _names(free))
            for case in cases:
                self.add(self.auxiliary[key], (case,), free)
        return self.auxiliary[key]


def _split(rule: Rule, stem: str) -> Iterator[Rule]:
    """Take variables that the head does not name out of a rule, as long as that makes it smaller.

    The conditions on such a variable become another rule; its head names their other variables.
    The variable with the fewest of these goes first. Auxiliary predicates begin with `stem`.
    """
    head, body, variables = rule.head, list(rule.body), list(rule.variables)
    for i in count():
        scopes = {v: _scope(v, body) for v in variables if v.name not in head.terms}
        chosen = min(scopes, key=lambda v: len(scopes[v]), default=None)
        if chosen is None or len(scopes[chosen]) >= len(variables):
            break
        touched = [condition for condition in body if chosen.name in condition.names]
        inner = tuple(v for v in variables if v.name in scopes[chosen])
        atom = Literal(f"{stem} {i}", tuple(v.name for v in inner if v != chosen))
        yield Rule(atom, tuple(touched), inner)
        body = [*(condition for condition in body if condition not in touched), Condition(atom)]
        variables.remove(chosen)
    yield Rule(head, tuple(body), tuple(variables))


def _scope(variable: Variable, body: Iterable[Condition]) -> frozenset[str]:
    """The variables of all conditions on one, itself included."""
    touched = (c.names for c in body if variable.name in c.names)
    return frozenset((variable.name,)).union(*touched)


def _free(formula: Formula) -> frozenset[str]:
    """The variables of a formula that none of its quantifiers binds."""
    if isinstance(formula, Literal):
        return _variables(formula.terms)
    if isinstance(formula, Junction):
        return frozenset(name for part in formula.parts for name in _free(part))
    return _free(formula.body).difference(_names(formula.variables))


def _variables(terms: Iterable[str]) -> frozenset[str]:
    return frozenset(term for term in terms if term[0] == "?")


def _names(variables: Iterable[Variable]) -> tuple[str, ...]:
    return tuple(variable.name for variable in variables)
