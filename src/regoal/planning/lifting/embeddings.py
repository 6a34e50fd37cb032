"""Where a goal pattern fits into a state: one-to-one maps of its vertices, by backtracking."""

import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from regoal.planning.lifting.structures import Label, Literal, Structure, twins

Image = tuple[int, ...]
"""For each vertex of a pattern the vertex of the state structure that it is mapped to."""


class Steps:
    """A budget of search steps; below zero it is spent and the search was cut off."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class Step(NamedTuple):
    """One level of the backtracking search.

    `predicate` and `args` name a positive literal to match, or are None and one vertex for a
    vertex that occurs in negative literals only. `checks` are the literals that have no free
    vertex any more after this step.
    """

    predicate: str | None
    args: tuple[int, ...]
    checks: tuple[Literal, ...]


class Form:
    """A structure prepared for searching in it. Interned by its owner: equal means identical."""

    def __init__(self, structure: Structure, cells: Sequence[int]) -> None:
        self.structure = structure
        self._cells = cells
        self.size = len(structure.literals)
        self.counts = Counter((p, sign) for p, _, sign in structure.literals)

    @cached_property
    def key(self) -> tuple[int, str]:
        """A sort key that does not depend on when the form was first met."""
        return len(self.structure.labels), repr(self.structure)

    @cached_property
    def twins(self) -> tuple[int, ...]:
        """For each vertex the lowest vertex it can be swapped with."""
        return twins(self.structure, self._cells)

    @cached_property
    def previous_twin(self) -> list[int]:
        """For each vertex the twin just before it, -1 for the first of its kind."""
        return _previous_twin(range(len(self.twins)), self.twins)

    @cached_property
    def degrees(self) -> list[dict[tuple[str, int], int]]:
        """For each vertex how many positive literals have it at (predicate, position)."""
        degrees: list[dict[tuple[str, int], int]] = [defaultdict(int) for _ in self.twins]
        for predicate, args, sign in self.structure.literals:
            if sign:
                for position, vertex in enumerate(args):
                    degrees[vertex][predicate, position] += 1
        return degrees

    @cached_property
    def atoms(self) -> dict[str, list[tuple[int, ...]]]:
        """The arguments of every positive literal of a predicate, sorted."""
        atoms: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        for predicate, args, _ in self.structure.literals:
            atoms[predicate].append(args)
        return atoms

    @cached_property
    def atoms_at(self) -> dict[tuple[str, int, int], list[tuple[int, ...]]]:
        """The same for those with a given vertex at a given position."""
        atoms_at: dict[tuple[str, int, int], list[tuple[int, ...]]] = defaultdict(list)
        for predicate, args, _ in self.structure.literals:
            for position, vertex in enumerate(args):
                atoms_at[predicate, position, vertex].append(args)
        return atoms_at

    @cached_property
    def true(self) -> frozenset[tuple[str, tuple[int, ...]]]:
        """The positive literals as (predicate, arguments)."""
        return frozenset((predicate, args) for predicate, args, _ in self.structure.literals)

    @cached_property
    def plan(self) -> list[Step]:
        """The order in which a search for this pattern binds its vertices."""
        return _plan(self.structure)

    @cached_property
    def twin_bound_before(self) -> list[int]:
        """For each vertex the twin that `plan` binds just before it, else -1."""
        bound = list(dict.fromkeys(vertex for step in self.plan for vertex in step.args))
        return _previous_twin(bound, self.twins)


def _previous_twin(order: Sequence[int], leaders: Sequence[int]) -> list[int]:
    previous = [-1] * len(leaders)
    last: dict[int, int] = {}
    for vertex in order:
        previous[vertex] = last.get(leaders[vertex], -1)
        last[leaders[vertex]] = vertex
    return previous


def _plan(structure: Structure) -> list[Step]:
    """Breadth-first from the best connected vertex, then vertices without positive literals."""
    planner = _Planner(structure)
    starts = sorted(range(len(structure.labels)), key=planner.start_rank)
    for start in starts:
        planner.follow(start)
    for vertex in starts:
        if vertex not in planner.bound:
            planner.add(None, (vertex,))
    return planner.steps


class _Planner:
    """A plan under construction. Every literal is checked as soon as its vertices are bound."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.steps: list[Step] = []
        self.bound: set[int] = set()
        self.done: set[Literal] = set()
        self.incident: dict[int, list[Literal]] = defaultdict(list)
        for literal in structure.literals:
            for vertex in dict.fromkeys(literal[1]):
                self.incident[vertex].append(literal)

    def start_rank(self, vertex: int) -> tuple[bool, int, int]:
        """Constants first, then vertices with many literals."""
        return self.structure.labels[vertex][1] == "", -len(self.incident[vertex]), vertex

    def follow(self, start: int) -> None:
        """Add steps for the positive literals that can be reached from a vertex."""
        queue = deque(x for x in self.incident[start] if x[2])
        while queue:
            literal = queue.popleft()
            if literal not in self.done:
                self.done.add(literal)
                new = [a for a in literal[1] if a not in self.bound]
                self.add(literal[0], literal[1])
                queue.extend(x for a in new for x in self.incident[a] if x[2])

    def add(self, predicate: str | None, args: tuple[int, ...]) -> None:
        """Add one step that binds the vertices `args`."""
        new = [a for a in dict.fromkeys(args) if a not in self.bound]
        self.bound.update(new)
        touched = dict.fromkeys(x for a in new for x in self.incident[a])
        checks = [x for x in touched if x not in self.done and self.bound.issuperset(x[1])]
        self.done.update(checks)
        self.steps.append(Step(predicate, args, tuple(checks)))


