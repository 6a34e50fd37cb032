"""Which applicable actions begin a relaxed plan, and towards what.

In the delete relaxation a fact that was true once stays true. Layer by layer, all actions that can
be applied are applied at once (a relaxed planning graph). Of these, all are kept that make a goal
literal true in as few layers as possible, then all that make true what they need, and so on. Those
that are kept and applicable are called helpful here (Hoffmann and Nebel, JAIR 2001, keep one action
for each fact, so theirs are fewer). They show a network what lies farther away than its messages
reach (not in the paper; docs/explanation/deviations.md).

The kept actions do several things at once: in Delivery, a truck drives to a package, and it also
drives from where it is now to the package's destination. So a second mark says what an action leads
*towards*: a kept action that lacks a single fact. Of each action schema, only the nearest count. On
the way there, of what an action needs only what becomes true last is followed.

Actions are grounded here, in numpy. The kernel then explores each state in C
(kernels/cpu/relaxed_plans.h), or plan_tables.py does in numpy, for machines without the kernel.

Shapes by letter: F facts, A ground actions, K the most facts that one needs, or makes.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from regoal.errors import UsageError
from regoal.networks.kernels.cpu.plan_kernel import PlanKernel
from regoal.networks.plan_tables import MOST_NAMES, Ints, PlanTables, find_in_numpy
from regoal.networks.relations import HELPFUL_KIND, TOWARDS_KIND
from regoal.planning.actions import GroundAction
from regoal.planning.datalog.grounding import Fact
from regoal.planning.fact_codes import FactCodes
from regoal.planning.goals import Goal
from regoal.planning.pddl.conjunctions import literals
from regoal.planning.static_joins import FixedLiterals, Longs, list_bindings
from regoal.planning.strips import is_plain
from regoal.planning.task import State, Task

MOST_ACTIONS = 2_000_000
"""The most ground actions of a task, some 150 bytes each; a larger one has no helpful actions. They
are counted while preconditions are joined, which may be before equalities rule some of them out."""
MOST_KEPT = 5_000_000
"""The most ground actions of all tasks together; beyond, the task used longest ago is dropped."""
MOST_REMEMBERED = 1_000_000
"""The most steps that are remembered, some 70 bytes each; a state counts as one more."""


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
            domains = [fixed.list_objects(v.types) for v in schema.parameters]
            rows = list_bindings(schema, domains, fixed.of(schema), numbers, left)
            left -= len(rows)
            effects = [x for effect in schema.effects for x in effect.literals]
            self._bindings.append(rows)
            needs.append(self._codes.of_literals(schema, literals(schema.precondition), rows))
            makes.append(self._prefer_added(self._codes.of_literals(schema, effects, rows)))
        self._facts = np.unique(np.concatenate([codes.ravel() for codes in (*needs, *makes)]))
        self._false = np.flatnonzero(self._facts >= self._codes.negative)
        """The facts that are atoms that are false."""
        self._of_false = self._facts[self._false] - self._codes.negative
        """The codes of these atoms."""
        self._bits = list(enumerate([None, *(schema.name for schema in self._schemas)]))
        """What each bit of an action says: what it leads towards."""
        counts = [len(rows) for rows in self._bindings]
        self._offsets = np.cumsum(counts) - counts
        self.actions = sum(counts)
        name_of = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        self._tables = PlanTables.of(
            self._number(needs), self._number(makes), name_of, len(self._facts)
        )
        self._kernel = PlanKernel.load(self._tables)

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
        false = self._false[~np.isin(self._of_false, self._codes.of_atoms(atoms))]
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
