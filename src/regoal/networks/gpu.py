"""The network on a GPU: all rounds in one launch forward and one backward (gpu_kernels.py,
gpu_gradients.py).

Everything is summed in a fixed order, so that the same input gives the same bytes. What needs
Triton is imported when it is first used; without it, for other sizes, and on other devices the
definition in rgnn.py runs.

Shapes: N nodes, M arguments, D embedding size, L rounds, Q actions, B instances, C depths.
"""

import logging
import os
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regoal.networks.encoding import Batch
from regoal.networks.gpu_plan import NODE_ROWS, Plan, plan_of
from regoal.networks.parameters import Layout

MAX_WIDTH = 256
"""Arity times embedding size at most: two such matrices must be near the arithmetic units."""
WIDEST = 64
"""A matrix of this width is multiplied at once; of wider ones, as many numbers."""
PRECISION = "tf32x3"
"""Products of float32 in three parts on the matrix units: about as exact as float32."""
WARPS = 8
STEP = 8
"""Arguments of a node that are added up at once."""
SHARES = (32, 128)
"""Parts in which the gradients of the messages' weights, and of all others, are summed."""
FEW_SHARES = (2, 3)
"""The same on a CPU, where they take turns."""
GRADIENT_ROWS = 32
TOGETHER = True
"""Whether one launch runs all rounds; else each takes two. On a CPU it is always the latter."""

log = logging.getLogger(__name__)


@cache
def kernels() -> ModuleType | None:
    """The Triton kernels, or None (said once) where Triton is missing."""
    try:
        from regoal.networks import gpu_gradients
    except ImportError as error:
        log.warning("no fused GPU kernels (%s): the GPU runs thousands of small ones", error)
        return None
    return gpu_gradients


def available(weights: Tensor, layout: Layout) -> bool:
    """Whether the kernels can stand in for the definition: on a GPU, single precision, sizes."""
    return (
        weights.device.type == "cuda"
        and weights.dtype == torch.float32
        and takes(layout)
        and os.environ.get("REGOAL_KERNEL") != "0"
        and kernels() is not None
    )


def takes(layout: Layout) -> bool:
    """Whether the kernels know this embedding size and these arities."""
    return layout.size in (16, 32, 64) and max((2, *layout.arities)) * layout.size <= MAX_WIDTH


