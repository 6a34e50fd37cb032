"""Facts that hold, and which of them have an object in a place."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from regoal.planning.plain.problem import Fact


class Facts:
    """Facts that are no derived ones."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._true: defaultdict[str, set[Fact]] = defaultdict(set)
        self._by_place: dict[str, defaultdict[tuple[int, str], set[Fact]]] = {}
        """By predicate, for those asked about since they changed."""
        for fact in facts:
            self._true[fact[0]].add(fact)

    def __contains__(self, fact: Fact) -> bool:
        return fact in self._true[fact[0]]

    def __iter__(self) -> Iterator[Fact]:
        for facts in self._true.values():
            yield from facts

    def change(self, changes: list[tuple[Fact, bool]]) -> None:
        """Delete all facts that come with False, then add all that come with True."""
        for fact, added in changes:
            self._by_place.pop(fact[0], None)
            if not added:
                self._true[fact[0]].discard(fact)
        for fact, added in changes:
            if added:
                self._true[fact[0]].add(fact)

    def of(self, predicate: str) -> set[Fact]:
        """All facts of a predicate."""
        return self._true[predicate]

    def with_object(self, predicate: str, place: int, name: str) -> set[Fact]:
        """The facts of a predicate with an object in a place; the first is place 1."""
        if predicate not in self._by_place:
            index = self._by_place[predicate] = defaultdict(set)
            for fact in self._true[predicate]:
                for where in enumerate(fact):
                    index[where].add(fact)
        return self._by_place[predicate][place, name]
