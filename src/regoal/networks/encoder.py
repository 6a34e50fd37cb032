"""(state, applicable actions, goal) as relations over nodes, and many of them as one batch.

The input of the network is S_s + S_A(s) + S_g over O + {o_a : a applicable} (paper, "Q-value
Predictions"): the state's atoms, one atom P_A(o_a, o_1, ..., o_n) an applicable action, and the
goal's atoms under predicates of their own. Nodes are the task's objects, then one an action.
Goal literals that are true in the state are given once more, as achieved ones, if the relations
have a place for them (not in the paper; docs/explanation/deviations.md).

A 0-ary atom has no argument to send a message to, so that it holds for every node: it becomes
one unary atom a node. Types are unary relations, and so is each constant of the domain, as
actions may refer to it by name. Names never meet, since a relation is a pair
(kind, name).

Shapes by letter: A atoms of one relation, K its arity, M arguments of all atoms, N nodes,
B instances.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch

from regoal.networks.batch import Batch, Longs
from regoal.networks.relations import (
    ACHIEVED_KINDS,
    GOAL_KINDS,
    Relation,
    index_of,
    parameter_order,
)
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.goals import Atom, Goal
from regoal.planning.matching.schema import Matching
from regoal.planning.symmetry import Representatives
from regoal.planning.task import State, Task
from regoal.system.cancellation import checked

Row = tuple[int, tuple[int, ...]]
"""A relation and the nodes of one atom."""


MOST_GOALS = 2000
"""How many goals an encoder remembers before it starts afresh."""


class Encoded(NamedTuple):
    """One part of the input: atoms in the order of the relations.

    `counts` [R] atoms a relation; `args` [M] nodes, relation after relation, atom after atom.
    """

    counts: Longs
    args: Longs


@dataclass(frozen=True)
class EncodedState:
    """A state with its applicable actions, to be joined with any goal."""

    objects: int
    actions: tuple[GroundAction, ...]
    fixed: Encoded
    """Types and static atoms, shared by all states of a task."""
    changing: Encoded
    """The other atoms, and the applicable actions."""
    counts: Longs | None = None
    """[objects] how often each counts in the readout's sum; None: once."""

    @property
    def nodes(self) -> int:
        """Objects and action nodes together."""
        return self.objects + len(self.actions)

    @property
    def numbers(self) -> int:
        """What it takes to remember, the part aside that all states of a task share."""
        return len(self.changing.counts) + len(self.changing.args) + len(self.actions)


Input = tuple[EncodedState, Encoded]
"""A state and a goal, as they go into a batch."""


