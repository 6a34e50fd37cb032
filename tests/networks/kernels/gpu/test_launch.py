"""The GPU kernels compared with the definition, on a GPU or in Triton's interpreter.

The interpreter needs `TRITON_INTERPRET=1` and the package triton. PyTorch for CPUs does not install
it, and it takes 640 MB. So these tests are skipped if it is missing.
"""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from networks.batches import batch_of, random_batch, random_weights
from regoal.networks import rgnn
from regoal.networks.kernels.gpu import launch as gpu_kernel
from regoal.networks.parameters import Layout
from regoal.networks.q_network import QNetwork

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu")
pytest.importorskip("triton", reason="no Triton: PyTorch for CPUs does not bring it")
if DEVICE.type == "cpu" and not INTERPRETED:
    pytest.skip("PyTorch sees no GPU; TRITON_INTERPRET=1 runs these", allow_module_level=True)

# The interpreter of Triton 3.6 converts arrays to sizes in a way that NumPy deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")


def gradient(embed, weights, layout, batch, depths):
    """Compute embeddings [C, N, D] and the gradient of a fixed random sum, as float64."""
    leaf = weights.clone().requires_grad_()
    generator = torch.Generator().manual_seed(1)
    found = embed(leaf, layout, batch, depths)
    factors = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    (found * factors.to(found)).sum().backward()
    return found.detach().double().cpu(), leaf.grad.double().cpu()


def assert_equal(layout, batch, depths, seed=0, *, values=2e-5, gradients=2e-5):
    """Compare the kernels in single precision with the definition in double precision."""
    weights = random_weights(layout, seed, torch.float32)
    expected = gradient(rgnn.embed_reference, weights.double(), layout, batch, depths)
    ours = [gradient(gpu_kernel.embed, weights.to(DEVICE), layout, batch, depths) for _ in range(2)]
    for found, wanted, limit in zip(ours[0], expected, (values, gradients), strict=True):
        scale = max(1.0, wanted.abs().max().item()) if wanted.numel() else 1.0
        torch.testing.assert_close(found / scale, wanted / scale, rtol=0, atol=limit)
    assert all(torch.equal(x, y) for x, y in zip(*ours, strict=True))
    with torch.no_grad():
        inferred = gpu_kernel.embed(weights.to(DEVICE), layout, batch, depths[-1:])[0]
    assert torch.equal(inferred.double().cpu(), ours[0][0][-1])


@pytest.mark.parametrize(
    ("arities", "size", "depths"),
    [
        ((1, 2, 3), 16, [1]),
        ((1, 2, 3), 32, [1, 4]),
        ((4, 2), 32, [2]),
        ((5, 1, 1), 32, [2, 3]),
        ((8,), 32, [2]),
        ((2, 1), 64, [2]),
    ],
)
def test_random_relations(arities, size, depths):
    batch = random_batch(np.random.default_rng(len(arities)), arities, 3)
    assert_equal(Layout(arities, size), batch, depths)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE.type == "cpu", reason="too slow in the interpreter")
@pytest.mark.parametrize("seed", range(4))
def test_many_rounds_of_large_batches(seed):
    batch = random_batch(np.random.default_rng(seed), (1, 2, 3, 4), 60, 40, 60)
    layout = Layout((1, 2, 3, 4), 32)
    assert_equal(layout, batch, [7, 30], seed, values=2e-4, gradients=1e-3)


def test_neither_atoms_nor_nodes():
    for instances in ([(3, [[], []])], [(1, [[], []]), (2, [[], []])], [(0, [[], []])]):
        assert_equal(Layout((1, 3), 16), batch_of((1, 3), instances), [1, 2])
    assert_equal(Layout((), 16), batch_of((), [(2, [])]), [2])


def test_ties_between_equal_inputs_of_a_relation():
    star = batch_of((2, 1), [(20, [[[0, leaf] for leaf in range(1, 20)], [[0]]])])
    assert_equal(Layout((2, 1), 16), star, [2])


def test_of_equal_messages_the_first_gets_the_gradient():
    # Without weights the messages of both relations are the node's own embedding, zero.
    layout = Layout((1, 1), 16)
    weights = random_weights(layout, 0, torch.float32)
    for name, part in layout.parts(weights).items():
        if name.startswith("message"):
            part.zero_()
    batch = batch_of((1, 1), [(1, [[[0]], [[0]]])])
    _, ours = gradient(gpu_kernel.embed, weights.to(DEVICE), layout, batch, [1])
    _, expected = gradient(rgnn.embed_reference, weights.double(), layout, batch, [1])
    first, second = (layout.part(ours, f"message.{i}.bias_out") for i in (0, 1))
    half, other = (layout.part(expected, f"message.{i}.bias_out") for i in (0, 1))
    assert not second.any()
    torch.testing.assert_close(first, half + other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["blocks", "ferry"])
def test_q_values_and_gradients_on_domains(name, tasks, walk, encoders, monkeypatch):
    # `odd` has relations of five arguments, `lamp` no objects.
    encoder = encoders[name]
    pairs = []
    for seed in range(2):
        for task in tasks[name].values():
            pairs.append((walk(task, seed, 3)[0][-1], task.goal))
    batch = encoder.batch(pairs)
    network = QNetwork(encoder.relations, 16, seed=1)
    network.weights.data.copy_(random_weights(network.layout, 3, torch.float32))
    exact = QNetwork(encoder.relations, 16, seed=1).double()
    exact.weights.data.copy_(network.weights.data)
    network.to(DEVICE)
    found = []
    monkeypatch.setattr(
        gpu_kernel, "available", lambda weights, layout: weights.dtype == torch.float32
    )
    for one in (network, exact):
        early, late = one(batch, [1, 3])
        (early.square().sum() + late.sum()).backward()
        found.append([x.detach().double().cpu() for x in (early, late, one.weights.grad)])
    for ours, expected in zip(*found, strict=True):
        scale = max(1.0, expected.abs().max().item())
        torch.testing.assert_close(ours / scale, expected / scale, rtol=0, atol=2e-5)


def test_objects_that_count_several_times():
    batch = random_batch(np.random.default_rng(1), (2,), 2)
    twice = np.sort(np.append(np.arange(batch.nodes), 0))
    instance = batch.action_instance[twice]
    batch = replace(batch, object_nodes=twice, object_instance=instance)
    layout = Layout((2,), 16)
    weights = random_weights(layout, 1, torch.float32)
    pairs = gpu_kernel.read(weights.to(DEVICE), layout, batch, [2]).cpu()[0]
    (f,) = rgnn.embed_reference(weights, layout, batch, [2])
    sums = torch.zeros(2, 16).index_add(0, torch.from_numpy(instance), f[twice])
    expected = torch.cat((f, sums[batch.action_instance]), dim=1)
    torch.testing.assert_close(pairs, expected, rtol=1e-4, atol=1e-4)
