"""The network in numpy: embeddings, and the Q-values that are read from them, without gradients.

The rounds are those of rgnn.py, in which they are written in PyTorch for training. The CPU kernel
runs them if it is there and fits. Otherwise the definition below does, which is several times
slower.

Shapes by letter: N nodes, M arguments of all atoms, A atoms of one relation, K its arity,
Q actions, B instances, D embedding size.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from regoal.networks.batch import Batch, Longs
from regoal.networks.kernels.cpu import kernel
from regoal.networks.parameters import MLP, Layout

Floats = npt.NDArray[np.floating[Any]]

BLOCK = 2048
"""Rows that go through an MLP at once, so that its hidden layer takes little memory."""
NORM_EPSILON = 1e-5
"""Added to the variance by a layer norm; PyTorch has this number too."""


def embed(weights: Floats, layout: Layout, batch: Batch, layers: int) -> Floats:
    """Compute embeddings [N, D] after so many rounds.

    Raises `ValueError` if there are fewer than one, and `MemoryError`.
    """
    if layers < 1:
        raise ValueError(f"layers must be at least 1, got {layers}")
    if kernel.fits(layout, weights.dtype, batch):
        return kernel.infer(weights, layout, batch, layers)
    return embed_plainly(weights, layout, batch, layers)


def embed_plainly(weights: Floats, layout: Layout, batch: Batch, layers: int) -> Floats:
    """Compute embeddings [N, D] without the kernel, which must equal it."""
    messages = [layout.mlp(weights, f"message.{i}") for i in range(len(layout.arities))]
    update = layout.mlp(weights, "update")
    scale, shift = layout.part(weights, "norm.scale"), layout.part(weights, "norm.shift")
    order = np.argsort(batch.args, kind="stable")
    receivers, starts = np.unique(batch.args[order], return_index=True)
    x: Floats = np.zeros((batch.nodes, layout.size), weights.dtype)
    for _ in range(layers):
        strongest = np.zeros_like(x)
        if len(receivers):
            sent = _send(messages, batch, x)
            strongest[receivers] = np.maximum.reduceat(sent[order], starts)
        for rows in _cut(len(x)):
            new = apply_mlp(update, np.concatenate((strongest[rows], x[rows]), axis=1))
            x[rows] += normalise(new) * scale + shift
    return x


def _send(messages: Sequence[MLP[Floats]], batch: Batch, x: Floats) -> Floats:
    """Compute the message [M, D] to each argument of every atom, in the order of `batch.args`."""
    sent, start = x[batch.args], 0
    for weights, atoms, arguments in zip(
        messages, batch.atom_counts.tolist(), batch.argument_counts.tolist(), strict=True
    ):
        if atoms:
            rows = sent[start : start + arguments].reshape(atoms, -1)
            for block in _cut(atoms):
                rows[block] += apply_mlp(weights, rows[block])
            start += arguments
    return sent


def apply_mlp(weights: MLP[Floats], x: Floats) -> Floats:
    """Apply an MLP to x [A, inputs], with Mish between the layers; returns [A, outputs]."""
    hidden = mish(x @ weights.weight_in + weights.bias_in)
    found: Floats = hidden @ weights.weight_out + weights.bias_out
    return found


def mish(x: Floats) -> Floats:
    """Compute x tanh(log(1 + exp(x))) of each number, as x n / (n + 2) with n = e^x (e^x + 2)."""
    e = np.exp(np.minimum(x, 20.0))  # beyond 20 the factor is 1
    n = e * (e + 2.0)
    return x * (n / (n + 2.0))


def normalise(x: Floats) -> Floats:
    """Shift and scale each row of x [A, D] to mean 0 and variance 1, as a layer norm does."""
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    found: Floats = centred / np.sqrt(variance + NORM_EPSILON)
    return found


def read_q_values(weights: Floats, layout: Layout, batch: Batch, x: Floats) -> Floats:
    """Compute Q-values [Q] of all actions from embeddings [N, D]."""
    sums = _sum_objects(batch, x)
    readout = layout.mlp(weights, "readout")
    found = np.empty(len(batch.action_nodes), x.dtype)
    for rows in _cut(len(found)):
        of_actions, of_objects = x[batch.action_nodes[rows]], sums[batch.action_instance[rows]]
        pairs = np.concatenate((of_actions, of_objects), axis=1)
        found[rows] = apply_mlp(readout, pairs)[:, 0]
    return found


def _sum_objects(batch: Batch, x: Floats) -> Floats:
    """Add up the embeddings of each instance's objects, [B, D]."""
    sums = np.zeros((len(batch.action_counts), x.shape[1]), x.dtype)
    instances: Longs = batch.object_instance  # it rises
    present, starts = np.unique(instances, return_index=True)
    if len(present):
        sums[present] = np.add.reduceat(x[batch.object_nodes], starts)
    return sums


def _cut(count: int) -> Iterator[slice]:
    """Cut the numbers below `count` into blocks."""
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))
