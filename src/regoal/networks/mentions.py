"""Which actions and atoms mention all objects of a goal literal.

Messages are maxima over single atoms, so a network cannot tell that two atoms share two objects. In
Rovers, an objective lacks some picture and a mode is lacking at some objective; whether an action
takes the very picture that is missing is a property of the three together (not in the paper;
docs/explanation/deviations.md).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
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
        self._by_object: defaultdict[str, list[Mention]] = defaultdict(list)
        for atom, positive in literals:
            objects = frozenset(atom.objects)
            if len(objects) > 1:
                # Each is found by one of its objects.
                found = Mention(atom.predicate, positive, objects)
                self._by_object[atom.objects[0]].append(found)

    def __bool__(self) -> bool:
        """Whether there is any such literal."""
        return bool(self._by_object)

    def among(self, objects: Collection[str]) -> Iterator[Mention]:
        """Yield the literals whose objects are all among these."""
        for name in set(objects):
            for mention in self._by_object.get(name, ()):
                if mention.objects.issubset(objects):
                    yield mention
