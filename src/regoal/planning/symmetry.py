"""Objects that can be exchanged for one another, and the few of them that stand for all.

Two objects are interchangeable in a state and for a goal where they have the same types and occur
in the same atoms (changeable, static, goal literals, values of cost functions), each read with a
gap in the object's own places; constants of the domain are not. Exchanging the two then maps state
and goal onto themselves, and no atom names both: it would be one of the first object whose other
places name the second, which no atom of the second can be. So a class of such objects may be
permuted at will, whatever is done with the others.

Of a class, the first m objects by name stay, its representatives, where m is the largest number of
parameters of one action that can take an object of it, by types and static unary preconditions, and
at least 1. That loses nothing:

- An applicable action names at most m objects of a class. Some permutation of the classes maps
  them to representatives, so that each action is equal to one over representatives, and an action
  of one class's first objects is the first in the order of actions among all that equal it.
- The network's message to an object is the strongest of many, and equal messages count once. A
  representative in an atom or action keeps this message: a permutation that leaves it in its place
  maps the other objects to representatives too. An atom needs one of each class, an action up to m.
  By induction over the rounds, the embeddings are those of the whole input.
- The readout's sum over objects counts a representative as often as `counts` says.

This holds for actions whose preconditions are literals, of which those over representatives do not
ask for other objects, in domains without derived predicates.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.goals import Atom, Goal
from regoal.planning.pddl.domain import PddlDomain
from regoal.planning.pddl.formulas import Formula, Junction, Literal
from regoal.planning.pddl.types import Types
from regoal.planning.task import State, Task


@dataclass(frozen=True)
class Representatives:
    """The objects of a task that stand for all in a state, for one goal."""

    state: State
    counts: Mapping[str, int]
    """How many objects each one that stays stands for, itself included; in the task's order."""
    classes: Mapping[str, Sequence[str]]
    """By object, the class, sorted; only for objects of classes of which some are left out."""
    forbidden: frozenset[str] = frozenset()
    """Predicates that some precondition wants to be false."""

    @cached_property
    def actions(self) -> tuple[GroundAction, ...]:
        """The applicable actions over representatives in their order; the dummy where none is.

        They are those of a smaller state, which the library keeps as it keeps every state. It lacks
        the atoms of objects left out, but for forbidden predicates: without these it could have
        more actions than the whole state.
        """
        task = self.state.task
        smaller = task.state_of(
            atom
            for atom in self.state.fluent_atoms
            if self.keeps(atom.objects) or atom.predicate in self.forbidden
        )
        found = task.applicable_actions(smaller)
        return tuple(a for a in found if self.keeps(a.objects)) or (DUMMY_ACTION,)

    def keeps(self, objects: Iterable[str]) -> bool:
        """Whether none of these is left out."""
        return all(name in self.counts for name in objects)

    @property
    def dropped(self) -> int:
        """How many objects are left out."""
        return len(self.state.task.objects) - len(self.counts)

    def equal_actions(self, action: GroundAction) -> Iterator[GroundAction]:
        """All actions that equal this applicable one up to exchanging objects, in their order.

        None for an action that is not the first of them, so that no two lists have one in common.
        """
        if not self._is_first(action):
            return
        yield action
        images = self._images(action.objects, {})
        next(images)
        for objects in images:
            yield self.state.task.ground(action.name, objects)

    def _is_first(self, action: GroundAction) -> bool:
        """Whether the objects of each class are the first of it, in order."""
        met: dict[str, int] = defaultdict(int)
        for name in dict.fromkeys(action.objects):
            if name in self.classes:
                of = self.classes[name]
                if of[met[of[0]]] != name:
                    return False
                met[of[0]] += 1
        return True

    def _images(
        self, objects: tuple[str, ...], mapped: Mapping[str, str]
    ) -> Iterator[tuple[str, ...]]:
        """These objects under each permutation of the classes that agrees with `mapped`."""
        if not objects:
            yield ()
            return
        first, *others = objects
        taken = set(mapped.values())
        images = [mapped[first]] if first in mapped else self.classes.get(first, (first,))
        for image in images:
            if first in mapped or image not in taken:
                for rest in self._images(tuple(others), {**mapped, first: image}):
                    yield (image, *rest)


