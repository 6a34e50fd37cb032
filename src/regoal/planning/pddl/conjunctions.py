"""Domains without derived predicates whose preconditions are conjunctions of literals."""

from collections.abc import Iterator

from regoal.planning.pddl.model import TRUE, Formula, Junction, Literal, PddlDomain


def is_plain(domain: PddlDomain) -> bool:
    """Return whether preconditions are conjunctions of literals and no predicate is derived."""
    return not domain.derived and all(_is_conjunction(a.precondition) for a in domain.actions)


def _is_conjunction(formula: Formula) -> bool:
    if isinstance(formula, Junction):
        return formula.connective == "and" and all(map(_is_conjunction, formula.parts))
    return isinstance(formula, Literal)


def literals(formula: Formula) -> Iterator[Literal]:
    """Yield the literals of a conjunction of literals."""
    if isinstance(formula, Literal):
        yield formula
    elif isinstance(formula, Junction):
        for part in formula.parts:
            yield from literals(part)


def is_strips(domain: PddlDomain) -> bool:
    """Return whether a domain is plain, see `is_plain`, and has no conditional effects.

    Types, negative preconditions, equality and effects on all objects of a type are allowed.
    """
    effects = (effect for action in domain.actions for effect in action.effects)
    return is_plain(domain) and all(effect.condition == TRUE for effect in effects)
