"""The kernel in C: built at first use where there is a compiler, and called through ctypes.

It reads the weights as one vector (parameters.py) and handles shards of a batch, whole instances
each, in threads beside each other; the weights' gradients are summed in the order of the shards,
so that the result depends on the number of threads but not on their timing.
"""

import ctypes
import hashlib
import logging
import math
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regoal.networks.encoding import Batch
from regoal.networks.parameters import Layout

SOURCE = Path(__file__).with_name("rgnn_kernel.c")
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast", "-shared", "-fPIC")
DOUBLE = ("-DDOUBLE", "-DREAL=double", "-DINTEGER=int64_t")
MAX_WIDTH = 1024
LANES = 16
LEAST_WORK = 250
"""Atoms and nodes a shard: handing out less takes longer than computing it."""
MAX_ARGUMENTS = 2**31 - 1
"""The kernel numbers the rows of messages in 32 bits."""

log = logging.getLogger(__name__)
_threads = 1
_pool: ThreadPoolExecutor | None = None


def use_threads(count: int) -> None:
    """Let this many shards of a batch run beside each other, at least one.

    Where the kernel does the heavy part, torch's own operations stay in one thread: they are so
    small that handing them out costs several times what they take.
    """
    global _threads, _pool  # noqa: PLW0603
    torch.set_num_threads(count if library() is None else 1)
    if count != _threads:
        _threads = count
        _pool = ThreadPoolExecutor(count - 1) if count > 1 else None


def threads() -> int:
    """How many shards of a batch run beside each other."""
    return _threads


def fits(weights: Tensor, layout: Layout, batch: Batch) -> bool:
    """Whether the kernel can stand in for the reference on this batch."""
    return len(batch.args) <= MAX_ARGUMENTS and available(weights, layout)


def available(weights: Tensor, layout: Layout) -> bool:
    """Whether there is a kernel for these weights: on a CPU, compiled, widths supported."""
    return (
        weights.device.type == "cpu"
        and weights.dtype in (torch.float32, torch.float64)
        and layout.size % LANES == 0
        and max(2, *layout.arities, 2) * layout.size <= MAX_WIDTH
        and os.environ.get("REGOAL_KERNEL") != "0"
        and library(weights.dtype == torch.float64) is not None
    )


@cache
def library(double: bool = False) -> ctypes.CDLL | None:
    """The compiled kernel, or None (said once) where it cannot be built."""
    flags = FLAGS + (DOUBLE if double else ())
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        log.warning("no C compiler found: training runs several times slower without the kernel")
        return None
    try:
        kernel = ctypes.CDLL(str(_build(compiler, flags)))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        log.warning("the C kernel does not build (%s): running without it", _reason(error))
        return None
    kernel.regoal_merge.restype = ctypes.c_int64
    return kernel


def _reason(error: Exception) -> str:
    """The error in one line: of the compiler's own words the first that speak of an error."""
    said = getattr(error, "stderr", None)
    lines = said.decode(errors="replace").splitlines() if isinstance(said, bytes) else []
    return next((line for line in lines if "error" in line), str(error))


def _build(compiler: str, flags: Sequence[str]) -> Path:
    """Compile once for each source, compiler, flags and processor; later calls find the file."""
    cpu = Path("/proc/cpuinfo")
    identity = [SOURCE.read_text(encoding="utf-8"), compiler, *flags, platform.machine()]
    if cpu.exists():
        lines = cpu.read_text(encoding="utf-8", errors="replace").splitlines()
        identity += sorted({x for x in lines if x.startswith(("flags", "Features"))})
    digest = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:16]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "regoal"
    path = folder / f"kernel-{digest}.so"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            built = Path(temporary) / "kernel.so"
            command = [compiler, *flags, "-o", str(built), str(SOURCE), "-lm"]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            built.replace(path)
    return path


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
        ("shared", ctypes.c_void_p),
        ("slot", ctypes.c_void_p),
        ("node_of", ctypes.c_void_p),
    )


class _Saved(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_void_p)
        for name in (
            "embeddings", "strongest", "winner", "hidden", "update", "normal", "deviation",
        )
    )  # fmt: skip


