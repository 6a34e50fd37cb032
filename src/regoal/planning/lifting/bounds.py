"""How much of a goal's components can fit into a state at most.

A goal's components share no object, so literals whose objects at some position all differ in
the goal need different objects there in the state as well.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from regoal.planning.lifting.embeddings import CanonicalForm, may_fit
from regoal.planning.lifting.patterns import Component
from regoal.planning.lifting.placements import first_placement

SCAN_BUDGET = 5_000
"""Search steps for an upper bound on how much of one component fits into one part."""

DistinctPositions = tuple[tuple[str, tuple[int, ...]], ...]
"""For each predicate the argument positions in which no two positive literals agree."""


@lru_cache(maxsize=1_000)
def distinct_positions(components: tuple[Component, ...]) -> DistinctPositions:
    """The positions of the goal that these components make up."""
    atoms: dict[str, list[tuple[tuple[int, int, int], ...]]] = defaultdict(list)
    for index, component in enumerate(components):
        for predicate, args, sign in component.whole.structure.literals:
            for copy in range(component.copies if sign else 0):
                atoms[predicate].append(tuple((index, copy, a) for a in args))
    return tuple(
        (predicate, tuple(k for k, of in enumerate(zip(*args, strict=True)) if _differ(of)))
        for predicate, args in atoms.items()
    )


def _differ(values: Sequence[object]) -> bool:
    return len(set(values)) == len(values)


@lru_cache(maxsize=10_000)
def capacity(part: CanonicalForm, distinct: DistinctPositions) -> int:
    """At most this many positive literals lie in `part`, whatever components share it.

    If the goal's literals of a predicate all differ in some position, so do their images.
    """
    positions = dict(distinct)
    return sum(
        min([len(atoms), *(len({args[k] for args in atoms}) for k in positions.get(predicate, ()))])
        for predicate, atoms in part.atoms.items()
    )


@lru_cache(maxsize=10_000)
def largest_in(component: Component, part: CanonicalForm) -> tuple[int, int]:
    """At most this many literals of a component fit into `part`; the search steps this took.

    Exact unless the patterns are too many to list, or to try.
    """
    cost = 0
    for pattern in component.patterns:
        if may_fit(pattern, part):
            placements = first_placement(pattern, part)
            cost += placements.cost
            if placements.found or not placements.complete or cost > SCAN_BUDGET:
                return pattern.size, cost
    return (0 if component.exhaustive else component.whole.size), cost
