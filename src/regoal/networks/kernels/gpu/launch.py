"""The network on a GPU: all rounds in one launch forward and one backward (rounds.py,
gradients.py).

Everything is summed in a fixed order, so that the same input gives the same bytes. Triton is
imported when it is first used; without it, for other sizes, and on other devices the definition in
rgnn.py runs.

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
from regoal.networks.kernels.gpu.batch_layout import NODE_ROWS, ROWS, Plan, Rows, plan_of
from regoal.networks.parameters import Layout

OLDEST = (8, 0)
"""The oldest compute capability that has the matrix units used here."""
SIZES = (16, 32, 64)
MAX_WIDTH = 256
"""Arity times embedding size at most: two such matrices must be near the arithmetic units."""
WIDEST = 64
"""A matrix of this width is multiplied at once; of wider ones, as many numbers."""
PRECISION = "tf32x3"
"""Products of float32 in three parts on the matrix units: about as exact as float32."""
WARPS = 8
STEP = 8
"""Arguments of a node that are added up at once."""
SHARES = 32
"""Parts in which the weights' gradients are summed beside each other; 2 on a CPU, one by one."""
GRADIENT_ROWS = 32
TOGETHER = True
"""Whether one launch runs all rounds; else each takes two. On a CPU it is always the latter."""

log = logging.getLogger(__name__)


@cache
def kernels() -> ModuleType | None:
    """The Triton kernels, or None (said once) where they cannot run."""
    try:
        from regoal.networks.kernels.gpu import gradients as gpu_gradients
    except ImportError as error:
        reason = str(error)
    else:
        reason = _needs()
        if not reason:
            return gpu_gradients
    log.warning("no fused GPU kernels (%s): a GPU would run thousands of small operations", reason)
    return None


def _needs() -> str:
    """What Triton lacks to compile for this machine's GPU; empty where there is none."""
    compilers = (os.environ.get("CC", "cc"), "gcc", "clang")
    if not torch.cuda.is_available():
        return ""
    if torch.cuda.get_device_capability() < OLDEST:
        return f"the GPU is older than compute capability {OLDEST[0]}.{OLDEST[1]}"
    return "" if any(map(shutil.which, compilers)) else "Triton needs a C compiler"


def available(weights: Tensor, layout: Layout) -> bool:
    """Whether the kernels can stand in for the definition: on a GPU, single precision, sizes."""
    return (
        weights.device.type == "cuda"
        and weights.dtype == torch.float32
        and os.environ.get("REGOAL_KERNEL") != "0"
        and kernels() is not None
        and takes(layout)
    )


@cache
def takes(layout: Layout) -> bool:
    """Whether the kernels know this embedding size and these arities; says once where not."""
    widest = max((2, *layout.arities)) * layout.size
    fits = layout.size in SIZES and widest <= MAX_WIDTH
    if not fits:
        log.warning(
            "the GPU kernels know embedding sizes %s, and arity times size up to %d, not size %d "
            "and %d: a GPU runs thousands of small operations instead",
            SIZES, MAX_WIDTH, layout.size, widest,
        )  # fmt: skip
    return fits


