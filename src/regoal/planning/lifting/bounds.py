"""How much of a goal's components can fit into a state at most.

A goal's components share no object, so literals whose objects at some position all differ in
the goal need different objects there in the state as well.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from regoal.planning.lifting.embeddings import Form, may_fit
from regoal.planning.lifting.forms import FormTable

SCAN_BUDGET = 5_000
"""Search steps for an upper bound on how much of one component fits into one form."""

MATCHING_LIMIT = 400
"""Atoms up to which a bound is worth a maximum matching."""


class Component(NamedTuple):
    """Equal components of a goal: their patterns, largest first, or None if these are too many."""

    whole: Form
    patterns: tuple[Form, ...] | None
    copies: int

    @property
    def negative(self) -> int:
        """How many literals of one copy are negative."""
        return sum(not sign for _, _, sign in self.whole.structure.literals)


class Bounds:
    """Upper bounds for the components of one goal, remembered for each form."""

    def __init__(self, components: Sequence[Component], table: FormTable) -> None:
        self._components = components
        self._table = table
        self._distinct = _distinct_positions(components)
        self.clear()

    def clear(self) -> None:
        """Forget what was remembered. Answers stay the same."""
        self._capacity: dict[Form, int] = {}
        self._largest: dict[tuple[int, Form], tuple[int, int]] = {}

    def capacity(self, form: Form) -> int:
        """At most this many positive literals lie in `form`, whatever components share it.

        Where the goal's literals of a predicate all differ in some arguments, so do their images.
        """
        known = self._capacity.get(form)
        if known is None:
            known = 0
            for predicate, atoms in form.atoms.items():
                known += most_distinct(atoms, self._distinct.get(predicate, ()))
            self._capacity[form] = known
        return known

    def largest_in(self, index: int, form: Form) -> tuple[int, int]:
        """At most this many literals of one component fit into `form`; the steps this took.

        Exact unless the patterns are too many to list, or to try.
        """
        known = self._largest.get((index, form))
        if known is None:
            component = self._components[index]
            if component.patterns is None:
                most = self.capacity(form) + component.negative
                known = min(most, component.whole.size), 0
            else:
                known = self._first_that_may_fit(component.patterns, form)
            self._largest[index, form] = known
        return known

    def _first_that_may_fit(self, patterns: tuple[Form, ...], form: Form) -> tuple[int, int]:
        cost = 0
        for pattern in patterns:
            if may_fit(pattern, form):
                moves = self._table.first(pattern, form)
                cost += moves.cost
                if moves.found or not moves.complete or cost > SCAN_BUDGET:
                    return pattern.size, cost
        return 0, cost


def most_distinct(atoms: Sequence[tuple[int, ...]], positions: Sequence[int]) -> int:
    """At most this many of the atoms differ from each other in all of these positions.

    Exact for up to two positions, a maximum matching; for more the least over pairs of them.
    Past `MATCHING_LIMIT` only the least number of different objects in a position.

    >>> most_distinct([(0, 5), (1, 5), (2, 6)], [0, 1])
    2
    """
    most = min((len({atom[i] for atom in atoms}) for i in positions), default=len(atoms))
    if most == len(atoms) or most > MATCHING_LIMIT:
        return most
    pairs = combinations(positions, 2)
    return min((_matching({(a[i], a[j]) for a in atoms}) for i, j in pairs), default=most)


def _matching(edges: Iterable[tuple[int, int]]) -> int:
    """The size of a maximum matching of left with right ends, by augmenting paths."""
    right_of: dict[int, list[int]] = {}
    for left, right in sorted(edges):
        right_of.setdefault(left, []).append(right)
    matched: dict[int, int] = {}

    def augment(left: int, tried: set[int]) -> bool:
        for right in right_of[left]:
            if right not in tried:
                tried.add(right)
                if right not in matched or augment(matched[right], tried):
                    matched[right] = left
                    return True
        return False

    return sum(augment(left, set()) for left in right_of)


def _distinct_positions(components: Sequence[Component]) -> dict[str, list[int]]:
    """For each predicate the argument positions in which no two positive literals agree."""
    atoms: dict[str, list[tuple[tuple[int, int, int], ...]]] = {}
    for index, component in enumerate(components):
        for predicate, args, sign in component.whole.structure.literals:
            for copy in range(component.copies if sign else 0):
                atoms.setdefault(predicate, []).append(tuple((index, copy, a) for a in args))
    return {
        predicate: [k for k in range(len(of[0])) if len({args[k] for args in of}) == len(of)]
        for predicate, of in atoms.items()
    }
