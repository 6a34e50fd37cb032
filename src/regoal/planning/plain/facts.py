"""Facts that hold, with an index by the object in each place."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from regoal.planning.plain.problem import Fact


class Facts:
    """A set of facts that are not derived."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._true: defaultdict[str, set[Fact]] = defaultdict(set)
        self._by_place: dict[str, defaultdict[tuple[int, str], set[Fact]]] = {}
        """The index of each predicate, made when it is first needed after a change."""
        for fact in facts:
            self._true[fact[0]].add(fact)

    def __contains__(self, fact: Fact) -> bool:
        return fact in self._true[fact[0]]

    def __iter__(self) -> Iterator[Fact]:
        for facts in self._true.values():
            yield from facts

    def change(self, changes: list[tuple[Fact, bool]]) -> None:
        """Delete all facts given with False, then add all facts given with True."""
        for fact, added in changes:
            self._by_place.pop(fact[0], None)
            if not added:
                self._true[fact[0]].discard(fact)
        for fact, added in changes:
            if added:
                self._true[fact[0]].add(fact)

    def of(self, predicate: str) -> set[Fact]:
        """Return all facts of a predicate."""
        return self._true[predicate]

    def with_object(self, predicate: str, place: int, name: str) -> set[Fact]:
        """Return the facts of a predicate with an object in a place; the first place is 1."""
        if predicate not in self._by_place:
            index = self._by_place[predicate] = defaultdict(set)
            for fact in self._true[predicate]:
                for where in enumerate(fact):
                    index[where].add(fact)
        return self._by_place[predicate][place, name]
