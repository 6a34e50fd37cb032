"""Small relational structures up to renaming: canonical forms, twins, connected parts.

A goal pattern and the relevant part of a state are both a `Structure`: numbered vertices with
labels, and literals over them. Two structures that are equal up to the numbering get one
canonical form, so that sets and dicts see them as one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Label = tuple[tuple[str, ...], str]
"""A vertex's types, and its name if it may not be renamed (else "")."""

VertexLiteral = tuple[str, tuple[int, ...], bool]
"""Predicate, vertices, and whether the literal is positive."""

CANONICAL_BUDGET = 3000
"""Branches tried for one canonical form. Beyond it (large structures with much symmetry of an
unusual kind) equal structures may get different forms, which costs time but no correctness."""


class Structure(NamedTuple):
    """Vertices 0..n-1 with labels, and literals in sorted order."""

    labels: tuple[Label, ...]
    literals: tuple[VertexLiteral, ...]


class Canonical(NamedTuple):
    """A structure's canonical form, the old vertex at each new place, and each new vertex's cell.

    Vertices that a symmetry exchanges share a cell (the converse need not hold).
    """

    structure: Structure
    order: tuple[int, ...]
    cells: tuple[int, ...]


def reordered(
    structure: Structure, order: Sequence[int], literals: Iterable[VertexLiteral]
) -> Structure:
    """The part of `structure` with the vertices `order`, so numbered, and these of its literals."""
    place = {vertex: i for i, vertex in enumerate(order)}
    return Structure(
        tuple(structure.labels[vertex] for vertex in order),
        tuple(sorted([(p, tuple([place[a] for a in args]), sign) for p, args, sign in literals])),
    )


def connected_parts(
    vertices: Iterable[int], literals: Iterable[VertexLiteral]
) -> list[tuple[list[int], list[VertexLiteral]]]:
    """Vertices that literals join, directly or not, with those literals; in order of the vertices.

    Arguments outside `vertices` join nothing. Literals without any of `vertices` are left out.
    """
    leader = {vertex: vertex for vertex in vertices}

    def find(vertex: int) -> int:
        while leader[vertex] != vertex:
            leader[vertex] = vertex = leader[leader[vertex]]
        return vertex

    inside = [(x, [a for a in x[1] if a in leader]) for x in literals]
    for _, args in inside:
        for a in args[1:]:
            leader[find(a)] = find(args[0])
    parts: dict[int, tuple[list[int], list[VertexLiteral]]] = {}
    for vertex in leader:
        parts.setdefault(find(vertex), ([], []))[0].append(vertex)
    for literal, args in inside:
        if args:
            parts[find(args[0])][1].append(literal)
    return list(parts.values())


def canonical(structure: Structure) -> Canonical:
    """The canonical form: equal for structures that differ only in how vertices are numbered.

    Colour refinement separates vertices; parts that are joined only by vertices already
    separated are ordered one by one, and what is left is tried out vertex by vertex. Stars,
    chains and trees need no trying. Example, a chain written down in two ways:

    >>> label = ((), "")
    >>> a = Structure((label,) * 3, (("on", (0, 1), True), ("on", (1, 2), True)))
    >>> b = Structure((label,) * 3, (("on", (0, 2), True), ("on", (2, 1), True)))
    >>> canonical(a).structure == canonical(b).structure
    True
    """
    rank = {label: i for i, label in enumerate(sorted(set(structure.labels)))}
    colour = [rank[label] for label in structure.labels]
    vertices = range(len(colour))
    budget = [CANONICAL_BUDGET]
    colour = _refine(vertices, colour, structure.literals)
    order = _order(vertices, colour, structure.literals, budget)
    return Canonical(
        reordered(structure, order, structure.literals),
        tuple(order),
        tuple(colour[vertex] for vertex in order),
    )


def twins(structure: Structure, cells: Sequence[int]) -> tuple[int, ...]:
    """For each vertex the lowest vertex that can be swapped with it without any change."""
    incident = incident_literals(structure.literals)
    lowest = list(range(len(cells)))
    leaders: dict[int, list[int]] = defaultdict(list)
    for vertex, cell in enumerate(cells):
        for other in leaders[cell]:
            if structure.labels[vertex] == structure.labels[other] and _swappable(
                vertex, other, incident
            ):
                lowest[vertex] = other
                break
        else:
            leaders[cell].append(vertex)
    return tuple(lowest)


