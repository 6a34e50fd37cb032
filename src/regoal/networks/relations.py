"""The relation symbols of the network's input, and their names in another domain."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from regoal.planning.matching.schema import Matching, Schema, Symbol


class Relation(NamedTuple):
    """A relation symbol of the network's input."""

    kind: str
    """`type`, `constant`, `state`, `action`, or that of a goal literal: `goal`, or `achieved` and
    `missing` if the network sees which are true; then also `aim` and `match`. What belongs to a
    negative literal has `-not` after it. If it sees relaxed plans, also `helpful` and `towards`."""
    name: str
    arity: int
    """Arguments in the input. An action's own node counts; a 0-ary predicate has one argument."""


GOAL_KINDS = {True: "goal", False: "goal-not"}
"""The kind of a goal literal's relation; the key says whether the literal is positive."""
ACHIEVED_KINDS = {True: "achieved", False: "achieved-not"}
"""The kind if the literal is true in the state, in a network that sees this."""
MISSING_KINDS = {True: "missing", False: "missing-not"}
"""The kind if it is false there."""
AIM_KINDS = {True: "aim", False: "aim-not"}
"""The kind of an action's node if the action mentions all objects of a missing literal."""
MATCH_KIND = "match"
"""The kind of a state's atom, besides `state`, if it mentions all objects of a missing literal."""

HELPFUL_KIND = "helpful"
"""The kind of an action's node if the action is part of a relaxed plan, with the action's name."""
TOWARDS_KIND = "towards"
"""The kind of an action's node if the action leads towards one of this name."""


def relations_of(
    schema: Schema, *, achieved_goals: bool = False, relaxed_plans: bool = False
) -> tuple[Relation, ...]:
    """List every relation that an input of this domain may hold, in a fixed order (paper, S').

    With `achieved_goals`, goal literals that are true in the state have other relations than those
    that are false, and there are relations for what mentions all objects of a false one. In the
    paper all have the same. With `relaxed_plans`, there are relations for actions that begin one
    (docs/explanation/deviations.md). Symbols that no action and no axiom mentions are left out:
    they cannot matter to a plan, and two files of one domain may differ in them.
    """
    types = [s for s in schema.used_symbols if s.kind == "type"]
    predicates = [s for s in schema.used_symbols if s.kind == "predicate"]
    return (
        *(Relation("type", s.name, 1) for s in types),
        *(Relation("constant", name, 1) for name in sorted(schema.constants)),
        *(Relation("state", s.name, max(s.arity, 1)) for s in predicates),
        *(Relation("action", name, n + 1) for name, n in sorted(schema.action_arities.items())),
        *_relations_of_goals(predicates, achieved_goals),
        *(
            Relation(kind, name, 1)
            for kind in ((HELPFUL_KIND, TOWARDS_KIND) if relaxed_plans else ())
            for name in sorted(schema.action_arities)
        ),
    )


def _relations_of_goals(predicates: Sequence[Symbol], achieved_goals: bool) -> Iterator[Relation]:
    of_literals = (
        (*MISSING_KINDS.values(), *ACHIEVED_KINDS.values())
        if achieved_goals
        else tuple(GOAL_KINDS.values())
    )
    for kind in of_literals:
        yield from (Relation(kind, s.name, max(s.arity, 1)) for s in predicates)
    if achieved_goals:
        wide = [s for s in predicates if s.arity > 1]
        for kind in AIM_KINDS.values():
            yield from (Relation(kind, s.name, 1) for s in wide)
        yield from (Relation(MATCH_KIND, s.name, s.arity) for s in wide)


def index_of(
    relations: Sequence[Relation], matching: Matching | None = None
) -> dict[tuple[str, str], int]:
    """Map each (kind, name) of a domain's symbols to the position of its relation.

    With a matching, kinds and names are those of the matched domain, in which a type of the policy
    may be a predicate.
    """
    if matching is None:
        return {(r.kind, r.name): i for i, r in enumerate(relations)}
    symbols = {(ours.kind, ours.name): theirs for ours, theirs in matching.symbols.items()}
    keys = (
        (i, _find_matched_key(relation, matching, symbols)) for i, relation in enumerate(relations)
    )
    return {key: i for i, key in keys if key is not None}


def _find_matched_key(
    relation: Relation, matching: Matching, symbols: Mapping[tuple[str, str], Symbol]
) -> tuple[str, str] | None:
    """Return kind and name of a relation in the matched domain; None if it is not there."""
    if relation.kind == "constant":
        return relation.kind, relation.name
    if relation.kind in ("action", HELPFUL_KIND, TOWARDS_KIND):
        return relation.kind, matching.actions[relation.name]
    theirs = symbols.get(("type" if relation.kind == "type" else "predicate", relation.name))
    if theirs is None:
        return None
    if relation.kind in ("type", "state"):
        return "type" if theirs.kind == "type" else "state", theirs.name
    # A goal names no type; a predicate may share its name.
    return (relation.kind, theirs.name) if theirs.kind == "predicate" else None


def parameter_order(matching: Matching | None) -> dict[str, tuple[int, ...]]:
    """Return, by action of the matched domain, where each parameter of the policy's action is.

    Actions whose parameters come in the same order are left out.
    """
    if matching is None:
        return {}
    orders = {matching.actions[ours]: order for ours, order in matching.parameters.items()}
    return {name: order for name, order in orders.items() if order != tuple(range(len(order)))}
