"""The CPU kernel, written in C (build.py) and called through ctypes with arrays of numpy.

It reads the weights as one vector (parameters.py). For training, autograd.py calls it. It splits a
batch into shards of whole instances, and computes them in parallel in its own threads. The weights'
gradients are summed in the order of the shards, so the result depends on the number of threads but
not on their timing.
"""

import ctypes
import os
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

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

    If the kernel does the heavy part, the operations of PyTorch stay in one thread, where it is
    loaded. They are so small that handing them to other threads costs several times what they take.
    """
    global _threads  # noqa: PLW0603
    _threads = count
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(count if load_kernel(False) is None else 1)


def threads() -> int:
    """Return how many shards of a batch are computed in parallel."""
    return _threads


def fits(layout: Layout, dtype: npt.DTypeLike, batch: Batch) -> bool:
    """Tell whether the kernel can replace the definition on this batch."""
    return len(batch.args) <= MAX_ARGUMENTS and available(layout, dtype)


def available(layout: Layout, dtype: npt.DTypeLike) -> bool:
    """Tell whether the kernel is compiled, and supports weights of this type and these sizes."""
    return (
        dtype in (np.float32, np.float64)
        and layout.size % LANES == 0
        and max(2, *layout.arities, 2) * layout.size <= MAX_WIDTH
        and is_wanted()
        and load_kernel(dtype == np.float64) is not None
    )


def is_wanted() -> bool:
    """Tell whether the kernel is to be used, if there is one: not with REGOAL_KERNEL=0."""
    return os.environ.get("REGOAL_KERNEL") != "0"


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


class Activations(ctypes.Structure):
    """Arrays that the kernel's backward pass needs, as rgnn_kernel.c describes them."""

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
class Call:
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


def infer(weights: npt.NDArray[Any], layout: Layout, batch: Batch, layers: int) -> npt.NDArray[Any]:
    """Compute embeddings [N, D] without keeping anything for a backward pass."""
    call = prepare(weights, layout, batch)
    x = np.zeros((2, batch.nodes, layout.size), weights.dtype)
    strongest = np.empty_like(x[0])
    found: npt.NDArray[Any] = np.empty_like(x[0])
    call.run("infer", ctypes.c_int64(layers), point_to(x), point_to(strongest), point_to(found))
    return found


def prepare(weights: npt.NDArray[Any], layout: Layout, batch: Batch) -> Call:
    """Describe the network and each shard's graph by pointers to the arrays."""
    kernel = load_kernel(weights.dtype == np.float64)
    assert kernel is not None
    arity, at = _locate_messages(layout)
    network = _Network(
        layout.size,
        len(arity),
        point_to(arity),
        point_to(weights),
        point_to(at),
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
    return Call(kernel, whole, stages, keep)


@cache
def _locate_messages(layout: Layout) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the relations' arities [R], and where each one's MLP begins in the weights [R]."""
    at = [layout.places[f"message.{i}.weight_in"][0] for i in range(len(layout.arities))]
    return np.array(layout.arities, dtype=np.int64), np.array(at, dtype=np.int64)


def point_to(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    """Return a pointer to the first number of an array."""
    return ctypes.c_void_p(_find_address(array))


def _find_address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])
