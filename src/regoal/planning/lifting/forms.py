"""Connected parts of states up to renaming, and where patterns fit into them.

A state is kept as a bag of forms, its connected parts in canonical form, so that equal
situations are met once, within a state and across states.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regoal.planning.lifting.embeddings import Form, Image, Steps, embeddings
from regoal.planning.lifting.growth import grow
from regoal.planning.lifting.structures import (
    Canonical,
    Literal,
    Structure,
    canonical,
    connected_parts,
    reordered,
)

EMBEDDING_BUDGET = 5000
"""Search steps for one pattern in one form."""

GROWTH_BUDGET = 1000
"""Bindings weighed to grow one component in one form."""

FORM_LIMIT = 2000
"""Forms kept in memory; past this all that was kept is dropped and built again when needed."""

SPELLING_LIMIT = 1000
"""Structures kept in memory with their canonical form."""


class Move(NamedTuple):
    """One component's pattern placed in one form: where, and what is left of that form.

    `rest` lists the forms that remain, each with the vertices of the old form in the new order.
    """

    pattern: Form
    form: Form
    image: Image
    rest: tuple[tuple[Form, tuple[int, ...]], ...] = ()


class Moves(NamedTuple):
    """What can be done with a pattern and a form, whether that is all, and the steps it took."""

    found: tuple[Move, ...]
    complete: bool
    cost: int


Bag = tuple[tuple[Form, int], ...]
"""Forms with how often each occurs, in the order of their keys."""


def bag(forms: Iterable[Form]) -> Bag:
    """The bag of these forms."""
    return tuple(sorted(Counter(forms).items(), key=lambda entry: entry[0].key))


def exchanged(old: Bag, taken: Form, added: Iterable[Form], times: int = 1) -> Bag:
    """The bag with one form taken out (`times` of it) and others put in."""
    counts = dict(old)
    counts[taken] -= times
    for form in added:
        counts[form] = counts.get(form, 0) + 1
    left = ((form, count) for form, count in counts.items() if count)
    return tuple(sorted(left, key=lambda entry: entry[0].key))


class FormTable:
    """Interned forms, and where patterns fit into them, remembered across states.

    `connected` says that a pattern lies within one connected part of a state, so that the parts
    can be forms of their own. With negative literals the whole state is one form.
    """

    def __init__(self, connected: bool) -> None:
        self.connected = connected
        self.clear()

    def clear(self) -> None:
        """Forget everything. Answers stay the same."""
        self._forms: dict[Structure, Form] = {}
        self._canonical: dict[Structure, tuple[Form, tuple[int, ...]]] = {}
        self._first: dict[tuple[Form, Form], Moves] = {}
        self._moves: dict[tuple[Form, Form], Moves] = {}
        self._grown: dict[tuple[Form, Form], Moves] = {}

    def is_full(self) -> bool:
        """Whether it is time to `clear`."""
        return len(self._forms) > FORM_LIMIT

    def form(self, structure: Structure) -> tuple[Form, tuple[int, ...]]:
        """The form of a structure, and for each of its vertices the one in `structure`."""
        known = self._canonical.get(structure)
        if known is None:
            if len(self._canonical) >= SPELLING_LIMIT:
                self._canonical.clear()
            result = canonical(structure)
            form = self._forms.get(result.structure)
            if form is None:
                form = Form(result.structure, result.cells)
                self._forms[result.structure] = form
            known = self._canonical[structure] = form, result.order
        return known

    def known(self, pattern: Canonical) -> Form:
        """The form of a structure that is in canonical form already."""
        return self._forms.setdefault(pattern.structure, Form(pattern.structure, pattern.cells))

    def split(
        self, whole: Structure, vertices: Sequence[int], literals: list[Literal]
    ) -> list[tuple[Form, tuple[int, ...]]]:
        """The forms of a part of `whole`, each with its vertices in `whole`."""
        if self.connected:
            parts = [part for part in connected_parts(vertices, literals) if part[1]]
        else:
            parts = [(list(vertices), literals)]
        forms = []
        for part, part_literals in parts:
            form, order = self.form(reordered(whole, part, part_literals))
            forms.append((form, tuple(part[i] for i in order)))
        return forms

    def first(self, pattern: Form, form: Form) -> Moves:
        """One way to place the pattern, without what is left; no move if there is none."""
        key = pattern, form
        if key not in self._first:
            steps = Steps(EMBEDDING_BUDGET)
            image = next(embeddings(pattern, form, steps), None)
            found = () if image is None else (Move(pattern, form, image),)
            self._first[key] = Moves(found, steps.left >= 0, EMBEDDING_BUDGET - steps.left)
        return self._first[key]

    def moves(self, pattern: Form, form: Form) -> Moves:
        """Every way to place the pattern that leaves something different, best first."""
        key = pattern, form
        if key not in self._moves:
            steps = Steps(EMBEDDING_BUDGET)
            found: dict[Bag, Move] = {}
            for image in embeddings(pattern, form, steps):
                move = self._place(pattern, form, image)
                found.setdefault(bag(child for child, _ in move.rest), move)
                steps.left -= len(form.structure.labels)
            ordered = sorted(found.values(), key=_rest_size, reverse=True)
            cost = EMBEDDING_BUDGET - steps.left
            self._moves[key] = Moves(tuple(ordered), steps.left >= 0, cost)
        return self._moves[key]

    def grown(self, component: Form, form: Form) -> Moves:
        """Nested patterns, largest first, that are grown greedily where they fit."""
        key = component, form
        if key not in self._grown:
            steps = Steps(GROWTH_BUDGET)
            found = []
            for structure, image in grow(component, form, steps):
                pattern, order = self.form(structure)
                found.append(self._place(pattern, form, tuple(image[i] for i in order)))
            self._grown[key] = Moves(tuple(found), False, GROWTH_BUDGET - steps.left)
        return self._grown[key]

    def _place(self, pattern: Form, form: Form, image: Image) -> Move:
        used = set(image)
        vertices = [v for v in range(len(form.structure.labels)) if v not in used]
        literals = [x for x in form.structure.literals if used.isdisjoint(x[1])]
        rest = self.split(form.structure, vertices, literals)
        return Move(pattern, form, image, tuple(rest))


def _rest_size(move: Move) -> int:
    return sum(form.size for form, _ in move.rest)
