"""The parts of a state that matter to a goal, in canonical form, and the way back to objects."""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from regoal.planning.goals import Atom
from regoal.planning.lifting.embeddings import Budget, CanonicalForm, embeddings, label_fits
from regoal.planning.lifting.patterns import Component
from regoal.planning.lifting.placements import EMBEDDING_BUDGET, Placement, counted, split
from regoal.planning.lifting.structures import Label, Structure


class StateReader:
    """Reduces states to the atoms that some literal of the goal could match.

    `connected` says that a pattern lies within one connected part of a state, so that the parts
    can be taken one by one. With negative literals the whole state is one part.
    """

    def __init__(
        self,
        components: Sequence[Component],
        types_of: Mapping[str, tuple[str, ...]],
        connected: bool,
    ) -> None:
        self._types_of = types_of
        self._connected = connected
        self._wanted: dict[str, set[tuple[tuple[int, ...], tuple[Label, ...]]]] = defaultdict(set)
        for labels, literals in (component.whole.structure for component in components):
            for predicate, args, _ in literals:
                places = tuple(map(args.index, args))
                self._wanted[predicate].add((places, tuple(labels[a] for a in args)))
        every = [x for of in self._wanted.values() for _, labels in of for x in labels]
        self._constants = {name for _, name in every if name}
        self._types = {of for types, _ in every for of in types}
        self._labels: dict[str, Label] = {}
        self._relevant: dict[Atom, bool] = {}

    def parts_of(self, atoms: Iterable[Atom]) -> "StateParts":
        """The parts of the state with these atoms."""
        kept = sorted(atom for atom in atoms if self._is_relevant(atom))
        names = {name for atom in kept for name in atom.objects}
        if not self._connected:
            names.update(self._types_of)
        ordered = sorted(names)
        number = {name: i for i, name in enumerate(ordered)}
        literals = [(x.predicate, tuple([number[name] for name in x.objects]), True) for x in kept]
        whole = Structure(tuple(self._label(name) for name in ordered), tuple(literals))
        parts = split(whole, range(len(ordered)), literals, self._connected)
        return StateParts(
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
            places = tuple(map(atom.objects.index, atom.objects))
            known = self._relevant[atom] = any(
                places == wanted and all(map(label_fits, labels, map(self._label, atom.objects)))
                for wanted, labels in self._wanted.get(atom.predicate, ())
            )
        return known


class StateParts:
    """The parts of a state: each one's form, and its objects in the form's order."""

    def __init__(self, parts: list[tuple[CanonicalForm, tuple[str, ...]]]) -> None:
        self._parts = parts
        self.counts = counted(form for form, _ in parts)

    def ground(
        self, placements: Sequence[Placement], shuffle: random.Random | None = None
    ) -> list[tuple[Atom, bool]]:
        """The ground literals (atom, positive) of these placements, made in this order.

        `shuffle` draws among equal parts, among objects that are interchangeable, and where in
        its part the last pattern goes, as nothing comes after it.
        """
        pool: dict[CanonicalForm, list[tuple[str, ...]]] = defaultdict(list)
        for form, objects in reversed(self._parts):
            mixed = objects if shuffle is None else _swap_twins(form, objects, shuffle)
            pool[form].append(mixed)
        literals = []
        for i, (pattern, form, embedding, rest) in enumerate(placements):
            equal = pool[form]
            objects = equal.pop(-1 if shuffle is None else shuffle.randrange(len(equal)))
            places = embedding
            if shuffle is not None and i == len(placements) - 1:
                found = embeddings(pattern, form, Budget(EMBEDDING_BUDGET), shuffle)
                places = next(found, embedding)
            for predicate, args, positive in pattern.structure.literals:
                names = tuple(objects[places[a]] for a in args)
                literals.append((Atom(predicate, names), positive))
            for left, vertices in rest:
                pool[left].append(tuple(objects[vertex] for vertex in vertices))
        return literals


def _swap_twins(
    form: CanonicalForm, objects: tuple[str, ...], shuffle: random.Random
) -> tuple[str, ...]:
    alike: dict[int, list[int]] = defaultdict(list)
    for vertex, leader in enumerate(form.twins):
        alike[leader].append(vertex)
    swapped = list(objects)
    for group in alike.values():
        for vertex, other in zip(group, shuffle.sample(group, len(group)), strict=True):
            swapped[vertex] = objects[other]
    return tuple(swapped)
