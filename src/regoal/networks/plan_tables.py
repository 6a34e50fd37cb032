"""The ground actions of a task as tables of numbers, and what begins a relaxed plan in them.

`relaxed_plans.py` says what that is, and `kernels/cpu/plan_kernel.py` has the same in C.

Shapes by letter: F facts, A ground actions, K the most facts that one needs, or makes.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from regoal.planning.static_joins import Longs, spread

MOST_NAMES = 60
"""The most names of actions, each of which is one bit of a number."""

Ints = npt.NDArray[np.int32]


class _Lists(NamedTuple):
    """A list for each of some numbers."""

    items: Ints
    """All lists, one after the other."""
    offsets: Ints
    """The place of each list's first item; the last number is the place behind all items."""

    def gather(self, chosen: Ints) -> Ints:
        """Return the items of some lists, one after the other."""
        begin, end = (self.offsets[at].astype(np.int64) for at in (chosen, chosen + 1))
        return self.items[spread(begin, end - begin)]

    def repeat(self, chosen: Ints, values: Longs) -> Longs:
        """Return for each item of some lists the value of its list."""
        return np.repeat(values, self.offsets[chosen + 1] - self.offsets[chosen])


class PlanTables(NamedTuple):
    """The ground actions of a task, by numbers."""

    needs: Ints
    """[A, K] facts; rows are filled up with F, a fact that always holds."""
    makes: Ints
    """[A, K]"""
    needers: _Lists
    """The actions that need each fact: F lists."""
    makers: _Lists
    """The actions that make each fact: F lists."""
    sizes: Ints
    """How many facts each action needs: [A]."""
    name_of: Ints
    """The number of each action's name: [A]."""

    @classmethod
    def of(cls, needs: Ints, makes: Ints, name_of: Ints, facts: int) -> "PlanTables":
        """Make the tables from the facts that actions need and make."""
        sizes = (needs < facts).sum(1, dtype=np.int32)
        return cls(needs, makes, _invert(needs, facts), _invert(makes, facts), sizes, name_of)


def _invert(table: Ints, facts: int) -> _Lists:
    """List the rows in which each fact is."""
    row, _ = np.nonzero(table < facts)
    fact = table[table < facts]
    order = np.argsort(fact, kind="stable")
    begin = np.searchsorted(fact[order], np.arange(facts + 1))
    return _Lists(row[order].astype(np.int32), begin.astype(np.int32))


def find_in_numpy(tables: PlanTables, holding: Ints, wanted: Ints) -> tuple[list[int], list[int]]:
    """Return the applicable actions that begin a relaxed plan for facts, and the bits of each.

    Bit 0 says that it is part of the plan, bit 1 + n that it leads towards an action of name n.
    """
    facts, actions = _explore(tables, holding)
    chosen = _choose(tables, facts, actions, wanted)
    bits = _lead(tables, facts, actions, chosen)
    bits[chosen[actions[chosen] == 0]] |= 1
    first = np.flatnonzero((bits != 0) & (actions == 0))
    return first.tolist(), bits[first].tolist()


def _explore(tables: PlanTables, holding: Ints) -> tuple[Ints, Ints]:
    """Return the rounds after which facts [F + 1] can be true and actions [A] be applied.

    -1 if that is never.
    """
    facts = np.full(len(tables.needers.offsets), -1, np.int32)
    actions = np.full(len(tables.needs), -1, np.int32)
    facts[-1] = rounds = 0
    lacking = tables.sizes.copy()
    new, enabled = holding, np.flatnonzero(lacking == 0)
    while len(new) or len(enabled):
        facts[new] = rounds
        needing = tables.needers.gather(new)
        np.subtract.at(lacking, needing, 1)
        enabled = np.concatenate([enabled, needing[lacking[needing] == 0]])
        actions[enabled] = rounds
        made = tables.makes[enabled].ravel()
        new, enabled = np.unique(made[facts[made] < 0]), enabled[:0]
        rounds += 1
    return facts, actions


def _choose(tables: PlanTables, facts: Ints, actions: Ints, wanted: Ints) -> Longs:
    """Return the actions that make what is wanted in time, and those that make what these need."""
    waiting = wanted[facts[wanted] > 0]
    seen = np.zeros(len(facts), bool)
    seen[waiting] = True
    chosen = [np.zeros(0, np.int64)]
    for rounds in range(facts[waiting].max(initial=0), 0, -1):
        makers = tables.makers.gather(waiting[facts[waiting] == rounds])
        chosen.append(np.unique(makers[actions[makers] == rounds - 1]))
        needs = np.unique(tables.needs[chosen[-1]])
        needs = needs[(facts[needs] > 0) & ~seen[needs]]
        seen[needs] = True
        waiting = np.concatenate([waiting, needs])
    return np.concatenate(chosen)


def _lead(tables: PlanTables, facts: Ints, actions: Ints, chosen: Longs) -> Longs:
    """Return the bits [A] of the names of the nearest actions that actions lead towards."""
    later = chosen[actions[chosen] > 0]
    lacks = facts[tables.needs[later]] > 0
    single = lacks.sum(1) == 1
    lacked, name = tables.needs[later[single]][lacks[single]], tables.name_of[later[single]]
    nearest = np.full(MOST_NAMES, np.iinfo(np.int32).max, np.int32)
    np.minimum.at(nearest, name, facts[lacked])
    near = facts[lacked] == nearest[name]
    of_fact, of_action = np.zeros(len(facts), np.int64), np.zeros(len(actions), np.int64)
    np.bitwise_or.at(of_fact, lacked[near], np.int64(2) << name[near])
    waiting = np.unique(lacked[near])
    for rounds in range(facts[waiting].max(initial=0), 0, -1):
        due = waiting[facts[waiting] == rounds]
        makers, bits = tables.makers.gather(due), tables.makers.repeat(due, of_fact[due])
        in_time = actions[makers] == rounds - 1
        np.bitwise_or.at(of_action, makers[in_time], bits[in_time])
        makers = np.unique(makers[in_time])
        needs = tables.needs[makers]
        last = (facts[needs] == rounds - 1) & (facts[needs] > 0)
        np.bitwise_or.at(of_fact, needs[last], np.repeat(of_action[makers], last.sum(1)))
        waiting = np.concatenate([waiting, np.unique(needs[last])])
    return of_action
