"""The goal-dependency graph of a goal, and the connected patterns of its components.

Paper, "Lifted HER": two literals of the goal are joined if they share an object; C_i* is the set
of the connected parts of component C_i. Here parts that are equal up to renaming are one pattern.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regoal.planning.goals import Atom, Goal
from regoal.planning.lifting.embeddings import CanonicalForm, canonical_form
from regoal.planning.lifting.structures import Structure, VertexLiteral, reordered

PATTERN_BUDGET = 4000
"""Canonical forms built for one component before its patterns count as too many to list."""

GroundLiteral = tuple[Atom, bool]
"""An atom, and whether it is positive."""


@dataclass(frozen=True, eq=False)
class Component:
    """Components of a goal that are equal up to renaming."""

    whole: CanonicalForm
    patterns: tuple[CanonicalForm, ...]
    """Their connected patterns, largest first; none if they are too many to list."""
    copies: int
    """How many such components the goal has."""

    @property
    def exhaustive(self) -> bool:
        """Whether the patterns could be listed."""
        return bool(self.patterns)

    @property
    def negative(self) -> int:
        """How many literals of one copy are negative."""
        return sum(not sign for _, _, sign in self.whole.structure.literals)


def components(
    goal: Goal,
    types_of: Mapping[str, tuple[str, ...]],
    constants: frozenset[str],
    pattern_budget: int | None = None,
) -> tuple[Component, ...]:
    """The components of the goal-dependency graph up to renaming, largest first.

    Constants keep their names and join literals like other objects. Literals without objects
    are joined to nothing and are left out: see `nullary_literals`.
    """
    wholes = Counter(
        _lift(part, types_of, constants)
        for part in connected_literals(goal.literals())
        if part[0][0].objects
    )
    return tuple(
        Component(whole, tuple(connected_patterns(whole, pattern_budget) or ()), copies)
        for whole, copies in sorted(wholes.items(), key=lambda x: (-x[0].size, x[0].key))
    )


def connected_literals(literals: Iterable[GroundLiteral]) -> list[list[GroundLiteral]]:
    """The connected components of the goal-dependency graph: literals joined by objects."""
    parts: list[tuple[set[str], list[GroundLiteral]]] = []
    for literal in literals:
        names, members = set(literal[0].objects), [literal]
        apart = []
        for part in parts:
            if names.isdisjoint(part[0]):
                apart.append(part)
            else:
                names, members = names | part[0], part[1] + members
        parts = [*apart, (names, members)]
    return [members for _, members in parts]


def nullary_literals(goal: Goal) -> list[GroundLiteral]:
    """The goal's literals without objects; each is a component."""
    return [literal for literal in goal.literals() if not literal[0].objects]


def largest_that_holds(goal: Goal, atoms: frozenset[Atom]) -> Goal:
    """In each component the largest connected part of the goal itself that holds in a state."""
    chosen: list[GroundLiteral] = []
    for component in connected_literals(goal.literals()):
        holding = [literal for literal in component if (literal[0] in atoms) == literal[1]]
        parts = connected_literals(holding)
        chosen += sorted(parts, key=len)[-1] if parts else []
    return Goal.of_literals(chosen)


def _lift(
    literals: Sequence[GroundLiteral],
    types_of: Mapping[str, tuple[str, ...]],
    constants: frozenset[str],
) -> CanonicalForm:
    """Return the canonical form of literals: objects become vertices, constants keep names."""
    names = sorted({name for atom, _ in literals for name in atom.objects})
    number = {name: i for i, name in enumerate(names)}
    labels = tuple(
        ((), name) if name in constants else (tuple(sorted(types_of.get(name, ()))), "")
        for name in names
    )
    numbered = (
        (atom.predicate, tuple(number[name] for name in atom.objects), positive)
        for atom, positive in literals
    )
    return canonical_form(Structure(labels, tuple(sorted(numbered))))[0]


class _Occurrence(NamedTuple):
    """One occurrence of a pattern in the component: its literals as bits, and its vertices."""

    literals: int
    pattern: CanonicalForm
    vertices: tuple[int, ...]


def connected_patterns(
    component: CanonicalForm, budget: int | None = None
) -> list[CanonicalForm] | None:
    """Every connected part of a component up to renaming, largest first.

    Works downwards: each connected part is a connected part of the next larger size less one
    literal, so it is enough to look at one occurrence of each pattern. A chain or a star of n
    literals has n patterns. None if that takes more than `budget` canonical forms.

    >>> chain = tuple(("on", (i, i + 1), True) for i in range(5))
    >>> whole, _ = canonical_form(Structure((((), ""),) * 6, chain))
    >>> [pattern.size for pattern in connected_patterns(whole)]
    [5, 4, 3, 2, 1]
    """
    literals = component.structure.literals
    whole = _occurrence(component.structure, (1 << len(literals)) - 1)
    level, found, seen = [whole], [whole.pattern], {whole.literals}
    joined = _neighbours(literals)
    while level:
        less = {x for part in level for x in _one_less(literals, part, joined)} - seen
        seen |= less
        if budget is not None and len(seen) > budget:
            return None
        smaller: dict[Structure, _Occurrence] = {}
        for bits in sorted(less):
            candidate = _occurrence(component.structure, bits)
            smaller.setdefault(candidate.pattern.structure, candidate)
        level = [smaller[structure] for structure in sorted(smaller)]
        found += [part.pattern for part in level]
    return found


def _occurrence(component: Structure, bits: int) -> _Occurrence:
    chosen = [component.literals[i] for i in _places(bits)]
    vertices = sorted({a for _, args, _ in chosen for a in args})
    pattern, order = canonical_form(reordered(component, vertices, chosen))
    return _Occurrence(bits, pattern, tuple(vertices[i] for i in order))


def _neighbours(literals: Sequence[VertexLiteral]) -> list[int]:
    """For each literal those that share a vertex with it, as bits."""
    at: Counter[int] = Counter()
    for i, (_, args, _) in enumerate(literals):
        for a in set(args):
            at[a] |= 1 << i
    joined = []
    for _, args, _ in literals:
        bits = 0
        for a in args:
            bits |= at[a]
        joined.append(bits)
    return joined


def _one_less(
    literals: Sequence[VertexLiteral], part: _Occurrence, joined: list[int]
) -> Iterator[int]:
    """Yield the connected remains of a part without one literal, equal ones once."""
    twin_of = dict(zip(part.vertices, part.pattern.twins, strict=True))
    tried = set()
    for i in _places(part.literals):
        predicate, args, sign = literals[i]
        kind = (predicate, tuple(twin_of[a] for a in args), sign)
        left = part.literals & ~(1 << i)
        if kind not in tried and left and _is_connected(left, joined):
            yield left
        tried.add(kind)


def _places(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _is_connected(bits: int, joined: list[int]) -> bool:
    reached = frontier = bits & -bits
    while frontier:
        around = 0
        for i in _places(frontier):
            around |= joined[i]
        frontier = around & bits & ~reached
        reached |= frontier
    return reached == bits
