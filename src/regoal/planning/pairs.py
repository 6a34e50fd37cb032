"""Find dead ends by pairs of facts: the reachability of h² (Haslum and Geffner, AIPS 2000).

Two facts are a possible pair if they may hold together in a state that can be reached. An action is
possible if all pairs of its preconditions are. A fact that it makes is then paired with the others
that it makes, and with those that it keeps and that may hold with all of its preconditions. If some
pair of the goal is never possible, the state is a dead end.

The delete relaxation looks at single facts. So it does not see that each of two tiles can still be
painted, but not both.

Pairs also tell which fact of the goal can be made last: one for which there is a possible action
whose preconditions may hold together with the other facts. If a goal has a part of which no fact
can be made last, and the part does not hold, the state is a dead end. Of three tiles above each
other between two painted ones, any two can be painted; but whoever paints the last one stands on
another.

And they tell which facts of the goal use something up: those that are made only by actions that
end a fact of one predicate which no action makes. Each of these facts needs such a supply of its
own. If there are too few, the state is a dead end: two spanners that are used once do not tighten
three nuts.

A fact is an atom that is true or, for the atoms that some condition negates, an atom that is false.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from regoal.errors import UsageError
from regoal.planning.goals import Goal
from regoal.planning.reachable import list_reachable
from regoal.planning.strips import StripsAction, is_plain, list_facts
from regoal.planning.supplies import can_be_distinct
from regoal.planning.task import State, Task
from regoal.system.cancellation import check

MOST_CELLS = 5_000_000
"""The most cells of a task; a test of one state takes at most about 20 ns for each cell."""
MOST_RULES = 15_000
"""The most rules to ground the actions of a task; they take less than a second."""

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.intp]
Words = npt.NDArray[np.uint64]
"""Rows of 64 Booleans in each number."""


class Pairs:
    """Tests the states of one task, whose actions are ground once for all states."""

    def __init__(self, task: Task) -> None:
        self.cells = 0
        """The size of its tables: facts times (facts and actions); 0 if no state can be tested."""
        domain = task.domain.text.content
        self._static = task.static_atoms
        self._kept_atoms = frozenset(a for a in self._static if a.predicate in domain.changing)
        if not is_plain(domain):
            return
        try:
            actions = list_facts(domain, list_reachable(task, MOST_RULES).actions)
        except UsageError:  # the task has too many actions
            return
        initial = self._kept_atoms.union(task.initial_state.fluent_atoms)
        made = chain.from_iterable(action.makes for action in actions)
        self._atoms = initial.union(atom for atom, positive in made if positive)
        """The atoms that a state may have; the actions do not cover others."""
        wanted = (fact for fact in task.goal.literals() if fact[0].predicate in domain.changing)
        needed = chain(wanted, *(action.needs for action in actions))
        negative = {(atom, False) for atom, positive in needed if not positive}
        facts = [*((atom, True) for atom in sorted(self._atoms)), *sorted(negative)]
        rows = len(facts) + 1
        cells = rows * (rows + len(actions))
        if cells <= MOST_CELLS:
            self.cells = cells
            self._numbers = {fact: i for i, fact in enumerate(facts)}
            self._fill(actions)
        self._sources: dict[Goal, list[int]] = {}
        """For each goal the facts of the last state from which it may be reached. If all pairs of
        these facts are possible from a state, so is all that was possible from there."""

    def _fill(self, actions: Sequence[StripsAction]) -> None:
        """Make the tables of actions. One more fact, which always holds, comes last."""
        always = len(self._numbers)
        numbers = [
            [[self._numbers[f] for f in facts if f in self._numbers] for facts in action]
            for action in actions
        ]
        width = max((len(needs) for needs, _, _ in numbers), default=1) or 1
        self._needs = np.full((len(actions), width), always)
        """[actions, most needs] facts; rows are filled up with their first fact."""
        makes = np.zeros((len(actions), always + 1), bool)
        keeps = np.ones_like(makes)
        for i, (needs, made, ended) in enumerate(numbers):
            if needs:
                self._needs[i] = [*needs, *needs[:1] * (width - len(needs))]
            makes[i, made] = True
            keeps[i, ended] = False
        self._heads, self._makers = np.nonzero(makes.T)
        """Each fact that is made, and the action; the facts in order."""
        self._makes, self._keeps = makes, keeps
        """[actions, facts]"""
        needed = np.zeros_like(makes)
        np.put_along_axis(needed, self._needs, True, 1)
        uses = needed & ~keeps & ~makes.any(0)
        kinds = [atom.predicate if positive else "" for atom, positive in self._numbers]
        used = {kinds[fact] for fact in np.flatnonzero(uses.any(0))} - {""}
        self._uses = [
            uses & np.array([*(k == kind for k in kinds), False]) for kind in sorted(used)
        ]
        """For each predicate, [actions, facts]: the atoms of it that an action needs and ends, and
        that no action makes."""
        self._makes_packed, self._keeps_packed = _pack(makes), _pack(keeps)

    def reaches(self, state: State, goal: Goal) -> bool:
        """Return whether the goal may be reached from a state, by its pairs, order and supplies.

        Returns true if this is unknown: the domain is not plain, the task is too large, or its
        initial state cannot reach the state. Raises `StoppedError` if
        `regoal.system.cancellation` ends the work.
        """
        atoms = self._kept_atoms.union(state.fluent_atoms)
        if not self.cells or not atoms <= self._atoms:
            return True
        wanted = self._number_goal(goal)
        if wanted is None:
            return False
        holding = [
            i for i, (atom, positive) in enumerate(self._numbers) if (atom in atoms) == positive
        ]
        missing = np.setdiff1d(wanted, holding)
        source = self._sources.get(goal)
        for pairs in self._grow(holding):
            if (source is not None and _all_pairs(pairs, source)) or (
                _all_pairs(pairs, wanted)
                and not np.isin(missing, self._find_never_last(pairs, wanted)).any()
                and self._are_supplied(pairs, missing)
            ):
                self._sources[goal] = holding
                return True
        return False

    def _find_never_last(self, pairs: Bools, wanted: Sequence[int]) -> Ints:
        """Return the largest part of the wanted facts of which none can be made last.

        The last fact of a part is made by a possible action; each other fact of the part may hold
        with all preconditions of the action, and is kept, or is made by it too.
        """
        part = np.array(wanted, int)
        makers = np.flatnonzero(self._makes[:, part].any(1))
        makers = makers[self._may_hold(pairs, makers)]
        needs, makes = self._needs[makers], self._makes[np.ix_(makers, part)]
        beside = pairs[needs[:, :, None], part].all(1) & self._keeps[np.ix_(makers, part)] | makes
        while len(part):
            last = makes[beside.all(1)].any(0)
            if not last.any():
                break
            part, makes, beside = part[~last], makes[:, ~last], beside[:, ~last]
        return part

    def _are_supplied(self, pairs: Bools, missing: Ints) -> bool:
        """Return whether the missing facts that use something up can have supplies of their own.

        A fact is left aside if a possible action makes it and uses nothing up, or makes another
        missing fact too.
        """
        choices: list[list[list[int]]] = [[] for _ in self._uses]
        for fact in missing if choices else []:
            makers = np.flatnonzero(self._makes[:, fact])
            makers = makers[self._may_hold(pairs, makers)]
            if (self._makes[np.ix_(makers, missing)].sum(1) > 1).any():
                continue
            for uses, of_kind in zip(self._uses, choices, strict=True):
                if uses[makers].any(1).all():
                    of_kind.append(np.flatnonzero(uses[makers].any(0)).tolist())
        return all(map(can_be_distinct, choices))

    def _may_hold(self, pairs: Bools, actions: Ints) -> Bools:
        """Return for each of some actions whether all pairs of its preconditions are possible."""
        needs = self._needs[actions]
        found: Bools = pairs[needs[:, :, None], needs[:, None, :]].all((1, 2))
        return found

    def _number_goal(self, goal: Goal) -> list[int] | None:
        """Return the facts of a goal that some action changes; None if one is never possible."""
        found = []
        for atom, positive in goal.literals():
            if (atom, positive) in self._numbers:
                found.append(self._numbers[atom, positive])
            elif positive != (atom in self._static):
                return None
        return found

    def _grow(self, holding: Sequence[int]) -> Iterator[Bools]:
        """Yield which pairs of facts are possible after 0, 1, 2, ... rounds of all actions.

        The state has exactly these facts. Each table is [facts, facts]; the last one is complete.
        """
        changed: Bools = np.zeros(len(self._numbers) + 1, bool)
        changed[[*holding, -1]] = True
        pairs: Bools = np.outer(changed, changed)
        while changed.any():
            check()
            yield pairs
            grown = self._apply(pairs, changed)
            changed = (grown != pairs).any(1)
            pairs = grown

    def _apply(self, pairs: Bools, changed: Bools) -> Bools:
        """Return the possible pairs after one more round.

        Only the actions that need a fact with a pair that is new can make others possible;
        `changed` says which facts have one.
        """
        chosen = np.flatnonzero(changed[self._needs].any(1))
        chosen = chosen[self._may_hold(pairs, chosen)]
        needs = self._needs[chosen]
        row_of = np.full(len(self._needs), -1)
        row_of[chosen] = np.arange(len(chosen))
        rows = row_of[self._makers]
        if (rows < 0).all():
            return pairs
        heads, starts = np.unique(self._heads[rows >= 0], return_index=True)
        together = np.bitwise_and.reduce(_pack(pairs)[needs], axis=1)
        together = together & self._keeps_packed[chosen] | self._makes_packed[chosen]
        new = np.bitwise_or.reduceat(together[rows[rows >= 0]], starts, axis=0)
        grown = pairs.copy()
        grown[heads] |= _unpack(new, len(pairs))
        return grown | grown.T


def _all_pairs(pairs: Bools, facts: Sequence[int]) -> bool:
    return bool(pairs[np.ix_(facts, facts)].all())


def _pack(rows: Bools) -> Words:
    """Pack rows of Booleans into words; the last ones are filled up with zeros."""
    packed = np.packbits(rows, axis=1)
    return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64)


def _unpack(words: Words, count: int) -> Bools:
    return np.unpackbits(words.view(np.uint8), axis=1, count=count).view(bool)
