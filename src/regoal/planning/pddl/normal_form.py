"""Conditions in disjunctive normal form, so that the parser's own rewriting has nothing to do.

pymimir rewrites nested conditions wrongly where an `or` has one part, equal parts or an empty
part (compared with a direct reading of PDDL on random domains). Each condition therefore becomes
a list of conjunctions; `exists` becomes variables of a conjunction, and `forall` the negation of
a derived predicate of our own that says where it fails.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import NamedTuple

from regoal.errors import UnsupportedPddlError
from regoal.planning.pddl.formulas import Formula, Junction, Literal, Quantified, Variable

MAX_CASES = 500
"""How many conjunctions a condition may come to; the parser makes an action of each."""


class Conjunction(NamedTuple):
    """Literals that hold together for some objects in place of `variables`."""

    variables: tuple[Variable, ...]
    literals: tuple[Literal, ...]


class Rule(NamedTuple):
    """Makes a derived predicate true of `parameters` wherever the conjunction holds."""

    predicate: str
    parameters: tuple[Variable, ...]
    body: Conjunction


@dataclass
class NormalForm:
    """Rewrites the conditions of one domain; `rules` collects what its `forall`s need."""

    rules: list[Rule] = field(default_factory=list)
    auxiliary: dict[str, int] = field(default_factory=dict)
    """Name and arity of each predicate made here; none of them can be written in PDDL."""

    def conjunctions(
        self, formula: Formula, variables: Iterable[Variable], place: str
    ) -> list[Conjunction]:
        """Conjunctions of which one must hold; none where the formula cannot hold.

        `variables` are those that the formula may use freely. Raises `UnsupportedPddlError`,
        which names the `place`, where there would be more than `MAX_CASES`.
        """
        try:
            return self._cases(formula, {variable.name: variable for variable in variables})
        except OverflowError:
            raise UnsupportedPddlError(
                f"{place} comes to more than {MAX_CASES} conjunctions, which regoal does not "
                "support; put part of it into a derived predicate."
            ) from None

    def _cases(self, formula: Formula, scope: Mapping[str, Variable]) -> list[Conjunction]:
        if isinstance(formula, Literal):
            return _literal_cases(formula)
        if isinstance(formula, Quantified):
            inner = {**scope, **{variable.name: variable for variable in formula.variables}}
            if formula.quantifier == "forall":
                return self._universal(formula, scope, self._cases(negation(formula.body), inner))
            return [
                Conjunction(formula.variables + case.variables, case.literals)
                for case in self._cases(formula.body, inner)
            ]
        parts = [self._cases(part, scope) for part in formula.parts]
        if formula.connective == "or":
            return _distinct(case for part in parts for case in part)
        if prod(map(len, parts)) > MAX_CASES:
            raise OverflowError
        return _distinct(case for choice in product(*parts) for case in _joined(choice))

    def _universal(
        self, formula: Quantified, scope: Mapping[str, Variable], failures: list[Conjunction]
    ) -> list[Conjunction]:
        """A `forall` as "its failure is not derived"; true at once where it cannot fail."""
        if not failures:
            return [Conjunction((), ())]
        name = f"<forall {len(self.auxiliary)}>"
        used = {t for case in failures for literal in case.literals for t in literal.terms}
        free = tuple(variable for key, variable in sorted(scope.items()) if key in used)
        self.auxiliary[name] = len(free)
        for case in failures:
            body = Conjunction(formula.variables + case.variables, case.literals)
            self.rules.append(Rule(name, free, body))
        return [Conjunction((), (Literal(name, tuple(v.name for v in free), positive=False),))]

    def separate_uses(self, rules: list[Rule]) -> list[Rule]:
        """Rules of which no head uses a derived predicate both negated and not.

        The parser must complete a predicate before the rules that negate it. It heeds only the
        last use in rules of one head (measured with pymimir 0.13.63), so that a rule that
        negates it could be applied too early. Negated uses then get a predicate that equals it.
        """
        arities = {rule.predicate: len(rule.parameters) for rule in rules}
        uses = {(r.predicate, x.predicate, x.positive) for r in rules for x in r.body.literals}
        both = {used for head, used, positive in uses if (head, used, not positive) in uses}
        twins = {name: f"<equal {i}>" for i, name in enumerate(sorted(both & arities.keys()))}
        self.auxiliary.update((twin, arities[name]) for name, twin in twins.items())
        return [
            *(rule._replace(body=_with_twins(rule.body, twins)) for rule in rules),
            *(_equality(name, twin, arities[name]) for name, twin in twins.items()),
        ]


def negation(formula: Formula) -> Formula:
    """The negation of a formula, in negation normal form again."""
    if isinstance(formula, Literal):
        return Literal(formula.predicate, formula.terms, not formula.positive)
    if isinstance(formula, Junction):
        connective = "or" if formula.connective == "and" else "and"
        return Junction(connective, tuple(map(negation, formula.parts)))
    quantifier = "exists" if formula.quantifier == "forall" else "forall"
    return Quantified(quantifier, formula.variables, negation(formula.body))


def _with_twins(body: Conjunction, twins: Mapping[str, str]) -> Conjunction:
    """The body with the twin of each negated predicate that has one."""
    literals = tuple(
        x if x.positive else replace(x, predicate=twins.get(x.predicate, x.predicate))
        for x in body.literals
    )
    return body._replace(literals=literals)


def _equality(name: str, twin: str, arity: int) -> Rule:
    """The rule that makes a twin hold of the same objects as a predicate."""
    parameters = tuple(Variable(f"?v{i}", ("object",)) for i in range(arity))
    literal = Literal(name, tuple(variable.name for variable in parameters))
    return Rule(twin, parameters, Conjunction((), (literal,)))


def _literal_cases(literal: Literal) -> list[Conjunction]:
    if literal.predicate == "=" and literal.terms[0] == literal.terms[1]:
        return [Conjunction((), ())] if literal.positive else []
    return [Conjunction((), (literal,))]


def _joined(cases: Iterable[Conjunction]) -> list[Conjunction]:
    """All the cases at once, or nothing where they contradict each other."""
    cases = list(cases)
    literals = tuple(dict.fromkeys(literal for case in cases for literal in case.literals))
    if any(negation(literal) in literals for literal in literals if literal.positive):
        return []
    variables = tuple(dict.fromkeys(variable for case in cases for variable in case.variables))
    return [Conjunction(variables, literals)]


def _distinct(cases: Iterable[Conjunction]) -> list[Conjunction]:
    found = list(dict.fromkeys(cases))
    if len(found) > MAX_CASES:
        raise OverflowError
    return found
