"""Applicable actions of one state after the other, for large problems of plain domains.

The PDDL library compares all pairs of objects when it reads a problem, which takes memory and time
that grow with the square of the number of objects. Here, the literals of a precondition are joined
one by one, and only what an atom that came or went touches is looked at again.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import product
from typing import NamedTuple

from regoal.errors import TooWideError
from regoal.planning.actions import MOST_APPLICABLE
from regoal.planning.goals import Atom
from regoal.planning.pddl.conjunctions import literals
from regoal.planning.pddl.model import PddlAction, objects_of
from regoal.system.cancellation import CHECK_EVERY, check

Objects = tuple[str, ...]
Key = tuple[str, Objects]
"""A ground action: the name of its schema, and its objects."""
Binding = tuple[str | None, ...]
"""The object of each parameter; None if it has none yet."""
Need = tuple[str, Objects, bool]
"""A predicate and objects, and whether their atom must hold or must not."""


class _Condition(NamedTuple):
    """A literal of a precondition; each term is the number of a parameter, or an object."""

    predicate: str
    terms: tuple[int | str, ...]

    def ground(self, binding: Sequence[str]) -> Objects:
        """Return the literal's objects."""
        return tuple(binding[t] if isinstance(t, int) else t for t in self.terms)


class _Schema:
    """The precondition of an action."""

    def __init__(self, action: PddlAction, of_types: Callable[[Sequence[str]], Set[str]]) -> None:
        number = {variable.name: i for i, variable in enumerate(action.parameters)}
        conditions = [
            (_Condition(x.predicate, tuple(number.get(t, t) for t in x.terms)), x.positive)
            for x in dict.fromkeys(literals(action.precondition))
        ]
        self.name = action.name
        self.unbound: Binding = (None,) * len(number)
        self.domains = [of_types(variable.types) for variable in action.parameters]
        """The objects that each parameter can take."""
        self.positive = [x for x, positive in conditions if positive and x.predicate != "="]
        self.negative = [x for x, positive in conditions if not positive and x.predicate != "="]
        self._equalities = [(x, positive) for x, positive in conditions if x.predicate == "="]

    def bind(self, condition: _Condition, objects: Objects, binding: Binding) -> Binding | None:
        """Extend a binding so that a condition gets these objects; return None if it cannot."""
        found = list(binding)
        for term, name in zip(condition.terms, objects, strict=True):
            known = found[term] if isinstance(term, int) else term
            if known is None and isinstance(term, int) and name in self.domains[term]:
                found[term] = name
            elif known != name:
                return None
        return tuple(found)

    def allows(self, binding: Objects) -> bool:
        """Return whether all equalities and inequalities hold."""
        return all(
            (left == right) == positive
            for x, positive in self._equalities
            for left, right in (x.ground(binding),)
        )

    def needs(self, binding: Objects) -> Iterator[Need]:
        """Yield what must hold, and what must not."""
        for x in self.positive:
            yield x.predicate, x.ground(binding), True
        for x in self.negative:
            yield x.predicate, x.ground(binding), False


class _Facts:
    """The atoms that hold, found by predicate and by the objects at some places."""

    def __init__(self, others: "_Facts | None" = None) -> None:
        """Begin with what `others` has, whose predicates must not get more atoms."""
        self._tables: dict[str, dict[tuple[int, ...], dict[Objects, dict[Objects, None]]]]
        self._tables = defaultdict(lambda: {(): {(): {}}}, others._tables if others else {})

    def holds(self, predicate: str, objects: Objects) -> bool:
        """Return whether an atom holds."""
        return objects in self._tables[predicate][()][()]

    def insert(self, atom: Atom) -> None:
        """Let an atom hold."""
        for places, table in self._tables[atom.predicate].items():
            key = tuple(atom.objects[i] for i in places)
            table.setdefault(key, {})[atom.objects] = None

    def remove(self, atom: Atom) -> None:
        """Let an atom hold no longer."""
        for places, table in self._tables[atom.predicate].items():
            key = tuple(atom.objects[i] for i in places)
            del table[key][atom.objects]
            if not table[key] and places:
                del table[key]

    def find(self, condition: _Condition, binding: Binding) -> Mapping[Objects, None]:
        """Return the objects of the atoms that agree with a condition as far as it is bound."""
        places, key = [], []
        for i, term in enumerate(condition.terms):
            name = binding[term] if isinstance(term, int) else term
            if name is not None:
                places.append(i)
                key.append(name)
        table = self._tables[condition.predicate].get(tuple(places))
        if table is None:
            table = self._add_table(condition.predicate, tuple(places))
        return table.get(tuple(key), _NONE)

    def _add_table(
        self, predicate: str, places: tuple[int, ...]
    ) -> dict[Objects, dict[Objects, None]]:
        table: dict[Objects, dict[Objects, None]] = {}
        for objects in self._tables[predicate][()][()]:
            table.setdefault(tuple(objects[i] for i in places), {})[objects] = None
        self._tables[predicate][places] = table
        return table


_NONE: Mapping[Objects, None] = {}


