"""Which actions and atoms mention all objects of a goal literal.

Messages are maxima over single atoms, so a network cannot tell that two atoms share two objects. In
Rovers, an objective lacks some picture and a mode is lacking at some objective; whether an action
takes the very picture that is missing is a property of the three together (not in the paper;
docs/explanation/deviations.md).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from regoal.planning.goals import Atom


class Mention(NamedTuple):
    """A goal literal's predicate and sign, and its objects, of which there are at least two."""

    predicate: str
    positive: bool
    objects: frozenset[str]


class Mentions:
    """Finds the literals whose objects all occur among others.

    Literals with fewer than two objects are left out: an object's own embedding tells of them.
    """

    def __init__(self, literals: Iterable[tuple[Atom, bool]]) -> None:
        self._by_pair: defaultdict[str, dict[str, list[Mention]]] = defaultdict(dict)
        """Each literal by two of its objects: most sets of objects share none or one with it."""
        for atom, positive in literals:
            objects = frozenset(atom.objects)
            if len(objects) > 1:
                first, second, *_ = dict.fromkeys(atom.objects)
                found = self._by_pair[first].setdefault(second, [])
                found.append(Mention(atom.predicate, positive, objects))

    def __bool__(self) -> bool:
        """Whether there is any such literal."""
        return bool(self._by_pair)

    def among(self, objects: Iterable[str]) -> Iterator[Mention]:
        """Yield the literals whose objects are all among these."""
        given = set(objects)
        for first in self._by_pair.keys() & given:
            for second in self._by_pair[first].keys() & given:
                for mention in self._by_pair[first][second]:
                    if mention.objects <= given:
                        yield mention
