"""Canonical forms, and one-to-one maps of a pattern into a part of a state, by backtracking.

Both sides of a match are canonical forms: the pattern of a goal, and a connected part of a state.
"""

import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from regoal.planning.lifting.structures import (
    Label,
    Structure,
    VertexLiteral,
    canonical,
    incident_literals,
    twins,
)

Embedding = tuple[int, ...]
"""For each vertex of a pattern the vertex of the state's part that it is mapped to."""

FORM_LIMIT = 2000
"""Canonical forms kept in memory."""


class Budget:
    """Search steps that may still be taken; below zero the search was cut off."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class BindingStep(NamedTuple):
    """One level of the backtracking search.

    `predicate` and `args` name a positive literal to match, or are None and one vertex for a
    vertex that occurs in negative literals only. `checks` are the other literals whose last
    vertex is bound in this step.
    """

    predicate: str | None
    args: tuple[int, ...]
    checks: tuple[VertexLiteral, ...]


class CanonicalForm:
    """A structure in canonical form with the indexes that searching in it needs."""

    def __init__(self, structure: Structure, cells: Sequence[int]) -> None:
        self.structure = structure
        self.cells = cells
        self.size = len(structure.literals)
        self.counts = Counter((p, sign) for p, _, sign in structure.literals)
        self._hash = hash(structure)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, CanonicalForm) and self.structure == other.structure
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def key(self) -> tuple[int, str]:
        """A sort key."""
        return len(self.structure.labels), repr(self.structure)

    @cached_property
    def incident(self) -> list[list[VertexLiteral]]:
        """For each vertex its literals, sorted."""
        found = incident_literals(self.structure.literals)
        return [list(found[vertex]) for vertex in range(len(self.structure.labels))]

    @cached_property
    def twins(self) -> tuple[int, ...]:
        """For each vertex the lowest vertex it can be swapped with."""
        return twins(self.structure, self.cells)

    @cached_property
    def previous_twin(self) -> list[int]:
        """For each vertex the twin just before it, -1 for the first of its kind."""
        return self._previous_twin(range(len(self.twins)))

    def _previous_twin(self, order: Iterable[int]) -> list[int]:
        previous = [-1] * len(self.twins)
        last: dict[int, int] = {}
        for vertex in order:
            previous[vertex] = last.get(self.twins[vertex], -1)
            last[self.twins[vertex]] = vertex
        return previous

    @cached_property
    def atoms(self) -> dict[str, list[tuple[int, ...]]]:
        """The arguments of every literal of a predicate, sorted."""
        atoms: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        for predicate, args, _ in self.structure.literals:
            atoms[predicate].append(args)
        return dict(atoms)

    @cached_property
    def _atoms_at(self) -> dict[tuple[str, int, int], list[tuple[int, ...]]]:
        atoms_at: dict[tuple[str, int, int], list[tuple[int, ...]]] = defaultdict(list)
        for predicate, args, _ in self.structure.literals:
            for position, vertex in enumerate(args):
                atoms_at[predicate, position, vertex].append(args)
        return dict(atoms_at)

    def atoms_near(self, predicate: str, bound: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
        """Atoms of a predicate that agree with one of the bound (position, vertex) at least."""
        found = self.atoms.get(predicate, [])
        for position, vertex in bound:
            found = min(found, self._atoms_at.get((predicate, position, vertex), []), key=len)
        return found

    @cached_property
    def facts(self) -> frozenset[tuple[str, tuple[int, ...]]]:
        """The literals as (predicate, arguments)."""
        return frozenset((predicate, args) for predicate, args, _ in self.structure.literals)

    @cached_property
    def plan(self) -> list[BindingStep]:
        """The order in which a search for this pattern binds its vertices."""
        return _plan(self)

    @cached_property
    def twin_bound_before(self) -> list[int]:
        """For each vertex the twin that `plan` binds just before it, else -1."""
        return self._previous_twin(dict.fromkeys(v for step in self.plan for v in step.args))


@lru_cache(maxsize=FORM_LIMIT)
def canonical_form(structure: Structure) -> tuple[CanonicalForm, tuple[int, ...]]:
    """The canonical form of a structure, and for each of its vertices the one in `structure`."""
    result = canonical(structure)
    return CanonicalForm(result.structure, result.cells), result.order


def _plan(form: CanonicalForm) -> list[BindingStep]:
    """Breadth-first from constants and well connected vertices; lone vertices come last."""
    incident = form.incident
    steps: list[BindingStep] = []
    bound: set[int] = set()
    done: set[VertexLiteral] = set()

    def add(predicate: str | None, args: tuple[int, ...]) -> list[int]:
        new = [a for a in dict.fromkeys(args) if a not in bound]
        bound.update(new)
        touched = dict.fromkeys(x for a in new for x in incident[a])
        checks = tuple(x for x in touched if x not in done and bound.issuperset(x[1]))
        done.update(checks)
        steps.append(BindingStep(predicate, args, checks))
        return new

    labels = form.structure.labels
    starts = sorted(range(len(labels)), key=lambda v: (labels[v][1] == "", -len(incident[v]), v))
    for start in starts:
        queue = deque(x for x in incident[start] if x[2])
        while queue:
            literal = queue.popleft()
            if literal not in done:
                done.add(literal)
                new = add(literal[0], literal[1])
                queue.extend(x for a in new for x in incident[a] if x[2])
    for vertex in starts:
        if vertex not in bound:
            add(None, (vertex,))
    return steps


@cache
def label_fits(wanted: Label, offered: Label) -> bool:
    """Whether an object may stand for a goal's object: same constant, or all the types it had."""
    return wanted[1] == offered[1] if wanted[1] else set(wanted[0]) <= set(offered[0])