def embed(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> Tensor:
    """As `rgnn.embed_reference`; where messages are equally strong, the first gets the gradient."""
    return _embedded(weights, plan_of(batch, layout, depths, weights.device))


def read(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> Tensor:
    """[C, Q, 2D]: after each depth, of every action its embedding and the sum of the objects'."""
    plan = plan_of(batch, layout, depths, weights.device)
    actions = plan.shared.outputs
    found = _rows_summed(_embedded(weights, plan), plan, plan.read)
    objects = _rows_summed(found[:, actions:], plan, plan.shared)
    return torch.cat((found[:, :actions], objects), dim=2)


def _embedded(weights: Tensor, plan: Plan) -> Tensor:
    """Embeddings [C, N, D]."""
    if weights.requires_grad and torch.is_grad_enabled():
        return cast(Tensor, _Rounds.apply(weights, plan))  # type: ignore[no-untyped-call]
    return _forward(weights, plan, save=len(plan.depths) > 1)[0]


def _rows_summed(x: Tensor, plan: Plan, rows: Rows) -> Tensor:
    """[C, outputs, D] from [C, inputs, D]."""
    return cast(Tensor, _RowSums.apply(x, plan, rows))  # type: ignore[no-untyped-call]


class _Saved(NamedTuple):
    """What the backward pass needs of each round."""

    embeddings: Tensor
    """[L + 1, N, D]"""
    hidden: Tensor
    """[L, M, D] message MLPs before the activation."""
    strongest: Tensor
    """[L, N, D]"""
    winner: Tensor
    """[L, N, D] int32, the argument that a strongest message went to, -1 for none."""
    update: Tensor
    """[L, N, 2D] update MLP before the activation."""
    normal: Tensor
    """[L, N, D] normalised update, before scale and shift."""
    deviation: Tensor
    """[L, N] one over the standard deviation."""


def _forward(weights: Tensor, plan: Plan, *, save: bool) -> tuple[Tensor, _Saved]:
    """Embeddings [C, N, D]; where nothing is saved, only those of the last depth."""
    layers, size, nodes = plan.depths[-1], plan.layout.size, plan.nodes
    kept = layers if save else 0
    new = weights.new_empty
    saved = _Saved(
        new(layers + 1 if save else 2, nodes, size),
        new(kept, plan.arguments, size),
        new(kept, nodes, size),
        new(kept, nodes, size, dtype=torch.int32),
        new(kept, nodes, 2 * size),
        new(kept, nodes, size),
        new(kept, nodes),
    )
    saved.embeddings[0].zero_()
    zeros = torch.zeros(nodes * size + 2, dtype=torch.int64, device=weights.device)
    keys, counter = zeros[:-2].view(torch.uint64), zeros[-2:].view(torch.int32)
    pointers = (weights, plan.ints, counter, keys, *saved)
    _launch("forward", plan, pointers, (), SAVE=save)
    if save:
        return torch.stack([saved.embeddings[depth] for depth in plan.depths]), saved
    return saved.embeddings[layers % 2].unsqueeze(0), saved


def _launch(name: str, plan: Plan, pointers: Sequence[Tensor], numbers: Sequence[int],
            **more: Any) -> None:  # fmt: skip
    """All rounds in one launch; on a CPU, where programs take turns, a launch for each phase."""
    module = kernels()
    assert module is not None
    constants = dict(
        D=plan.layout.size, ROWS=ROWS, NODE_ROWS=NODE_ROWS, WIDEST=WIDEST,
        PRECISION=PRECISION, num_warps=WARPS, num_stages=1, **_arities(plan.layout), **more,
    )  # fmt: skip
    kernel, layers = getattr(module, name)[(plan.programs,)], plan.depths[-1]
    if TOGETHER and plan.ints.device.type == "cuda":
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
    def forward(ctx: Any, weights: Tensor, plan: Plan) -> Tensor:
        found, saved = _forward(weights, plan, save=True)
        ctx.plan, ctx.saved = plan, saved
        ctx.save_for_backward(weights)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, wanted: Tensor) -> tuple[Tensor | None, ...]:
        (weights,) = ctx.saved_tensors
        return _gradient(weights, ctx.plan, ctx.saved, wanted.contiguous()), None


def _gradient(weights: Tensor, plan: Plan, saved: _Saved, wanted: Tensor) -> Tensor:
    """The weights' gradient from those of the embeddings [C, N, D]."""
    new, like, layers = weights.new_empty, torch.empty_like, plan.depths[-1]
    counter = torch.zeros(4, dtype=torch.int32, device=weights.device)
    grad = new(plan.nodes, plan.layout.size)
    from_args = new(plan.arguments, plan.layout.size)
    grad_strongest, grads, grad_update = (like(saved.strongest) for _ in range(3))
    grad_update_hidden, grad_hidden = like(saved.update), like(saved.hidden)
    depths = plan.ints[plan.depths_at :]
    pointers = (
        weights, plan.ints, counter, saved.hidden, saved.winner, saved.update, saved.normal,
        saved.deviation, wanted, depths, from_args, grad, grad_strongest, grads, grad_update,
        grad_update_hidden, grad_hidden,
    )  # fmt: skip
    _launch("backward", plan, pointers, (layers, len(plan.depths)), STEP=STEP)
    return _weights_gradient(
        weights, plan, saved, grad_strongest, grad_hidden, (grads, grad_update, grad_update_hidden)
    )


def _weights_gradient(
    weights: Tensor,
    plan: Plan,
    saved: _Saved,
    grad_strongest: Tensor,
    grad_hidden: Tensor,
    of_updates: tuple[Tensor, Tensor, Tensor],
) -> Tensor:
    """Products of what went into each matrix and the gradient of what came out, all rounds."""
    module, layers, length = kernels(), plan.depths[-1], len(weights)
    assert module is not None
    shares = SHARES if weights.is_cuda else 2
    partial = weights.new_zeros(shares, length)
    meta = {"D": plan.layout.size, "ROWS": GRADIENT_ROWS, "PRECISION": PRECISION}
    if plan.jobs:
        module.message_gradients[(plan.jobs, shares)](
            partial, plan.ints, saved.embeddings, saved.hidden, saved.winner, grad_strongest,
            grad_hidden, layers, length, **meta, **_arities(plan.layout),
        )  # fmt: skip
    module.update_gradients[(shares,)](
        partial, plan.ints, saved.embeddings, saved.strongest, saved.update, saved.normal,
        *of_updates, layers, length, **meta,
    )  # fmt: skip
    return partial.sum(0)


def _arities(layout: Layout) -> dict[str, int]:
    """A bit for each arity there is, and the largest."""
    return {
        "ARITIES": sum(1 << k for k in set(layout.arities)),
        "MOST": max(layout.arities, default=1),
    }


class _RowSums(torch.autograd.Function):
    """Sums of rows, and backward sums of their gradients, in a fixed order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, plan: Plan, rows: Rows) -> Tensor:
        ctx.plan, ctx.rows = plan, rows
        return _summed(x, plan, rows.ptr_at, rows.index_at, rows.outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows = ctx.rows
        return (
            _summed(grad, ctx.plan, rows.back_ptr_at, rows.back_index_at, rows.inputs),
            None,
            None,
        )


def _summed(x: Tensor, plan: Plan, ptr: int, index: int, count: int) -> Tensor:
    module, x = kernels(), x.contiguous()
    assert module is not None
    out = x.new_empty(x.shape[0], count, x.shape[2])
    if count:
        module.row_sums[(count, x.shape[0])](
            x, plan.ints, out, ptr, index, x.shape[1], count, D=x.shape[2], STEP=16, num_warps=1
        )
    return out
