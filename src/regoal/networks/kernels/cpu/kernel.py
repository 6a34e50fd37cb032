"""The CPU kernel, written in C (build.py) and called through ctypes.

It reads the weights as one vector (parameters.py). It splits a batch into shards of whole
instances, and computes them in parallel in its own threads. The weights' gradients are summed in
the order of the shards, so the result depends on the number of threads but not on their timing.
"""

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regoal.networks.batch import Batch
from regoal.networks.kernels.cpu.build import load_kernel
from regoal.networks.parameters import Layout

MAX_WIDTH = 1024
LANES = 16
LEAST_WORK = 75
"""Fewest atoms and nodes in a shard; handing out less takes longer than computing it."""
MAX_ARGUMENTS = 2**31 - 1
"""Most arguments in a batch: the kernel numbers the rows of messages in 32 bits."""

_threads = 1


def use_threads(count: int) -> None:
    """Compute up to `count` shards of a batch in parallel; `count` is at least 1.

    If the kernel does the heavy part, torch's own operations stay in one thread. They are so small
    that handing them to other threads costs several times what they take.
    """
    global _threads  # noqa: PLW0603
    torch.set_num_threads(count if load_kernel(False) is None else 1)
    _threads = count


def threads() -> int:
    """Return how many shards of a batch are computed in parallel."""
    return _threads


def fits(weights: Tensor, layout: Layout, batch: Batch) -> bool:
    """Tell whether the kernel can replace the definition on this batch."""
    return len(batch.args) <= MAX_ARGUMENTS and available(weights, layout)


def available(weights: Tensor, layout: Layout) -> bool:
    """Tell whether the kernel is compiled, and supports these weights' device, type and sizes."""
    return (
        weights.device.type == "cpu"
        and weights.dtype in (torch.float32, torch.float64)
        and layout.size % LANES == 0
        and max(2, *layout.arities, 2) * layout.size <= MAX_WIDTH
        and os.environ.get("REGOAL_KERNEL") != "0"
        and load_kernel(weights.dtype == torch.float64) is not None
    )


class _Network(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_int64),
        ("relations", ctypes.c_int64),
        ("arity", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("message_at", ctypes.c_void_p),
        ("update_at", ctypes.c_int64),
        ("norm_at", ctypes.c_int64),
    )


class _Graph(ctypes.Structure):
    _fields_ = (
        ("nodes", ctypes.c_int64),
        ("arguments", ctypes.c_int64),
        ("args", ctypes.c_void_p),
        ("args_at", ctypes.c_void_p),
        ("atom_begin", ctypes.c_void_p),
        ("atom_end", ctypes.c_void_p),
        ("node_begin", ctypes.c_int64),
        ("node_end", ctypes.c_int64),
    )


class _Activations(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_void_p)
        for name in (
            "embeddings", "strongest", "winner", "hidden", "update", "normal", "deviation",
        )
    )  # fmt: skip