class ApplicableActions:
    """The applicable actions of a state, carried on from the state asked for before.

    `place` is named in errors. `types_of` gives the types of each object, without `object`.
    `static` has the atoms that never change. A step takes time for the atoms that change, not for
    those that stay.
    """

    def __init__(
        self,
        place: object,
        actions: Iterable[PddlAction],
        types_of: Mapping[str, Sequence[str]],
        static: Iterable[Atom],
    ) -> None:
        def of_types(types: Sequence[str]) -> Set[str]:
            return frozenset(objects_of(types_of, types))

        self._place = place
        self._schemas = {action.name: _Schema(action, of_types) for action in actions}
        self._needing: dict[tuple[str, bool], list[tuple[_Schema, _Condition]]] = defaultdict(list)
        """The conditions that need an atom of a predicate to hold, or not to hold."""
        for schema in self._schemas.values():
            for condition in schema.positive:
                self._needing[condition.predicate, True].append((schema, condition))
            for condition in schema.negative:
                self._needing[condition.predicate, False].append((schema, condition))
        self._steps = 0
        self._listed: set[int] | None = None
        """The atoms of the state that `list_keys` was last asked for."""
        self._static = _Facts()
        for atom in static:
            self._static.insert(atom)
        self._facts = self._static
        self._keys: list[Key] = []
        """The applicable actions, sorted."""
        self._relying: dict[Need, set[Key]] = defaultdict(set)
        """The applicable actions that need an atom to hold, or not to hold."""

    def list_keys(self, now: set[int], convert: Callable[[Iterable[int]], list[Atom]]) -> list[Key]:
        """Return the sorted actions of the state in which the atoms with these numbers hold.

        `convert` returns the atoms of some numbers; a number must stand for one atom always. The
        list is valid until the next call. Raises `TooWideError` if it has more than
        `MOST_APPLICABLE`, and `StoppedError` if `regoal.system.cancellation` ends the work.
        """
        before, self._listed = self._listed, None  # until the work has ended without an error
        if before is None or len(before ^ now) > len(now) // 2:
            self._start(convert(now))
        else:
            self._move(convert(before - now), convert(now - before))
        self._listed = now
        return self._keys

    def _start(self, atoms: Iterable[Atom]) -> None:
        """Find the actions of the state in which these changeable atoms hold."""
        self._facts, self._keys, self._relying = _Facts(self._static), [], defaultdict(set)
        for atom in atoms:
            self._facts.insert(atom)
        for schema in self._schemas.values():
            for binding in self._complete(schema, schema.unbound, schema.positive):
                self._add(schema, binding)
        self._keys.sort()

    def _move(self, gone: Sequence[Atom], new: Sequence[Atom]) -> None:
        """Go on to a state in which the atoms `gone` hold no longer and `new` hold in addition."""
        changes = [(atom, True) for atom in gone] + [(atom, False) for atom in new]
        for (predicate, objects), needed in changes:
            for key in tuple(self._relying.get((predicate, objects, needed), ())):
                self._drop(key)
        for atom in gone:
            self._facts.remove(atom)
        for atom in new:
            self._facts.insert(atom)
        found = {
            (schema.name, binding): schema
            for (predicate, objects), needed in changes
            for schema, condition in self._needing.get((predicate, not needed), ())
            for binding in self._complete(
                schema, schema.bind(condition, objects, schema.unbound), schema.positive
            )
        }
        for (_, binding), schema in found.items():
            self._add(schema, binding)
        self._keys.sort()

    def _add(self, schema: _Schema, binding: Objects) -> None:
        if len(self._keys) >= MOST_APPLICABLE:
            raise TooWideError(
                f"{self._place}: a state has too many applicable actions to be listed (more than "
                f"{MOST_APPLICABLE}); use fewer objects, or actions with fewer parameters."
            )
        key = (schema.name, binding)
        self._keys.append(key)
        for need in schema.needs(binding):
            self._relying[need].add(key)

    def _drop(self, key: Key) -> None:
        del self._keys[bisect_left(self._keys, key)]
        for need in self._schemas[key[0]].needs(key[1]):
            keys = self._relying[need]
            keys.discard(key)
            if not keys:
                del self._relying[need]

    def _complete(
        self, schema: _Schema, binding: Binding | None, conditions: Sequence[_Condition]
    ) -> Iterator[Objects]:
        """Yield the objects of each applicable action that extends a binding.

        `conditions` are the positive ones that may not hold yet. The one with the fewest matches
        comes first.
        """
        if binding is None:
            return
        if not conditions:
            yield from self._choose_free(schema, binding)
            return
        matches = [self._facts.find(condition, binding) for condition in conditions]
        first = min(range(len(matches)), key=lambda i: len(matches[i]))
        others = [*conditions[:first], *conditions[first + 1 :]]
        for objects in tuple(matches[first]):
            self._count_step()
            extended = schema.bind(conditions[first], objects, binding)
            yield from self._complete(schema, extended, others)

    def _choose_free(self, schema: _Schema, binding: Binding) -> Iterator[Objects]:
        """Yield each choice of objects for unbound parameters that the other conditions allow."""
        choices = (
            sorted(of) if name is None else (name,)
            for name, of in zip(binding, schema.domains, strict=True)
        )
        for objects in product(*choices):
            self._count_step()
            if schema.allows(objects) and not any(
                self._facts.holds(x.predicate, x.ground(objects)) for x in schema.negative
            ):
                yield objects

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps % CHECK_EVERY == 0:
            check()
