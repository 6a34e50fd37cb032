"""Running a network in numpy, with and without the kernel, compared with PyTorch."""

import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from networks.batches import batch_of, random_batch, random_weights
from networks.track_domains import TASKS
from regoal.domains.splits import DOMAINS, domain_pddl
from regoal.networks import inference, rgnn
from regoal.networks.encoder import Encoder
from regoal.networks.kernels.cpu import build as kernel_build
from regoal.networks.parameters import Layout
from regoal.networks.policy_encoder import policy_encoder
from regoal.networks.policy_file import load_policy, shipped_policies
from regoal.networks.q_network import QNetwork

needs_kernel = pytest.mark.skipif(kernel_build.load_kernel(False) is None, reason="no C compiler")

SMALL = {
    "blocks": {"blocks": 4},
    "childsnack": {"children": 3, "gluten_ratio": 0.4},
    "childsnack-af": {"children": 2, "gluten_ratio": 0.0},
    "delivery": {"side": 3, "packages": 2},
    "gripper": {"balls": 3},
    "hiking": {"couples": 2, "locations": 3},
    "maze": {"side": 5, "nearest": 4, "farthest": 20},
    "miconic": {"people": 3, "floors": 4},
    "reward": {"side": 4, "rewards": 3},
    "spanner": {"nuts": 3, "longest_path": 3},
    "visitall": {"side": 4},
}
"""Sizes of a small problem of every domain with a generator that a policy is shipped for."""


@pytest.fixture
def plain(monkeypatch):
    """Switch the kernel off, for this call and no longer."""

    def run(compute):
        with monkeypatch.context() as patch:
            patch.setenv("REGOAL_KERNEL", "0")
            return compute()

    return run


def test_every_shipped_policy_has_a_small_problem_here():
    assert SMALL.keys() | TASKS.keys() == shipped_policies().keys()


@needs_kernel
@pytest.mark.parametrize("name", [*SMALL, *TASKS])
def test_torch_numpy_and_the_kernel_give_equal_q_values(name, read_task, walk, plain):
    policy = load_policy(shipped_policies()[name])
    if name in SMALL:
        instance = DOMAINS[name].generate(random.Random(0), **SMALL[name])
        task = read_task(domain_pddl(name), instance.to_pddl())
    else:
        task = read_task(*TASKS[name])
    encoder, _ = policy_encoder(policy, task.domain)
    batch = encoder.batch([(state, task.goal) for state in walk(task, 6, 0)[0]])

    def compute(network):
        return np.concatenate([np.asarray(q) for q in network.q_values(batch, policy.layers)])

    network = QNetwork.from_function(policy.network)
    exact = plain(lambda: compute(network.double()))
    scale = max(1.0, np.abs(exact).max())
    for found in (
        compute(policy.network),
        plain(lambda: compute(policy.network)),
        plain(lambda: compute(network.float())),
    ):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found / scale, exact / scale, rtol=0, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    arities=st.lists(st.integers(1, 5), max_size=4),
    instances=st.integers(1, 5),
    layers=st.integers(1, 6),
)
def test_embeddings_without_the_kernel_are_those_of_torch(seed, arities, instances, layers):
    batch = random_batch(np.random.default_rng(seed), arities, instances)
    layout = Layout(tuple(arities), 10)
    weights = random_weights(layout, seed)
    (expected,) = rgnn.embed_reference(weights, layout, batch, [layers])
    found = inference.embed_plainly(weights.numpy(), layout, batch, layers)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-11, atol=1e-11)


def test_more_rows_than_a_block(monkeypatch):
    batch = random_batch(np.random.default_rng(5), (2, 1), 4)
    layout, weights = Layout((2, 1), 10), random_weights(Layout((2, 1), 10), 5).numpy()
    whole = inference.embed_plainly(weights, layout, batch, 3)
    values = inference.read_q_values(weights, layout, batch, whole)
    monkeypatch.setattr(inference, "BLOCK", 3)
    cut = inference.embed_plainly(weights, layout, batch, 3)
    np.testing.assert_allclose(cut, whole, rtol=1e-12, atol=1e-12)
    again = inference.read_q_values(weights, layout, batch, whole)
    np.testing.assert_allclose(again, values, rtol=1e-12, atol=1e-12)