def incident_literals(
    literals: Iterable[VertexLiteral],
) -> dict[int, dict[VertexLiteral, None]]:
    """By vertex the literals it occurs in, in their order."""
    incident: dict[int, dict[VertexLiteral, None]] = defaultdict(dict)
    for literal in literals:
        for vertex in literal[1]:
            incident[vertex][literal] = None
    return incident


def _swappable(one: int, other: int, incident: dict[int, dict[VertexLiteral, None]]) -> bool:
    ours, theirs = incident[one], incident[other]
    if len(ours) != len(theirs):
        return False
    swap = {one: other, other: one}
    return all((p, tuple(swap.get(a, a) for a in args), sign) in theirs for p, args, sign in ours)


def _refine(
    vertices: Sequence[int], colour: Sequence[int], literals: Iterable[VertexLiteral]
) -> list[int]:
    """Split colours until vertices of one colour see the same colours through their literals."""
    seen: dict[int, list[tuple[int, tuple[int, ...]]]] = {vertex: [] for vertex in vertices}
    views = [
        (vertex, (p, sign, tuple([a != vertex for a in args])), args)
        for p, args, sign in literals
        for vertex in set(args)
        if vertex in seen
    ]
    tags = {tag: i for i, tag in enumerate(sorted({tag for _, tag, _ in views}))}
    for vertex, tag, args in views:
        seen[vertex].append((tags[tag], args))
    new = list(colour)
    count = len({new[vertex] for vertex in vertices})
    while count < len(seen):
        signatures = {}
        for vertex, of in seen.items():
            around = [(tag, *[new[a] for a in args]) for tag, args in of]
            around.sort()
            signatures[vertex] = new[vertex], tuple(around)
        rank = {signature: i for i, signature in enumerate(sorted(set(signatures.values())))}
        if len(rank) == count:
            break
        count = len(rank)
        for vertex, signature in signatures.items():
            new[vertex] = rank[signature]
    return new


def _order(
    vertices: Sequence[int],
    colour: Sequence[int],
    literals: Sequence[VertexLiteral],
    budget: list[int],
) -> list[int]:
    """Vertices whose (refined) colour is their own, by colour; then the other parts, by form."""
    sizes = Counter(colour[vertex] for vertex in vertices)
    fixed = sorted((v for v in vertices if sizes[colour[v]] == 1), key=lambda v: colour[v])
    rest = [v for v in vertices if sizes[colour[v]] > 1]
    if not rest:
        return fixed
    joining = [x for x in literals if len(set(x[1]).intersection(rest)) > 1]
    parts = [
        _order_part(part, colour, part_literals, budget)
        for part, part_literals in connected_parts(rest, joining)
    ]
    parts.sort(key=lambda form_order: form_order[0])
    return fixed + [vertex for _, order in parts for vertex in order]


PartForm = tuple[tuple[int, ...], list[tuple[str, bool, tuple[tuple[bool, int], ...]]]]


def _order_part(
    part: list[int], colour: Sequence[int], literals: list[VertexLiteral], budget: list[int]
) -> tuple[PartForm, list[int]]:
    """The order of one connected part that gives the least form: each vertex of a cell is tried."""
    cells: dict[int, list[int]] = defaultdict(list)
    for vertex in part:
        cells[colour[vertex]].append(vertex)
    if len(cells) == len(part):
        order = sorted(part, key=lambda v: colour[v])
        return _form(order, colour, literals), order
    cell = min((c for c in cells.values() if len(c) > 1), key=lambda c: (len(c), colour[c[0]]))
    incident = incident_literals(literals)
    if all(_swappable(cell[0], other, incident) for other in cell[1:]):
        cell = cell[:1]
    best: tuple[PartForm, list[int]] | None = None
    for vertex in cell:
        budget[0] -= 1
        if best is not None and budget[0] < 0:
            break
        split = list(colour)
        for other in part:
            split[other] = 2 * colour[other] + (other != vertex)
        order = _order(part, _refine(part, split, literals), literals, budget)
        form = _form(order, colour, literals)
        if best is None or form < best[0]:
            best = form, order
    assert best is not None
    return best


def _form(order: list[int], colour: Sequence[int], literals: list[VertexLiteral]) -> PartForm:
    """A part as it looks under `order`; vertices outside it are named by their own colour."""
    place = {vertex: i for i, vertex in enumerate(order)}
    return tuple(colour[vertex] for vertex in order), sorted(
        (p, sign, tuple((a in place, place.get(a, colour[a])) for a in args))
        for p, args, sign in literals
    )
