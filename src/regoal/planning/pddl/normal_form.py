"""Rewrite conditions in disjunctive normal form, so that the PDDL library has nothing to rewrite.

pymimir rewrites nested conditions wrongly if an `or` has one part, equal parts or an empty part.
A comparison with a direct reading of PDDL on random domains showed this.

Each condition therefore becomes a list of conjunctions. `exists` becomes variables of a
conjunction. `forall` becomes the negation of an auxiliary derived predicate, which holds if the
`forall` fails.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import NamedTuple

from regoal.errors import UnsupportedPddlError
from regoal.planning.pddl.model import Formula, Junction, Literal, Quantified, Variable

MAX_CASES = 500
"""Most conjunctions of a condition; the PDDL library makes an action of each."""


class Conjunction(NamedTuple):
    """Literals that must hold together, for some objects in place of `variables`."""

    variables: tuple[Variable, ...]
    literals: tuple[Literal, ...]


class NormalRule(NamedTuple):
    """A rule in normal form: if `body` holds, the derived predicate is true of `parameters`."""

    predicate: str
    parameters: tuple[Variable, ...]
    body: Conjunction


@dataclass
class NormalForm:
    """Rewrites the conditions of one domain; `rules` collects the rules for each `forall`."""

    rules: list[NormalRule] = field(default_factory=list)
    auxiliary: dict[str, int] = field(default_factory=dict)
    """Name and arity of each auxiliary predicate; PDDL cannot write any of these names."""

    def conjunctions(
        self, formula: Formula, variables: Iterable[Variable], place: str
    ) -> list[Conjunction]:
        """Return conjunctions of which one must hold, or none if the formula cannot hold.

        `variables` are the free variables that the formula may use. Raises `UnsupportedPddlError`
        with the `place` if there would be more than `MAX_CASES` conjunctions.
        """
        try:
            return self._rewrite(formula, {variable.name: variable for variable in variables})
        except OverflowError:
            raise UnsupportedPddlError(
                f"{place} comes to more than {MAX_CASES} conjunctions, which regoal does not "
                "support; put part of it into a derived predicate."
            ) from None

    def _rewrite(self, formula: Formula, scope: Mapping[str, Variable]) -> list[Conjunction]:
        if isinstance(formula, Literal):
            return _rewrite_literal(formula)
        if isinstance(formula, Quantified):
            inner = {**scope, **{variable.name: variable for variable in formula.variables}}
            if formula.quantifier == "forall":
                return self._rewrite_forall(
                    formula, scope, self._rewrite(negate(formula.body), inner)
                )
            return [
                Conjunction(formula.variables + case.variables, case.literals)
                for case in self._rewrite(formula.body, inner)
            ]
        parts = [self._rewrite(part, scope) for part in formula.parts]
        if formula.connective == "or":
            return _drop_equal(case for part in parts for case in part)
        if prod(map(len, parts)) > MAX_CASES:
            raise OverflowError
        return _drop_equal(case for choice in product(*parts) for case in _join_cases(choice))

    def _rewrite_forall(
        self, formula: Quantified, scope: Mapping[str, Variable], failures: list[Conjunction]
    ) -> list[Conjunction]:
        """Rewrite a `forall` as "its failure is not derived"; if it cannot fail, it is true."""
        if not failures:
            return [Conjunction((), ())]
        name = f"<forall {len(self.auxiliary)}>"
        used = {t for case in failures for literal in case.literals for t in literal.terms}
        free = tuple(variable for key, variable in sorted(scope.items()) if key in used)
        self.auxiliary[name] = len(free)
        for case in failures:
            body = Conjunction(formula.variables + case.variables, case.literals)
            self.rules.append(NormalRule(name, free, body))
        return [Conjunction((), (Literal(name, tuple(v.name for v in free), positive=False),))]

    def separate_uses(self, rules: list[NormalRule]) -> list[NormalRule]:
        """Return equal rules in which no head uses a derived predicate both negated and not.

        The PDDL library must complete a predicate before it applies rules that negate it. It
        considers only the last use in the rules of one head (measured with pymimir 0.13.63), so
        it could apply a rule too early. Negated uses therefore get a twin: an equal predicate.
        """
        arities = {rule.predicate: len(rule.parameters) for rule in rules}
        uses = {(r.predicate, x.predicate, x.positive) for r in rules for x in r.body.literals}
        both = {used for head, used, positive in uses if (head, used, not positive) in uses}
        twins = {name: f"<equal {i}>" for i, name in enumerate(sorted(both & arities.keys()))}
        self.auxiliary.update((twin, arities[name]) for name, twin in twins.items())
        return [
            *(rule._replace(body=_replace_negated(rule.body, twins)) for rule in rules),
            *(_make_twin_rule(name, twin, arities[name]) for name, twin in twins.items()),
        ]


def negate(formula: Formula) -> Formula:
    """Return the negation of a formula, in negation normal form."""
    if isinstance(formula, Literal):
        return Literal(formula.predicate, formula.terms, not formula.positive)
    if isinstance(formula, Junction):
        connective = "or" if formula.connective == "and" else "and"
        return Junction(connective, tuple(map(negate, formula.parts)))
    quantifier = "exists" if formula.quantifier == "forall" else "forall"
    return Quantified(quantifier, formula.variables, negate(formula.body))


def _replace_negated(body: Conjunction, twins: Mapping[str, str]) -> Conjunction:
    """Replace each negated predicate in a body by its twin, if it has one."""
    literals = tuple(
        x if x.positive else replace(x, predicate=twins.get(x.predicate, x.predicate))
        for x in body.literals
    )
    return body._replace(literals=literals)


def _make_twin_rule(name: str, twin: str, arity: int) -> NormalRule:
    """Return the rule that makes a twin true of the same objects as a predicate."""
    parameters = tuple(Variable(f"?v{i}", ("object",)) for i in range(arity))
    literal = Literal(name, tuple(variable.name for variable in parameters))
    return NormalRule(twin, parameters, Conjunction((), (literal,)))


def _rewrite_literal(literal: Literal) -> list[Conjunction]:
    if literal.predicate == "=" and literal.terms[0] == literal.terms[1]:
        return [Conjunction((), ())] if literal.positive else []
    return [Conjunction((), (literal,))]


def _join_cases(cases: Iterable[Conjunction]) -> list[Conjunction]:
    """Join cases into one conjunction; return none if they contradict each other."""
    cases = list(cases)
    literals = tuple(dict.fromkeys(literal for case in cases for literal in case.literals))
    if any(negate(literal) in literals for literal in literals if literal.positive):
        return []
    variables = tuple(dict.fromkeys(variable for case in cases for variable in case.variables))
    return [Conjunction(variables, literals)]


def _drop_equal(cases: Iterable[Conjunction]) -> list[Conjunction]:
    found = list(dict.fromkeys(cases))
    if len(found) > MAX_CASES:
        raise OverflowError
    return found
