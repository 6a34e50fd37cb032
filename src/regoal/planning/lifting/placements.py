"""Connected parts of states up to renaming, and how a pattern can be placed in one of them.

A state is a multiset of canonical forms, so that equal situations are met once, within a state
and across states. Everything here depends on its arguments alone and is remembered.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from regoal.planning.lifting.embeddings import (
    Budget,
    CanonicalForm,
    Embedding,
    canonical_form,
    embeddings,
)
from regoal.planning.lifting.structures import (
    Structure,
    VertexLiteral,
    connected_parts,
    reordered,
)

EMBEDDING_BUDGET = 5000
"""Search steps for one pattern in one part."""

Part = tuple[CanonicalForm, tuple[int, ...]]
"""The form of a part of a larger structure, and for each of its vertices the one in that."""

PartCounts = tuple[tuple[CanonicalForm, int], ...]
"""The multiset of a state's parts: each form with how often it occurs, sorted."""


class Placement(NamedTuple):
    """A pattern embedded in one part of the state, and what is left of that part."""

    pattern: CanonicalForm
    part: CanonicalForm
    embedding: Embedding
    rest: tuple[Part, ...] = ()


class Placements(NamedTuple):
    """Placements of a pattern in a part, whether they are all, and the search steps it took."""

    found: tuple[Placement, ...]
    complete: bool
    cost: int


def counted(forms: Iterable[CanonicalForm]) -> PartCounts:
    """The multiset of these forms."""
    return _sort(Counter(forms))


def exchanged(
    parts: PartCounts, taken: CanonicalForm, added: Iterable[CanonicalForm], times: int = 1
) -> PartCounts:
    """The multiset without one form (`times` of it) and with others."""
    counts = dict(parts)
    counts[taken] -= times
    for form in added:
        counts[form] = counts.get(form, 0) + 1
    return _sort(counts)


def _sort(counts: Mapping[CanonicalForm, int]) -> PartCounts:
    left = (entry for entry in counts.items() if entry[1])
    return tuple(sorted(left, key=lambda entry: entry[0].key))


def split(
    whole: Structure, vertices: Sequence[int], literals: list[VertexLiteral], connected: bool
) -> list[Part]:
    """The parts of `whole` with these vertices and literals; one part unless `connected`."""
    pieces = [(list(vertices), literals)]
    if connected:
        pieces = [piece for piece in connected_parts(vertices, literals) if piece[1]]
    parts = []
    for piece, piece_literals in pieces:
        form, order = canonical_form(reordered(whole, piece, piece_literals))
        parts.append((form, tuple(piece[i] for i in order)))
    return parts


def placed(
    pattern: CanonicalForm, part: CanonicalForm, embedding: Embedding, connected: bool
) -> Placement:
    """The placement of an embedding."""
    used = set(embedding)
    vertices = [v for v in range(len(part.structure.labels)) if v not in used]
    literals = [x for x in part.structure.literals if used.isdisjoint(x[1])]
    rest = split(part.structure, vertices, literals, connected)
    return Placement(pattern, part, embedding, tuple(rest))


@lru_cache(maxsize=20_000)
def first_placement(pattern: CanonicalForm, part: CanonicalForm) -> Placements:
    """One placement of the pattern, without what it leaves; none if there is none."""
    budget = Budget(EMBEDDING_BUDGET)
    embedding = next(embeddings(pattern, part, budget), None)
    found = () if embedding is None else (Placement(pattern, part, embedding),)
    return Placements(found, budget.left >= 0, EMBEDDING_BUDGET - budget.left)


@lru_cache(maxsize=2_000)
def all_placements(pattern: CanonicalForm, part: CanonicalForm, connected: bool) -> Placements:
    """Every placement of the pattern that leaves something different, the largest rest first."""
    budget = Budget(EMBEDDING_BUDGET)
    found: dict[PartCounts, Placement] = {}
    for embedding in embeddings(pattern, part, budget):
        placement = placed(pattern, part, embedding, connected)
        found.setdefault(counted(form for form, _ in placement.rest), placement)
        budget.left -= len(part.structure.labels)
    ordered = sorted(found.values(), key=lambda x: -sum(form.size for form, _ in x.rest))
    return Placements(tuple(ordered), budget.left >= 0, EMBEDDING_BUDGET - budget.left)
