"""Which device is used, and that all tensors of a computation are moved to it."""

import logging
import sys

import numpy as np
import pytest
import torch

from regoal import networks
from regoal.config import TrainConfig
from regoal.errors import EXIT_USAGE, UsageError
from regoal.learning.dqn import train
from regoal.learning.learner import Learner
from regoal.learning.replay import Replay
from regoal.learning.streams import Streams
from regoal.networks.device import device_called
from regoal.networks.encoder import Encoder
from regoal.networks.kernels.gpu import launch as gpu_kernel
from regoal.networks.parameters import Layout
from regoal.networks.policy_file import Policy, load_policy, save_policy
from regoal.networks.q_network import QNetwork
from regoal.planning.matching.library_schema import schema_of

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU")


def test_the_names_of_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_called("cpu").type == device_called("auto").type == "cpu"
    with pytest.raises(UsageError, match=r"CUDA is not available.*Use --device cpu") as caught:
        device_called("cuda")
    assert caught.value.exit_code == EXIT_USAGE
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for kernels, auto in [(gpu_kernel, "cuda"), (None, "cpu")]:
        monkeypatch.setattr(gpu_kernel, "load_kernels", lambda found=kernels: found)
        assert device_called("cpu").type == "cpu"
        assert device_called("cuda").type == "cuda"
        assert device_called("auto").type == auto


@pytest.fixture
def fresh_kernels():
    """Look for the kernels again during one test."""
    gpu_kernel.load_kernels.cache_clear()
    gpu_kernel.supports.cache_clear()
    yield
    gpu_kernel.load_kernels.cache_clear()
    gpu_kernel.supports.cache_clear()


@pytest.mark.usefixtures("fresh_kernels")
def test_without_triton_one_line_says_so(monkeypatch, caplog):
    monkeypatch.delattr(networks, "gpu_gradients", raising=False)
    monkeypatch.setitem(sys.modules, "regoal.networks.kernels.gpu.gradients", None)
    with caplog.at_level(logging.WARNING):
        assert gpu_kernel.load_kernels() is gpu_kernel.load_kernels() is None
    assert len(caplog.records) == 1
    assert "no fused GPU kernels" in caplog.text


@pytest.mark.parametrize(
    ("capability", "compiler", "expected"),
    [
        ((7, 5), "cc", "older than compute capability 8.0"),
        ((9, 0), None, "needs a C compiler"),
        ((8, 0), "cc", ""),
    ],
)
def test_what_triton_needs(monkeypatch, capability, compiler, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(gpu_kernel.shutil, "which", lambda name: compiler)
    assert expected in gpu_kernel._find_obstacle()
    assert bool(expected) == bool(gpu_kernel._find_obstacle())


@pytest.mark.usefixtures("fresh_kernels")
def test_sizes_that_the_gpu_kernels_support(caplog):
    for arities, size in [((1, 5, 8), 32), ((), 16), ((4,), 64), ((16,), 16)]:
        assert gpu_kernel.supports(Layout(arities, size))
    assert not caplog.records
    for arities, size in [((9,), 32), ((1,), 8), ((1,), 48), ((1,), 256)]:
        assert not gpu_kernel.supports(Layout(arities, size))
        assert not gpu_kernel.supports(Layout(arities, size))
    assert len(caplog.records) == 4


def test_every_index_of_a_batch_is_moved(tasks, relations, encoders):
    # On the device without storage, an operation fails if one of its inputs is on another device.
    meta = torch.device("meta")
    for name in ("blocks", "ferry"):
        pairs = [(task.initial_state, task.goal) for task in tasks[name].values()]
        batch = encoders[name].batch(pairs)
        network = QNetwork(relations[name], 16, seed=0).to(meta)
        early, late = network(batch, [1, 3])
        assert early.device == late.device == meta
        assert early.shape == (sum(batch.action_counts),)


CONFIG = TrainConfig(
    episodes=2, embedding_size=16, layers=3, updates=4, batch_size=8, horizon=10, trajectories=2
)


def trained(tasks, relations, device):
    learner = Learner(
        QNetwork(relations["blocks"], 16, seed=1).to(device), Encoder(relations["blocks"]), CONFIG
    )
    replay = Replay(50, exponent=0.6, weight=0.4)
    problems = [tasks["blocks"]["tower"], tasks["blocks"]["three"]]
    losses = [stats.loss for stats in train(problems, learner, replay, Streams.from_seed(5))]
    return learner, losses


@pytest.mark.gpu
@needs_gpu
def test_a_gpu_gives_the_numbers_of_the_cpu_and_a_policy_for_it(tasks, relations, tmp_path):
    task = tasks["blocks"]["tower"]
    (_, near), (learner, far) = (trained(tasks, relations, d) for d in ("cpu", "cuda"))
    np.testing.assert_allclose(
        far[:1], near[:1], rtol=1e-3
    )  # later numbers come from other choices
    assert learner.target.weights.is_cuda
    assert not learner.trained_weights().is_cuda
    (q,) = learner.q_values([(task.initial_state, task.goal)])
    policy = Policy(learner.online.to_function(), schema_of(task.domain), CONFIG.layers, {})
    save_policy(tmp_path / "policy.safetensors", policy)
    read = load_policy(tmp_path / "policy.safetensors").network
    batch = learner.encoder.batch([(task.initial_state, task.goal)])
    np.testing.assert_allclose(
        read.q_values(batch, CONFIG.layers)[0], q.numpy(), rtol=1e-4, atol=1e-4
    )
