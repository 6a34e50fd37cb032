"""The formulas of DQN on tables of three rows worked by hand."""

import pytest
import torch

from regoal.learning import td_learning


def test_target():
    # -1 + 0.9 * -2, a goal reached, -1 + 0.9 * 1
    target = td_learning.td_target(
        torch.tensor([-2.0, -7.0, 1.0]), torch.tensor([False, True, False]), discount=0.9
    )
    assert target.tolist() == pytest.approx([-2.8, -1.0, -0.1])


def bounded(target, remaining, *, discount):
    target = td_learning.at_most(target, remaining, discount=discount)
    return td_learning.at_least(target, remaining, discount=discount)


def test_bounds_of_a_target():
    # Unknown way, at least -1 / (1 - 0.9); three steps, -1 - 0.9 - 0.81; the last step, -1.
    remaining = torch.tensor([0, 0, 0, 3, 3, 3, 1, 1])
    target = torch.tensor([-12.0, -5.0, 0.5, -4.0, -2.5, -1.0, -3.0, -1.0])
    found = bounded(target, remaining, discount=0.9)
    assert found.tolist() == pytest.approx([-10, -5, -1.9, -2.71, -2.5, -1.9, -1, -1])


def test_bounds_without_discount():
    remaining = torch.tensor([0, 4, 4, 1])
    target = torch.tensor([-1e6, -9.0, 3.0, 0.0])
    found = bounded(target, remaining, discount=1.0)
    assert found.tolist() == [-1e6, -4, -2, -1]


def test_the_gap_to_the_best_action_is_taken_off():
    # The best action keeps -2; -2 - 0.9 * 1; -3 - 0.9 * 10
    target, gap = torch.tensor([-2.0, -2.0, -3.0]), torch.tensor([0.0, 1.0, 10.0])
    found = td_learning.advantage_learning(target, gap, share=0.9)
    assert found.tolist() == pytest.approx([-2.0, -2.9, -12.0])


def test_a_mistake_is_a_margin_below_the_other_actions():
    best_other = torch.tensor([-7.5, -1.0, 0.25])
    found = td_learning.below_others(best_other, margin=5.0)
    assert found.tolist() == [-12.5, -6.0, -6.0]


def test_error_is_value_minus_target():
    error = td_learning.td_error(torch.tensor([-2.0, 0.0, 5.0]), torch.tensor([-2.8, 3.0, 5.0]))
    assert error.tolist() == pytest.approx([0.8, -3.0, 0.0])


@pytest.mark.parametrize(("delta", "expected"), [(1.0, [0.32, 2.5, 0.5]), (2.0, [0.32, 4.0, 0.5])])
def test_huber(delta, expected):
    # ½ 0.8²; δ (3 - ½δ); ½ 1² on the seam of δ = 1
    loss = td_learning.huber_loss(torch.tensor([0.8, -3.0, 1.0]), delta=delta)
    assert loss.tolist() == pytest.approx(expected)


def test_huber_is_torchs():
    error = torch.linspace(-4, 4, 33)
    for delta in (0.5, 1.0, 3.0):
        expected = torch.nn.functional.huber_loss(
            error, torch.zeros(33), reduction="none", delta=delta
        )
        torch.testing.assert_close(td_learning.huber_loss(error, delta=delta), expected)


def test_weighted_mean():
    mean = td_learning.weighted_mean(torch.tensor([0.32, 2.5, 0.5]), torch.tensor([1.0, 0.5, 0.2]))
    assert mean.item() == pytest.approx((0.32 + 1.25 + 0.1) / 3)


def test_priority_is_unweighted_and_positive():
    priority = td_learning.priority(torch.tensor([0.8, -3.0, 0.0], requires_grad=True))
    assert priority.tolist() == pytest.approx([0.8 + 1e-6, 3.0 + 1e-6, 1e-6])
    assert not priority.requires_grad


@pytest.mark.parametrize("shape", [(2,), (3, 1), ()])
def test_shapes_that_would_broadcast_are_refused(shape):
    three, other = torch.zeros(3), torch.zeros(shape)
    for call in (
        lambda: td_learning.td_error(three, other),
        lambda: td_learning.weighted_mean(three, other),
        lambda: td_learning.td_target(three, other.bool(), discount=0.9),
        lambda: td_learning.at_most(three, other.long(), discount=0.9),
        lambda: td_learning.at_least(three, other.long(), discount=0.9),
        lambda: td_learning.advantage_learning(three, other, share=0.9),
    ):
        with pytest.raises(ValueError, match="shapes differ"):
            call()


def test_no_gradient_into_the_target():
    value = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    next_value = torch.tensor([0.5, 0.5, 0.5], requires_grad=True)
    target = td_learning.td_target(next_value, torch.zeros(3, dtype=torch.bool), discount=0.9)
    td_learning.td_error(value, target).sum().backward()
    assert value.grad.tolist() == [1.0, 1.0, 1.0]
    assert next_value.grad is None
