"""Which applicable actions begin a relaxed plan, and towards what.

In the delete relaxation a fact that was true once stays true. Layer by layer, all actions that can
be applied are applied at once (a relaxed planning graph). Of these, all are kept that make a goal
literal true in as few layers as possible, then all that make true what they need, and so on. Those
that are kept and applicable are called helpful here (Hoffmann and Nebel, JAIR 2001, keep one action
for each fact, so theirs are fewer). They show a network what lies farther away than its messages
reach (not in the paper; docs/explanation/deviations.md).

The kept actions do several things at once: in Delivery, a truck drives to a package and, from where
it is now, to the package's destination. So actions are also told apart by what they lead *towards*:
a kept action that lacks a single fact. Of each action schema, only the nearest count. On the way
there, of what an action needs only what becomes true last is followed.

Actions are grounded here, in numpy. The kernel then explores each state in C
(kernels/cpu/relaxed_plans.h). The same is here in numpy, for machines without the kernel, and to
compare.

Shapes by letter: F facts, A ground actions, K the most facts that one needs, or makes.
"""

import ctypes
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from regoal.errors import UsageError
from regoal.networks.kernels.cpu.build import load_kernel
from regoal.networks.kernels.cpu.kernel import is_wanted, point_to
from regoal.networks.relations import HELPFUL_KIND, TOWARDS_KIND
from regoal.planning.actions import GroundAction
from regoal.planning.datalog.grounding import Fact
from regoal.planning.fact_codes import FactCodes
from regoal.planning.goals import Goal
from regoal.planning.pddl.conjunctions import literals
from regoal.planning.static_joins import (
    FixedLiterals,
    Longs,
    list_bindings,
    list_objects,
    spread,
)
from regoal.planning.strips import is_plain
from regoal.planning.task import State, Task

MOST_ACTIONS = 2_000_000
"""The most ground actions of a task, some 150 bytes each; a larger one has no helpful actions. They
are counted while preconditions are joined, which may be before equalities rule some of them out."""
MOST_KEPT = 5_000_000
"""The most ground actions of all tasks together; beyond, the task used longest ago is dropped."""
MOST_NAMES = 60
"""The most names of actions, each of which is one bit of a number."""
MOST_REMEMBERED = 1_000_000
"""The most steps that are remembered, some 70 bytes each; a state counts as one more."""

Ints = npt.NDArray[np.int32]


class Step(NamedTuple):
    """An applicable action that begins a relaxed plan."""

    action: GroundAction
    towards: str | None
    """The name of the action that it leads towards; None if it is itself part of the plan."""

    @property
    def relation(self) -> tuple[str, str]:
        """The kind and name of the relation that says so."""
        if self.towards is None:
            return HELPFUL_KIND, self.action.name
        return TOWARDS_KIND, self.towards


