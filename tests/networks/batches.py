"""Batches and weights for tests that need no planning."""

import numpy as np
import torch

from regoal.networks.batch import Batch


def batch_of(arities, instances):
    """Make a batch by hand. An instance is its number of nodes and the atoms of each relation."""
    counts = np.array([[len(atoms) for atoms in x] for _, x in instances], dtype=np.int64)
    node_counts = np.array([nodes for nodes, _ in instances], dtype=np.int64)
    offsets = np.cumsum(node_counts) - node_counts
    args = [
        int(offset) + node
        for r in range(len(arities))
        for offset, (_, atoms) in zip(offsets, instances, strict=True)
        for atom in atoms[r]
        for node in atom
    ]
    nodes = np.arange(int(node_counts.sum()))
    instance = np.repeat(np.arange(len(instances)), node_counts)
    total = counts.sum(axis=0)
    return Batch(
        atom_counts=total,
        argument_counts=total * np.array(arities, dtype=np.int64),
        args=np.array(args, dtype=np.int64),
        nodes=len(nodes),
        instance_atom_counts=counts,
        node_counts=node_counts,
        object_nodes=nodes[:0],
        object_instance=nodes[:0],
        action_nodes=nodes,
        action_instance=instance,
        action_counts=tuple(node_counts.tolist()),
    )


def random_batch(rng, arities, instances, most_nodes=12, most_atoms=20):
    """Draw a batch. Relations may be empty, nodes in no atom, and a node in an atom twice."""
    made = []
    for _ in range(instances):
        nodes = int(rng.integers(1, most_nodes))
        atoms = [
            rng.integers(nodes, size=(int(rng.integers(0, most_atoms)) * int(rng.integers(2)), k))
            for k in arities
        ]
        made.append((nodes, [x.tolist() for x in atoms]))
    return batch_of(arities, made)


def random_weights(layout, seed, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.empty(layout.length, dtype=torch.float64)
    return weights.uniform_(-0.3, 0.3, generator=generator).to(dtype)