@dataclass
class _Call:
    """A batch as the kernel takes it; on a smaller graph where nodes can be merged."""

    kernel: ctypes.CDLL
    network: _Network
    shards: list[_Graph]
    class_of: npt.NDArray[np.int64]
    """[N] the node that each node is merged with in the shards."""
    merged_args: npt.NDArray[np.int64]
    """[M] room for the arguments of merged graphs."""
    merged_ends: npt.NDArray[np.int64]
    """[S, R] room for where their atoms end."""
    keep: list[Any]
    """The arrays that the structures point into."""
    smaller: bool = False
    """Whether nodes are merged in any shard."""

    def run(self, compute: Callable[[int], int]) -> None:
        """Look through every shard and compute with it, by its number, beside each other."""
        _each(len(self.shards), lambda shard: self._look(shard) or compute(shard))

    def _look(self, shard: int) -> int:
        """What is the same for all rounds: nodes that always look the same become one, and those
        that many atoms share are found. Not 0 where there is no memory.
        """
        graph, ends = self.shards[shard], self.merged_ends[shard]
        end = self.kernel.regoal_merge(
            ctypes.byref(self.network), ctypes.byref(graph), _at(self.class_of),
            _at(self.merged_args), _at(ends),
        )  # fmt: skip
        if 0 <= end < graph.node_end:
            graph.node_end, graph.args = end, _address(self.merged_args)
            graph.atom_end = _address(ends)
            self.smaller = True
        shared = self.kernel.regoal_share(ctypes.byref(self.network), ctypes.byref(graph))
        return int(end < 0 or shared)

    def spread(self, x: Tensor) -> Tensor:
        """`x` [C, N, D] with the row of the node that each node is merged with."""
        return x.index_select(1, torch.from_numpy(self.class_of)) if self.smaller else x

    def gathered(self, grad: Tensor) -> Tensor:
        """The gradient [C, N, D] of `x` from that of `spread(x)`."""
        if not self.smaller:
            return grad.contiguous()
        return torch.zeros_like(grad).index_add_(1, torch.from_numpy(self.class_of), grad)


