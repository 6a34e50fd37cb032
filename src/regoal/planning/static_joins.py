"""Ground actions as tables of numbers, by joins of the preconditions that no action makes true.

These are static ones, and those that are only deleted. An action is listed if they hold initially.
So the table has every action that is ever applicable, and may have more. Made for domains whose
preconditions are plain conjunctions.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from regoal.errors import UsageError
from regoal.planning.goals import Atom
from regoal.planning.pddl.conjunctions import literals
from regoal.planning.pddl.model import Literal, PddlAction, PddlDomain, objects_of

Longs = npt.NDArray[np.int64]
Tables = Mapping[Literal, Longs]
"""By literal of a precondition, the objects of its predicate's atoms: [atoms, arity]."""


def list_bindings(
    action: PddlAction,
    domains: Sequence[Longs],
    fixed: Tables,
    numbers: Mapping[str, int],
    most: int,
) -> Longs:
    """List the objects of an action's parameters in all ground actions: [actions, parameters].

    `domains` has the objects that each parameter may be, by number, and `fixed` the preconditions
    that no action makes true. Raises `UsageError` if a join of these has more than `most` rows,
    even if equalities leave fewer.
    """
    places = {variable.name: i for i, variable in enumerate(action.parameters)}
    joined = [x for x in fixed if x.positive]
    bound: list[int] = []
    rows = np.zeros((1, 0), np.int64)
    while joined or len(bound) < len(places):
        if joined:
            # A literal that shares a parameter with the rows leaves fewer of them.
            literal = min(joined, key=lambda x: {places.get(t) for t in x.terms}.isdisjoint(bound))
            joined.remove(literal)
            own, table = _read_table(literal, places, numbers, domains, fixed[literal])
        else:
            own = [next(i for i in places.values() if i not in bound)]
            table = domains[own[0]][:, None]
        rows, bound = _join(rows, bound, table, own, most, action.name)
    rows = rows[:, np.argsort(bound)]
    return rows[_allow(action, rows, places, numbers, fixed)]


def _read_table(
    literal: Literal,
    places: Mapping[str, int],
    numbers: Mapping[str, int],
    domains: Sequence[Longs],
    atoms: Longs,
) -> tuple[list[int], Longs]:
    """Return a literal's parameters, each once, and the objects that its atoms give to them."""
    kept = np.ones(len(atoms), bool)
    column: dict[int, int] = {}
    for i, term in enumerate(literal.terms):
        if term not in places:
            kept &= atoms[:, i] == numbers[term]
        elif places[term] in column:
            kept &= atoms[:, i] == atoms[:, column[places[term]]]
        else:
            column[places[term]] = i
            kept &= np.isin(atoms[:, i], domains[places[term]])
    return list(column), atoms[kept][:, list(column.values())]


def _join(
    rows: Longs, bound: list[int], table: Longs, own: list[int], most: int, name: str
) -> tuple[Longs, list[int]]:
    """Join rows over the parameters `bound` with a table over the parameters `own`."""
    shared = [p for p in own if p in bound]
    of_rows, of_table = _number_rows(
        rows[:, [bound.index(p) for p in shared]], table[:, [own.index(p) for p in shared]]
    )
    order = np.argsort(of_table, kind="stable")
    ordered = of_table[order]
    begin = np.searchsorted(ordered, of_rows, "left")
    counts = np.searchsorted(ordered, of_rows, "right") - begin
    if counts.sum() > most:
        raise UsageError(f"There are too many ground actions of {name}: more than {most}.")
    matches = order[spread(begin, counts)]
    new = [own.index(p) for p in own if p not in bound]
    joined = np.hstack([np.repeat(rows, counts, axis=0), table[matches][:, new]])
    return joined, [*bound, *(own[i] for i in new)]


def spread(begin: Longs, counts: Longs) -> Longs:
    """List the numbers from each beginning on, as many as its count says.

    >>> spread(np.array([5, 2]), np.array([2, 3])).tolist()
    [5, 6, 2, 3, 4]
    """
    ends = np.cumsum(counts)
    return np.repeat(begin - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)