class Symmetry:
    """Finds the representatives in the states of a task for one goal.

    What does not change is looked at once; a state takes time linear in its atoms.
    """

    def __init__(self, task: Task, goal: Goal) -> None:
        """Raises `ValueError` where the domain is beyond it, see `is_plain`."""
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
        fixed = list(_fixed_atoms(task, goal))
        alike = _maybe_alike(task, fixed) - task.domain.constants
        gaps = _Gaps(sorted(alike))
        classes: dict[object, list[str]] = defaultdict(list)
        for name, atoms in gaps.of(x for x in fixed if not alike.isdisjoint(x.objects)).items():
            classes[task.types_of[name], atoms].append(name)
        parameters = _parameters(domain)
        self._class: dict[str, tuple[int, int]] = {}
        """By object: its class by what never changes, and how many of a class must stay. Objects of
        classes too small to leave any out are not here."""
        for number, members in enumerate(classes.values()):
            if len(members) > 1:
                taking = (sum(p.takes(task, members[0]) for p in action) for action in parameters)
                staying = max([1, *taking])
                if len(members) > staying:
                    self._class.update(dict.fromkeys(members, (number, staying)))
        self._gaps = _Gaps(sorted(self._class))

    @property
    def most_dropped(self) -> int:
        """An upper bound of how many objects are left out, whatever the state."""
        sizes = Counter(self._class.values())
        return sum(size - staying for (_, staying), size in sizes.items())

    def representatives(self, state: State) -> Representatives:
        """The objects that stand for all in this state."""
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


def is_plain(domain: PddlDomain) -> bool:
    """Whether preconditions are conjunctions of literals and no predicate is derived."""
    return not domain.derived and all(_is_conjunction(a.precondition) for a in domain.actions)


def _is_conjunction(formula: Formula) -> bool:
    if isinstance(formula, Junction):
        return formula.connective == "and" and all(map(_is_conjunction, formula.parts))
    return isinstance(formula, Literal)


def literals(formula: Formula) -> Iterator[Literal]:
    """The literals of a conjunction, as `is_plain` asks for."""
    if isinstance(formula, Literal):
        yield formula
    elif isinstance(formula, Junction):
        for part in formula.parts:
            yield from literals(part)


class _Parameter(NamedTuple):
    """What a precondition asks of one parameter alone and for ever."""

    types: Types
    literals: tuple[tuple[str, bool], ...]
    """Static unary predicates, and whether they must hold."""

    def takes(self, task: Task, name: str) -> bool:
        """Whether this can be the object."""
        return not {*task.types_of[name], "object"}.isdisjoint(self.types) and all(
            (Atom(predicate, (name,)) in task.static_atoms) == positive
            for predicate, positive in self.literals
        )


def _parameters(domain: PddlDomain) -> list[list[_Parameter]]:
    """Those of each action."""
    found = []
    for action in domain.actions:
        asked: dict[tuple[str, ...], list[tuple[str, bool]]] = defaultdict(list)
        for literal in literals(action.precondition):
            if literal.predicate not in domain.changing:
                asked[literal.terms].append((literal.predicate, literal.positive))
        found.append([_Parameter(v.types, tuple(asked[v.name,])) for v in action.parameters])
    return found


def _fixed_atoms(task: Task, goal: Goal) -> Iterator[Atom]:
    """Static atoms, goal literals and values of cost functions, told apart by their predicates."""
    yield from task.static_atoms
    for atom, positive in goal.literals():
        yield Atom(f"{'goal' if positive else 'goal-not'} {atom.predicate}", atom.objects)
    for (function, *objects), value in task.cost_values.items():
        yield Atom(f"cost {value} {function}", tuple(objects))


def _maybe_alike(task: Task, atoms: Iterable[Atom]) -> set[str]:
    """Objects for which there is another one of their types that the same atoms may name.

    Sums of hashes tell most others apart, several times faster than `_Gaps`, which then decides.
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
    """For each atom and each object in it, a number for what the atom says of that object.

    Atoms that are the same but for the places of the object have the same number.
    """

    def __init__(self, objects: Iterable[str]) -> None:
        super().__init__()
        self._objects = dict.fromkeys(objects)
        self._numbers: dict[tuple[str, tuple[str | None, ...]], int] = {}

    def of(self, atoms: Iterable[Atom]) -> dict[str, frozenset[int]]:
        """What these atoms, each given once, say of every object, in the order of the objects."""
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
