"""The network's input as index arrays: encoded states and goals, and many of them as one batch.

Shapes by letter: R relations, M arguments of all atoms, B instances, N nodes of all instances,
O object nodes, Q action nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from regoal.planning.actions import GroundAction

Longs = npt.NDArray[np.int64]


class EncodedAtoms(NamedTuple):
    """One part of an input: its atoms, sorted by relation."""

    counts: Longs
    """[R] atoms of each relation."""
    args: Longs
    """[M] nodes, relation after relation, atom after atom."""


@dataclass(frozen=True)
class EncodedState:
    """A state with its applicable actions. It can be joined with any goal."""

    objects: int
    actions: tuple[GroundAction, ...]
    fixed: EncodedAtoms
    """Types and static atoms, shared by all states of a task."""
    changing: EncodedAtoms
    """The other atoms, and the applicable actions."""
    multiplicities: Longs | None = None
    """[objects] how often the readout's sum counts each object; None if each counts once."""

    @property
    def nodes(self) -> int:
        """Objects and action nodes together."""
        return self.objects + len(self.actions)

    @property
    def numbers(self) -> int:
        """Numbers kept in memory for this state, without the part that all states share."""
        return len(self.changing.counts) + len(self.changing.args) + len(self.actions)


Input = tuple[EncodedState, EncodedAtoms]
"""A state and a goal, as they go into a batch."""


class Shard(NamedTuple):
    """Some whole instances of a batch: a range of atoms of each relation, and a range of nodes."""

    begin: Longs
    """[R] the first atom of each relation."""
    end: Longs
    """[R] the atom after the last one of each relation."""
    first_node: int
    last_node: int
    """The node after the last one."""


@dataclass(frozen=True)
class Batch:
    """Several instances as one graph without edges between them."""

    atom_counts: Longs
    """[R] atoms of each relation."""
    argument_counts: Longs
    """[R] arguments of these atoms."""
    args: Longs
    """[M] int64 nodes; relation after relation, and within one, instance after instance."""
    nodes: int
    instance_atom_counts: Longs
    """[B, R] atoms of each instance and relation."""
    node_counts: Longs
    """[B] nodes of each instance."""
    object_nodes: Longs
    """[O] int64 nodes that are objects; each is listed as often as its sum counts it."""
    object_instance: Longs
    """[O] int64 instance of each of them."""
    action_nodes: Longs
    """[Q] int64 nodes that stand for applicable actions, instance after instance."""
    action_instance: Longs
    """[Q] int64 instance of each of them."""
    action_counts: tuple[int, ...]
    """[B] applicable actions of each instance."""

    def only(self, actions: Longs) -> "Batch":
        """Restrict the readout to these actions [A], given by their positions in [Q]."""
        instance = self.action_instance[actions]
        counts = np.bincount(instance, minlength=len(self.action_counts))
        return replace(
            self,
            action_nodes=self.action_nodes[actions],
            action_instance=instance,
            action_counts=tuple(counts.tolist()),
        )

    def shards(self, count: int) -> list[Shard]:
        """Cut the batch into at most `count` runs of whole instances of about equal work."""
        if count == 1:
            return [Shard(np.zeros_like(self.atom_counts), self.atom_counts, 0, self.nodes)]
        work = np.cumsum([0, *(self.instance_atom_counts.sum(axis=1) + self.node_counts)])
        shares = work[-1] * np.arange(1, count) / count
        cuts = np.abs(work[:, None] - shares).argmin(axis=0)
        bounds = np.unique([0, *cuts, len(self.node_counts)])
        none = np.zeros_like(self.atom_counts)
        atoms = np.vstack([none, np.cumsum(self.instance_atom_counts, axis=0)])
        nodes = np.concatenate([[0], np.cumsum(self.node_counts)])
        return [
            Shard(atoms[first], atoms[last], int(nodes[first]), int(nodes[last]))
            for first, last in pairwise(bounds)
        ]


def join_inputs(inputs: Sequence[Input], arities: Longs) -> Batch:
    """Join several inputs, at least one, into one graph; `arities` [R] are the relations'."""
    states = [state for state, _ in inputs]
    parts = [part for state, goal in inputs for part in (state.fixed, state.changing, goal)]
    nodes = np.array([state.nodes for state in states], dtype=np.int64)
    objects = np.array([state.objects for state in states], dtype=np.int64)
    # The nodes of one instance follow those of the instance before.
    offsets = np.cumsum(nodes) - nodes
    args, part_counts = _join_atoms(parts, np.repeat(offsets, 3), arities)
    instance_atom_counts = part_counts.reshape(len(states), 3, -1).sum(axis=1)
    atom_counts = instance_atom_counts.sum(axis=0)
    # Within an instance, objects come first and actions after them.
    instance = np.repeat(np.arange(len(states)), nodes)
    is_object = np.arange(nodes.sum()) - offsets[instance] < objects[instance]
    object_nodes = _repeat_objects(np.flatnonzero(is_object), states)
    action_nodes = np.flatnonzero(~is_object)
    return Batch(
        atom_counts=atom_counts,
        argument_counts=atom_counts * arities,
        args=args,
        nodes=int(nodes.sum()),
        instance_atom_counts=instance_atom_counts,
        node_counts=nodes,
        object_nodes=object_nodes,
        object_instance=instance[object_nodes],
        action_nodes=action_nodes,
        action_instance=instance[action_nodes],
        action_counts=tuple((nodes - objects).tolist()),
    )


def _join_atoms(
    parts: Sequence[EncodedAtoms], offsets: Longs, arities: Longs
) -> tuple[Longs, Longs]:
    """Merge the parts' arguments, sorted by relation; also return each part's atoms [parts, R].

    Within a relation, the order of the parts is kept, and so that of the instances.
    """
    counts = np.concatenate([part.counts for part in parts]).reshape(len(parts), -1)
    argument_counts = counts * arities
    relation = np.repeat(np.tile(np.arange(len(arities)), len(parts)), argument_counts.ravel())
    args = np.concatenate([part.args for part in parts])
    args += np.repeat(offsets, argument_counts.sum(axis=1))
    order = np.argsort(relation.astype(np.int16), kind="stable")
    return args[order], counts


def _repeat_objects(object_nodes: Longs, states: Sequence[EncodedState]) -> Longs:
    """List each object node as often as its multiplicity says."""
    if all(state.multiplicities is None for state in states):
        return object_nodes
    times = [
        np.ones(state.objects, int) if state.multiplicities is None else state.multiplicities
        for state in states
    ]
    return np.repeat(object_nodes, np.concatenate(times))