def _number_rows(first: Longs, second: Longs) -> tuple[Longs, Longs]:
    """Give equal rows of two tables equal numbers."""
    both = np.vstack([first, second])
    if not both.shape[1]:
        return np.zeros(len(first), np.int64), np.zeros(len(second), np.int64)
    found = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    return found[: len(first)], found[len(first) :]


def _allow(
    action: PddlAction,
    rows: Longs,
    places: Mapping[str, int],
    numbers: Mapping[str, int],
    fixed: Tables,
) -> npt.NDArray[np.bool_]:
    """Tell for each row whether equalities and fixed negative preconditions hold."""
    allowed = np.ones(len(rows), bool)
    for literal in literals(action.precondition):
        columns = bind(literal.terms, rows, places, numbers)
        if literal.predicate == "=":
            allowed &= (columns[:, 0] == columns[:, 1]) == literal.positive
        elif literal in fixed and not literal.positive:
            of_rows, of_atoms = _number_rows(columns, fixed[literal])
            allowed &= ~np.isin(of_rows, of_atoms)
    return allowed


def bind(
    terms: Iterable[str], rows: Longs, places: Mapping[str, int], numbers: Mapping[str, int]
) -> Longs:
    """Return the objects of some terms in each row: [rows, terms]."""
    columns = [rows[:, places[t]] if t in places else np.full(len(rows), numbers[t]) for t in terms]
    return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0), np.int64)


class FixedLiterals:
    """Finds the objects of types, and the preconditions of a task that no action makes true."""

    def __init__(
        self,
        domain: PddlDomain,
        types_of: Mapping[str, Sequence[str]],
        numbers: Mapping[str, int],
        atoms: Iterable[Atom],
    ) -> None:
        """`atoms` are all that are true initially; `types_of` has the types of each object."""
        self._changing, self._types_of, self._numbers = domain.changing, types_of, numbers
        arity = {name: len(types) for name, types in domain.symbols.predicates.items()}
        rows: dict[str, list[list[int]]] = {name: [] for name in arity}
        for predicate, objects in atoms:
            rows[predicate].append([numbers[name] for name in objects])
        self._tables = {
            name: np.array(found, np.int64).reshape(len(found), arity[name])
            for name, found in rows.items()
        }
        self._added = [
            (x.predicate, self._list_objects(action, x))
            for action in domain.actions
            for effect in action.effects
            for x in effect.literals
            if x.positive
        ]
        """The predicates of what actions add, and the objects that it can have in each place."""

    def of(self, action: PddlAction) -> dict[Literal, Longs]:
        """Return the fixed preconditions of an action, with the initial atoms of its predicate."""
        found = dict.fromkeys(literals(action.precondition))
        return {
            x: self._tables[x.predicate]
            for x in found
            if x.predicate in self._tables
            and (
                x.predicate not in self._changing or (x.positive and not self._is_added(action, x))
            )
        }

    def _is_added(self, action: PddlAction, literal: Literal) -> bool:
        """Tell whether some action may add an atom of a precondition, by the types of objects."""
        own = self._list_objects(action, literal)
        return any(
            predicate == literal.predicate
            and all(np.isin(a, b).any() for a, b in zip(own, added, strict=True))
            for predicate, added in self._added
        )

    def _list_objects(self, action: PddlAction, literal: Literal) -> list[Longs]:
        """Return the objects that a literal of an action can have in each place, by number."""
        types = {variable.name: variable.types for variable in action.parameters}
        return [
            self.list_objects(types[term]) if term in types else np.array([self._numbers[term]])
            for term in literal.terms
        ]

    def list_objects(self, types: Sequence[str]) -> Longs:
        """Return the objects of some types, by number."""
        found = objects_of(self._types_of, types)
        return np.array([self._numbers[name] for name in found], np.int64)