def embed(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> Tensor:
    """As `rgnn.embed_reference`; where messages are equally strong, the first gets the gradient."""
    if weights.requires_grad and torch.is_grad_enabled():
        apply: Callable[..., Tensor] = _Embed.apply
        return apply(weights, layout, batch, tuple(depths))
    found = [_infer(weights, layout, batch, depth) for depth in depths]
    return found[0] if len(found) == 1 else torch.cat(found)


def _infer(weights: Tensor, layout: Layout, batch: Batch, layers: int) -> Tensor:
    """Embeddings [1, N, D]."""
    call = _prepare(weights, layout, batch)
    x = weights.new_zeros(2, batch.nodes, layout.size)
    strongest = torch.empty_like(x[0])
    call.run(
        lambda shard: call.kernel.regoal_infer(
            ctypes.byref(call.network),
            ctypes.byref(call.shards[shard]),
            ctypes.c_int64(layers),
            _at(x),
            _at(strongest),
        )
    )
    return call.spread(x[layers % 2].unsqueeze(0))


class _Embed(torch.autograd.Function):
    """Forward and backward over the whole stack of rounds as one operation."""

    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, layout: Layout, batch: Batch, depths: tuple[int, ...]
    ) -> Tensor:
        call, layers = _prepare(weights, layout, batch), depths[-1]
        room, saved = _saved(weights, layers, batch.nodes, len(batch.args), layout.size)
        saved["embeddings"][0] = 0
        pointers = _Saved(**{name: _at(tensor) for name, tensor in saved.items()})
        call.run(
            lambda shard: call.kernel.regoal_forward(
                ctypes.byref(call.network),
                ctypes.byref(call.shards[shard]),
                ctypes.c_int64(layers),
                ctypes.byref(pointers),
            )
        )
        ctx.room, ctx.pointers, ctx.call, ctx.depths = room, pointers, call, depths
        ctx.save_for_backward(weights)
        return call.spread(saved["embeddings"][list(depths)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (weights,) = ctx.saved_tensors
        if ctx.room is None:
            raise RuntimeError("the kernel keeps what it saved for one backward pass only")
        call = ctx.call
        wanted = call.gathered(grad)
        depths = np.array(ctx.depths, dtype=np.int64)
        transposed = torch.empty_like(weights)
        call.kernel.regoal_transpose(ctypes.byref(call.network), _at(transposed))
        work = torch.empty_like(wanted[0]), torch.empty_like(wanted[0])
        gradients = [torch.zeros_like(weights) for _ in call.shards]
        _each(
            len(call.shards),
            lambda shard: call.kernel.regoal_backward(
                ctypes.byref(call.network),
                ctypes.byref(call.shards[shard]),
                ctypes.c_int64(len(depths)),
                _at(depths),
                _at(wanted),
                ctypes.byref(ctx.pointers),
                _at(transposed),
                _at(work[0]),
                _at(work[1]),
                _at(gradients[shard]),
            ),
        )
        _rooms.append(ctx.room)
        ctx.room = ctx.pointers = None
        for other in gradients[1:]:
            gradients[0] += other
        return gradients[0], None, None, None


_rooms: list[Tensor] = []
"""Memory of finished backward passes: fresh pages cost more than all arithmetic."""


def _saved(
    weights: Tensor, layers: int, nodes: int, arguments: int, size: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """One piece of memory, and in it what the kernel saves for the backward pass."""
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
    saved, at = {}, 0
    for name, shape in shapes.items():
        saved[name] = room[at : at + math.prod(shape)].view(shape)
        at += math.prod(shape)
    return room, saved


def _each(count: int, run: Callable[[int], int]) -> None:
    """Run every shard, beside each other where there are several: the first one in this thread.

    Raises `MemoryError` where a call has found none.
    """
    others = [_pool.submit(run, shard) for shard in range(1, count)] if _pool else []
    here = [run(shard) for shard in range(count - len(others))]
    if any([*here, *(other.result() for other in others)]):
        raise MemoryError("no memory for a batch in the kernel")


def _prepare(weights: Tensor, layout: Layout, batch: Batch) -> _Call:
    kernel = library(weights.dtype == torch.float64)
    assert kernel is not None
    arity, at = _relations(layout)
    network = _Network(
        layout.size,
        len(arity),
        _at(arity),
        _at(weights),
        _at(at),
        layout.places["update.weight_in"][0],
        layout.places["norm.scale"][0],
    )
    starts = np.cumsum(batch.sizes) - batch.sizes
    work = int(batch.counts.sum()) + batch.nodes
    shards = batch.shards(max(1, min(_threads, work // LEAST_WORK)))
    begins, ends = (np.stack([getattr(x, name) for x in shards]) for name in ("begin", "end"))
    shared = np.empty((len(shards), arity.sum()), dtype=np.int64)
    slot, node_of = np.empty(len(batch.args), np.int32), np.empty(len(batch.args), np.int64)
    graphs = [
        _Graph(
            *(batch.nodes, len(batch.args), _at(batch.args), _at(starts)),
            *(_at(begin), _at(end), shard.first_node, shard.last_node),
            *(_at(places), _at(slot), _at(node_of)),
        )
        for shard, begin, end, places in zip(shards, begins, ends, shared, strict=True)
    ]
    room = np.empty(len(batch.args), np.int64), ends.copy()
    keep = [arity, at, starts, begins, ends, shared, slot, node_of, weights, batch.args]
    return _Call(kernel, network, graphs, np.arange(batch.nodes), *room, keep)


@cache
def _relations(layout: Layout) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """[R] the relations' arities, and where each one's MLP begins in the weights."""
    at = [layout.places[f"message.{i}.weight_in"][0] for i in range(len(layout.arities))]
    return np.array(layout.arities, dtype=np.int64), np.array(at, dtype=np.int64)


def _at(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(_address(array))


def _address(array: Any) -> int:
    """Where the numbers of a tensor or an array lie."""
    if isinstance(array, Tensor):
        return array.data_ptr()
    return int(array.__array_interface__["data"][0])