class Encoder:
    """Turns states and goals of one domain into index arrays, each state once.

    A policy that meets a domain with other names brings a `matching`; symbols of the domain that
    it lacks do not take part. States asked for lately are remembered, up to `remember` numbers of
    eight bytes.
    """

    def __init__(
        self,
        relations: Sequence[Relation],
        matching: Matching | None = None,
        *,
        remember: int = 20_000_000,
    ) -> None:
        self.relations = tuple(relations)
        self._index = index_of(self.relations, matching)
        self._order = parameter_order(matching)
        self._arity = np.array([r.arity for r in self.relations], dtype=np.int64)
        self._sees_achieved = not {r.kind for r in self.relations}.isdisjoint(
            ACHIEVED_KINDS.values()
        )
        self._fixed: dict[Task, tuple[Encoded, list[str]]] = {}
        self._rows_of_atoms: dict[tuple[Task, str], _Rows] = {}
        self._rows_of_actions: defaultdict[Task, dict[int, tuple[GroundAction, Row | None]]] = (
            defaultdict(dict)
        )
        self._goals: dict[tuple[Task, Goal], Encoded] = {}
        self._states: OrderedDict[State, EncodedState] = OrderedDict()
        self._remembered = 0
        self._remember = remember

    def state(self, state: State) -> EncodedState:
        """The state's atoms and applicable actions; remembered, as most are asked for again."""
        known = self._states.get(state)
        if known is not None:
            self._states.move_to_end(state)
            return known
        encoded = self._encode_state(state)
        self._states[state] = encoded
        self._remembered += encoded.numbers
        while self._remembered > self._remember:
            self._remembered -= self._states.popitem(last=False)[1].numbers
        return encoded

    def forget_states(self) -> None:
        """Drop all remembered states and what belongs to their actions."""
        self._states.clear()
        self._rows_of_actions.clear()
        self._remembered = 0

    def forget(self, task: Task) -> None:
        """Drop all that is remembered of a task, as when its execution has ended."""
        self._fixed.pop(task, None)
        self._rows_of_actions.pop(task, None)
        for kind in [key for key in self._rows_of_atoms if key[0] is task]:
            del self._rows_of_atoms[kind]
        for goal in [key for key in self._goals if key[0] is task]:
            del self._goals[goal]
        for state in [state for state in self._states if state.task is task]:
            self._remembered -= self._states.pop(state).numbers

    def unread(self, goal: Goal) -> set[str]:
        """The predicates of a goal's literals that have no relation and so are left out."""
        return {
            atom.predicate
            for atom, positive in goal.literals()
            if (GOAL_KINDS[positive], atom.predicate) not in self._index
        }

    def goal(self, goal: Goal, state: State) -> Encoded:
        """The goal's literals, and which of them are true in the state."""
        wanted = self._wanted(goal, state)
        if not self._sees_achieved:
            return wanted
        rows = self._achieved_rows(goal, state)
        if not any(rows):
            return wanted
        # The relations of achieved literals are the last ones.
        achieved = self._packed(rows, range(self.state(state).nodes))
        return Encoded(
            wanted.counts + achieved.counts, np.concatenate((wanted.args, achieved.args))
        )

    def _wanted(self, goal: Goal, state: State) -> Encoded:
        """The goal's literals, for any state with the same objects and as many actions."""
        known = self._goals.get((state.task, goal))
        if known is not None:
            return known
        encoded = self._packed(self._goal_rows(goal, state.task), range(self.state(state).nodes))
        if all(atom.objects for atom, _ in goal.literals()):  # else it depends on the actions
            if len(self._goals) >= MOST_GOALS:
                self._goals.clear()
            self._goals[state.task, goal] = encoded
        return encoded

    def input(self, state: State, goal: Goal) -> Input:
        """A state's and a goal's part of a batch."""
        return self.state(state), self.goal(goal, state)

    def input_over(self, representatives: Representatives, goal: Goal) -> Input:
        """The same without the objects left out and their actions.

        Q-values are those of the same actions in the whole input, rounding aside. Nothing of it is
        remembered.
        """
        task, counts = representatives.state.task, representatives.counts
        actions = representatives.actions
        new = np.full(len(task.objects) + len(actions), -1)
        kept = [*map(task.object_index.__getitem__, counts), *range(len(task.objects), len(new))]
        new[kept] = np.arange(len(kept))
        atoms = (
            atom
            for atom in representatives.state.fluent_atoms
            if representatives.keeps(atom.objects)
        )
        parts = (
            self._fixed_part(task)[0],
            self._packed(self._changing_rows(task, atoms, actions), kept),
            self._packed(
                self._goal_rows(goal, task) + self._achieved_rows(goal, representatives.state), kept
            ),
        )
        fixed, changing, wanted = (self._renumbered(part, new) for part in parts)
        times = np.fromiter(counts.values(), np.int64, len(counts))
        return EncodedState(len(counts), actions, fixed, changing, times), wanted

    def batch(self, pairs: Iterable[tuple[State, Goal]]) -> Batch:
        """Join the inputs of several (state, goal) pairs, at least one, into one graph."""
        return self.join([self.input(state, goal) for state, goal in pairs])

    def join(self, inputs: Sequence[Input]) -> Batch:
        """One graph of several inputs, at least one."""
        states = [x for x, _ in inputs]
        parts = [part for x, goal in inputs for part in (x.fixed, x.changing, goal)]
        nodes = np.array([x.nodes for x in states], dtype=np.int64)
        objects = np.array([x.objects for x in states], dtype=np.int64)
        offsets = np.cumsum(nodes) - nodes
        args, part_counts = self._join(parts, np.repeat(offsets, 3))
        instance_counts = part_counts.reshape(len(states), 3, -1).sum(axis=1)
        counts = instance_counts.sum(axis=0)
        instance = np.repeat(np.arange(len(states)), nodes)
        is_object = np.arange(nodes.sum()) - offsets[instance] < objects[instance]
        object_nodes, action_nodes = np.flatnonzero(is_object), np.flatnonzero(~is_object)
        if any(x.counts is not None for x in states):
            once = (x.counts if x.counts is not None else np.ones(x.objects, int) for x in states)
            object_nodes = np.repeat(object_nodes, np.concatenate([*once]))
        return Batch(
            counts=counts,
            sizes=counts * self._arity,
            args=torch.from_numpy(args),
            nodes=int(nodes.sum()),
            instance_counts=instance_counts,
            node_counts=nodes,
            object_nodes=torch.from_numpy(object_nodes),
            object_instance=torch.from_numpy(instance[object_nodes]),
            action_nodes=torch.from_numpy(action_nodes),
            action_instance=torch.from_numpy(instance[action_nodes]),
            action_counts=tuple((nodes - objects).tolist()),
        )

    def _encode_state(self, state: State) -> EncodedState:
        task = state.task
        actions = task.applicable_actions(state)
        nodes = range(len(task.objects) + len(actions))
        changing = self._packed(self._changing_rows(task, state.fluent_atoms, actions), nodes)
        return EncodedState(len(task.objects), actions, self._fixed_part(task)[0], changing)

    def _changing_rows(
        self, task: Task, atoms: Iterable[Atom], actions: Sequence[GroundAction]
    ) -> list[Row | None]:
        """The rows of changeable atoms, of static ones without arguments, and of the actions."""
        known = self._rows(task, "state")
        rows = [known[atom] for atom in atoms]
        rows += [known[Atom(name, ())] for name in self._fixed_part(task)[1]]
        rows += self._action_rows(task, actions)
        return rows

    def _goal_rows(self, goal: Goal, task: Task) -> list[Row | None]:
        return [self._rows(task, GOAL_KINDS[positive])[atom] for atom, positive in goal.literals()]

    def _achieved_rows(self, goal: Goal, state: State) -> list[Row | None]:
        """The rows of the goal literals that are true in the state."""
        if not self._sees_achieved:
            return []
        return [
            self._rows(state.task, ACHIEVED_KINDS[positive])[atom]
            for atom, positive in goal.literals()
            if state.holds(atom) == positive
        ]

    def _action_rows(self, task: Task, actions: Sequence[GroundAction]) -> list[Row]:
        """The atom P_A(o_a, o_1, ..., o_n) of each action that has a relation."""
        known = self._rows_of_actions[task]
        found = []
        for node, action in enumerate(checked(actions), start=len(task.objects)):
            if id(action) not in known:
                known[id(action)] = action, self._action_row(task, action)
            if (row := known[id(action)][1]) is not None:
                found.append((row[0], (node, *row[1])))
        return found

    def _action_row(self, task: Task, action: GroundAction) -> Row | None:
        relation = self._index.get(("action", action.name))
        if action is DUMMY_ACTION or relation is None:
            return None
        arguments = [task.object_index[name] for name in action.objects]
        order = self._order.get(action.name, range(len(arguments)))
        return relation, tuple(arguments[i] for i in order)

    def _fixed_part(self, task: Task) -> tuple[Encoded, list[str]]:
        """Types and static atoms, and the names of static atoms without arguments."""
        if task not in self._fixed:
            types, constants, static = (self._rows(task, k) for k in ("type", "constant", "state"))
            rows = [
                *(types[Atom(t, (x,))] for x, above in task.types_of.items() for t in above),
                *(constants[Atom(x, (x,))] for x in task.domain.constants),
                *(static[atom] for atom in task.static_atoms if atom.objects),
            ]
            nullary = sorted(atom.predicate for atom in task.static_atoms if not atom.objects)
            self._fixed[task] = self._packed(rows, ()), nullary
        return self._fixed[task]

    def _rows(self, task: Task, kind: str) -> "_Rows":
        """The rows of a task's atoms of one kind."""
        if (task, kind) not in self._rows_of_atoms:
            self._rows_of_atoms[task, kind] = _Rows(kind, self._index, task.object_index)
        return self._rows_of_atoms[task, kind]

    def _packed(self, rows: Iterable[Row | None], nodes: Sequence[int]) -> Encoded:
        """Rows in the order of their relations, and in each in that of their nodes.

        A row without nodes becomes one for each of `nodes`.
        """
        found: list[Row] = []
        for row in rows:
            if row is not None and row[1]:
                found.append(row)
            elif row is not None:
                found.extend((row[0], (node,)) for node in nodes)
        found.sort()
        relations = np.array([relation for relation, _ in found], dtype=np.int64)
        counts = np.bincount(relations, minlength=len(self.relations))
        args = np.array(list(chain.from_iterable(row for _, row in found)), dtype=np.int64)
        return Encoded(counts, args)

    def _renumbered(self, part: Encoded, nodes: Longs) -> Encoded:
        """The atoms whose nodes all have new numbers: `nodes` [N], -1 for none."""
        arity = np.repeat(self._arity, part.counts)
        args = nodes[part.args]
        lowest = np.minimum.reduceat(args, np.cumsum(arity) - arity) if len(args) else args
        relation = np.repeat(np.arange(len(self._arity)), part.counts)[lowest >= 0]
        counts = np.bincount(relation, minlength=len(self._arity))
        return Encoded(counts, args[np.repeat(lowest >= 0, arity)])

    def _join(self, parts: Sequence[Encoded], offsets: Longs) -> tuple[Longs, Longs]:
        """One list of arguments in the order of the relations, and the atoms of each part.

        Within a relation the order is that of the parts, and so of the instances.
        """
        counts = np.concatenate([part.counts for part in parts]).reshape(len(parts), -1)
        sizes = counts * self._arity
        relation = np.repeat(np.tile(np.arange(len(self._arity)), len(parts)), sizes.ravel())
        args = np.concatenate([part.args for part in parts])
        args += np.repeat(offsets, sizes.sum(axis=1))
        order = np.argsort(relation.astype(np.int16), kind="stable")
        return args[order], counts


class _Rows(dict[Atom, Row | None]):
    """Relation and nodes of each atom, found when first asked for; None: it has no relation."""

    def __init__(
        self, kind: str, relations: Mapping[tuple[str, str], int], objects: Mapping[str, int]
    ) -> None:
        super().__init__()
        self._kind, self._relations, self._objects = kind, relations, objects

    def __missing__(self, atom: Atom) -> Row | None:
        relation = self._relations.get((self._kind, atom.predicate))
        nodes = tuple(self._objects[name] for name in atom.objects)
        self[atom] = row = None if relation is None else (relation, nodes)
        return row