class RelaxedPlans:
    """The relaxed plans of one task, whose actions are grounded once for all states.

    A negative goal literal counts only if some precondition or the task's own goal negates its
    predicate. Not for two threads at once.
    """

    def __init__(self, task: Task) -> None:
        self.actions = 0
        """How many ground actions there are; 0 if the domain is not plain or they are too many."""
        self._numbers: dict[Fact, int] = {}
        self._named: dict[int, GroundAction] = {}
        domain = task.domain.text.content
        if is_plain(domain) and 0 < len(domain.actions) <= MOST_NAMES:
            try:
                self._ground(task)
            except UsageError:  # the task is too large
                self.actions = 0

    def _ground(self, task: Task) -> None:
        """Make the tables. Raises `UsageError` if the task is too large."""
        domain = task.domain.text.content
        self._schemas, self._objects = domain.actions, task.objects
        numbers = task.object_index
        self._codes = FactCodes(domain, numbers, {atom.predicate for atom in task.goal.negative})
        atoms = (*task.static_atoms, *task.initial_state.fluent_atoms)
        fixed = FixedLiterals(domain, task.types_of, numbers, atoms)
        self._kept = [a for a in task.static_atoms if a.predicate in domain.changing]
        self._bindings, needs, makes, left = [], [], [], MOST_ACTIONS
        for schema in self._schemas:
            domains = [list_objects(task.types_of, v.types) for v in schema.parameters]
            rows = list_bindings(schema, domains, fixed.of(schema), numbers, left)
            left -= len(rows)
            effects = [x for effect in schema.effects for x in effect.literals]
            self._bindings.append(rows)
            needs.append(self._codes.of_literals(schema, literals(schema.precondition), rows))
            makes.append(self._prefer_added(self._codes.of_literals(schema, effects, rows)))
        self._facts = np.unique(np.concatenate([codes.ravel() for codes in (*needs, *makes)]))
        self._false = np.flatnonzero(self._facts >= self._codes.negative)
        """The facts that are atoms that are false."""
        self._bits = list(enumerate([None, *(schema.name for schema in self._schemas)]))
        """What each bit of an action says: what it leads towards."""
        counts = [len(rows) for rows in self._bindings]
        self._offsets = np.cumsum(counts) - counts
        self.actions = sum(counts)
        name_of = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        self._tables = _Tables.of(
            self._number(needs), self._number(makes), name_of, len(self._facts)
        )
        self._kernel = _Kernel.load(self._tables)

    def _prefer_added(self, codes: Longs) -> Longs:
        """Take away what an action adds from what it deletes: [rows, literals]."""
        negative = self._codes.negative
        both = (codes[:, :, None] == codes[:, None, :] + negative).any(2)
        return np.where(both, codes - negative, codes)

    def _number(self, codes: Sequence[Longs]) -> Ints:
        """Number the facts of all actions, each once, and make all rows equally long: [A, K]."""
        width = max(table.shape[1] for table in codes)
        padded = [
            np.pad(
                np.searchsorted(self._facts, table),
                ((0, 0), (0, width - table.shape[1])),
                constant_values=len(self._facts),
            )
            for table in codes
        ]
        rows = np.sort(np.vstack(padded), axis=1)
        rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = len(self._facts)
        return rows.astype(np.int32)

    def find_steps(self, state: State, missing: Sequence[Fact]) -> list[Step]:
        """Return the actions that begin a relaxed plan for literals that are missing in a state.

        The same action may come several times, with other names in `towards`. There are none if
        the task is too large, and none for a literal that is out of reach.
        """
        wanted = {n for fact in missing if self.actions and (n := self._number_fact(fact)) >= 0}
        if not wanted:
            return []
        given = self._list_true(state), np.array(sorted(wanted), np.int32)
        found = (
            find_in_numpy(self._tables, *given)
            if self._kernel is None
            else self._kernel.find(*given)
        )
        steps = []
        for number, bits in zip(*found, strict=True):
            action = self._get_action(number)
            steps += [Step(action, name) for i, name in self._bits if bits >> i & 1]
        return steps

    def _list_true(self, state: State) -> Ints:
        """Return the facts of a state."""
        atoms = (*state.fluent_atoms, *self._kept)
        true = [n for atom in atoms if (n := self._number_fact((atom, True))) >= 0]
        if not len(self._false):
            return np.array(true, np.int32)
        of_false = self._facts[self._false] - self._codes.negative
        false = self._false[~np.isin(of_false, self._codes.of_atoms(atoms))]
        return np.concatenate([np.array(true, np.int32), false.astype(np.int32)])

    def _number_fact(self, fact: Fact) -> int:
        """Return the number of a fact, -1 if no action needs or makes it."""
        known = self._numbers.get(fact)
        if known is None:
            atom, positive = fact
            code = self._codes.of_atom(atom)
            code += self._codes.negative if code >= 0 and not positive else 0
            at = int(np.searchsorted(self._facts, code))
            found = at < len(self._facts) and int(self._facts[at]) == code
            known = self._numbers[fact] = at if found else -1
        return known

    def _get_action(self, number: int) -> GroundAction:
        """Return a ground action by its number."""
        known = self._named.get(number)
        if known is None:
            schema = int(self._tables.name_of[number])
            objects = self._bindings[schema][number - self._offsets[schema]].tolist()
            named = tuple(self._objects[i] for i in objects)
            known = self._named[number] = GroundAction(self._schemas[schema].name, named)
        return known


class RelaxedPlansOfTasks:
    """The relaxed plans of each task; what begins them is remembered for the last states."""

    def __init__(self) -> None:
        self._plans: OrderedDict[Task, RelaxedPlans] = OrderedDict()
        self._steps: OrderedDict[tuple[State, Goal], list[Step]] = OrderedDict()
        self._remembered = 0

    def find_steps(self, state: State, goal: Goal) -> list[Step]:
        """Return the actions that begin a relaxed plan for what a goal lacks in a state."""
        known = self._steps.get((state, goal))
        if known is not None:
            self._steps.move_to_end((state, goal))
            return known
        missing = [fact for fact in goal.literals() if state.holds(fact[0]) != fact[1]]
        steps = self._get_plans(state.task).find_steps(state, missing)
        self._steps[state, goal] = steps
        self._remembered += len(steps) + 1
        while self._remembered > MOST_REMEMBERED:
            self._remembered -= len(self._steps.popitem(last=False)[1]) + 1
        return steps

    def _get_plans(self, task: Task) -> RelaxedPlans:
        """Return the plans of a task, and drop those of others if they are too many."""
        if task not in self._plans:
            self._plans[task] = RelaxedPlans(task)
            while sum(p.actions for p in self._plans.values()) > MOST_KEPT and len(self._plans) > 1:
                self._plans.popitem(last=False)
        self._plans.move_to_end(task)
        return self._plans[task]

    def forget_states(self) -> None:
        """Forget all states."""
        self._steps.clear()
        self._remembered = 0

    def forget(self, task: Task) -> None:
        """Forget everything about a task."""
        self._plans.pop(task, None)
        for key in [key for key in self._steps if key[0].task is task]:
            self._remembered -= len(self._steps.pop(key)) + 1


