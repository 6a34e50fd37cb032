"""The lifted hindsight goal, Ground(arg max |ĝ|), and the grounding of one lifted goal."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from regoal.errors import RegoalError
from regoal.planning.goals import Atom, Goal
from regoal.planning.lifting.greedy import greedy_packing
from regoal.planning.lifting.lifted_goals import LiftedGoal
from regoal.planning.lifting.packing import SEARCH_BUDGET, Packing, PackingSearch
from regoal.planning.lifting.patterns import (
    PATTERN_BUDGET,
    components,
    largest_that_holds,
    nullary_literals,
)
from regoal.planning.lifting.placements import PartCounts
from regoal.planning.lifting.state_parts import StateReader

STATE_LIMIT = 5000
"""States, up to renaming, whose largest packing is kept in memory."""

SHUFFLED_BUDGET = SEARCH_BUDGET // 4
"""Search steps for a random packing of the largest size, before the fixed one is taken."""

GROUND_BUDGET = 20 * SEARCH_BUDGET
"""Search steps of `ground`."""


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
        self._components = components(goal, types_of, constants, pattern_budget)
        self.exhaustive = all(component.exhaustive for component in self._components)
        self._connected = not goal.negative
        self._reader = StateReader(self._components, types_of, self._connected)
        self._largest: dict[PartCounts, Packing] = {}

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
        state = self._reader.parts_of(atoms)
        packing = self._find_packing(state.counts)
        literals = [x for x in nullary_literals(self.goal) if (x[0] in atoms) == x[1]]
        if not packing.proven:
            own = largest_that_holds(self.goal, atoms)
            self.unproven += len(own) < len(self.goal)
            if len(own) > packing.size + len(literals):
                return own
        placements = packing.placements
        if shuffle is not None and placements and self.exhaustive:
            other = PackingSearch(
                self._components,
                state.counts,
                connected=self._connected,
                budget=SHUFFLED_BUDGET,
                size=packing.size,
                shuffle=shuffle,
            ).run()
            placements = other.placements if other.size >= packing.size else placements
        literals += state.ground(placements, shuffle)
        return Goal.of_literals(literals) if literals else None

    def _find_packing(self, state: PartCounts) -> Packing:
        """The largest packing, always the same; if unproven, perhaps a greedy one."""
        known = self._largest.get(state)
        if known is None:
            if len(self._largest) >= STATE_LIMIT:
                self._largest.clear()
            search = PackingSearch(self._components, state, connected=self._connected)
            known = search.run() if self.exhaustive else Packing((), 0, proven=False)
            if not known.proven:
                greedy = greedy_packing(self._components, state, self._connected)
                size = sum(x.pattern.size for x in greedy)
                if size > known.size:
                    known = Packing(greedy, size, proven=size >= search.limit)
            self._largest[state] = known
        return known


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
    goal, variables = lifted.as_goal()
    constants = frozenset(t for x in lifted.literals for t in x.terms if isinstance(t, str))
    wholes = tuple(
        replace(component, patterns=(component.whole,))
        for component in components(goal, variables, constants, pattern_budget=0)
    )
    true = frozenset(atoms)
    nullary = nullary_literals(goal)
    if any((atom in true) != positive for atom, positive in nullary):
        return None
    connected = not goal.negative
    state = StateReader(wholes, types_of, connected).parts_of(true)
    shuffle = _shuffle(rng)
    size = len(goal) - len(nullary)
    search = PackingSearch(
        wholes, state.counts, connected=connected, budget=GROUND_BUDGET, size=size, shuffle=shuffle
    )
    packing = search.run()
    if packing.size == size:
        return Goal.of_literals([*nullary, *state.ground(packing.placements, shuffle)])
    if packing.proven:
        return None
    raise RegoalError(f"no grounding of {lifted} was found within {GROUND_BUDGET} search steps")


def _shuffle(rng: np.random.Generator | None) -> random.Random | None:
    return None if rng is None else random.Random(int(rng.integers(1 << 63)))
