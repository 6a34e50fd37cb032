"""The network on a GPU: one launch for all rounds forward, and one for all rounds backward.

The kernels are in rounds.py and gradients.py. All sums are taken in a fixed order, so the same
input gives the same bytes. Triton is imported when it is first used. The definition in rgnn.py runs
instead if Triton is missing, if the sizes are not supported, and on other devices.

Shapes: N nodes, M arguments, D embedding size, L rounds, Q actions, B instances, C depths.
"""

import logging
import os
import shutil
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regoal.networks.batch import Batch
from regoal.networks.kernels.gpu.batch_layout import (
    NODE_ROWS,
    ROWS,
    PackedBatch,
    RowSums,
    pack_batch,
)
from regoal.networks.parameters import Layout

OLDEST = (8, 0)
"""The oldest compute capability that has the matrix units used here."""
SIZES = (16, 32, 64)
MAX_WIDTH = 256
"""The most that arity times embedding size may be: two such matrices must fit in fast memory."""
WIDEST = 64
"""A matrix up to this width is multiplied at once; wider ones in parts of as many numbers."""
PRECISION = "tf32x3"
"""Each product of float32 is done as three on the matrix units, about as exactly as float32."""
WARPS = 8
STEP = 8
"""Arguments of a node that are added up in one step."""
SHARES = 32
"""Parts of the weights' gradients that are summed in parallel on a GPU."""
GRADIENT_ROWS = 32
TOGETHER = True
"""Whether one launch runs all rounds. Else, and always on a CPU, each round takes two."""

log = logging.getLogger(__name__)


@cache
def load_kernels() -> ModuleType | None:
    """Return the Triton kernels, or None if they cannot run, with one warning."""
    try:
        from regoal.networks.kernels.gpu import gradients as gpu_gradients
    except ImportError as error:
        reason = str(error)
    else:
        reason = _find_obstacle()
        if not reason:
            return gpu_gradients
    log.warning("no fused GPU kernels (%s): a GPU would run thousands of small operations", reason)
    return None


def _find_obstacle() -> str:
    """Say what keeps Triton from compiling for this machine's GPU; empty if nothing or no GPU."""
    compilers = (os.environ.get("CC", "cc"), "gcc", "clang")
    if not torch.cuda.is_available():
        return ""
    if torch.cuda.get_device_capability() < OLDEST:
        return f"the GPU is older than compute capability {OLDEST[0]}.{OLDEST[1]}"
    return "" if any(map(shutil.which, compilers)) else "Triton needs a C compiler"


def available(weights: Tensor, layout: Layout) -> bool:
    """Tell whether the kernels run, and support these weights' device, type and sizes."""
    return (
        weights.device.type == "cuda"
        and weights.dtype == torch.float32
        and os.environ.get("REGOAL_KERNEL") != "0"
        and load_kernels() is not None
        and supports(layout)
    )


@cache
def supports(layout: Layout) -> bool:
    """Tell whether the kernels support this embedding size and these arities; warns if not."""
    widest = max((2, *layout.arities)) * layout.size
    fits = layout.size in SIZES and widest <= MAX_WIDTH
    if not fits:
        log.warning(
            "the GPU kernels support embedding sizes %s, and arity times size up to %d, not size "
            "%d and %d: a GPU will run thousands of small operations instead",
            SIZES, MAX_WIDTH, layout.size, widest,
        )  # fmt: skip
    return fits


