"""Translation of (state, applicable actions, goal) into relations over nodes.

The input of the network is S_s + S_A(s) + S_g over O + {o_a : a applicable} (paper, "Q-value
Predictions"). It holds the state's atoms, one atom P_A(o_a, o_1, ..., o_n) for each applicable
action, and the goal's atoms under predicates of their own. Nodes are the task's objects, and after
them one for each action. If there are relations of achieved goals, goal literals that are true in
the state are atoms of these instead, and what mentions all objects of one that is false is marked.
If there are relations of relaxed plans, actions that begin one are marked (neither is in the paper;
docs/explanation/deviations.md).

A 0-ary atom has no argument that could get a message. It holds for every node, and so becomes
one unary atom for each node. Types are unary relations. So is each constant of the domain, as
actions may refer to it by name. A relation is a pair (kind, name), so names never clash.

Shapes by letter: R relations, K arity of one, M arguments of all atoms, N nodes.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from regoal.networks.batch import Batch, EncodedAtoms, EncodedState, Input, Longs, join_inputs
from regoal.networks.mentions import Mentions
from regoal.networks.relations import (
    ACHIEVED_KINDS,
    AIM_KINDS,
    GOAL_KINDS,
    HELPFUL_KIND,
    MATCH_KIND,
    MISSING_KINDS,
    TOWARDS_KIND,
    Relation,
    index_of,
    parameter_order,
)
from regoal.networks.relaxed_plans import RelaxedPlansOfTasks
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.goals import Atom, Goal
from regoal.planning.matching.schema import Matching
from regoal.planning.symmetry import Representatives
from regoal.planning.task import State, Task
from regoal.system.cancellation import checked

EncodedAtom = tuple[int, tuple[int, ...]]
"""One atom: the number of its relation, and its nodes."""


MOST_GOALS = 2000
"""How many goals an encoder remembers before it forgets them all."""


class Encoder:
    """Turns states and goals of one domain into index arrays.

    If the domain has other names than the policy, `matching` says which belong together. Symbols of
    the domain that have no relation are left out. The states used last are remembered, up to
    `remember` numbers of eight bytes.
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
        self._arities = np.array([r.arity for r in self.relations], dtype=np.int64)
        kinds = {r.kind for r in self.relations}
        self._sees_achieved = not kinds.isdisjoint(
            (*ACHIEVED_KINDS.values(), *MISSING_KINDS.values())
        )
        self._sees_plans = not kinds.isdisjoint((HELPFUL_KIND, TOWARDS_KIND))
        self._goal_kinds = MISSING_KINDS if self._sees_achieved else GOAL_KINDS
        """The kinds of goal literals that are false in the state."""
        self._fixed: dict[Task, tuple[EncodedAtoms, list[str]]] = {}
        self._tables: dict[tuple[Task, str], _AtomTable] = {}
        self._action_atoms: defaultdict[
            Task, dict[int, tuple[GroundAction, EncodedAtom | None]]
        ] = defaultdict(dict)
        self._goals: dict[tuple[Task, Goal], EncodedAtoms] = {}
        self._literals: dict[tuple[Task, Goal], tuple[tuple[Atom, bool], ...]] = {}
        self._plans = RelaxedPlansOfTasks()
        self._states: OrderedDict[State, EncodedState] = OrderedDict()
        self._remembered = 0
        self._remember = remember

    def state(self, state: State) -> EncodedState:
        """Encode a state and its applicable actions, or return what is remembered of it."""
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
        """Forget all states and what belongs to their actions."""
        self._states.clear()
        self._plans.forget_states()
        self._action_atoms.clear()
        self._remembered = 0

    def forget(self, task: Task) -> None:
        """Forget everything about a task, for instance when its execution has ended."""
        self._fixed.pop(task, None)
        self._plans.forget(task)
        self._action_atoms.pop(task, None)
        for kind in [key for key in self._tables if key[0] is task]:
            del self._tables[kind]
        for goals in (self._goals, self._literals):
            for goal in [key for key in goals if key[0] is task]:
                del goals[goal]
        for state in [state for state in self._states if state.task is task]:
            self._remembered -= self._states.pop(state).numbers

    def unread(self, goal: Goal) -> set[str]:
        """Return the predicates of a goal's literals that have no relation and so are left out."""
        return {
            atom.predicate
            for atom, positive in goal.literals()
            if (self._goal_kinds[positive], atom.predicate) not in self._index
        }

    def goal(self, goal: Goal, state: State) -> EncodedAtoms:
        """Encode the goal's literals, and what mentions them if the network sees this."""
        if not (self._sees_achieved or self._sees_plans):
            return self._encode_literals(goal, state)
        encoded = self.state(state)
        atoms = self._find_goal_atoms(goal, state, state.fluent_atoms, encoded.actions)
        return self._pack(atoms, range(encoded.nodes))

    def _encode_literals(self, goal: Goal, state: State) -> EncodedAtoms:
        """Encode the goal's literals, for all states with these objects and as many actions."""
        known = self._goals.get((state.task, goal))
        if known is not None:
            return known
        nodes = range(self.state(state).nodes)
        encoded = self._pack(self._find_plain_goal_atoms(goal, state.task), nodes)
        # An atom without objects becomes one for each node, so it depends on the actions.
        if all(atom.objects for atom, _ in goal.literals()):
            if len(self._goals) >= MOST_GOALS:
                self._goals.clear()
            self._goals[state.task, goal] = encoded
        return encoded

    def input(self, state: State, goal: Goal) -> Input:
        """Encode a state and a goal for a batch."""
        return self.state(state), self.goal(goal, state)

    def input_over(self, representatives: Representatives, goal: Goal) -> Input:
        """Encode the representatives' state and a goal over the representatives alone.

        The other objects and their actions are left out. The Q-values of the actions that remain
        are those that the whole input gives, rounding aside. Nothing of it is remembered.
        """
        task, multiplicity = representatives.state.task, representatives.counts
        actions = representatives.actions
        # Nodes of the whole input get new numbers; those left out get -1.
        new = np.full(len(task.objects) + len(actions), -1)
        objects = map(task.object_index.__getitem__, multiplicity)
        kept = [*objects, *range(len(task.objects), len(new))]
        new[kept] = np.arange(len(kept))
        state = representatives.state
        atoms = [atom for atom in state.fluent_atoms if representatives.keeps(atom.objects)]
        parts = (
            self._encode_fixed(task)[0],
            self._pack(self._find_changing_atoms(task, atoms, actions), kept),
            self._pack(self._find_goal_atoms(goal, state, atoms, actions), kept),
        )
        fixed, changing, wanted = (self._renumber(part, new) for part in parts)
        times = np.fromiter(multiplicity.values(), np.int64, len(multiplicity))
        return EncodedState(len(multiplicity), actions, fixed, changing, times), wanted

    def batch(self, pairs: Iterable[tuple[State, Goal]]) -> Batch:
        """Join the inputs of several (state, goal) pairs, at least one, into one graph."""
        return self.join([self.input(state, goal) for state, goal in pairs])

    def join(self, inputs: Sequence[Input]) -> Batch:
        """Join several inputs, at least one, into one graph."""
        return join_inputs(inputs, self._arities)

    def _encode_state(self, state: State) -> EncodedState:
        task = state.task
        actions = task.applicable_actions(state)
        nodes = range(len(task.objects) + len(actions))
        atoms = self._find_changing_atoms(task, state.fluent_atoms, actions)
        fixed, changing = self._encode_fixed(task)[0], self._pack(atoms, nodes)
        return EncodedState(len(task.objects), actions, fixed, changing)

    def _find_changing_atoms(
        self, task: Task, atoms: Iterable[Atom], actions: Sequence[GroundAction]
    ) -> list[EncodedAtom | None]:
        """Encode changeable atoms, the task's static atoms without arguments, and actions."""
        table = self._get_table(task, "state")
        found = [table[atom] for atom in atoms]
        found += [table[Atom(name, ())] for name in self._encode_fixed(task)[1]]
        found += self._find_action_atoms(task, actions)
        return found

    def _find_goal_atoms(
        self, goal: Goal, state: State, atoms: Iterable[Atom], actions: Sequence[GroundAction]
    ) -> list[EncodedAtom | None]:
        """Encode the goal's literals, what mentions them, and what begins relaxed plans, if seen.

        Only these atoms of the state and these actions can mention a literal or begin a plan.
        """
        task = state.task
        steps = self._find_steps(goal, state, actions) if self._sees_plans else []
        if not self._sees_achieved:
            return self._find_plain_goal_atoms(goal, task) + steps
        missing, found = [], []
        true, false = self._get_tables(task, ACHIEVED_KINDS), self._get_tables(task, MISSING_KINDS)
        for atom, positive in self._list_literals(goal, task):
            if state.holds(atom) == positive:
                found.append(true[positive][atom])
            else:
                found.append(false[positive][atom])
                missing.append((atom, positive))
        return found + self._find_mentions(task, Mentions(missing), atoms, actions) + steps

    def _find_plain_goal_atoms(self, goal: Goal, task: Task) -> list[EncodedAtom | None]:
        """Encode the goal's literals, equal in all states."""
        tables = self._get_tables(task, GOAL_KINDS)
        return [tables[positive][atom] for atom, positive in self._list_literals(goal, task)]

    def _find_mentions(
        self,
        task: Task,
        missing: Mentions,
        atoms: Iterable[Atom],
        actions: Sequence[GroundAction],
    ) -> list[EncodedAtom | None]:
        """Encode the atoms and actions that mention all objects of a missing goal literal."""
        if not missing:
            return []
        table = self._get_table(task, MATCH_KIND)
        found = [table[a] for a in atoms if len(a.objects) > 1 and any(missing.among(a.objects))]
        aims = {
            (self._index.get((AIM_KINDS[mention.positive], mention.predicate)), node)
            for node, action in enumerate(checked(actions), start=len(task.objects))
            for mention in missing.among(action.objects)
        }
        return [*found, *((r, (node,)) for r, node in aims if r is not None)]

    def _find_steps(
        self, goal: Goal, state: State, actions: Sequence[GroundAction]
    ) -> list[EncodedAtom | None]:
        """Encode which of these actions begin a relaxed plan for what a goal lacks."""
        steps = self._plans.find_steps(state, goal)
        if not steps:
            return []
        node = {action: i for i, action in enumerate(actions, start=len(state.task.objects))}
        relations = ((self._index.get(step.relation), step.action) for step in steps)
        return [(r, (node[action],)) for r, action in relations if r is not None and action in node]

    def _list_literals(self, goal: Goal, task: Task) -> tuple[tuple[Atom, bool], ...]:
        """Return the goal's literals in order, and remember them."""
        known = self._literals.get((task, goal))
        if known is None:
            if len(self._literals) >= MOST_GOALS:
                self._literals.clear()
            known = self._literals[task, goal] = tuple(goal.literals())
        return known

    def _find_action_atoms(self, task: Task, actions: Sequence[GroundAction]) -> list[EncodedAtom]:
        """Encode the atom P_A(o_a, o_1, ..., o_n) of each action that has a relation."""
        known = self._action_atoms[task]
        found = []
        for node, action in enumerate(checked(actions), start=len(task.objects)):
            # The action is kept with its atom, so that no other action gets the same identity.
            if id(action) not in known:
                known[id(action)] = action, self._encode_action(task, action)
            if (atom := known[id(action)][1]) is not None:
                found.append((atom[0], (node, *atom[1])))
        return found

    def _encode_action(self, task: Task, action: GroundAction) -> EncodedAtom | None:
        """Encode an action without its own node; None if it has no relation."""
        relation = self._index.get(("action", action.name))
        if action is DUMMY_ACTION or relation is None:
            return None
        arguments = [task.object_index[name] for name in action.objects]
        order = self._order.get(action.name, range(len(arguments)))
        return relation, tuple(arguments[i] for i in order)

    def _encode_fixed(self, task: Task) -> tuple[EncodedAtoms, list[str]]:
        """Encode types and static atoms; also return the names of static atoms without arguments.

        Such an atom becomes one for each node, so it belongs to the part that changes.
        """
        if task not in self._fixed:
            rows: defaultdict[int, list[tuple[str, ...]]] = defaultdict(list)
            for relation, objects in self._list_fixed(task):
                if relation is not None:
                    rows[relation].append(objects)
            counts = np.zeros(len(self.relations), dtype=np.int64)
            parts = [np.empty(0, dtype=np.int64)]
            for relation in sorted(rows):
                counts[relation] = len(rows[relation])
                nodes = map(task.object_index.__getitem__, chain.from_iterable(rows[relation]))
                args = np.fromiter(nodes, np.int64).reshape(len(rows[relation]), -1)
                parts.append(args[np.lexsort(args.T[::-1])].ravel())
            nullary = sorted(atom.predicate for atom in task.static_atoms if not atom.objects)
            self._fixed[task] = EncodedAtoms(counts, np.concatenate(parts)), nullary
        return self._fixed[task]

    def _list_fixed(self, task: Task) -> Iterator[tuple[int | None, tuple[str, ...]]]:
        """Yield relation (None if there is none) and objects of each type and static atom."""
        for name, above in task.types_of.items():
            yield from ((self._index.get(("type", t)), (name,)) for t in above)
        for name in task.domain.constants:
            yield self._index.get(("constant", name)), (name,)
        for predicate, objects in task.static_atoms:
            if objects:
                yield self._index.get(("state", predicate)), objects

    def _get_tables(self, task: Task, kinds: Mapping[bool, str]) -> "dict[bool, _AtomTable]":
        """Return the tables of positive and of negative goal literals."""
        return {positive: self._get_table(task, kind) for positive, kind in kinds.items()}

    def _get_table(self, task: Task, kind: str) -> "_AtomTable":
        """Return the table of a task's atoms of one kind."""
        if (task, kind) not in self._tables:
            self._tables[task, kind] = _AtomTable(kind, self._index, task.object_index)
        return self._tables[task, kind]

    def _pack(self, atoms: Iterable[EncodedAtom | None], nodes: Sequence[int]) -> EncodedAtoms:
        """Sort atoms by relation, then by nodes, and put them into arrays.

        An atom without nodes becomes one for each of `nodes`. None is left out.
        """
        found: list[EncodedAtom] = []
        for atom in atoms:
            if atom is not None and atom[1]:
                found.append(atom)
            elif atom is not None:
                found.extend((atom[0], (node,)) for node in nodes)
        found.sort()
        relations = np.array([relation for relation, _ in found], dtype=np.int64)
        counts = np.bincount(relations, minlength=len(self.relations))
        args = np.array(list(chain.from_iterable(row for _, row in found)), dtype=np.int64)
        return EncodedAtoms(counts, args)

    def _renumber(self, part: EncodedAtoms, new: Longs) -> EncodedAtoms:
        """Give nodes their new numbers `new` [N]; drop atoms with a node that has none (-1)."""
        arity = np.repeat(self._arities, part.counts)
        args = new[part.args]
        lowest = np.minimum.reduceat(args, np.cumsum(arity) - arity) if len(args) else args
        relation = np.repeat(np.arange(len(self._arities)), part.counts)[lowest >= 0]
        counts = np.bincount(relation, minlength=len(self._arities))
        return EncodedAtoms(counts, args[np.repeat(lowest >= 0, arity)])


class _AtomTable(dict[Atom, EncodedAtom | None]):
    """Encoded atoms of one task and kind, filled at first use; None if an atom has no relation."""

    def __init__(
        self, kind: str, relations: Mapping[tuple[str, str], int], objects: Mapping[str, int]
    ) -> None:
        super().__init__()
        self._kind, self._relations, self._objects = kind, relations, objects

    def __missing__(self, atom: Atom) -> EncodedAtom | None:
        relation = self._relations.get((self._kind, atom.predicate))
        nodes = tuple(self._objects[name] for name in atom.objects)
        self[atom] = encoded = None if relation is None else (relation, nodes)
        return encoded