def label_fits(wanted: Label, offered: Label) -> bool:
    """Whether an object may stand for a goal's object: same constant, or all the types it had."""
    return wanted[1] == offered[1] if wanted[1] else set(wanted[0]) <= set(offered[0])


def _domains(pattern: Form, form: Form) -> list[frozenset[int]] | None:
    """For each vertex of the pattern where it can go by label and degree; None where nowhere."""
    shared: dict[object, frozenset[int]] = {}
    domains = []
    for label, degree in zip(pattern.structure.labels, pattern.degrees, strict=True):
        wanted = sorted(degree.items())
        kind = (label, tuple(wanted))
        if kind not in shared:
            shared[kind] = frozenset(
                vertex
                for vertex, offered in enumerate(form.structure.labels)
                if label_fits(label, offered)
                and all(form.degrees[vertex].get(at, 0) >= n for at, n in wanted)
            )
        if not shared[kind]:
            return None
        domains.append(shared[kind])
    return domains


def may_fit(pattern: Form, form: Form) -> bool:
    """A quick necessary condition for `embeddings` to find anything."""
    return len(pattern.structure.labels) <= len(form.structure.labels) and all(
        form.counts[kind] >= n for kind, n in pattern.counts.items() if kind[1]
    )


def embeddings(
    pattern: Form, form: Form, steps: Steps, shuffle: random.Random | None = None
) -> Iterator[Image]:
    """Every way to map the pattern's vertices one-to-one so that its literals hold in `form`.

    Ways that differ only by swapping twins, in the pattern or in the form, are found once: of
    the form's twins the first free one is used, and the pattern's twins go to ascending
    vertices (the least map of each symmetry class obeys both rules). Ends early when `steps`
    is spent. `shuffle` draws the order.
    """
    domains = _domains(pattern, form) if may_fit(pattern, form) else None
    if domains is None:
        return
    search = _Search(pattern, form, domains)
    plan = pattern.plan
    stack = [search.candidates(plan[0], shuffle)]
    bound: list[list[int]] = [[]]
    while stack:
        search.unbind(bound[-1])
        step = plan[len(stack) - 1]
        candidate = next(stack[-1], None)
        if candidate is None:
            stack.pop()
            bound.pop()
            continue
        steps.left -= 1
        if steps.left < 0:
            return
        if not search.bind(step, candidate, bound[-1]):
            continue
        if len(stack) == len(plan):
            yield tuple(search.value)
        else:
            stack.append(search.candidates(plan[len(stack)], shuffle))
            bound.append([])


class _Search:
    """The partial map of one backtracking search."""

    def __init__(self, pattern: Form, form: Form, domains: list[frozenset[int]]) -> None:
        self.form = form
        self.domains = domains
        self.twin_bound_before = pattern.twin_bound_before
        self.value = [-1] * len(domains)
        self.used = [False] * len(form.structure.labels)

    def candidates(self, step: Step, shuffle: random.Random | None) -> Iterator[tuple[int, ...]]:
        """The atoms (or, for a vertex on its own, the vertices) to try at this step."""
        found: list[tuple[int, ...]]
        if step.predicate is None:
            found = [(vertex,) for vertex in sorted(self.domains[step.args[0]])]
        else:
            found = self.form.atoms[step.predicate]
            for position, vertex in enumerate(step.args):
                if self.value[vertex] >= 0:
                    key = (step.predicate, position, self.value[vertex])
                    found = min(found, self.form.atoms_at.get(key, []), key=len)
        free = [i for i, vertex in enumerate(step.args) if self.value[vertex] < 0]
        found = [x for x in found if all(self._open(x[i], x) for i in free)]
        if shuffle is not None:
            shuffle.shuffle(found)
        return iter(found)

    def _open(self, target: int, atom: tuple[int, ...]) -> bool:
        """Whether a vertex of the form is free, and the twin before it is not left out."""
        if self.used[target]:
            return False
        twin = self.form.previous_twin[target]
        return twin < 0 or self.used[twin] or twin in atom

    def bind(self, step: Step, candidate: tuple[int, ...], bound: list[int]) -> bool:
        """Extend the map; `bound` lists the new vertices, also of an attempt that failed."""
        if len(candidate) != len(step.args):
            return False
        value = self.value
        for vertex, target in zip(step.args, candidate, strict=True):
            if value[vertex] != target:
                if value[vertex] >= 0 or not self._allowed(vertex, target):
                    return False
                value[vertex] = target
                self.used[target] = True
                bound.append(vertex)
        return all(
            ((p, tuple([value[a] for a in args])) in self.form.true) == sign
            for p, args, sign in step.checks
        )

    def _allowed(self, vertex: int, target: int) -> bool:
        if self.used[target] or target not in self.domains[vertex]:
            return False
        twin = self.form.previous_twin[target]
        if twin >= 0 and not self.used[twin]:
            return False
        before = self.twin_bound_before[vertex]
        return before < 0 or self.value[before] < target

    def unbind(self, bound: list[int]) -> None:
        """Take back the vertices that one step bound."""
        for vertex in bound:
            self.used[self.value[vertex]] = False
            self.value[vertex] = -1
        bound.clear()
