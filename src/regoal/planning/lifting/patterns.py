"""The goal-dependency graph of a goal, and the connected patterns of its components.

Paper, "Lifted HER": two literals of the goal are joined if they share an object; C_i* is the set
of the connected parts of component C_i. Here parts that are equal up to renaming are one pattern.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from regoal.planning.goals import Atom, Goal
from regoal.planning.lifting.structures import (
    Canonical,
    Literal,
    Structure,
    canonical,
    connected_parts,
    reordered,
    twins,
)


def components(
    goal: Goal, types_of: Mapping[str, tuple[str, ...]], constants: frozenset[str]
) -> list[Structure]:
    """The connected components of the goal-dependency graph, each in canonical form, sorted.

    Constants keep their names and join literals like other objects. Literals without objects
    are joined to nothing and are left out: see `nullary_literals`.
    """
    names = sorted({name for atom, _ in goal.literals() for name in atom.objects})
    number = {name: i for i, name in enumerate(names)}
    labels = tuple(
        ((), name) if name in constants else (tuple(sorted(types_of.get(name, ()))), "")
        for name in names
    )
    literals = tuple(
        (atom.predicate, tuple(number[name] for name in atom.objects), positive)
        for atom, positive in goal.literals()
        if atom.objects
    )
    whole = Structure(labels, literals)
    parts = connected_parts(range(len(names)), literals)
    return sorted(canonical(reordered(whole, *part)).structure for part in parts)


def nullary_literals(goal: Goal) -> list[tuple[Atom, bool]]:
    """The goal's literals without objects, each a component of its own, as (atom, positive)."""
    return [(atom, positive) for atom, positive in goal.literals() if not atom.objects]


def largest_that_holds(goal: Goal, atoms: frozenset[Atom]) -> Goal:
    """In each component the largest connected part of the goal itself that holds in a state."""
    literals = list(goal.literals())
    component_of = dict(_labelled(literals))
    holding = [(atom, positive) for atom, positive in literals if (atom in atoms) == positive]
    parts: dict[int, list[tuple[Atom, bool]]] = {}
    for literal, part in _labelled(holding):
        parts.setdefault(part, []).append(literal)
    best: dict[int, list[tuple[Atom, bool]]] = {}
    for members in parts.values():
        component = component_of[members[0]]
        best[component] = max(best.get(component, []), members, key=len)
    chosen = [literal for members in best.values() for literal in members]
    return Goal.of((a for a, sign in chosen if sign), (a for a, sign in chosen if not sign))


def _labelled(
    literals: Sequence[tuple[Atom, bool]],
) -> Iterator[tuple[tuple[Atom, bool], int]]:
    """Each literal with a number that is shared by those it is connected with."""
    names = {name: i for i, name in enumerate(sorted({n for a, _ in literals for n in a.objects}))}
    numbered: list[Literal] = [
        (str(i), tuple(names[name] for name in atom.objects), True)
        for i, (atom, _) in enumerate(literals)
    ]
    for part, (_, members) in enumerate(connected_parts(range(len(names)), numbered)):
        for index, _, _ in members:
            yield literals[int(index)], part
    for i, literal in enumerate(literals):
        if not literal[0].objects:
            yield literal, len(names) + i


class _Part(NamedTuple):
    """One occurrence of a pattern in the component: its literals as bits, and its vertices."""

    literals: int
    pattern: Canonical
    vertices: tuple[int, ...]


def connected_patterns(component: Structure, budget: int | None = None) -> list[Canonical] | None:
    """Every connected part of a component up to renaming, in canonical form, largest first.

    Works downwards: each connected part is a connected part of the next larger size less one
    literal, so it is enough to look at one occurrence of each pattern. A chain or a star of n
    literals has n patterns. None if that takes more than `budget` canonical forms.

    >>> chain = tuple(("on", (i, i + 1), True) for i in range(5))
    >>> [len(p.structure.literals) for p in connected_patterns(Structure((((), ""),) * 6, chain))]
    [5, 4, 3, 2, 1]
    """
    whole = _part(component, (1 << len(component.literals)) - 1)
    level, found, seen = [whole], [whole.pattern], {whole.literals}
    joined = _neighbours(component)
    while level:
        less = {x for part in level for x in _one_less(component, part, joined)} - seen
        seen |= less
        if budget is not None and len(seen) > budget:
            return None
        smaller: dict[Structure, _Part] = {}
        for literals in sorted(less):
            candidate = _part(component, literals)
            smaller.setdefault(candidate.pattern.structure, candidate)
        level = [smaller[structure] for structure in sorted(smaller)]
        found += [part.pattern for part in level]
    return found


def _part(component: Structure, literals: int) -> _Part:
    chosen = [x for i, x in enumerate(component.literals) if literals >> i & 1]
    vertices = sorted({a for _, args, _ in chosen for a in args})
    pattern = canonical(reordered(component, vertices, chosen))
    return _Part(literals, pattern, tuple(vertices[place] for place in pattern.order))


def _neighbours(component: Structure) -> list[int]:
    """For each literal those that share a vertex with it, as bits."""
    at: dict[int, int] = {}
    for i, (_, args, _) in enumerate(component.literals):
        for a in args:
            at[a] = at.get(a, 0) | 1 << i
    joined = []
    for _, args, _ in component.literals:
        bits = 0
        for a in args:
            bits |= at[a]
        joined.append(bits)
    return joined


def _one_less(component: Structure, part: _Part, joined: list[int]) -> Iterator[int]:
    """What is left of a part, still connected, without one literal; interchangeable ones once."""
    leaders = twins(part.pattern.structure, part.pattern.cells)
    leader_of = {vertex: leaders[i] for i, vertex in enumerate(part.vertices)}
    tried = set()
    for i in _bits(part.literals):
        predicate, args, sign = component.literals[i]
        kind = (predicate, tuple(leader_of[a] for a in args), sign)
        left = part.literals & ~(1 << i)
        if kind not in tried and left and _connected(left, joined):
            yield left
        tried.add(kind)


def _bits(mask: int) -> Iterable[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _connected(literals: int, joined: list[int]) -> bool:
    reached = frontier = literals & -literals
    while frontier:
        around = 0
        for i in _bits(frontier):
            around |= joined[i]
        frontier = around & literals & ~reached
        reached |= frontier
    return reached == literals