def embed(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> list[Tensor]:
    """As `rgnn.embed_reference`; where messages are equally strong, the first gets the gradient."""
    plan = plan_of(batch, layout, depths, weights.device)
    if _differentiable(weights):
        return list(_Rounds.apply(weights, plan).unbind())  # type: ignore[no-untyped-call]
    saved = _forward(weights, plan, save=len(depths) > 1)
    return [saved.embeddings[slot] for slot in saved.slots(plan)]


def q_values(weights: Tensor, layout: Layout, batch: Batch, depths: Sequence[int]) -> list[Tensor]:
    """Q-values [Q] of all actions after each depth."""
    plan = plan_of(batch, layout, depths, weights.device)
    if _differentiable(weights):
        return list(_QValues.apply(weights, plan).unbind())  # type: ignore[no-untyped-call]
    saved = _forward(weights, plan, save=len(depths) > 1)
    return list(_read_out(weights, plan, saved).unbind())


def _differentiable(weights: Tensor) -> bool:
    return weights.requires_grad and torch.is_grad_enabled()


class _Saved(NamedTuple):
    """What the backward pass needs of each round."""

    embeddings: Tensor
    """[L + 1, N, D], or [2, N, D] in turns where nothing is saved; the others are empty then."""
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

    def slots(self, plan: Plan) -> tuple[int, ...]:
        """Where among the embeddings those of each depth are."""
        return plan.depths if len(self.hidden) else (plan.depths[-1] % 2,)

    def slots_at(self, plan: Plan) -> int:
        """Where `plan.ints` says so."""
        return plan.depths_at + (0 if len(self.hidden) else len(plan.depths))


def _forward(weights: Tensor, plan: Plan, *, save: bool) -> _Saved:
    layers, size, nodes = plan.depths[-1], plan.layout.size, plan.nodes
    kept, new = layers if save else 0, weights.new_empty
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
    _launch("forward", plan, (weights, plan.ints, counter, keys, *saved), (), SAVE=save)
    return saved


def _launch(
    name: str, plan: Plan, pointers: Sequence[Tensor], numbers: Sequence[int], **more: Any
) -> None:
    """All rounds in one launch; on a CPU, where programs take turns, a launch for each phase."""
    constants = _constants(plan, "ROWS", "NODE_ROWS", "WIDEST", "ARITIES", "MOST") | more
    constants |= {"num_warps": WARPS, "num_stages": 1}
    kernel, layers = getattr(kernels(), name)[(plan.programs,)], plan.depths[-1]
    if TOGETHER and plan.ints.device.type == "cuda":
        constants["launch_cooperative_grid"] = True
        kernel(*pointers, 0, layers, *numbers, PHASES=3, **constants)
        return
    rounds = range(layers) if name == "forward" else reversed(range(layers))
    for layer in rounds:
        for phase in (1, 2):
            kernel(*pointers, layer, layer + 1, *numbers, PHASES=phase, **constants)


def _constants(plan: Plan, *names: str) -> dict[str, Any]:
    """What a kernel is compiled for."""
    arities = plan.layout.arities
    known = {
        "ROWS": plan.rows,
        "NODE_ROWS": NODE_ROWS,
        "WIDEST": WIDEST,
        "STEP": STEP,
        "ARITIES": sum(1 << k for k in set(arities)),
        "MOST": max(arities, default=1),
    }
    fixed = {"D": plan.layout.size, "PRECISION": PRECISION}
    return fixed | {name: known[name] for name in names}


def _read_out(weights: Tensor, plan: Plan, saved: _Saved) -> Tensor:
    """Q-values [C, Q]."""
    slots = len(saved.slots(plan))
    q = weights.new_empty(slots, plan.actions)
    if plan.actions:
        module = _module()
        module.readout[(-(-plan.actions // NODE_ROWS), slots)](
            weights, plan.ints, saved.embeddings, q, saved.slots_at(plan),
            ROWS=NODE_ROWS, **_constants(plan, "STEP"),
        )  # fmt: skip
    return q


def _module() -> ModuleType:
    module = kernels()
    assert module is not None
    return module


class _Rounds(torch.autograd.Function):
    """Embeddings [C, N, D], forward and backward over the whole stack of rounds."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, plan: Plan) -> Tensor:
        ctx.plan, ctx.saved = plan, _forward(weights, plan, save=True)
        ctx.save_for_backward(weights)
        return torch.stack([ctx.saved.embeddings[depth] for depth in plan.depths])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, wanted: Tensor) -> tuple[Tensor | None, ...]:
        (weights,), plan = ctx.saved_tensors, ctx.plan
        others = _others(weights, plan)
        return _gradient(weights, plan, ctx.saved, wanted.contiguous(), others), None


class _QValues(torch.autograd.Function):
    """Q-values [C, Q], forward and backward through the rounds and the readout."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, plan: Plan) -> Tensor:
        ctx.plan, ctx.saved = plan, _forward(weights, plan, save=True)
        ctx.save_for_backward(weights)
        return _read_out(weights, plan, ctx.saved)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_q: Tensor) -> tuple[Tensor | None, ...]:
        (weights,), plan, saved = ctx.saved_tensors, ctx.plan, ctx.saved
        module, others, depths = _module(), _others(weights, plan), len(plan.depths)
        own = weights.new_empty(depths, plan.actions, plan.layout.size)
        total = torch.empty_like(own)
        module.readout_backward[(len(others),)](
            weights, plan.ints, saved.embeddings, grad_q.contiguous(), own, total, others,
            plan.depths_at, depths, others.shape[1], ROWS=NODE_ROWS, **_constants(plan, "STEP"),
        )  # fmt: skip
        wanted = weights.new_empty(depths, plan.nodes, plan.layout.size)
        if plan.nodes:
            module.readout_nodes[(-(-plan.nodes // NODE_ROWS), depths)](
                plan.ints, own, total, wanted, D=plan.layout.size, ROWS=NODE_ROWS, STEP=STEP
            )
        return _gradient(weights, plan, saved, wanted, others), None


def _others(weights: Tensor, plan: Plan) -> Tensor:
    """Room for the shares of the gradients of all weights but the messages'."""
    length = len(weights) - plan.layout.places["update.weight_in"][0]
    return weights.new_zeros(_shares(weights)[1], length)


def _shares(weights: Tensor) -> tuple[int, int]:
    return SHARES if weights.device.type == "cuda" else FEW_SHARES


def _gradient(weights: Tensor, plan: Plan, saved: _Saved, wanted: Tensor, others: Tensor) -> Tensor:
    """The weights' gradient from those of the embeddings [C, N, D].

    Of the readout's weights `others` has it; those of the update and norm are filled in.
    """
    new, like, layers = weights.new_empty, torch.empty_like, plan.depths[-1]
    counter = torch.zeros(4, dtype=torch.int32, device=weights.device)
    grad = new(plan.nodes, plan.layout.size)
    from_args = new(plan.arguments, plan.layout.size)
    strongest, normal, update = (like(saved.strongest) for _ in range(3))
    update_hidden, hidden = like(saved.update), like(saved.hidden)
    pointers = (
        weights, plan.ints, counter, saved.hidden, saved.winner, saved.update, saved.normal,
        saved.deviation, wanted, from_args, grad, strongest, normal, update, update_hidden, hidden,
    )  # fmt: skip
    numbers = (layers, len(plan.depths), plan.depths_at)
    _launch("backward", plan, pointers, numbers, STEP=STEP)
    messages = weights.new_zeros(_shares(weights)[0], len(weights) - others.shape[1])
    module = _module()
    if plan.jobs:
        module.message_gradients[(plan.jobs, len(messages))](
            messages, plan.ints, saved.embeddings, saved.hidden, saved.winner, strongest, hidden,
            layers, messages.shape[1], ROWS=GRADIENT_ROWS, **_constants(plan, "ARITIES", "MOST"),
        )  # fmt: skip
    module.update_gradients[(len(others),)](
        others, plan.ints, saved.embeddings, saved.strongest, saved.update, saved.normal,
        normal, update, update_hidden, layers, others.shape[1],
        ROWS=GRADIENT_ROWS, **_constants(plan),
    )  # fmt: skip
    return torch.cat((messages.sum(0), others.sum(0)))
