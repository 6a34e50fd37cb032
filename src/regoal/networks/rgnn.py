"""The relational graph neural network in PyTorch: rounds of messages between objects of atoms.

One round, with the same weights every time (paper, "Model"; Ståhlberg, Bonet and Geffner, ICAPS
2022):

    m_i = f_i + MLP_R(f_1, ..., f_K)_i          for every atom R(o_1, ..., o_K) and place i
    f(o) <- f(o) + LayerNorm(MLP_U(max of the messages to o, f(o)))

Embeddings start at zero. The maximum of a node without messages is 0. If several messages are
largest, the definition splits the gradient evenly among them, and the kernels give it to the first.
If these messages are of one relation and have equal inputs, the weights' gradients are equal.

Training needs this form, for its gradients. inference.py has the rounds in numpy.

Shapes by letter: N nodes, M arguments of all atoms, A atoms of one relation, K its arity,
D embedding size, C depths.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from regoal.networks.batch import Batch
from regoal.networks.kernels.cpu import autograd as cpu_kernel
from regoal.networks.kernels.gpu import launch as gpu_kernel
from regoal.networks.parameters import MLP, Layout


def embed(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> Tensor:
    """Compute embeddings [C, N, D] after each number of rounds in `depths`.

    Uses a kernel if there is one for the device and it fits, else the definition below. Raises
    `ValueError` unless the depths rise from at least 1.
    """
    check_depths(depths)
    if gpu_kernel.available(weights, layout):
        return gpu_kernel.embed(weights, layout, batch, depths)
    if cpu_kernel.fits(weights, layout, batch):
        return cpu_kernel.embed(weights, layout, batch, depths)
    return embed_reference(weights, layout, batch, depths)


def check_depths(depths: Sequence[int]) -> None:
    """Raise `ValueError` unless the depths rise from at least 1."""
    if not depths or any(b <= a for a, b in pairwise((0, *depths))):
        raise ValueError(f"depths must rise from at least 1, got {list(depths)}")


def embed_reference(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> Tensor:
    """Compute embeddings as defined above, one line for each step. The kernels must equal it."""
    messages = [layout.mlp(weights, f"message.{i}") for i in range(len(layout.arities))]
    update = layout.mlp(weights, "update")
    scale, shift = layout.part(weights, "norm.scale"), layout.part(weights, "norm.shift")
    x = weights.new_zeros(batch.nodes, layout.size)
    args = torch.from_numpy(batch.args).to(weights.device)
    wanted = []
    for depth in range(1, depths[-1] + 1):
        strongest = _take_strongest(x, _send(messages, batch, args, x), args)
        new = apply_mlp(update, torch.cat((strongest, x), dim=1))
        x = x + functional.layer_norm(new, (layout.size,), scale, shift)
        if depth in depths:
            wanted.append(x)
    return torch.stack(wanted)


def apply_mlp(weights: MLP[Tensor], x: Tensor) -> Tensor:
    """Apply an MLP to x [A, inputs], with Mish between the layers; returns [A, outputs]."""
    hidden = functional.mish(torch.addmm(weights.bias_in, x, weights.weight_in))
    return torch.addmm(weights.bias_out, hidden, weights.weight_out)


def _send(messages: Sequence[MLP[Tensor]], batch: Batch, args: Tensor, x: Tensor) -> Tensor:
    """Compute the message [M, D] to each argument [M] of every atom."""
    sent = x[args]
    parts, start = [], 0
    for weights, atoms, arguments in zip(
        messages, batch.atom_counts.tolist(), batch.argument_counts.tolist(), strict=True
    ):
        if atoms:
            rows = sent[start : start + arguments].view(atoms, -1)
            parts.append(apply_mlp(weights, rows).view(arguments, -1))
            start += arguments
    return sent + torch.cat(parts) if parts else sent


def _take_strongest(x: Tensor, messages: Tensor, args: Tensor) -> Tensor:
    """Take the elementwise maximum [N, D] of the messages to each node; 0 if there are none."""
    index = args.unsqueeze(1).expand_as(messages)
    # Start at -inf: a start at 0 would share the gradient of a largest message that is 0.
    lowest = torch.full_like(x, -torch.inf)
    strongest = lowest.scatter_reduce(0, index, messages, "amax")
    return strongest.masked_fill(strongest.isneginf(), 0.0)
