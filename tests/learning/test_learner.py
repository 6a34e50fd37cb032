"""One optimisation step with the compiled kernel equals one with the network's definition."""

from itertools import chain
from random import Random

import numpy as np
import pytest
import torch

from regoal.config import HINDSIGHTS, TrainConfig
from regoal.domains.splits import DOMAINS, domain_pddl
from regoal.learning.hindsight import hindsight_goals, relabel
from regoal.learning.learner import Learner
from regoal.learning.replay import Sample
from regoal.learning.trajectory import Trajectory
from regoal.networks.encoder import Encoder
from regoal.networks.kernels.cpu import autograd
from regoal.networks.kernels.cpu import build as kernel_build
from regoal.networks.kernels.cpu import kernel as cpu_kernel
from regoal.networks.relations import relations_of
from regoal.planning.matching.library_schema import schema_of

TINY = {
    "blocks": {"blocks": 4},
    "childsnack": {"children": 3, "gluten_ratio": 0.4},
    "childsnack-af": {"children": 2, "gluten_ratio": 0.0},
    "delivery": {"side": 3, "packages": 2},
    "gripper": {"balls": 3},
    "hiking": {"couples": 2, "locations": 3},
    "miconic": {"people": 3, "floors": 4},
    "reward": {"side": 4, "rewards": 3},
    "spanner": {"nuts": 3, "longest_path": 3},
    "visitall": {"side": 4},
    "maze": {"side": 5, "nearest": 4, "farthest": 20},
}
"""Sizes of a small problem of every domain of the benchmark."""
STEPS = 20
OF_A_KIND = 4

TOLERANCES = {torch.float64: (1e-13, 1e-13), torch.float32: (2e-5, 2e-5)}
"""Of Q-values, losses and TD errors, absolute and relative; of gradients, as a share of the
largest."""


@pytest.fixture(params=TOLERANCES, ids=str)
def dtype(request):
    """The type of all numbers in the learner."""
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(torch.float32)


def drawn_transitions(read_task, walk, name):
    """Steps of two random walks under the problem's goal and all three kinds of hindsight goal."""
    rng = np.random.default_rng(0)
    kinds = [[] for _ in range(1 + len(HINDSIGHTS))]
    for seed in range(2):
        instance = DOMAINS[name].generate(Random(seed), **TINY[name])
        task = read_task(domain_pddl(name), instance.to_pddl())
        states, actions = walk(task, STEPS, seed)
        whole = Trajectory(tuple(states), tuple(actions), task.goal)
        kinds[0].extend(whole.transitions())
        for kind, hindsight in zip(kinds[1:], HINDSIGHTS, strict=True):
            for part in relabel(whole, hindsight_goals(hindsight, rng)):
                kind.extend(part.transitions())
    chosen = ([kind[i] for i in rng.integers(len(kind), size=OF_A_KIND)] for kind in kinds if kind)
    return list(chain(*chosen))


def after_one_step(network, transitions):
    """Q-values, loss, TD errors and the weights' gradient."""
    config = TrainConfig(layers=5, embedding_size=network.layout.size)
    learner = Learner(network, Encoder(network.relations), config)
    learner.target.to(network.weights.dtype)
    learner.sync_target()
    learner.target.weights.mul_(0.9)
    q_values = torch.cat(learner.q_values([(t.state, t.goal) for t in transitions]))
    weights = np.linspace(0.5, 1.0, len(transitions))
    sample = Sample(np.arange(len(transitions)), transitions, weights)
    loss, errors = learner.update(sample, depth=2)
    return q_values, torch.tensor(loss), errors, network.weights.grad


@pytest.mark.skipif(kernel_build.load_kernel(False) is None, reason="no C compiler")
@pytest.mark.parametrize("name", [name for name in DOMAINS if not name.endswith("-l")])
@pytest.mark.parametrize("count", [1, 2])
def test_the_kernel_learns_what_the_definition_learns(
    name, count, dtype, read_task, walk, policy, threads, monkeypatch
):
    threads(count)
    monkeypatch.setattr(cpu_kernel, "LEAST_WORK", 1)  # so that small batches are cut too
    transitions = drawn_transitions(read_task, walk, name)
    relations = relations_of(schema_of(transitions[0].state.task.domain))
    network = policy(relations, 32).to(dtype)
    assert autograd.available(network.weights, network.layout)
    assert len({t.goal for t in transitions}) > 2
    *found, gradient = after_one_step(network, transitions)
    monkeypatch.setenv("REGOAL_KERNEL", "0")
    network = policy(relations, 32).to(dtype)
    assert not autograd.available(network.weights, network.layout)
    *expected, reference = after_one_step(network, transitions)
    values, gradients = TOLERANCES[dtype]
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        torch.testing.assert_close(one, other, rtol=values, atol=values)
    scale = reference.abs().max()
    assert scale > 0
    torch.testing.assert_close(gradient / scale, reference / scale, rtol=0, atol=gradients)
