"""Facts of one task as whole numbers, so that many can be compared at once.

A fact is an atom that is true, or an atom that is false. Only predicates that can change have
codes.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from regoal.errors import UsageError
from regoal.planning.goals import Atom
from regoal.planning.pddl.conjunctions import literals
from regoal.planning.pddl.model import Literal, PddlAction, PddlDomain
from regoal.planning.static_joins import Longs, bind

LARGEST = 2**62


class FactCodes:
    """The codes of a task. False atoms have them only if some condition or goal negates them."""

    def __init__(
        self, domain: PddlDomain, numbers: Mapping[str, int], negated: Iterable[str]
    ) -> None:
        """`numbers` has the numbers of objects, `negated` predicates that goals negate.

        Raises `UsageError` if there are more atoms than a number can count.
        """
        self._numbers = numbers
        self._begin: dict[str, int] = {}
        self._known: dict[Atom, int] = {}
        count = 0
        for name in sorted(domain.changing):
            self._begin[name] = count
            count += len(numbers) ** len(domain.symbols.predicates[name])
        if 2 * count > LARGEST:
            raise UsageError("There are too many possible atoms to number them.")
        self.negative = count
        """The code of a false atom is that of the true one plus this."""
        conditions = [x for a in domain.actions for x in literals(a.precondition)]
        found = {x.predicate for x in conditions if not x.positive}.union(negated)
        self._coded = {True: self._begin.keys(), False: found & self._begin.keys()}
        """The predicates whose true and false atoms have codes."""

    def of_literals(self, action: PddlAction, found: Iterable[Literal], rows: Longs) -> Longs:
        """Return the codes of an action's literals for each of its bindings: [rows, literals].

        Literals whose predicate cannot change are left out.
        """
        places = {variable.name: i for i, variable in enumerate(action.parameters)}
        columns = [
            self._begin[x.predicate]
            + bind(x.terms, rows, places, self._numbers) @ self._get_powers(len(x.terms))
            + (0 if x.positive else self.negative)
            for x in found
            if x.predicate in self._coded[x.positive]
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0), np.int64)

    def of_atom(self, atom: Atom) -> int:
        """Return the code of an atom; -1 if its predicate cannot change."""
        known = self._known.get(atom)
        if known is None:
            places = (
                self._numbers[o] * len(self._numbers) ** i for i, o in enumerate(atom.objects)
            )
            begin = self._begin.get(atom.predicate)
            known = self._known[atom] = -1 if begin is None else begin + sum(places)
        return known

    def of_atoms(self, atoms: Sequence[Atom]) -> Longs:
        """Return the codes of atoms."""
        return np.array([self.of_atom(atom) for atom in atoms], np.int64)

    def _get_powers(self, arity: int) -> Longs:
        return np.array([len(self._numbers) ** i for i in range(arity)], np.int64)