def test_mish_by_hand():
    # mish(1) = tanh(log(1 + e)) and mish(0) = 0; large numbers stay as they are.
    found = inference.mish(np.array([0.0, 1.0, -1.0, 50.0, -1000.0]))
    np.testing.assert_allclose(found, [0.0, 0.86509839, -0.30340146, 50.0, 0.0], atol=1e-8)


def test_no_rounds_are_refused():
    layout = Layout((1,), 16)
    batch = batch_of((1,), [(1, [[[0]]])])
    with pytest.raises(ValueError, match="layers must be at least 1, got 0"):
        inference.embed(np.zeros(layout.length), layout, batch, 0)


def test_a_network_and_its_function(relations, policy, tasks):
    network = policy(relations["blocks"])
    function = network.to_function()
    again = QNetwork.from_function(function)
    assert torch.equal(again.weights, network.weights)
    assert again.relations == network.relations
    task = tasks["blocks"]["three"]
    batch = Encoder(relations["blocks"]).batch([(task.initial_state, task.goal)] * 2)
    for one, other in zip(function.q_values(batch, 4), network.q_values(batch, 4), strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-5, atol=1e-5)
    before = function.weights.copy()
    with torch.no_grad():
        network.weights.add_(1.0)  # the function has its own copy
    assert np.array_equal(function.weights, before)


def test_relations_whose_weights_are_zero_are_left_out(relations, policy):
    network = policy(relations["blocks"])
    for part in network.layout.mlp(network.weights.detach(), "message.1"):
        part.zero_()
    whole = network.to_function()
    smaller = whole.without_silent_relations()
    assert smaller.relations == (*whole.relations[:1], *whole.relations[2:])
    ours, theirs = (f.layout.parts(f.weights) for f in (whole, smaller))
    for name in ("weight_in", "bias_in", "weight_out", "bias_out"):
        assert np.array_equal(theirs[f"message.0.{name}"], ours[f"message.0.{name}"])
        assert np.array_equal(theirs[f"message.1.{name}"], ours[f"message.2.{name}"])
        assert np.array_equal(theirs[f"readout.{name}"], ours[f"readout.{name}"])


WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NoTorch())
from regoal.cli import main
main()
"""


def run_without_torch(*words):
    command = [sys.executable, "-c", WITHOUT_TORCH, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_policies_are_run_without_torch_and_training_says_what_it_needs(tmp_path):
    domain, problem = tmp_path / "domain.pddl", tmp_path / "p.pddl"
    domain.write_text(domain_pddl("blocks"))
    problem.write_text(DOMAINS["blocks"].generate(random.Random(0), blocks=4).to_pddl())
    files = ("--problems", tmp_path, "--out", tmp_path / "results.jsonl")
    for words in (
        ["plan", "blocks", domain, problem, "--out", tmp_path / "plan"],
        ["validate", domain, problem, tmp_path / "plan"],
        ["evaluate", "blocks", *files],
        ["report", tmp_path / "results.jsonl"],
        ["policies"],
        ["--help"],
    ):
        done = run_without_torch(*words)
        assert (done.returncode, done.stderr) == (0, ""), words
    done = run_without_torch("train", domain, "--problems", tmp_path, "--out", tmp_path / "run")
    assert done.returncode == 36
    assert done.stderr == (
        "regoal: error: Training and --device cuda need PyTorch: pip install 'regoal[train]'.\n"
    )
    assert not (tmp_path / "run").exists()
    done = run_without_torch(
        "plan", "blocks", domain, problem, "--out", tmp_path / "q", "--device", "cuda"
    )
    assert done.returncode == 36
    assert "pip install 'regoal[train]'" in done.stderr
