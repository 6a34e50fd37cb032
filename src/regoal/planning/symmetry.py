"""Find objects that can be exchanged for one another, and representatives of each class of them.

Two objects are interchangeable in a state and for a goal if they have equal types and occur in
equal atoms. These are changeable and static atoms, goal literals and values of cost functions, each
with a gap in the places of the object. Constants of the domain are never interchangeable.

Exchanging the two objects then maps state and goal onto themselves. No atom names both. With a gap
for the first object it would name the second, and no atom of the second can do so. A class of such
objects may therefore be permuted in any way, whatever happens to the others.

The first m objects of a class by name stay: its representatives. Here m is the largest number of
parameters of one action that can take an object of the class, and at least 1. Types and static
unary preconditions decide what a parameter can take. Omitting the other objects loses nothing:

- An applicable action names at most m objects of a class. Some permutation of the classes maps
  them to representatives, so each action equals one over representatives. Among equal actions, the
  action of the first objects of each class is also the first in the order of actions.
- The network's message to an object is the strongest of many, and equal messages count once. A
  representative in an atom or action keeps this message, because some permutation fixes it and maps
  the other objects to representatives. An atom needs one object of each class, an action up to m.
  By induction over the rounds, the embeddings are those of the whole input.
- The readout's sum over objects counts a representative as often as `counts` says.

This holds in domains without derived predicates whose preconditions are conjunctions of literals.
Such literals over representatives do not depend on other objects.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.goals import Atom, Goal
from regoal.planning.pddl.conjunctions import is_plain, literals
from regoal.planning.pddl.model import PddlDomain, Types
from regoal.planning.task import State, Task


@dataclass(frozen=True)
class Representatives:
    """The objects of a task that represent all objects in a state, for one goal."""

    state: State
    counts: Mapping[str, int]
    """The number of objects that each one that stays represents, itself included, in task order."""
    classes: Mapping[str, Sequence[str]]
    """The sorted class of each object, only for classes with omitted objects."""
    forbidden: frozenset[str] = frozenset()
    """Predicates that some precondition negates."""

    @cached_property
    def actions(self) -> tuple[GroundAction, ...]:
        """The applicable actions over representatives in their order; the dummy if there is none.

        They come from a smaller state, which lacks the atoms of omitted objects. Atoms of forbidden
        predicates stay, because without them the smaller state could have more actions than the
        whole state.
        """
        found = self.state.task.applicable_with(
            self.state,
            lambda atom: self.keeps(atom.objects) or atom.predicate in self.forbidden,
        )
        return tuple(a for a in found if self.keeps(a.objects)) or (DUMMY_ACTION,)

    def keeps(self, objects: Iterable[str]) -> bool:
        """Return whether none of these objects is omitted."""
        return self._omitted.isdisjoint(objects)

    @cached_property
    def _omitted(self) -> Set[str]:
        return self.classes.keys() - self.counts.keys()

    @property
    def dropped(self) -> int:
        """The number of omitted objects."""
        return len(self._omitted)

    def equal_actions(self, action: GroundAction) -> Iterator[GroundAction]:
        """Yield all actions that equal this applicable one up to exchanging objects, in order.

        Yields nothing if the action is not the first of them, so each action is yielded once.
        """
        if not self.is_first(action):
            return
        yield action
        images = self._list_images(action.objects, {})
        next(images)
        for objects in images:
            yield self.state.task.ground(action.name, objects)

    def is_first(self, action: GroundAction) -> bool:
        """Return whether the objects of each class are its first objects, in order."""
        met: dict[str, int] = defaultdict(int)
        for name in dict.fromkeys(action.objects):
            if name in self.classes:
                of = self.classes[name]
                if of[met[of[0]]] != name:
                    return False
                met[of[0]] += 1
        return True

    def _list_images(
        self, objects: tuple[str, ...], mapped: Mapping[str, str]
    ) -> Iterator[tuple[str, ...]]:
        """Yield these objects under each permutation of the classes that agrees with `mapped`."""
        if not objects:
            yield ()
            return
        first, *others = objects
        taken = set(mapped.values())
        images = [mapped[first]] if first in mapped else self.classes.get(first, (first,))
        for image in images:
            if first in mapped or image not in taken:
                for rest in self._list_images(tuple(others), {**mapped, first: image}):
                    yield (image, *rest)


class Symmetry:
    """Finds the representatives in the states of a task for one goal.

    Everything that does not change is examined once. A state takes time linear in its atoms.
    """

    def __init__(self, task: Task, goal: Goal) -> None:
        """Group the objects. Raises `ValueError` if the domain is not supported, see `is_plain`."""
        domain = task.domain.text.content
        if not is_plain(domain):
            raise ValueError(f"{task.domain.path} has derived predicates or nested preconditions")
        self.task = task
        self._forbidden = frozenset(
            literal.predicate
            for action in domain.actions
            for literal in literals(action.precondition)
            if not literal.positive
        )
        fixed = list(_list_fixed_atoms(task, goal))
        alike = _find_candidates(task, fixed) - task.domain.constants
        gaps = _Gaps(sorted(alike))
        classes: dict[object, list[str]] = defaultdict(list)
        for name, atoms in gaps.of(x for x in fixed if not alike.isdisjoint(x.objects)).items():
            classes[task.types_of[name], atoms].append(name)
        parameters = _read_parameters(domain)
        self._class: dict[str, tuple[int, int]] = {}
        """By object: its class as far as facts never change, and how many of the class must stay.

        Classes too small to omit any object are not included.
        """
        for number, members in enumerate(classes.values()):
            if len(members) > 1:
                taking = (sum(p.takes(task, members[0]) for p in action) for action in parameters)
                staying = max([1, *taking])
                if len(members) > staying:
                    self._class.update(dict.fromkeys(members, (number, staying)))
        self._gaps = _Gaps(sorted(self._class))
        self._numbers: dict[Atom, int] = {}

    def key(self, state: State) -> bytes:
        """Return 16 bytes that are equal for states which equal each other up to an exchange.

        Such states have equally long plans. Other states have different bytes, as far as a
        digest of 128 bits can tell. Objects that share an atom with another interchangeable object
        are not exchanged, so some equal states have different keys. Valid in this process only.
        """
        atoms = [(atom, self._gaps[atom]) for atom in state.fluent_atoms]
        bound = {name for _, gaps in atoms if len(gaps) > 1 for name, _ in gaps}
        alone: dict[str, list[int]] = {name: [] for name in self._class if name not in bound}
        others = []
        for atom, gaps in atoms:
            if len(gaps) == 1 and gaps[0][0] in alone:
                alone[gaps[0][0]].append(gaps[0][1])
            else:
                others.append(self._numbers.setdefault(atom, len(self._numbers)))
        classes = sorted((self._class[name][0], sorted(of)) for name, of in alone.items())
        return blake2b(repr((sorted(others), classes)).encode(), digest_size=16).digest()

    @property
    def most_dropped(self) -> int:
        """An upper bound on the number of omitted objects in any state."""
        sizes = Counter(self._class.values())
        return sum(size - staying for (_, staying), size in sizes.items())

    def representatives(self, state: State) -> Representatives:
        """Return the objects that represent all objects in this state."""
        classes: dict[tuple[tuple[int, int], frozenset[int]], list[str]] = defaultdict(list)
        for name, atoms in self._gaps.of(state.fluent_atoms).items():
            classes[self._class[name], atoms].append(name)
        counts = dict.fromkeys(self.task.objects, 1)
        members: dict[str, Sequence[str]] = {}
        for ((_, staying), _), alike in classes.items():
            if len(alike) > staying:
                members.update(dict.fromkeys(alike, alike))
                counts[alike[0]] += len(alike) - staying
                for name in alike[staying:]:
                    del counts[name]
        return Representatives(state, counts, members, self._forbidden)


class _Parameter(NamedTuple):
    """The conditions on one parameter alone that never change."""

    types: Types
    literals: tuple[tuple[str, bool], ...]
    """Static unary predicates, and whether they must hold."""

    def takes(self, task: Task, name: str) -> bool:
        """Return whether the parameter can be this object."""
        return not {*task.types_of[name], "object"}.isdisjoint(self.types) and all(
            (Atom(predicate, (name,)) in task.static_atoms) == positive
            for predicate, positive in self.literals
        )


def _read_parameters(domain: PddlDomain) -> list[list[_Parameter]]:
    """Read the parameters of each action."""
    found = []
    for action in domain.actions:
        asked: dict[tuple[str, ...], list[tuple[str, bool]]] = defaultdict(list)
        for literal in literals(action.precondition):
            if literal.predicate not in domain.changing:
                asked[literal.terms].append((literal.predicate, literal.positive))
        found.append([_Parameter(v.types, tuple(asked[v.name,])) for v in action.parameters])
    return found


def _list_fixed_atoms(task: Task, goal: Goal) -> Iterator[Atom]:
    """Yield static atoms, goal literals and cost values, each kind with its own predicates."""
    yield from task.static_atoms
    for atom, positive in goal.literals():
        yield Atom(f"{'goal' if positive else 'goal-not'} {atom.predicate}", atom.objects)
    for (function, *objects), value in task.cost_values.items():
        yield Atom(f"cost {value} {function}", tuple(objects))


def _find_candidates(task: Task, atoms: Iterable[Atom]) -> set[str]:
    """Return the objects that may be interchangeable with another object.

    Sums of hashes exclude most other objects, several times faster than `_Gaps`. `_Gaps` then
    decides.
    """
    sums = dict.fromkeys(task.objects, 0)
    for predicate, objects in atoms:
        if len(set(objects)) == len(objects):
            for i, name in enumerate(objects):
                sums[name] += hash((predicate, objects[:i], objects[i + 1 :]))
        else:
            for name in set(objects):
                rest = tuple(None if x == name else x for x in objects)
                sums[name] += hash((predicate, rest))
    groups: dict[object, list[str]] = defaultdict(list)
    for name, found in sums.items():
        groups[task.types_of[name], found].append(name)
    return {name for group in groups.values() if len(group) > 1 for name in group}


class _Gaps(dict[Atom, tuple[tuple[str, int], ...]]):
    """Numbers what an atom says about each object in it.

    Atoms that differ only in the object have equal numbers.
    """

    def __init__(self, objects: Iterable[str]) -> None:
        super().__init__()
        self._objects = dict.fromkeys(objects)
        self._numbers: dict[tuple[str, tuple[str | None, ...]], int] = {}

    def of(self, atoms: Iterable[Atom]) -> dict[str, frozenset[int]]:
        """Return the numbers of these atoms, each given once, for every object in order."""
        found: dict[str, list[int]] = {name: [] for name in self._objects}
        for atom in atoms:
            for name, number in self[atom]:
                found[name].append(number)
        return {name: frozenset(numbers) for name, numbers in found.items()}

    def __missing__(self, atom: Atom) -> tuple[tuple[str, int], ...]:
        found = []
        for name in dict.fromkeys(atom.objects):
            if name in self._objects:
                rest = atom.predicate, tuple(None if x == name else x for x in atom.objects)
                found.append((name, self._numbers.setdefault(rest, len(self._numbers))))
        self[atom] = tuple(found)
        return self[atom]