def may_fit(pattern: CanonicalForm, form: CanonicalForm) -> bool:
    """A quick necessary condition for `embeddings` to find anything."""
    return len(pattern.structure.labels) <= len(form.structure.labels) and all(
        form.counts[kind] >= n for kind, n in pattern.counts.items() if kind[1]
    )


def embeddings(
    pattern: CanonicalForm,
    form: CanonicalForm,
    budget: Budget,
    shuffle: random.Random | None = None,
) -> Iterator[Embedding]:
    """Every way to map the pattern's vertices one-to-one so that its literals hold in `form`.

    Ways that differ only by swapping twins, in the pattern or in the form, are found once: of
    the form's twins the first free one is used, and the pattern's twins go to ascending
    vertices (the least map of each symmetry class obeys both rules). Ends early when `budget`
    is spent. `shuffle` draws the order.
    """
    if not may_fit(pattern, form):
        return
    plan = pattern.plan
    blank = [-1] * len(pattern.structure.labels)
    stack = [_extensions(pattern, form, plan[0], blank, budget, shuffle)]
    while stack:
        value = next(stack[-1], None)
        if value is None:
            stack.pop()
        elif len(stack) == len(plan):
            yield tuple(value)
        else:
            step = plan[len(stack)]
            stack.append(_extensions(pattern, form, step, value, budget, shuffle))


def _extensions(
    pattern: CanonicalForm,
    form: CanonicalForm,
    step: BindingStep,
    value: list[int],
    budget: Budget,
    shuffle: random.Random | None,
) -> Iterator[list[int]]:
    """The partial maps (-1 for vertices without a place) that bind one step more than `value`."""
    used = set(value)
    candidates: list[tuple[int, ...]]
    if step.predicate is None:
        candidates = [(place,) for place in range(len(form.structure.labels))]
    else:
        bound = [(i, value[v]) for i, v in enumerate(step.args) if value[v] >= 0]
        candidates = form.atoms_near(step.predicate, bound)
    new = [i for i, v in enumerate(step.args) if value[v] < 0]
    candidates = [x for x in candidates if all(_is_next(form, x[i], used, x) for i in new)]
    if shuffle is not None:
        shuffle.shuffle(candidates)
    for candidate in candidates:
        budget.left -= 1
        if budget.left < 0:
            return
        extended = _bound(pattern, form, step.args, candidate, value, used)
        if extended is not None and all(
            ((p, tuple([extended[a] for a in args])) in form.facts) == sign
            for p, args, sign in step.checks
        ):
            yield extended


def _bound(
    pattern: CanonicalForm,
    form: CanonicalForm,
    args: tuple[int, ...],
    candidate: tuple[int, ...],
    value: list[int],
    used: set[int],
) -> list[int] | None:
    """`value` with the vertices `args` mapped to the candidate's; None if that breaks a rule."""
    if len(candidate) != len(args):
        return None
    value = value.copy()
    fresh: list[int] = []
    for vertex, place in zip(args, candidate, strict=True):
        if value[vertex] != place:
            before = pattern.twin_bound_before[vertex]
            if (
                value[vertex] >= 0
                or place in fresh
                or not _is_next(form, place, used, fresh)
                or not label_fits(pattern.structure.labels[vertex], form.structure.labels[place])
                or (before >= 0 and value[before] > place)
            ):
                return None
            value[vertex] = place
            fresh.append(place)
    return value


def _is_next(form: CanonicalForm, place: int, used: set[int], joining: Sequence[int]) -> bool:
    """Whether a place is free, and no twin before it is left out."""
    twin = form.previous_twin[place]
    return place not in used and (twin < 0 or twin in used or twin in joining)
