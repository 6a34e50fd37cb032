"""The most literals of a goal's components that fit into a state side by side.

Components of a lifted goal meet only in "all different": their images in the state share no
object. So they are placed one after another, each taking its objects out of the state.
"""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from regoal.planning.lifting.bounds import capacity, distinct_positions, largest_in
from regoal.planning.lifting.embeddings import CanonicalForm, may_fit
from regoal.planning.lifting.patterns import Component
from regoal.planning.lifting.placements import (
    PartCounts,
    Placement,
    Placements,
    all_placements,
    exchanged,
    first_placement,
)

SEARCH_BUDGET = 20_000
"""Search steps for one state, those of the embeddings that it needs included."""

NODE_STEPS = 5
"""Steps that one node of the search counts for; so a step is about 10 microseconds."""


class Packing(NamedTuple):
    """Placements side by side, how many literals they hold, and whether none hold more."""

    placements: tuple[Placement, ...]
    size: int
    proven: bool


_Path = tuple[Placement, "_Path"] | None


class _Node(NamedTuple):
    """`copies` of `component` and all later components are still to be placed in `parts`.

    The next copy takes patterns from `pattern` on (equal components take them in order).
    """

    component: int
    copies: int
    pattern: int
    parts: PartCounts
    size: int = 0
    path: _Path = None


class PackingSearch:
    """Branch and bound, depth first, large patterns first, in one state.

    With `size` for a packing of that many literals, a random one with `shuffle`; without `size`
    for the most. `connected` says that a pattern lies within one connected part of a state.
    The answer depends on the arguments alone: what is remembered is charged to the budget as if
    it were done again.
    """

    def __init__(
        self,
        components: tuple[Component, ...],
        state: PartCounts,
        *,
        connected: bool,
        budget: int = SEARCH_BUDGET,
        size: int | None = None,
        shuffle: random.Random | None = None,
    ) -> None:
        self.components = components
        self.connected = connected
        self.steps = budget
        self.size = size
        self.shuffle = shuffle
        self.best = Packing((), 0, False)
        self.complete = True
        self._distinct = distinct_positions(components)
        self._charged: set[object] = set()
        self._explored: dict[tuple[int, int, int, PartCounts], int] = {}
        first = components[0].copies if components else 0
        self.stack = [_Node(0, first, 0, state)]
        self.limit = self._bound(self.stack[0]) if size is None else size

    def run(self) -> Packing:
        """The best packing found. It is proven if the bound is met or nothing was left out."""
        while self.stack and self.best.size < self.limit:
            self.steps -= NODE_STEPS
            if self.steps < 0:
                self.complete = False
                break
            node = self.stack.pop()
            if node.size > self.best.size:
                self.best = Packing(_unroll(node.path), node.size, False)
            if node.component < len(self.components) and self._is_promising(node):
                children = self._children(node)
                if self.shuffle is not None:
                    self.shuffle.shuffle(children)
                self.stack.extend(reversed(children))
        return self.best._replace(proven=self.best.size >= self.limit or self.complete)

    def _count_needed(self) -> int:
        return self.best.size + 1 if self.size is None else self.size

    def _is_promising(self, node: _Node) -> bool:
        if node.size + self._bound(node) < self._count_needed():
            return False
        key = node[:4]
        if self._explored.get(key, -1) >= node.size:
            return False
        self._explored[key] = node.size
        return True

    def _bound(self, node: _Node) -> int:
        """At most this many literals can be added: what the state offers, and what is wanted."""
        offered = sum(count * capacity(part, self._distinct) for part, count in node.parts)
        wanted = 0
        for index, component in enumerate(self.components[node.component :], node.component):
            most = max((self._largest_in(component, part) for part, _ in node.parts), default=0)
            copies = component.copies
            if index == node.component:
                copies = node.copies
                if component.exhaustive:
                    most = min(most, component.patterns[node.pattern].size)
            wanted += copies * most
            offered += copies * component.negative
        return min(offered, wanted)

    def _largest_in(self, component: Component, part: CanonicalForm) -> int:
        most, cost = largest_in(component, part)
        self._charge((component, part), cost)
        return most

    def _charge(self, what: object, cost: int) -> None:
        if what not in self._charged:
            self._charged.add(what)
            self.steps -= cost

    def _children(self, node: _Node) -> list[_Node]:
        """Place the first pattern that fits anywhere; or only smaller ones, or none."""
        patterns = self.components[node.component].patterns
        if node.component == len(self.components) - 1 and node.copies == 1:
            return self._last(node, patterns)
        for index in range(node.pattern, len(patterns)):
            placements = self._placements(node, patterns[index], self._all_placements)
            if placements:
                here = node._replace(pattern=index)
                children = [*self._repeat(here, placements)]
                children += [self._after(here, placement) for placement in placements]
                if index + 1 < len(patterns):
                    return [*children, node._replace(pattern=index + 1)]
                return [*children, self._skip(node)]
        return [self._skip(node)]

    def _all_placements(self, pattern: CanonicalForm, part: CanonicalForm) -> Placements:
        return all_placements(pattern, part, self.connected)

    def _placements(
        self,
        node: _Node,
        pattern: CanonicalForm,
        ways: Callable[[CanonicalForm, CanonicalForm], Placements],
    ) -> list[Placement]:
        """Placements of the pattern in what is left, the least wasteful first."""
        found: list[Placement] = []
        for part, _ in node.parts:
            if may_fit(pattern, part):
                placements = ways(pattern, part)
                self.complete &= placements.complete
                self._charge((ways.__name__, pattern, part), placements.cost)
                found += placements.found
        return sorted(found, key=self._waste)

    def _waste(self, placement: Placement) -> int:
        left = sum(capacity(form, self._distinct) for form, _ in placement.rest)
        return capacity(placement.part, self._distinct) - left

    def _last(self, node: _Node, patterns: tuple[CanonicalForm, ...]) -> list[_Node]:
        """Place the last component: only its largest patterns that fit matter."""
        children: list[_Node] = []
        for pattern in patterns[node.pattern :]:
            size = node.size + pattern.size
            if size < self._count_needed() or (children and size < children[0].size):
                break
            found = self._placements(node, pattern, first_placement)
            children += [self._after(node, placement) for placement in found]
            if children and self.shuffle is None:
                break
        return children

    def _repeat(self, node: _Node, placements: list[Placement]) -> Iterator[_Node]:
        """Short cuts: a placement that uses up its part, made as often as possible at once."""
        counts = dict(node.parts)
        for placement in placements:
            times = min(node.copies, counts[placement.part])
            if times > 1 and not placement.rest:
                yield self._after(node, placement, times)

    def _after(self, node: _Node, placement: Placement, times: int = 1) -> _Node:
        """The node after a placement of the next copy, or of several copies in equal parts."""
        added = [form for form, _ in placement.rest]
        path = node.path
        for _ in range(times):
            path = placement, path
        after = node._replace(
            parts=exchanged(node.parts, placement.part, added, times),
            copies=node.copies - times,
            size=node.size + times * placement.pattern.size,
            path=path,
        )
        return after if after.copies else self._skip(after)

    def _skip(self, node: _Node) -> _Node:
        """Go on to the next component; copies that are left over stay out of the goal."""
        index = node.component + 1
        copies = self.components[index].copies if index < len(self.components) else 0
        return node._replace(component=index, copies=copies, pattern=0)


def _unroll(path: _Path) -> tuple[Placement, ...]:
    placements = []
    while path is not None:
        placement, path = path
        placements.append(placement)
    return tuple(reversed(placements))