class _Lists(NamedTuple):
    """A list for each of some numbers."""

    items: Ints
    """All lists, one after the other."""
    offsets: Ints
    """Where each begins; one more number says where the last one ends."""

    def gather(self, chosen: Ints) -> Ints:
        """Return the items of some lists, one after the other."""
        begin, end = (self.offsets[at].astype(np.int64) for at in (chosen, chosen + 1))
        return self.items[spread(begin, end - begin)]

    def repeat(self, chosen: Ints, values: Longs) -> Longs:
        """Return for each item of some lists the value of its list."""
        return np.repeat(values, self.offsets[chosen + 1] - self.offsets[chosen])


class _Tables(NamedTuple):
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
    def of(cls, needs: Ints, makes: Ints, name_of: Ints, facts: int) -> "_Tables":
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


def find_in_numpy(tables: _Tables, holding: Ints, wanted: Ints) -> tuple[list[int], list[int]]:
    """Return the applicable actions that begin a relaxed plan for facts, and the bits of each.

    Bit 0 says that it is part of the plan, bit 1 + n that it leads towards an action of name n.
    """
    facts, actions = _explore(tables, holding)
    chosen = _choose(tables, facts, actions, wanted)
    bits = _lead(tables, facts, actions, chosen)
    bits[chosen[actions[chosen] == 0]] |= 1
    first = np.flatnonzero((bits != 0) & (actions == 0))
    return first.tolist(), bits[first].tolist()


def _explore(tables: _Tables, holding: Ints) -> tuple[Ints, Ints]:
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


def _choose(tables: _Tables, facts: Ints, actions: Ints, wanted: Ints) -> Longs:
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


def _lead(tables: _Tables, facts: Ints, actions: Ints, chosen: Longs) -> Longs:
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


class _Plans(ctypes.Structure):
    """The tables, and memory to work in, as relaxed_plans.h describes them."""

    _fields_ = tuple(
        (name, kind)
        for kind, names in (
            (ctypes.c_int64, ("facts", "actions", "names", "most_needs", "most_makes")),
            (ctypes.c_void_p, ("needs", "makes", "needers", "needers_begin", "makers")),
            (ctypes.c_void_p, ("makers_begin", "sizes", "name_of", "free")),
            (ctypes.c_int64, ("free_count",)),
            (ctypes.c_void_p, ("fact_round", "queue", "action_round", "lacking", "chosen")),
            (ctypes.c_void_p, ("fact_leads", "action_leads", "wanted", "taken")),
        )
        for name in names
    )


class _Kernel:
    """The same as `find_in_numpy` in C, with memory of its own."""

    def __init__(self, library: ctypes.CDLL, tables: _Tables) -> None:
        self._library = library
        facts, actions = len(tables.needers.offsets) - 1, len(tables.needs)
        free = np.flatnonzero(tables.sizes == 0).astype(np.int32)
        lists = (*tables.needers, *tables.makers)
        given = (tables.needs, tables.makes, *lists, tables.sizes, tables.name_of, free)
        self._given = [np.ascontiguousarray(table) for table in given]
        self._work = [np.empty(n, np.int32) for n in (facts + 1, facts + 1, *[actions] * 3)]
        self._work += [np.empty(n, np.int64) for n in (facts + 1, actions)]
        self._work += [np.empty(n, np.uint8) for n in (facts + 1, actions)]
        self._found = np.empty(actions, np.int32), np.empty(actions, np.int64)
        self._plans = _Plans(
            *(facts, actions, MOST_NAMES, tables.needs.shape[1], tables.makes.shape[1]),
            *(point_to(table) for table in self._given),
            len(free),
            *(point_to(room) for room in self._work),
        )

    @classmethod
    def load(cls, tables: _Tables) -> "_Kernel | None":
        """Return the kernel, or None if there is none."""
        library = load_kernel(False) if is_wanted() else None
        return None if library is None else cls(library, tables)

    def find(self, holding: Ints, wanted: Ints) -> tuple[list[int], list[int]]:
        """Return what `find_in_numpy` does, in another order."""
        count = self._library.regoal_relaxed_plan(
            ctypes.byref(self._plans),
            *(point_to(holding), ctypes.c_int64(len(holding))),
            *(point_to(wanted), ctypes.c_int64(len(wanted))),
            *(point_to(found) for found in self._found),
        )
        actions, bits = (found[:count].tolist() for found in self._found)
        return actions, bits
