"""The most literals of a goal's components that fit into a state side by side.

Components of a lifted goal meet only in "all different": their images in the state share no
object. So they are placed one after another, each taking its objects out of the state.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from regoal.planning.lifting.bounds import Bounds, Component
from regoal.planning.lifting.embeddings import Form, may_fit
from regoal.planning.lifting.forms import Bag, FormTable, Move, Moves, exchanged

SEARCH_BUDGET = 20_000
"""Search steps for one state, those of the embeddings that it needs included."""

SITUATION_STEPS = 5
"""Steps that one situation of the search counts for; so a step is about 10 microseconds."""


class Packing(NamedTuple):
    """Moves that fit side by side, how many literals they hold, and whether none hold more."""

    moves: tuple[Move, ...]
    size: int
    proven: bool


_Path = tuple[Move, "_Path"] | None


class _Node(NamedTuple):
    """A situation: `copies` of `component` and all later components are still to be placed.

    The next copy takes patterns from `pattern` on (equal components take them in order).
    """

    component: int
    copies: int
    pattern: int
    rest: Bag
    size: int = 0
    path: _Path = None


class Packer:
    """Branch and bound over the components of one goal, for any number of states.

    Answers depend on the arguments alone, not on what was asked before: what is remembered is
    charged to the budget as if it were done again.
    """

    def __init__(self, components: Sequence[Component], table: FormTable) -> None:
        self.components = components
        self.table = table
        self.bounds = Bounds(components, table)

    def clear(self) -> None:
        """Forget what was remembered, to save memory."""
        self.table.clear()
        self.bounds.clear()

    def largest(self, state: Bag, budget: int = SEARCH_BUDGET) -> Packing:
        """A packing of the most literals, by depth-first search, large patterns first.

        If that cannot be proven within the budget, perhaps one that was found greedily.
        """
        packing = _Search(self, state, budget).run()
        if packing.proven:
            return packing
        other = self._greedy(state)
        return other if other.size > packing.size else packing

    def of_size(
        self, state: Bag, size: int, shuffle: random.Random | None, budget: int = SEARCH_BUDGET
    ) -> Packing:
        """A packing of `size` literals, a random one with `shuffle`.

        If it is smaller, none was found; there is none if it is proven.
        """
        return _Search(self, state, budget, size, shuffle).run()

    def _greedy(self, state: Bag) -> Packing:
        """Each component in turn where most of it can be grown."""
        rest, path = state, []
        for component in self.components:
            for _ in range(component.copies):
                grown = [self.table.grown(component.whole, form).found[:1] for form, _ in rest]
                moves = [move for found in grown for move in found]
                if not moves:
                    break
                move = max(moves, key=lambda move: move.pattern.size)
                rest = exchanged(rest, move.form, [form for form, _ in move.rest])
                path.append(move)
        return Packing(tuple(path), sum(move.pattern.size for move in path), False)


class _Search:
    """One run of branch and bound. Without `size` for the most literals, else for that many."""

    def __init__(
        self,
        packer: Packer,
        state: Bag,
        budget: int,
        size: int | None = None,
        shuffle: random.Random | None = None,
    ) -> None:
        self.packer = packer
        self.components = packer.components
        self.steps = budget
        self.size = size
        self.shuffle = shuffle
        self.best = Packing((), 0, False)
        self.complete = True
        self._charged: set[object] = set()
        self._explored: dict[tuple[int, int, int, Bag], int] = {}
        first = self.components[0].copies if self.components else 0
        self.stack = [_Node(0, first, 0, state)]
        self.limit = self._bound(self.stack[0]) if size is None else size

    def run(self) -> Packing:
        """The best packing found. It is proven if the bound is met or nothing was left out."""
        while self.stack and self.best.size < self.limit:
            self.steps -= SITUATION_STEPS
            if self.steps < 0:
                self.complete = False
                break
            node = self.stack.pop()
            if node.size > self.best.size:
                self.best = Packing(_unrolled(node.path), node.size, False)
            if node.component < len(self.components) and self._promising(node):
                self._expand(node)
        proven = self.best.size >= self.limit or self.complete
        return self.best._replace(proven=proven)

    def _promising(self, node: _Node) -> bool:
        needed = self.best.size + 1 if self.size is None else self.size
        if node.size + self._bound(node) < needed:
            return False
        key = node[:4]
        if self._explored.get(key, -1) >= node.size:
            return False
        self._explored[key] = node.size
        return True

    def _bound(self, node: _Node) -> int:
        """At most this many literals can be added: what the state offers, and what is wanted."""
        offered = sum(count * self.packer.bounds.capacity(form) for form, count in node.rest)
        wanted = 0
        for index in range(node.component, len(self.components)):
            component = self.components[index]
            most = max((self._largest_in(index, form) for form, _ in node.rest), default=0)
            copies = component.copies
            if index == node.component:
                copies = node.copies
                if component.patterns is not None:
                    most = min(most, component.patterns[node.pattern].size)
            wanted += copies * most
            offered += copies * component.negative
        return min(offered, wanted)

    def _largest_in(self, index: int, form: Form) -> int:
        most, cost = self.packer.bounds.largest_in(index, form)
        self._charge((index, form), cost)
        return most

    def _charge(self, what: object, cost: int) -> None:
        if what not in self._charged:
            self._charged.add(what)
            self.steps -= cost

    def _expand(self, node: _Node) -> None:
        component = self.components[node.component]
        last = node.component == len(self.components) - 1 and node.copies == 1
        if component.patterns is None:
            children = self._grown(node, component)
            children.append(self._skipping(node))
        elif last:
            children = self._last(node, component.patterns)
        else:
            children = self._next_pattern(node, component.patterns)
        if self.shuffle is not None:
            self.shuffle.shuffle(children)
        self.stack.extend(reversed(children))

    def _next_pattern(self, node: _Node, patterns: tuple[Form, ...]) -> list[_Node]:
        """Place the first pattern that fits anywhere; or only smaller ones, or none."""
        for index in range(node.pattern, len(patterns)):
            pattern = patterns[index]
            moves = self._moves(node, pattern, self.packer.table.moves)
            if moves:
                after = node._replace(pattern=index)
                children = [*self._repeated(after, moves)]
                children += [self._after(after, move) for move in moves]
                if index + 1 < len(patterns):
                    children.append(node._replace(pattern=index + 1))
                else:
                    children.append(self._skipping(node))
                return children
        return [self._skipping(node)]

    def _moves(self, node: _Node, pattern: Form, ways: Callable[[Form, Form], Moves]) -> list[Move]:
        """Where the pattern fits in what is left; first where least is wasted."""
        found: list[Move] = []
        for form, _ in node.rest:
            if may_fit(pattern, form):
                moves = ways(pattern, form)
                self.complete &= moves.complete
                self._charge((ways.__name__, pattern, form), moves.cost)
                found += moves.found
        found.sort(key=self._waste)
        return found

    def _waste(self, move: Move) -> int:
        capacity = self.packer.bounds.capacity
        return capacity(move.form) - sum(capacity(form) for form, _ in move.rest)

    def _last(self, node: _Node, patterns: tuple[Form, ...]) -> list[_Node]:
        """Place the last component: only its largest patterns that fit matter."""
        children: list[_Node] = []
        for pattern in patterns[node.pattern :]:
            size = node.size + pattern.size
            if children and size < children[0].size:
                break
            if self.size is None or size == self.size:
                for move in self._moves(node, pattern, self.packer.table.first):
                    children.append(self._after(node, move))
            if children and self.shuffle is None:
                break
        return children

    def _grown(self, node: _Node, component: Component) -> list[_Node]:
        """Place a component whose patterns are too many to list."""
        self.complete = False
        children: list[_Node] = []
        for form, _ in node.rest:
            moves = self.packer.table.grown(component.whole, form)
            self._charge(("grown", component.whole, form), moves.cost)
            children += [self._after(node, move) for move in moves.found]
        return sorted(children, key=lambda child: -child.size)

    def _repeated(self, node: _Node, moves: list[Move]) -> Iterator[_Node]:
        """Short cuts: a move that uses up its form, made as often as possible at once."""
        counts = dict(node.rest)
        for move in moves:
            times = min(node.copies, counts[move.form])
            if self.size is not None:
                times = min(times, (self.size - node.size) // move.pattern.size)
            if times > 1 and not move.rest:
                yield self._after(node, move, times)

    def _after(self, node: _Node, move: Move, times: int = 1) -> _Node:
        """The situation after a move of the next copy, or of several copies in equal forms."""
        added = [form for form, _ in move.rest] * times
        path = node.path
        for _ in range(times):
            path = move, path
        placed = node._replace(
            rest=exchanged(node.rest, move.form, added, times),
            copies=node.copies - times,
            size=node.size + times * move.pattern.size,
            path=path,
        )
        return placed if placed.copies else self._skipping(placed)

    def _skipping(self, node: _Node) -> _Node:
        """Go on to the next component; copies that are left over stay out of the goal."""
        index = node.component + 1
        copies = self.components[index].copies if index < len(self.components) else 0
        return node._replace(component=index, copies=copies, pattern=0)


def _unrolled(path: _Path) -> tuple[Move, ...]:
    moves = []
    while path is not None:
        move, path = path
        moves.append(move)
    return tuple(reversed(moves))
