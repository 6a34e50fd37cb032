"""The CPU kernel as an operation of PyTorch, forward and backward, for training.

Tensors and arrays share their memory, so nothing is copied on the way to the kernel.
"""

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regoal.networks.batch import Batch
from regoal.networks.kernels.cpu import kernel
from regoal.networks.parameters import Layout

_TYPES = {torch.float32: np.float32, torch.float64: np.float64}


def fits(weights: Tensor, layout: Layout, batch: Batch) -> bool:
    """Tell whether the kernel can replace the definition on this batch."""
    return len(batch.args) <= kernel.MAX_ARGUMENTS and available(weights, layout)


def available(weights: Tensor, layout: Layout) -> bool:
    """Tell whether the kernel is compiled, and supports these weights' device, type and sizes."""
    dtype = _TYPES.get(weights.dtype)
    return weights.device.type == "cpu" and dtype is not None and kernel.available(layout, dtype)


def embed(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> Tensor:
    """Compute what `rgnn.embed_reference` does: embeddings [C, N, D].

    If several messages are largest, the first one gets the whole gradient.
    """
    if weights.requires_grad and torch.is_grad_enabled():
        apply: Callable[..., Tensor] = _Embed.apply
        return apply(weights, layout, batch, tuple(depths))
    vector = weights.detach().numpy()
    found = [torch.from_numpy(kernel.infer(vector, layout, batch, depth)) for depth in depths]
    return found[0][None] if len(found) == 1 else torch.stack(found)


class _Embed(torch.autograd.Function):
    """Forward and backward over the whole stack of rounds as one operation."""

    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, layout: Layout, batch: Batch, depths: tuple[int, ...]
    ) -> Tensor:
        call, layers = kernel.prepare(weights.detach().numpy(), layout, batch), depths[-1]
        room, activations = _allocate_activations(
            weights, layers, batch.nodes, len(batch.args), layout.size
        )
        activations["embeddings"][0] = 0
        pointers = kernel.Activations(
            **{name: _point_to(tensor) for name, tensor in activations.items()}
        )
        wanted = np.array(depths, dtype=np.int64)
        found = weights.new_empty(len(depths), batch.nodes, layout.size)
        count = ctypes.c_int64(len(depths))
        call.run(
            "forward", count, kernel.point_to(wanted), ctypes.byref(pointers), _point_to(found)
        )
        ctx.room, ctx.pointers, ctx.call, ctx.wanted = room, pointers, call, wanted
        ctx.save_for_backward(weights)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (weights,) = ctx.saved_tensors
        if ctx.room is None:
            raise RuntimeError("the kernel keeps what it saved for one backward pass only")
        call, grad = ctx.call, grad.contiguous()
        transposed, work = torch.empty_like(weights), grad.new_empty(2, *grad.shape[1:])
        gradients = weights.new_zeros(call.shards.count, len(weights))
        call.run(
            "backward", ctypes.c_int64(len(ctx.wanted)), kernel.point_to(ctx.wanted),
            _point_to(grad), ctypes.byref(ctx.pointers), _point_to(transposed), _point_to(work),
            _point_to(gradients), ctypes.c_int64(len(weights)),
        )  # fmt: skip
        _rooms.append(ctx.room)
        ctx.room = ctx.pointers = None
        return gradients[0], None, None, None


_rooms: list[Tensor] = []
"""Memory of finished backward passes, to be used again: new pages cost more than all arithmetic."""


def _allocate_activations(
    weights: Tensor, layers: int, nodes: int, arguments: int, size: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """Take one piece of memory, and views of it for what the backward pass needs."""
    shapes = {
        "embeddings": (layers + 1, nodes, size),
        "strongest": (layers, nodes, size),
        "winner": (layers, nodes, size),
        "hidden": (layers, arguments, size),
        "update": (layers, nodes, 2 * size),
        "normal": (layers, nodes, size),
        "deviation": (layers, nodes),
    }
    needed = sum(math.prod(shape) for shape in shapes.values())
    try:
        room = _rooms.pop()
    except IndexError:
        room = weights.new_empty(0)
    if len(room) < needed or room.dtype != weights.dtype:
        room = torch.empty(needed + needed // 8, dtype=weights.dtype)
    activations, at = {}, 0
    for name, shape in shapes.items():
        activations[name] = room[at : at + math.prod(shape)].view(shape)
        at += math.prod(shape)
    return room, activations


def _point_to(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())
