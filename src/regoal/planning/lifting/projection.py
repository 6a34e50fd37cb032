"""What of a state matters to a goal: its connected parts as forms, and the way back to objects."""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from regoal.planning.goals import Atom
from regoal.planning.lifting.bounds import Component
from regoal.planning.lifting.embeddings import Form, Image, Steps, embeddings, label_fits
from regoal.planning.lifting.forms import EMBEDDING_BUDGET, Bag, FormTable, Move, bag
from regoal.planning.lifting.structures import Label, Structure


class Projection:
    """Reduces states to the atoms that some literal of the goal could match."""

    def __init__(
        self,
        components: Sequence[Component],
        types_of: Mapping[str, tuple[str, ...]],
        table: FormTable,
    ) -> None:
        self._types_of = types_of
        self._table = table
        self._wanted: dict[str, list[tuple[tuple[int, ...], tuple[Label, ...]]]]
        self._wanted = defaultdict(list)
        for component in components:
            labels, literals = component.whole.structure
            for predicate, args, _ in literals:
                self._wanted[predicate].append((args, tuple(labels[a] for a in args)))
        every = [x for of in self._wanted.values() for _, labels in of for x in labels]
        self._constants = {name for _, name in every if name}
        self._types = {of for types, _ in every for of in types}
        self._labels: dict[str, Label] = {}
        self._relevant: dict[Atom, bool] = {}

    def of(self, atoms: Iterable[Atom]) -> "ProjectedState":
        """The state with these atoms."""
        kept = sorted(atom for atom in atoms if self._is_relevant(atom))
        names = {name for atom in kept for name in atom.objects}
        if not self._table.connected:
            names.update(self._types_of)
        ordered = sorted(names)
        number = {name: i for i, name in enumerate(ordered)}
        literals = [(x.predicate, tuple([number[name] for name in x.objects]), True) for x in kept]
        whole = Structure(tuple(self._label(name) for name in ordered), tuple(literals))
        parts = self._table.split(whole, range(len(ordered)), literals)
        return ProjectedState(
            [(form, tuple(ordered[vertex] for vertex in vertices)) for form, vertices in parts]
        )

    def _label(self, name: str) -> Label:
        """Types that no literal asks for are left out, and names of constants not in the goal."""
        known = self._labels.get(name)
        if known is None:
            types = sorted(self._types.intersection(self._types_of.get(name, ())))
            known = self._labels[name] = tuple(types), name if name in self._constants else ""
        return known

    def _is_relevant(self, atom: Atom) -> bool:
        known = self._relevant.get(atom)
        if known is None:
            known = self._relevant[atom] = any(
                _matches(atom.objects, args)
                and all(map(label_fits, labels, map(self._label, atom.objects)))
                for args, labels in self._wanted.get(atom.predicate, ())
            )
        return known


def _matches(objects: tuple[str, ...], args: tuple[int, ...]) -> bool:
    """Whether the arguments agree with each other in the same places."""
    return len(objects) == len(args) and all(
        objects.index(name) == args.index(a) for name, a in zip(objects, args, strict=True)
    )


class ProjectedState:
    """The connected parts of a state: each one's form, and its objects in the form's order."""

    def __init__(self, parts: list[tuple[Form, tuple[str, ...]]]) -> None:
        self.parts = parts
        self.bag: Bag = bag(form for form, _ in parts)

    def literals(
        self, moves: Sequence[Move], shuffle: random.Random | None = None
    ) -> list[tuple[Atom, bool]]:
        """The ground literals that these moves, in this order, place in the state.

        `shuffle` draws among equal parts, and among objects that are interchangeable.
        """
        pool: dict[Form, list[tuple[str, ...]]] = defaultdict(list)
        for form, objects in reversed(self.parts):
            mixed = objects if shuffle is None else _twins_swapped(form, objects, shuffle)
            pool[form].append(mixed)
        literals = []
        for i, move in enumerate(moves):
            instances = pool[move.form]
            objects = instances.pop(-1 if shuffle is None else shuffle.randrange(len(instances)))
            image = move.image
            if shuffle is not None and i == len(moves) - 1:
                image = _any_image(move, shuffle)
            for predicate, args, positive in move.pattern.structure.literals:
                literals.append((Atom(predicate, tuple(objects[image[a]] for a in args)), positive))
            for form, vertices in move.rest:
                pool[form].append(tuple(objects[vertex] for vertex in vertices))
        return literals


def _twins_swapped(form: Form, objects: tuple[str, ...], shuffle: random.Random) -> tuple[str, ...]:
    alike: dict[int, list[int]] = defaultdict(list)
    for vertex, leader in enumerate(form.twins):
        alike[leader].append(vertex)
    swapped = list(objects)
    for group in alike.values():
        for vertex, other in zip(group, shuffle.sample(group, len(group)), strict=True):
            swapped[vertex] = objects[other]
    return tuple(swapped)


def _any_image(move: Move, shuffle: random.Random) -> Image:
    """Nothing comes after the last move, so the pattern may go anywhere in the form."""
    steps = Steps(EMBEDDING_BUDGET)
    return next(embeddings(move.pattern, move.form, steps, shuffle), move.image)
