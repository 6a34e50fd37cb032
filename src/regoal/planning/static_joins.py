"""Ground actions as tables of numbers, by joins of what never changes.

An action is listed if its static preconditions hold. So the table has every action that is ever
applicable, and may have more. Made for domains whose preconditions are plain conjunctions.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from regoal.errors import UsageError
from regoal.planning.goals import Atom
from regoal.planning.pddl.conjunctions import literals
from regoal.planning.pddl.model import Literal, PddlAction, PddlDomain

Longs = npt.NDArray[np.int64]
Tables = Mapping[str, Longs]
"""By static predicate, the objects of its atoms: [atoms, arity]."""


def list_bindings(
    action: PddlAction,
    domains: Sequence[Longs],
    static: Tables,
    numbers: Mapping[str, int],
    most: int,
) -> Longs:
    """List the objects of an action's parameters in all ground actions: [actions, parameters].

    `domains` has the objects that each parameter may be, by number. A predicate that is not in
    `static` can change and is left out. Raises `UsageError` if there are more than `most`.
    """
    places = {variable.name: i for i, variable in enumerate(action.parameters)}
    conditions = [x for x in literals(action.precondition) if x.predicate in static]
    joined = [x for x in conditions if x.positive]
    bound: list[int] = []
    rows = np.zeros((1, 0), np.int64)
    while joined or len(bound) < len(places):
        if joined:
            # A literal that shares a parameter with the rows leaves fewer of them.
            literal = min(joined, key=lambda x: {places.get(t) for t in x.terms}.isdisjoint(bound))
            joined.remove(literal)
            own, table = _read_table(literal, places, numbers, domains, static[literal.predicate])
        else:
            own = [next(i for i in places.values() if i not in bound)]
            table = domains[own[0]][:, None]
        rows, bound = _join(rows, bound, table, own, most, action.name)
    rows = rows[:, np.argsort(bound)]
    return rows[_allow(action, rows, places, numbers, static)]


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
        raise UsageError(f"There are more than {most} ground actions of {name}.")
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
    static: Tables,
) -> npt.NDArray[np.bool_]:
    """Tell for each row whether equalities and negative static preconditions hold."""
    allowed = np.ones(len(rows), bool)
    for literal in literals(action.precondition):
        columns = bind(literal.terms, rows, places, numbers)
        if literal.predicate == "=":
            allowed &= (columns[:, 0] == columns[:, 1]) == literal.positive
        elif literal.predicate in static and not literal.positive:
            of_rows, of_atoms = _number_rows(columns, static[literal.predicate])
            allowed &= ~np.isin(of_rows, of_atoms)
    return allowed


def bind(
    terms: Iterable[str], rows: Longs, places: Mapping[str, int], numbers: Mapping[str, int]
) -> Longs:
    """Return the objects of some terms in each row: [rows, terms]."""
    columns = [rows[:, places[t]] if t in places else np.full(len(rows), numbers[t]) for t in terms]
    return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0), np.int64)


def list_static(
    domain: PddlDomain, static_atoms: Iterable[Atom], numbers: Mapping[str, int]
) -> dict[str, Longs]:
    """Return the atoms of each predicate that cannot change: [atoms, arity] objects, by number."""
    rows: dict[str, list[list[int]]] = {
        name: [] for name in domain.symbols.predicates if name not in domain.changing
    }
    for predicate, objects in static_atoms:
        if predicate in rows:
            rows[predicate].append([numbers[name] for name in objects])
    return {
        name: np.array(found, np.int64).reshape(len(found), len(domain.symbols.predicates[name]))
        for name, found in rows.items()
    }


def list_objects(types_of: Mapping[str, Sequence[str]], types: Sequence[str]) -> Longs:
    """Return the objects of some types, by number; `types_of` gives the types of each object."""
    found = [
        i
        for i, of in enumerate(types_of.values())
        if "object" in types or not set(of).isdisjoint(types)
    ]
    return np.array(found, np.int64)
