"""The relational graph neural network: rounds of messages between the objects of atoms.

One round, with the same weights every time (paper, "Model"; Ståhlberg, Bonet and Geffner, ICAPS
2022):

    m_i = f_i + MLP_R(f_1, ..., f_K)_i          for every atom R(o_1, ..., o_K) and place i
    f(o) <- f(o) + LayerNorm(MLP_U(max of the messages to o, f(o)))

Embeddings start at zero. A node without messages takes 0 for the maximum. Where messages are
equally strong, the definition splits the gradient evenly among them, and the kernels give it to
the first; for messages of one relation from equal inputs that is the same for the weights.

Shapes by letter: N nodes, M arguments of all atoms, A atoms of one relation, K its arity,
D embedding size, C depths.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from regoal.networks.batch import Batch
from regoal.networks.kernels.cpu import kernel as native
from regoal.networks.kernels.gpu import launch as gpu
from regoal.networks.parameters import MLP, Layout


def embed(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> Tensor:
    """Embeddings [C, N, D] after each number of rounds in `depths`, from 1 on and rising.

    Runs a kernel where there is one for the device and it fits, else the definition below. Raises
    `ValueError` for other depths.
    """
    check_depths(depths)
    if gpu.available(weights, layout):
        return gpu.embed(weights, layout, batch, depths)
    if native.fits(weights, layout, batch):
        return native.embed(weights, layout, batch, depths)
    return embed_reference(weights, layout, batch, depths)


def check_depths(depths: Sequence[int]) -> None:
    """Raises `ValueError` unless they rise from at least 1."""
    if not depths or any(b <= a for a, b in pairwise((0, *depths))):
        raise ValueError(f"depths must rise from at least 1, got {list(depths)}")


def embed_reference(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> Tensor:
    """The definition above, a line a step. The kernel must equal it."""
    messages = [layout.mlp(weights, f"message.{i}") for i in range(len(layout.arities))]
    update = layout.mlp(weights, "update")
    scale, shift = layout.part(weights, "norm.scale"), layout.part(weights, "norm.shift")
    x = weights.new_zeros(batch.nodes, layout.size)
    wanted = []
    for depth in range(1, depths[-1] + 1):
        strongest = _strongest(x, _send(messages, batch, x), batch.args)
        new = apply_mlp(update, torch.cat((strongest, x), dim=1))
        x = x + functional.layer_norm(new, (layout.size,), scale, shift)
        if depth in depths:
            wanted.append(x)
    return torch.stack(wanted)


def apply_mlp(weights: MLP, x: Tensor) -> Tensor:
    """[A, inputs] to [A, outputs], with Mish between the two layers."""
    hidden = functional.mish(torch.addmm(weights.bias_in, x, weights.weight_in))
    return torch.addmm(weights.bias_out, hidden, weights.weight_out)


def _send(messages: Sequence[MLP], batch: Batch, x: Tensor) -> Tensor:
    """[M, D]: the message of every atom to each of its arguments, in the order of `batch.args`."""
    sent = x[batch.args]
    parts, start = [], 0
    for weights, atoms, arguments in zip(
        messages, batch.counts.tolist(), batch.sizes.tolist(), strict=True
    ):
        if atoms:
            rows = sent[start : start + arguments].view(atoms, -1)
            parts.append(apply_mlp(weights, rows).view(arguments, -1))
            start += arguments
    return sent + torch.cat(parts) if parts else sent


def _strongest(x: Tensor, messages: Tensor, args: Tensor) -> Tensor:
    """The elementwise maximum of the messages to each node, [N, D]; 0 where there are none."""
    index = args.unsqueeze(1).expand_as(messages)
    # From -inf and not from 0: equal to a largest message of 0, it would share its gradient.
    lowest = torch.full_like(x, -torch.inf)
    strongest = lowest.scatter_reduce(0, index, messages, "amax")
    return strongest.masked_fill(strongest.isneginf(), 0.0)
