"""Write a domain without deletes as Datalog rules, which say how facts become possible.

A fact says that an atom is true, or that it is false. Both can be possible at once, because a
possible fact stays possible. Every effect has a rule, with the action's precondition as its body.

Rules are split so that each has few variables (Helmert, AIJ 2009, "Concise finite-domain
representations for PDDL planning tasks"). An effect that names one of five parameters then does
not cost a ground rule for every choice of the other four.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from regoal.planning.pddl.model import Formula, Junction, Literal, PddlDomain, Quantified, Variable


class BodyLiteral(NamedTuple):
    """A literal in the body of a rule; it must be possible for all objects in place of `every`."""

    literal: Literal
    every: tuple[Variable, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The variables that the rule must bind."""
        return _select_variables(self.literal.terms).difference(_list_names(self.every))


class Rule(NamedTuple):
    """`head` is possible if all of `body` is possible, for some objects in place of `variables`."""

    head: Literal
    body: tuple[BodyLiteral, ...]
    variables: tuple[Variable, ...]


class Rules(NamedTuple):
    """The rules of a domain."""

    rules: tuple[Rule, ...]
    changing: frozenset[str]
    """Predicates whose atoms depend on the state, auxiliary ones included."""
    deleted: frozenset[str]
    """Predicates for which rules say how their atoms become false."""


def write_rules(domain: PddlDomain, negative: Collection[str] = ()) -> Rules:
    """Write the rules of a domain.

    Rules say how atoms become false for the predicates in `negative`, and for those that some
    condition negates. A negated atom of a derived predicate counts as possible in every state.
    """
    writer = _Writer(domain.symbols.derived)
    for rule in domain.derived:
        head = Literal(rule.predicate, _list_names(rule.parameters))
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
    """Turns formulas into rules. `or`, and `exists` in `forall`, become auxiliary predicates."""

    derived: frozenset[str]
    rules: list[Rule] = field(default_factory=list)
    auxiliary: dict[tuple[Formula, tuple[Variable, ...]], Literal] = field(default_factory=dict)
    """The auxiliary atom of each formula that has one. PDDL cannot write its name."""

    def add(
        self, head: Literal, formulas: Iterable[Formula], variables: tuple[Variable, ...]
    ) -> None:
        """Add the rule that `head` is possible if all formulas are."""
        scope = {variable.name: variable for variable in variables}
        body = dict.fromkeys(c for f in formulas for c in self._write_body(f, scope))
        self.rules.append(Rule(head, tuple(body), tuple(scope.values())))

    def _write_body(self, formula: Formula, scope: dict[str, Variable]) -> Iterator[BodyLiteral]:
        """Yield the body literals of a formula; existential variables are added to `scope`."""
        if isinstance(formula, Literal):
            if formula.positive or formula.predicate not in self.derived:
                yield BodyLiteral(formula)
        elif isinstance(formula, Quantified) and formula.quantifier == "forall":
            yield from self._write_forall(formula, scope)
        elif isinstance(formula, Quantified):
            scope.update((variable.name, variable) for variable in formula.variables)
            yield from self._write_body(formula.body, scope)
        elif formula.connective == "and":
            for part in formula.parts:
                yield from self._write_body(part, scope)
        else:
            yield BodyLiteral(self._add_auxiliary(formula, formula.parts, scope))

    def _write_forall(
        self, formula: Quantified, scope: Mapping[str, Variable]
    ) -> Iterator[BodyLiteral]:
        outer = {**scope, **{variable.name: variable for variable in formula.variables}}
        inner = dict(outer)
        conditions = list(self._write_body(formula.body, inner))
        if len(inner) > len(outer):
            conditions = [BodyLiteral(self._add_auxiliary(formula.body, (formula.body,), outer))]
        for condition in conditions:
            yield BodyLiteral(condition.literal, formula.variables + condition.every)

    def _add_auxiliary(
        self, formula: Formula, cases: Iterable[Formula], scope: Mapping[str, Variable]
    ) -> Literal:
        """Return an auxiliary atom for a formula, which is possible if one of its cases is."""
        names = _find_free_variables(formula)
        free = tuple(variable for name, variable in scope.items() if name in names)
        key = formula, free
        if key not in self.auxiliary:
            self.auxiliary[key] = Literal(f"case {len(self.auxiliary)}", _list_names(free))
            for case in cases:
                self.add(self.auxiliary[key], (case,), free)
        return self.auxiliary[key]


def _split(rule: Rule, stem: str) -> Iterator[Rule]:
    """Split off variables that the head does not name, as long as the rule becomes smaller.

    The conditions on such a variable become another rule, whose head names their other variables.
    The variable with the fewest other variables comes first. Auxiliary predicates begin with
    `stem`.
    """
    head, body, variables = rule.head, list(rule.body), list(rule.variables)
    for i in count():
        scopes = {v: _find_neighbours(v, body) for v in variables if v.name not in head.terms}
        chosen = min(scopes, key=lambda v: len(scopes[v]), default=None)
        if chosen is None or len(scopes[chosen]) >= len(variables):
            break
        touched = [condition for condition in body if chosen.name in condition.names]
        inner = tuple(v for v in variables if v.name in scopes[chosen])
        atom = Literal(f"{stem} {i}", tuple(v.name for v in inner if v != chosen))
        yield Rule(atom, tuple(touched), inner)
        body = [*(condition for condition in body if condition not in touched), BodyLiteral(atom)]
        variables.remove(chosen)
    yield Rule(head, tuple(body), tuple(variables))


def _find_neighbours(variable: Variable, body: Iterable[BodyLiteral]) -> frozenset[str]:
    """Return the variables of all conditions on a variable, itself included."""
    touched = (c.names for c in body if variable.name in c.names)
    return frozenset((variable.name,)).union(*touched)


def _find_free_variables(formula: Formula) -> frozenset[str]:
    """Return the variables of a formula that none of its quantifiers binds."""
    if isinstance(formula, Literal):
        return _select_variables(formula.terms)
    if isinstance(formula, Junction):
        return frozenset(name for part in formula.parts for name in _find_free_variables(part))
    return _find_free_variables(formula.body).difference(_list_names(formula.variables))


def _select_variables(terms: Iterable[str]) -> frozenset[str]:
    return frozenset(term for term in terms if term[0] == "?")


def _list_names(variables: Iterable[Variable]) -> tuple[str, ...]:
    return tuple(variable.name for variable in variables)
