"""Several states and goals as one graph, the input of the network, and how to cut it in parts."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

Longs = npt.NDArray[np.int64]


class Shard(NamedTuple):
    """Some whole instances of a batch: which atoms of each relation, and which nodes."""

    begin: Longs
    end: Longs
    first_node: int
    last_node: int


@dataclass(frozen=True)
class Batch:
    """Several instances as one graph without edges between them."""

    counts: Longs
    """[R] atoms a relation."""
    sizes: Longs
    """[R] arguments of these atoms."""
    args: Tensor
    """[M] int64 nodes; relation after relation, and within one, instance after instance."""
    nodes: int
    instance_counts: Longs
    """[B, R] atoms an instance and relation."""
    node_counts: Longs
    """[B] nodes an instance."""
    object_nodes: Tensor
    """[O] int64 nodes that are objects of a state, each as often as it counts in their sum."""
    object_instance: Tensor
    """[O] int64 instance of each of them."""
    action_nodes: Tensor
    """[Q] int64 nodes that stand for applicable actions, instance after instance."""
    action_instance: Tensor
    """[Q] int64 instance of each of them."""
    action_counts: tuple[int, ...]
    """[B] applicable actions an instance."""

    def only(self, actions: Tensor) -> "Batch":
        """The same graph, of which these actions alone [A], by position in [Q], are read out."""
        instance = self.action_instance[actions]
        counts = instance.bincount(minlength=len(self.action_counts))
        return replace(
            self,
            action_nodes=self.action_nodes[actions],
            action_instance=instance,
            action_counts=tuple(counts.tolist()),
        )

    def shards(self, count: int) -> list[Shard]:
        """Cut the batch into at most `count` runs of whole instances of about equal work."""
        if count == 1:
            return [Shard(np.zeros_like(self.counts), self.counts, 0, self.nodes)]
        work = np.cumsum([0, *(self.instance_counts.sum(axis=1) + self.node_counts)])
        shares = work[-1] * np.arange(1, count) / count
        cuts = np.abs(work[:, None] - shares).argmin(axis=0)
        bounds = np.unique([0, *cuts, len(self.node_counts)])
        atoms = np.vstack([np.zeros_like(self.counts), np.cumsum(self.instance_counts, axis=0)])
        nodes = np.concatenate([[0], np.cumsum(self.node_counts)])
        return [
            Shard(atoms[first], atoms[last], int(nodes[first]), int(nodes[last]))
            for first, last in pairwise(bounds)
        ]
