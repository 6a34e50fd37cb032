"""Ground actions as sets of facts, for domains whose conditions and effects are plain literals."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from regoal.planning.actions import GroundAction
from regoal.planning.datalog.grounding import Fact
from regoal.planning.pddl.model import Formula, Junction, Literal, PddlAction, PddlDomain


class StripsAction(NamedTuple):
    """The facts that an action needs, and those that it makes and ends; static ones are omitted."""

    needs: frozenset[Fact]
    makes: frozenset[Fact]
    ends: frozenset[Fact]


def is_plain(domain: PddlDomain) -> bool:
    """Return whether preconditions are conjunctions of literals and effects have no conditions.

    A plain domain has no derived predicates either.
    """
    effects = [effect for action in domain.actions for effect in action.effects]
    return (
        not domain.derived
        and all(_find_literals(action.precondition) is not None for action in domain.actions)
        and all(_find_literals(e.condition) == () and not e.variables for e in effects)
    )


def _find_literals(formula: Formula) -> tuple[Literal, ...] | None:
    """Return the literals of a conjunction; None if the formula is something else."""
    if isinstance(formula, Literal):
        return (formula,)
    if not isinstance(formula, Junction) or formula.connective != "and":
        return None
    found: list[Literal] = []
    for part in formula.parts:
        literals = _find_literals(part)
        if literals is None:
            return None
        found += literals
    return tuple(found)


def list_facts(domain: PddlDomain, actions: Iterable[GroundAction]) -> list[StripsAction]:
    """List the facts of each action of a plain domain; static preconditions must hold."""
    schemas = {action.name: action for action in domain.actions}
    return [_list_facts(schemas[a.name], a.objects, domain.changing) for a in actions]


def _list_facts(
    action: PddlAction, objects: tuple[str, ...], changing: frozenset[str]
) -> StripsAction:
    """List the facts of one action. An atom that it adds and deletes at once, it adds."""
    binding = action.bind(objects)

    def ground(literals: Iterable[Literal]) -> Iterator[Fact]:
        return ((x.ground(binding), x.positive) for x in literals if x.predicate in changing)

    effects = frozenset(ground(x for effect in action.effects for x in effect.literals))
    makes = frozenset(
        (atom, positive) for atom, positive in effects if positive or (atom, True) not in effects
    )
    return StripsAction(
        frozenset(ground(_find_literals(action.precondition) or ())),
        makes,
        frozenset((atom, not positive) for atom, positive in makes),
    )