def embed(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> Tensor:
    """Compute what `rgnn.embed_reference` does: embeddings [C, N, D].

    If several messages are largest, the first one gets the whole gradient.
    """
    return _embed(weights, pack_batch(batch, layout, depths, weights.device))


def read(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> Tensor:
    """Compute [C, Q, 2D]: at each depth, each action's embedding and its objects' sum."""
    packed = pack_batch(batch, layout, depths, weights.device)
    actions = packed.to_actions.outputs
    found = _sum_rows(_embed(weights, packed), packed, packed.read)
    objects = _sum_rows(found[:, actions:], packed, packed.to_actions)
    return torch.cat((found[:, :actions], objects), dim=2)


def _embed(weights: Tensor, packed: PackedBatch) -> Tensor:
    """Compute embeddings [C, N, D], with gradients if they are wanted."""
    if weights.requires_grad and torch.is_grad_enabled():
        return cast(Tensor, _Rounds.apply(weights, packed))  # type: ignore[no-untyped-call]
    return _forward(weights, packed, save=len(packed.depths) > 1)[0]


def _sum_rows(x: Tensor, packed: PackedBatch, sums: RowSums) -> Tensor:
    """Sum rows of x [C, inputs, D] to [C, outputs, D]."""
    return cast(Tensor, _SumRows.apply(x, packed, sums))  # type: ignore[no-untyped-call]


class _Activations(NamedTuple):
    """Values of each round that the backward pass needs."""

    embeddings: Tensor
    """[L + 1, N, D] before each round, and after the last."""
    hidden: Tensor
    """[L, M, D] message MLPs before the activation."""
    strongest: Tensor
    """[L, N, D] largest message, 0 if there is none."""
    winner: Tensor
    """[L, N, D] int32, the argument that the largest message went to, -1 for none."""
    update: Tensor
    """[L, N, 2D] update MLP before the activation."""
    normal: Tensor
    """[L, N, D] normalised update, before scale and shift."""
    deviation: Tensor
    """[L, N] one over the standard deviation."""


def _forward(weights: Tensor, packed: PackedBatch, *, save: bool) -> tuple[Tensor, _Activations]:
    """Compute embeddings [C, N, D]; only those of the last depth [1, N, D] unless `save`."""
    layers, size, nodes = packed.depths[-1], packed.layout.size, packed.nodes
    kept = layers if save else 0
    new = weights.new_empty
    saved = _Activations(
        new(layers + 1 if save else 2, nodes, size),
        new(kept, packed.arguments, size),
        new(kept, nodes, size),
        new(kept, nodes, size, dtype=torch.int32),
        new(kept, nodes, 2 * size),
        new(kept, nodes, size),
        new(kept, nodes),
    )
    saved.embeddings[0].zero_()
    zeros = torch.zeros(nodes * size + 2, dtype=torch.int64, device=weights.device)
    keys, counter = zeros[:-2].view(torch.uint64), zeros[-2:].view(torch.int32)
    pointers = (weights, packed.ints, counter, keys, *saved)
    _launch("forward", packed, pointers, (), SAVE=save)
    if save:
        return torch.stack([saved.embeddings[depth] for depth in packed.depths]), saved
    return saved.embeddings[layers % 2].unsqueeze(0), saved


def _launch(name: str, packed: PackedBatch, pointers: Sequence[Tensor], numbers: Sequence[int],
            **more: Any) -> None:  # fmt: skip
    """Run all rounds in one launch; on a CPU, where programs take turns, one for each phase."""
    module = load_kernels()
    assert module is not None
    constants = dict(
        D=packed.layout.size, ROWS=ROWS, NODE_ROWS=NODE_ROWS, WIDEST=WIDEST,
        PRECISION=PRECISION, num_warps=WARPS, num_stages=1,
        **_describe_arities(packed.layout), **more,
    )  # fmt: skip
    kernel, layers = getattr(module, name)[(packed.programs,)], packed.depths[-1]
    if TOGETHER and packed.ints.device.type == "cuda":
        constants["launch_cooperative_grid"] = True
        kernel(*pointers, 0, layers, *numbers, PHASES=3, **constants)
        return
    rounds = range(layers) if name == "forward" else reversed(range(layers))
    for layer in rounds:
        for phase in (1, 2):
            kernel(*pointers, layer, layer + 1, *numbers, PHASES=phase, **constants)


class _Rounds(torch.autograd.Function):
    """Forward and backward over the whole stack of rounds as one operation."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, packed: PackedBatch) -> Tensor:
        found, saved = _forward(weights, packed, save=True)
        ctx.packed, ctx.saved = packed, saved
        ctx.save_for_backward(weights)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, wanted: Tensor) -> tuple[Tensor | None, ...]:
        (weights,) = ctx.saved_tensors
        return _differentiate(weights, ctx.packed, ctx.saved, wanted.contiguous()), None


def _differentiate(
    weights: Tensor, packed: PackedBatch, saved: _Activations, wanted: Tensor
) -> Tensor:
    """Compute the weights' gradient from those of the embeddings, `wanted` [C, N, D]."""
    new, like, layers = weights.new_empty, torch.empty_like, packed.depths[-1]
    counter = torch.zeros(4, dtype=torch.int32, device=weights.device)
    grad = new(packed.nodes, packed.layout.size)
    from_args = new(packed.arguments, packed.layout.size)
    grad_strongest, grads, grad_update = (like(saved.strongest) for _ in range(3))
    grad_update_hidden, grad_hidden = like(saved.update), like(saved.hidden)
    depths = packed.ints[packed.depths_at :]
    pointers = (
        weights, packed.ints, counter, saved.hidden, saved.winner, saved.update, saved.normal,
        saved.deviation, wanted, depths, from_args, grad, grad_strongest, grads, grad_update,
        grad_update_hidden, grad_hidden,
    )  # fmt: skip
    _launch("backward", packed, pointers, (layers, len(packed.depths)), STEP=STEP)
    return _sum_weight_gradients(
        weights,
        packed,
        saved,
        grad_strongest,
        grad_hidden,
        (grads, grad_update, grad_update_hidden),
    )


def _sum_weight_gradients(
    weights: Tensor,
    packed: PackedBatch,
    saved: _Activations,
    grad_strongest: Tensor,
    grad_hidden: Tensor,
    of_updates: tuple[Tensor, Tensor, Tensor],
) -> Tensor:
    """Sum, over all rounds, the products of each matrix's inputs and its outputs' gradients."""
    module, layers, length = load_kernels(), packed.depths[-1], len(weights)
    assert module is not None
    shares = SHARES if weights.is_cuda else 2
    partial = weights.new_zeros(shares, length)
    meta = {"D": packed.layout.size, "ROWS": GRADIENT_ROWS, "PRECISION": PRECISION}
    if packed.jobs:
        module.message_gradients[(packed.jobs, shares)](
            partial, packed.ints, saved.embeddings, saved.hidden, saved.winner, grad_strongest,
            grad_hidden, layers, length, **meta, **_describe_arities(packed.layout),
        )  # fmt: skip
    module.update_gradients[(shares,)](
        partial, packed.ints, saved.embeddings, saved.strongest, saved.update, saved.normal,
        *of_updates, layers, length, **meta,
    )  # fmt: skip
    return partial.sum(0)


def _describe_arities(layout: Layout) -> dict[str, int]:
    """Return the constants for arities: a bit for each that occurs, and the largest."""
    return {
        "ARITIES": sum(1 << k for k in set(layout.arities)),
        "MOST": max(layout.arities, default=1),
    }


class _SumRows(torch.autograd.Function):
    """Sums rows forward, and their gradients backward, in a fixed order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, packed: PackedBatch, sums: RowSums) -> Tensor:
        ctx.packed, ctx.sums = packed, sums
        return _launch_row_sums(x, packed, sums.ptr_at, sums.index_at, sums.outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        sums = ctx.sums
        return (
            _launch_row_sums(grad, ctx.packed, sums.back_ptr_at, sums.back_index_at, sums.inputs),
            None,
            None,
        )


def _launch_row_sums(x: Tensor, packed: PackedBatch, ptr: int, index: int, count: int) -> Tensor:
    module, x = load_kernels(), x.contiguous()
    assert module is not None
    out = x.new_empty(x.shape[0], count, x.shape[2])
    if count:
        module.row_sums[(count, x.shape[0])](
            x, packed.ints, out, ptr, index, x.shape[1], count, D=x.shape[2], STEP=16, num_warps=1
        )
    return out
