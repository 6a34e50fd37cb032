"""Lifted goals (Algorithm 1 of the paper) and the lifted hindsight goal.

A lifted goal is a part of the goal with its objects replaced by variables. The part is connected
within each component of the goal-dependency graph, and all variables stand for different objects.
Lifted goals that are equal up to renaming are one lifted goal.

Choices where the paper is silent. Constants of the domain stay, and a variable never stands for
a constant that occurs in the same lifted goal. A variable stands only for objects that have all
the types of the goal's object. Negative literals are vertices of the graph like others.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from regoal.errors import RegoalError
from regoal.planning.goals import Atom, Goal
from regoal.planning.lifting.bounds import Component
from regoal.planning.lifting.forms import FormTable
from regoal.planning.lifting.packing import SEARCH_BUDGET, Packer, Packing
from regoal.planning.lifting.patterns import (
    components,
    connected_patterns,
    largest_that_holds,
    nullary_literals,
)
from regoal.planning.lifting.projection import Projection
from regoal.planning.lifting.structures import Structure, canonical, connected_parts, reordered

PATTERN_BUDGET = 4000
"""Canonical forms built for one component before its patterns count as too many to list."""

STATE_LIMIT = 5000
"""States, up to renaming, whose largest packing is kept in memory."""

SHUFFLED_BUDGET = SEARCH_BUDGET // 4
"""Search steps for a random packing of the largest size, before the fixed one is taken."""

GROUND_BUDGET = 20 * SEARCH_BUDGET
"""Search steps of `ground`."""


class LiftedLiteral(NamedTuple):
    """A predicate applied to variables (numbers) and constants (names), perhaps negated."""

    predicate: str
    terms: tuple[int | str, ...]
    positive: bool = True

    def __str__(self) -> str:
        """As in the paper, e.g. `on(X0,X1)`."""
        terms = ",".join(f"X{term}" if isinstance(term, int) else term for term in self.terms)
        return f"{'' if self.positive else 'not '}{self.predicate}({terms})"


@dataclass(frozen=True)
class LiftedGoal:
    """A conjunction of literals over variables, all of which stand for different objects.

    Made by `lifted_goals`, it is in canonical form: equal if equal up to renaming. `types[i]`
    are the types that an object for variable i must have.
    """

    literals: tuple[LiftedLiteral, ...]
    types: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        """How many literals the lifted goal has."""
        return len(self.literals)

    def __str__(self) -> str:
        """The literals joined by `&`; that variables differ goes without saying."""
        return " & ".join(map(str, self.literals))


def lifted_goals(
    goal: Goal, types_of: Mapping[str, tuple[str, ...]], constants: frozenset[str] = frozenset()
) -> Iterator[LiftedGoal]:
    """All lifted goals of a goal (paper, Algorithm 1), each once, largest first, one at a time.

    There may be very many where the goal is irregular; `GoalLifter` does not need them all.

    >>> chain = Goal.of(Atom("on", pair) for pair in [("a", "b"), ("b", "c")])
    >>> [str(lifted) for lifted in lifted_goals(chain, {})]
    ['on(X0,X1) & on(X1,X2)', 'on(X0,X1)']
    """
    kinds = []
    for component, copies in Counter(components(goal, types_of, constants)).items():
        found = connected_patterns(component)
        assert found is not None
        kinds.append(_Kind([pattern.structure for pattern in found], copies))
    for atom, positive in nullary_literals(goal):
        kinds.append(_Kind([Structure((), ((atom.predicate, (), positive),))], 1))
    for total in range(len(goal), 0, -1):
        seen = set()
        for parts in _combinations(kinds, total, 0):
            key = tuple(sorted(parts, key=_size_first))
            if key not in seen:
                seen.add(key)
                yield _joined(key)


class _Kind(NamedTuple):
    """The patterns of equal components, largest first, and how many such components there are."""

    patterns: list[Structure]
    copies: int


def _size_first(part: Structure) -> tuple[int, Structure]:
    return -len(part.literals), part


def _combinations(
    kinds: Sequence[_Kind], total: int, start: int
) -> Iterator[tuple[Structure, ...]]:
    """At most one pattern a component, `total` literals in all; patterns from `start` on."""
    if total == 0:
        yield ()
    if total == 0 or not kinds:
        return
    patterns, copies = kinds[0]
    later = sum(kind.copies * len(kind.patterns[0].literals) for kind in kinds[1:])
    for i in range(start, len(patterns) if copies else 0):
        size = len(patterns[i].literals)
        if copies * size + later < total:
            break
        for count in range(min(copies, total // size), 0, -1):
            left = [_Kind(patterns, copies - count), *kinds[1:]]
            for rest in _combinations(left, total - count * size, i + 1):
                yield (patterns[i],) * count + rest
    if later >= total:
        yield from _combinations(kinds[1:], total, 0)


def _joined(parts: Iterable[Structure]) -> LiftedGoal:
    """The lifted goal with these parts side by side."""
    literals: list[LiftedLiteral] = []
    types: list[tuple[str, ...]] = []
    for part in parts:
        variables, ordered = _reading_order(part)
        number: dict[int, int | str] = {v: len(types) + i for i, v in enumerate(variables)}
        for predicate, args, positive in ordered:
            terms = tuple(number.get(a, part.labels[a][1]) for a in args)
            literals.append(LiftedLiteral(predicate, terms, positive))
        types += [part.labels[v][0] for v in variables]
    return LiftedGoal(tuple(literals), tuple(types))


@lru_cache(maxsize=1024)
def _reading_order(
    part: Structure,
) -> tuple[list[int], list[tuple[str, tuple[int, ...], bool]]]:
    """Variables by first appearance, and literals such that chains read from end to end."""
    number: dict[int, int] = {}
    ordered = []
    left = list(part.literals)
    while left:
        last = len(part.labels)
        literal = min(left, key=lambda x: ([number.get(a, last) for a in x[1]], x))
        left.remove(literal)
        ordered.append(literal)
        for a in literal[1]:
            number.setdefault(a, len(number))
    return [v for v in number if not part.labels[v][1]], ordered


def ground(
    lifted: LiftedGoal,
    atoms: Iterable[Atom],
    types_of: Mapping[str, tuple[str, ...]],
    rng: np.random.Generator | None = None,
) -> Goal | None:
    """A grounding of `lifted` that holds in the state with these `atoms`; None if there is none.

    Constants of the lifted goal ground to themselves. A random grounding with `rng`, else always
    the same. `atoms` and `types_of` are as for `GoalLifter`. Raises `RegoalError` if a very large
    or irregular question could not be decided within `GROUND_BUDGET`.
    """
    parts = Counter(canonical(part).structure for part in _parts(lifted))
    table = FormTable(all(x.positive for x in lifted.literals))
    kinds = []
    for part, copies in sorted(parts.items()):
        form, _ = table.form(part)
        kinds.append(Component(form, (form,), copies))
    projection = Projection(kinds, types_of, table)
    nullary = [(Atom(x.predicate, ()), x.positive) for x in lifted.literals if not x.terms]
    true = frozenset(atoms)
    if any((atom in true) != positive for atom, positive in nullary):
        return None
    state = projection.of(true)
    shuffle = _shuffle(rng)
    size = len(lifted) - len(nullary)
    packing = Packer(kinds, table).of_size(state.bag, size, shuffle, GROUND_BUDGET)
    if packing.size == size:
        return _goal([*nullary, *state.literals(packing.moves, shuffle)])
    if packing.proven:
        return None
    raise RegoalError(f"no grounding of {lifted} was found within {GROUND_BUDGET} search steps")


def _parts(lifted: LiftedGoal) -> list[Structure]:
    """The connected parts of a lifted goal."""
    terms = dict.fromkeys(term for x in lifted.literals for term in x.terms)
    number = {term: i for i, term in enumerate(terms)}
    labels = tuple((lifted.types[t], "") if isinstance(t, int) else ((), t) for t in terms)
    literals = tuple(
        (x.predicate, tuple(number[t] for t in x.terms), x.positive)
        for x in lifted.literals
        if x.terms
    )
    whole = Structure(labels, literals)
    return [reordered(whole, *part) for part in connected_parts(range(len(labels)), literals)]


def _goal(literals: Iterable[tuple[Atom, bool]]) -> Goal:
    literals = list(literals)
    return Goal.of((a for a, sign in literals if sign), (a for a, sign in literals if not sign))


def _shuffle(rng: np.random.Generator | None) -> random.Random | None:
    return None if rng is None else random.Random(int(rng.integers(1 << 63)))


class GoalLifter:
    """The lifted hindsight goals of one goal, prepared once and asked for many states.

    `exhaustive` says that all patterns of the goal's components could be listed. If not, or if a
    state takes too many search steps, the hindsight goal may not be the largest: `unproven`
    counts the calls for which that is open. It is never smaller than what the same connected
    parts of the goal itself give.

    `types_of` has every object of the problem with all its types (`Task.types_of`); `constants`
    are the domain's. The same calls give the same answers, whatever else was asked before.

    >>> lifter = GoalLifter(Goal.of([Atom("on", ("a", "b")), Atom("on", ("b", "c"))]), {})
    >>> print(lifter.hindsight(frozenset([Atom("on", ("c", "a")), Atom("on", ("a", "b"))])))
    (and (on a b) (on c a))
    """

    def __init__(
        self,
        goal: Goal,
        types_of: Mapping[str, tuple[str, ...]],
        constants: frozenset[str] = frozenset(),
        pattern_budget: int = PATTERN_BUDGET,
    ) -> None:
        self.goal = goal
        self.unproven = 0
        self._nullary = nullary_literals(goal)
        self._table = FormTable(not goal.negative)
        kinds = []
        for whole, copies in Counter(components(goal, types_of, constants)).items():
            found = connected_patterns(whole, pattern_budget)
            patterns = None if found is None else tuple(self._table.known(x) for x in found)
            kinds.append(Component(self._table.form(whole)[0], patterns, copies))
        kinds.sort(key=lambda kind: (-kind.whole.size, kind.whole.key))
        self.exhaustive = all(kind.patterns is not None for kind in kinds)
        self._packer = Packer(kinds, self._table)
        self._projection = Projection(kinds, types_of, self._table)
        self._largest: dict[object, Packing] = {}

    def hindsight(
        self, atoms: frozenset[Atom], rng: np.random.Generator | None = None
    ) -> Goal | None:
        """The largest lifted goal that can be grounded in a state, grounded there.

        `atoms` are all that hold in the state. None (the paper's "bottom") if not one literal of
        the goal has a grounding. With `rng` the choice among lifted goals of the largest size
        and among groundings is random; without, it is always the same. One number is drawn
        from `rng` in each call.
        """
        shuffle = _shuffle(rng)
        if self._table.is_full():
            self._packer.clear()
            self._largest.clear()
        if len(self._largest) >= STATE_LIMIT:
            self._largest.clear()
        state = self._projection.of(atoms)
        packing = self._largest.get(state.bag)
        if packing is None:
            packing = self._largest[state.bag] = self._packer.largest(state.bag)
        if not packing.proven:
            own = largest_that_holds(self.goal, atoms)
            self.unproven += len(own) < len(self.goal)
            if len(own) > packing.size + sum((a in atoms) == sign for a, sign in self._nullary):
                return own
        moves = packing.moves
        if shuffle is not None and moves:
            other = self._packer.of_size(state.bag, packing.size, shuffle, SHUFFLED_BUDGET)
            moves = other.moves if other.size == packing.size else moves
        literals = [(atom, sign) for atom, sign in self._nullary if (atom in atoms) == sign]
        literals += state.literals(moves, shuffle)
        return _goal(literals) if literals else None
