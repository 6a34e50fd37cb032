"""The mathematics of DQN as pure functions of tensors (paper, "Optimization").

Shapes by letter: B transitions of a batch.
"""

import math

import torch
from torch import Tensor


def td_target(next_value: Tensor, solved: Tensor, *, discount: float) -> Tensor:
    """y = r + γ max_a' Q(s', a', g) with r = -1, [B]; a step that reaches its goal has no future.

    `next_value` [B] is the maximum over the next state's actions, `solved` [B] is bool.
    """
    _check_same_shape(next_value, solved)
    return -1.0 + discount * next_value.masked_fill(solved, 0.0)


def at_most(target: Tensor, remaining: Tensor, *, discount: float) -> Tensor:
    """The target, no better than what is known of Q*(s, a, g), [B] (not in the paper).

    `remaining` [B] steps led from s to the goal, this one included, 0 if they never did. Q* = -1 if
    this step reaches the goal; no other step is worth more than two steps are.
    """
    _check_same_shape(target, remaining)
    most = torch.where(remaining == 1, -1.0, -1.0 - discount)
    return torch.minimum(target, most.to(target.dtype))


def at_least(target: Tensor, remaining: Tensor, *, discount: float) -> Tensor:
    """The target, no worse than what is known of Q*(s, a, g), [B] (not in the paper).

    `remaining` as for `at_most`: Q* >= -(1 + γ + ... + γ^(remaining-1)) if the goal was reached.
    """
    _check_same_shape(target, remaining)
    steps = torch.where(remaining == 0, math.inf, remaining.to(target.dtype))
    least = -steps if discount == 1.0 else (discount**steps - 1.0) / (1.0 - discount)
    return torch.maximum(target, least)


def advantage_learning(target: Tensor, gap: Tensor, *, share: float) -> Tensor:
    """y - α (max_b Q(s, b, g) - Q(s, a, g)), [B] (Bellemare et al., AAAI 2016; not in the paper).

    `gap` [B] is the difference in brackets, `share` is α. The best action keeps its value, and the
    gaps to all others grow by up to 1 / (1 - α), so that they outweigh errors in the values.
    """
    _check_same_shape(target, gap)
    return target - share * gap


def below_others(best_other: Tensor, *, margin: float) -> Tensor:
    """The target of a step into a proven dead end, [B]: `margin` below the other actions.

    A large margin in place of a value (as in DQfD; Hester et al., AAAI 2018; not in the paper).
    What such a step is worth is not defined: the goal is never reached. `best_other` [B] is
    max_{b ≠ a} Q(s, b, g). It counts as -1 if it is above, as no value is.
    """
    return best_other.clamp(max=-1.0) - margin


def td_error(value: Tensor, target: Tensor) -> Tensor:
    """Q(s, a, g) - y, [..., B] as `value`, signed; no gradient flows into the target [B]."""
    _check_ends_alike(value, target)
    return value - target.detach()


def huber_loss(error: Tensor, *, delta: float) -> Tensor:
    """½e² up to |e| = δ, then δ(|e| - ½δ), for each error (Huber 1964; the paper has δ = 1)."""
    size = error.abs()
    return torch.where(size <= delta, 0.5 * error**2, delta * (size - 0.5 * delta))


def weighted_mean(loss: Tensor, weight: Tensor) -> Tensor:
    """[...], the mean of the losses [..., B], each times its importance weight [B]."""
    _check_ends_alike(loss, weight)
    return (loss * weight).mean(-1)


def priority(error: Tensor) -> Tensor:
    """|TD error| [B], unweighted and plus a little, so that no transition is forgotten."""
    return error.detach().abs() + 1e-6


def _check_same_shape(a: Tensor, b: Tensor) -> None:
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {tuple(a.shape)} and {tuple(b.shape)}")


def _check_ends_alike(a: Tensor, b: Tensor) -> None:
    if a.shape[-1:] != b.shape:
        raise ValueError(f"shapes differ: {tuple(a.shape)} does not end in {tuple(b.shape)}")