class _Shards(ctypes.Structure):
    _fields_ = (
        ("network", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("graphs", ctypes.c_void_p),
        ("stages", ctypes.c_void_p),
    )


@dataclass
class _Call:
    """A batch in the form that the kernel reads."""

    kernel: ctypes.CDLL
    shards: _Shards
    stages: list[npt.NDArray[np.int64]]
    """For each shard, memory for the graphs that its rounds run on. In such a graph, nodes that the
    rounds cannot distinguish yet are one node."""
    keep: list[Any]
    """Objects whose memory the structures point into; they must live as long as the call."""

    def run(self, function: str, *arguments: Any) -> None:
        """Call one of the kernel's functions; raises `MemoryError` if it found no memory."""
        if getattr(self.kernel, f"regoal_{function}")(ctypes.byref(self.shards), *arguments):
            raise MemoryError("the kernel found no memory for a batch")


def embed(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> Tensor:
    """Compute what `rgnn.embed_reference` does: embeddings [C, N, D].

    If several messages are largest, the first one gets the whole gradient.
    """
    if weights.requires_grad and torch.is_grad_enabled():
        apply: Callable[..., Tensor] = _Embed.apply
        return apply(weights, layout, batch, tuple(depths))
    found = [_infer(weights, layout, batch, depth) for depth in depths]
    return found[0] if len(found) == 1 else torch.cat(found)


def _infer(weights: Tensor, layout: Layout, batch: Batch, layers: int) -> Tensor:
    """Compute embeddings [1, N, D] without keeping anything for a backward pass."""
    call = _prepare(weights, layout, batch)
    x = weights.new_zeros(2, batch.nodes, layout.size)
    found, strongest = torch.empty_like(x[:1]), torch.empty_like(x[0])
    call.run("infer", ctypes.c_int64(layers), _point_to(x), _point_to(strongest), _point_to(found))
    return found


class _Embed(torch.autograd.Function):
    """Forward and backward over the whole stack of rounds as one operation."""

    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, layout: Layout, batch: Batch, depths: tuple[int, ...]
    ) -> Tensor:
        call, layers = _prepare(weights, layout, batch), depths[-1]
        room, activations = _allocate_activations(
            weights, layers, batch.nodes, len(batch.args), layout.size
        )
        activations["embeddings"][0] = 0
        pointers = _Activations(**{name: _point_to(tensor) for name, tensor in activations.items()})
        wanted = np.array(depths, dtype=np.int64)
        found = weights.new_empty(len(depths), batch.nodes, layout.size)
        count = ctypes.c_int64(len(depths))
        call.run("forward", count, _point_to(wanted), ctypes.byref(pointers), _point_to(found))
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
            "backward", ctypes.c_int64(len(ctx.wanted)), _point_to(ctx.wanted), _point_to(grad),
            ctypes.byref(ctx.pointers), _point_to(transposed), _point_to(work),
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


def _prepare(weights: Tensor, layout: Layout, batch: Batch) -> _Call:
    """Describe the network and each shard's graph by pointers to the arrays."""
    kernel = load_kernel(weights.dtype == torch.float64)
    assert kernel is not None
    arity, at = _locate_messages(layout)
    network = _Network(
        layout.size,
        len(arity),
        _point_to(arity),
        _point_to(weights),
        _point_to(at),
        layout.places["update.weight_in"][0],
        layout.places["norm.scale"][0],
    )
    starts = np.cumsum(batch.argument_counts) - batch.argument_counts
    work = int(batch.atom_counts.sum()) + batch.nodes
    shards = batch.shards(max(1, min(_threads, work // LEAST_WORK)))
    begins = np.concatenate([shard.begin for shard in shards]).reshape(len(shards), -1)
    ends = np.concatenate([shard.end for shard in shards]).reshape(len(shards), -1)
    graphs = (_Graph * len(shards))()
    for graph, shard, begin, end in zip(graphs, shards, begins, ends, strict=True):
        graph.nodes, graph.arguments = batch.nodes, len(batch.args)
        graph.args, graph.args_at = _find_address(batch.args), _find_address(starts)
        graph.atom_begin, graph.atom_end = _find_address(begin), _find_address(end)
        graph.node_begin, graph.node_end = shard.first_node, shard.last_node
    rooms = [kernel.regoal_room(ctypes.byref(network), ctypes.byref(graph)) for graph in graphs]
    stages = [np.empty(room, dtype=np.int64) for room in rooms]
    places = np.array([_find_address(room) for room in stages])
    keep = [network, graphs, places, arity, at, starts, begins, ends, weights, batch.args]
    whole = _Shards(
        ctypes.addressof(network), len(graphs), ctypes.addressof(graphs), _find_address(places)
    )
    return _Call(kernel, whole, stages, keep)


@cache
def _locate_messages(layout: Layout) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the relations' arities [R], and where each one's MLP begins in the weights [R]."""
    at = [layout.places[f"message.{i}.weight_in"][0] for i in range(len(layout.arities))]
    return np.array(layout.arities, dtype=np.int64), np.array(at, dtype=np.int64)


def _point_to(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(_find_address(array))


def _find_address(array: Any) -> int:
    """Return the address of the first number of a tensor or an array."""
    if isinstance(array, Tensor):
        return array.data_ptr()
    return int(array.__array_interface__["data"][0])
