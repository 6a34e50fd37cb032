"""The network's definition, and the CPU kernel compared with it."""

import ctypes
import math
import os
import platform
import sys
import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from networks.batches import batch_of, random_batch, random_weights
from regoal.networks import rgnn
from regoal.networks.kernels.cpu import autograd
from regoal.networks.kernels.cpu import build as kernel_build
from regoal.networks.kernels.cpu import kernel as cpu_kernel
from regoal.networks.parameters import MLP, Layout
from regoal.networks.q_network import QNetwork


@pytest.fixture(autouse=True, scope="module")
def split_small_batches():
    """Split small batches into shards too, as the kernel usually splits large ones only."""
    before, cpu_kernel.LEAST_WORK = cpu_kernel.LEAST_WORK, 1
    yield
    cpu_kernel.LEAST_WORK = before


needs_kernel = pytest.mark.skipif(kernel_build.load_kernel(False) is None, reason="no C compiler")


def both(weights, layout, batch, depths):
    """Compute embeddings and some sum's gradients, by the kernel and by the definition."""
    generator = torch.Generator().manual_seed(1)
    found = []
    for embed in (autograd.embed, rgnn.embed_reference):
        leaf = weights.clone().requires_grad_()
        embeddings = embed(leaf, layout, batch, depths)
        generator.manual_seed(1)
        loss = sum(
            (x * torch.randn(x.shape, dtype=x.dtype, generator=generator)).sum() for x in embeddings
        )
        loss.backward()
        found.append(([x.detach() for x in embeddings], leaf.grad))
    return found


def assert_equal(weights, layout, batch, depths, *, values, gradients):
    (ours, grad), (reference, expected) = both(weights, layout, batch, depths)
    for one, other in zip(ours, reference, strict=True):
        torch.testing.assert_close(one, other, rtol=values, atol=values)
    scale = max(1.0, expected.abs().max().item())
    torch.testing.assert_close(grad / scale, expected / scale, rtol=0, atol=gradients)
    with torch.no_grad():
        inferred = autograd.embed(weights, layout, batch, depths)
    assert torch.equal(inferred[-1], ours[-1])
    torch.testing.assert_close(inferred, torch.stack(ours), rtol=values, atol=values)


# The kernel equals the definition


@needs_kernel
@pytest.mark.parametrize("name", ["blocks", "ferry", "odd", "lamp", "roads"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_on_domains(name, count, tasks, walk, encoders, threads):
    threads(count)
    encoder = encoders[name]
    pairs = []
    for seed in range(7):
        for task in tasks[name].values():
            states, _ = walk(task, seed, seed)
            pairs.append((states[-1], task.goal))
    batch = encoder.batch(pairs)
    for size, depths in [(16, [1]), (32, [2, 5])]:
        layout = Layout(tuple(r.arity for r in encoder.relations), size)
        weights = random_weights(layout, seed=3)
        assert autograd.fits(weights, layout, batch)
        assert_equal(weights, layout, batch, depths, values=1e-12, gradients=1e-10)


@needs_kernel
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    arities=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    instances=st.integers(1, 5),
    count=st.integers(1, 3),
    size=st.sampled_from([16, 32, 48]),
    depths=st.sets(st.integers(1, 6), min_size=1, max_size=3),
)
def test_on_random_relations(seed, arities, instances, count, size, depths):
    batch = random_batch(np.random.default_rng(seed), arities, instances)
    layout = Layout(tuple(arities), size)
    cpu_kernel.use_threads(count)
    try:
        assert_equal(
            random_weights(layout, seed), layout, batch, sorted(depths),
            values=1e-12, gradients=1e-10,
        )  # fmt: skip
    finally:
        cpu_kernel.use_threads(1)


@needs_kernel
@pytest.mark.parametrize(("arities", "size"), [((1, 2, 3), 32), ((5, 2), 16), ((2,), 512)])
def test_in_single_precision(arities, size):
    batch = random_batch(np.random.default_rng(7), arities, 4)
    layout = Layout(arities, size)
    weights = random_weights(layout, 7, torch.float32)
    if size > 100:
        weights *= 0.1
    assert_equal(weights, layout, batch, [1, 4], values=2e-4, gradients=1e-4)


@needs_kernel
def test_more_rows_than_a_block_and_the_widest_relation():
    # 1024 = 64 * 16 numbers are the longest row; other relations have more rows in a block.
    rng = np.random.default_rng(2)
    arities = (64, 1, 3)
    batch = random_batch(rng, arities, 3, most_nodes=150, most_atoms=200)
    layout = Layout(arities, 16)
    weights = random_weights(layout, 2) * 0.2
    assert autograd.fits(weights, layout, batch)
    assert_equal(weights, layout, batch, [2], values=1e-11, gradients=1e-10)


@needs_kernel
def test_neither_atoms_nor_nodes():
    layout = Layout((1, 3), 16)
    weights = random_weights(layout, 0)
    for instances in ([(3, [[], []])], [(1, [[], []]), (2, [[], []])], [(0, [[], []])]):
        assert_equal(weights, layout, batch_of((1, 3), instances), [1, 3], values=1e-12,
                     gradients=1e-12)  # fmt: skip
    none = Layout((), 16)
    assert_equal(random_weights(none, 0), none, batch_of((), [(2, [])]), [2], values=1e-12,
                 gradients=1e-12)  # fmt: skip


@needs_kernel
def test_threads_change_single_precision_gradients_by_rounding_only(threads):
    batch = random_batch(np.random.default_rng(4), (1, 2, 3), 9)
    layout = Layout((1, 2, 3), 32)
    weights = random_weights(layout, 4, torch.float32)
    runs = []
    for count in (1, 3, 3):
        threads(count)
        runs.append(both(weights, layout, batch, [5])[0])
    (values, gradient), (other_values, other), (_, again) = runs
    assert torch.equal(values[0], other_values[0])
    torch.testing.assert_close(gradient, other, rtol=1e-3, atol=1e-3)
    assert torch.equal(other, again)


@needs_kernel
def test_what_the_kernel_does_not_support():
    batch = random_batch(np.random.default_rng(0), (2,), 1)

    def fits(layout, dtype=torch.float32):
        return autograd.fits(torch.zeros(layout.length, dtype=dtype), layout, batch)

    assert fits(Layout((2,), 16))
    assert fits(Layout((2,), 16), torch.float64)
    assert not fits(Layout((2,), 16), torch.bfloat16)
    assert not fits(Layout((2,), 8))
    assert not fits(Layout((2,), 24))
    assert fits(Layout((64,), 16))
    assert not fits(Layout((65,), 16))
    assert not fits(Layout((1,), 528))


@needs_kernel
def test_too_many_messages_for_the_kernel(monkeypatch):
    batch = random_batch(np.random.default_rng(0), (2,), 3)
    layout = Layout((2,), 16)
    weights = torch.zeros(layout.length)
    monkeypatch.setattr(cpu_kernel, "MAX_ARGUMENTS", len(batch.args))
    assert autograd.fits(weights, layout, batch)
    monkeypatch.setattr(cpu_kernel, "MAX_ARGUMENTS", len(batch.args) - 1)
    assert not autograd.fits(weights, layout, batch)


def test_other_sizes_use_the_definition():
    batch = random_batch(np.random.default_rng(0), (2, 1), 2)
    layout = Layout((2, 1), 10)
    weights = random_weights(layout, 0)
    found = rgnn.embed(weights, layout, batch, [1, 3])
    expected = rgnn.embed_reference(weights, layout, batch, [1, 3])
    assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))


@pytest.mark.parametrize("depths", [[], [0], [0, 2], [2, 1], [3, 3], [-1]])
def test_depths_that_do_not_rise_are_refused(depths):
    layout = Layout((1,), 16)
    with pytest.raises(ValueError, match="depths must rise"):
        rgnn.embed(torch.zeros(layout.length), layout, batch_of((1,), [(1, [[[0]]])]), depths)


# Gradients


@needs_kernel
@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_finite_differences(seed):
    rng = np.random.default_rng(seed)
    layout = Layout((1, 2, 3), 16)
    batch = random_batch(rng, layout.arities, 2, most_nodes=5)
    weights = random_weights(layout, seed)
    readout = [torch.from_numpy(rng.normal(size=(batch.nodes, 16))) for _ in range(2)]

    def loss(w):
        return sum(
            (x * r).sum() for x, r in zip(autograd.embed(w, layout, batch, [2, 4]), readout,
                                          strict=True)
        )  # fmt: skip

    leaf = weights.clone().requires_grad_()
    loss(leaf).backward()
    used = layout.places["readout.weight_in"][0]
    for i in rng.choice(used, size=40, replace=False):
        step = torch.zeros_like(weights)
        step[i] = 1e-6
        slope = (loss(weights + step) - loss(weights - step)) / 2e-6
        assert leaf.grad[i].item() == pytest.approx(slope.item(), rel=1e-5, abs=1e-6)


@needs_kernel
def test_ties_between_relations_are_split_by_the_definition_and_not_by_the_kernel():
    # Without weights the messages of both relations are the node's own embedding, zero.
    layout = Layout((1, 1), 16)
    weights = random_weights(layout, 0)
    parts = layout.parts(weights)
    for name, part in parts.items():
        if name.startswith("message"):
            part.zero_()
    batch = batch_of((1, 1), [(1, [[[0]], [[0]]])])
    (_, ours), (_, reference) = both(weights, layout, batch, [1])
    first, second = (layout.parts(ours)[f"message.{i}.bias_out"] for i in (0, 1))
    half, other = (layout.parts(reference)[f"message.{i}.bias_out"] for i in (0, 1))
    assert first.abs().min() > 0
    assert not second.any()
    torch.testing.assert_close(half, other, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(first, half + other, rtol=1e-12, atol=1e-12)


@needs_kernel
def test_ties_between_equal_inputs_of_a_relation_agree():
    # A star: all leaves look the same, so all their messages to the centre are equal.
    layout = Layout((2, 1), 16)
    star = batch_of((2, 1), [(6, [[[0, leaf] for leaf in range(1, 6)], [[0]]])])
    for depths in ([1], [2, 5]):
        assert_equal(random_weights(layout, 9), layout, star, depths, values=1e-12, gradients=1e-12)


@needs_kernel
def test_one_backward_pass_only():
    layout = Layout((1, 2), 16)
    batch = random_batch(np.random.default_rng(1), (1, 2), 2)
    leaf = random_weights(layout, 1).requires_grad_()
    loss = autograd.embed(leaf, layout, batch, [2])[0].square().sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="one backward pass only"):
        loss.backward()


@needs_kernel
def test_no_second_derivatives():
    layout = Layout((1,), 16)
    batch = batch_of((1,), [(1, [[[0]]])])
    leaf = random_weights(layout, 1).requires_grad_()
    loss = autograd.embed(leaf, layout, batch, [2])[0].square().sum()
    (gradient,) = torch.autograd.grad(loss, leaf, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@needs_kernel
def test_weights_must_not_change_before_the_backward_pass():
    layout = Layout((1,), 16)
    leaf = random_weights(layout, 1).requires_grad_()
    loss = autograd.embed(leaf, layout, batch_of((1,), [(1, [[[0]]])]), [2])[0].sum()
    with torch.no_grad():
        leaf.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@needs_kernel
def test_two_forward_passes_before_their_backward_passes():
    layout = Layout((1, 2), 16)
    batches = [random_batch(np.random.default_rng(i), (1, 2), i + 1) for i in range(3)]
    weights = random_weights(layout, 1)
    expected = [both(weights, layout, batch, [3])[0][1] for batch in batches]
    leaves = [weights.clone().requires_grad_() for _ in batches]
    generator = torch.Generator()
    losses = []
    for leaf, batch in zip(leaves, batches, strict=True):
        (x,) = autograd.embed(leaf, layout, batch, [3])
        generator.manual_seed(1)
        losses.append((x * torch.randn(x.shape, dtype=x.dtype, generator=generator)).sum())
    for loss in (losses[1], losses[0], losses[2]):
        loss.backward()
    for leaf, gradient in zip(leaves, expected, strict=True):
        assert torch.equal(leaf.grad, gradient)


@needs_kernel
def test_from_several_threads_of_python(threads):
    threads(2)
    layout = Layout((1, 2), 16)
    batches = [random_batch(np.random.default_rng(i), (1, 2), 4) for i in range(4)]
    weights = random_weights(layout, 1)
    expected = [both(weights, layout, batch, [4])[0][1] for batch in batches]
    wrong = []

    def run(i):
        for _ in range(5):
            if not torch.equal(both(weights, layout, batches[i], [4])[0][1], expected[i]):
                wrong.append(i)

    running = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not wrong


@needs_kernel
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are copied on Linux")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_in_a_copy_of_the_process(threads):
    threads(2)
    layout, weights = Layout((1, 2), 16), random_weights(Layout((1, 2), 16), 1)
    batch = random_batch(np.random.default_rng(0), (1, 2), 6)
    expected = autograd.embed(weights, layout, batch, [4])
    child = os.fork()
    if not child:  # it must never run the other tests
        try:
            os._exit(not torch.equal(autograd.embed(weights, layout, batch, [4]), expected))
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert torch.equal(autograd.embed(weights, layout, batch, [4]), expected)


@needs_kernel
def test_in_a_thread_with_a_small_stack():
    layout = Layout((64, 2), 16)
    batch = random_batch(np.random.default_rng(3), (64, 2), 2, most_nodes=99, most_atoms=99)
    weights = random_weights(layout, 1)
    done = []
    before = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(
            target=lambda: done.append(both(weights, layout, batch, [2])[0][1])
        )
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert done[0].isfinite().all()


# Symmetry


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 100_000), size=st.sampled_from([10, 16]))
def test_embeddings_move_with_the_nodes_and_no_order_matters(seed, size):
    rng = np.random.default_rng(seed)
    arities = (1, 2, 4)
    nodes = int(rng.integers(2, 8))
    atoms = [rng.integers(nodes, size=(int(rng.integers(5)), k)) for k in arities]
    moved_to = rng.permutation(nodes)
    moved = [rng.permutation(moved_to[x]) if len(x) else x for x in atoms]
    layout = Layout(arities, size)
    weights = random_weights(layout, seed)
    one, other = (
        rgnn.embed(weights, layout, batch_of(arities, [(nodes, [x.tolist() for x in a])]), [3])[0]
        for a in (atoms, moved)
    )
    torch.testing.assert_close(other[moved_to], one, rtol=1e-10, atol=1e-10)


def test_one_round_by_hand():
    # A node without messages gets f + LayerNorm(MLP_U(0, 0)); the hidden layer is its bias.
    layout = Layout((1,), 4)
    weights = random_weights(layout, 5)
    parts = layout.parts(weights)
    hidden = [x * math.tanh(math.log1p(math.exp(x))) for x in parts["update.bias_in"].tolist()]
    out = np.array(hidden) @ parts["update.weight_out"].numpy() + parts["update.bias_out"].numpy()
    normal = (out - out.mean()) / math.sqrt(out.var() + 1e-5)
    expected = normal * parts["norm.scale"].numpy() + parts["norm.shift"].numpy()
    (found,) = rgnn.embed_reference(weights, layout, batch_of((1,), [(1, [[]])]), [1])
    assert found[0].tolist() == pytest.approx(expected.tolist(), rel=1e-12)


def test_readout_is_of_the_action_and_the_sum_of_the_objects(tasks, encoders, policy):
    encoder = encoders["blocks"]
    task = tasks["blocks"]["three"]
    network = policy(encoder.relations).double()
    batch = encoder.batch([(task.initial_state, task.goal)])
    (f,) = rgnn.embed_reference(network.weights.detach(), network.layout, batch, [2])
    parts = network.layout.parts(network.weights.detach())
    readout = MLP(*(parts[f"readout.{field}"] for field in MLP._fields))
    expected = [
        rgnn.apply_mlp(readout, torch.cat((f[node], f[:3].sum(dim=0)))[None]).item()
        for node in (3, 4)
    ]
    (q,) = network.q_values(batch, 2)
    assert q.tolist() == pytest.approx(expected, rel=1e-10)
    first, second = network(batch, [1, 2])
    assert second.tolist() == pytest.approx(expected, rel=1e-10)
    assert (first - second).abs().max() > 1e-4


def test_the_same_seed_gives_the_same_weights(relations):
    one, same, other = (QNetwork(relations["blocks"], 16, seed=s).weights for s in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


# Numbers too small for a full mantissa


@needs_kernel
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="a mode of x86")
@pytest.mark.parametrize("count", [1, 2])
def test_small_numbers_are_zero_in_the_kernel_only(count, threads):
    threads(count)
    layout = Layout((1,), 16)
    weights = random_weights(layout, 0, torch.float32)
    layout.parts(weights)["norm.scale"].zero_()
    layout.parts(weights)["norm.shift"].fill_(1e-41)
    batch = batch_of((1,), [(1, [[[0]]]), (1, [[[0]]])])
    assert rgnn.embed_reference(weights, layout, batch, [1])[0].all()
    assert not autograd.embed(weights, layout, batch, [1])[0].any()
    leaf = weights.requires_grad_()
    autograd.embed(leaf, layout, batch, [1])[0].sum().backward()
    assert np.float32(1e-40) * np.float32(0.5) != 0
    assert (torch.tensor(1e-40) * 0.5).item() != 0


# The kernel merges nodes that look the same


def stages_of(layout, batch, layers=20):
    """Return, for each shard, the round before which each stage ends, and its number of nodes.

    They are read from the C structures: a count, two addresses, and fifteen numbers per stage.
    """
    weights = random_weights(layout, 0)
    call = cpu_kernel.prepare(weights.numpy(), layout, batch)
    x = np.zeros((4, batch.nodes, layout.size))
    call.run("infer", ctypes.c_int64(layers), *map(cpu_kernel.point_to, (x[:2], x[2], x[3])))
    stages = [numbers[3:][: 15 * numbers[0]].reshape(-1, 15) for numbers in call.stages]
    return [[(int(x[8]), int(x[7] - x[6])) for x in stage] for stage in stages]


def nodes_left(layout, batch):
    """Count the nodes on which the kernel works in the last rounds."""
    return sum(stages[-1][1] for stages in stages_of(layout, batch))


@needs_kernel
def test_nodes_that_look_the_same_are_merged():
    # Balls in two rooms: all balls of a room are alike, in each instance and in any number.
    rooms = [(n + m + 2, [[[2 + i, 0] for i in range(n)] + [[2 + n + i, 1] for i in range(m)],
                          [[0]]]) for n, m in [(3, 4), (5, 1), (2, 2)]]  # fmt: skip
    layout = Layout((2, 1), 16)
    batch = batch_of((2, 1), rooms)
    assert nodes_left(layout, batch) == 4
    for depths in ([1], [2, 5]):
        assert_equal(random_weights(layout, 3), layout, batch, depths, values=1e-12,
                     gradients=1e-12)  # fmt: skip


def chain(nodes):
    """Make a chain, whose nodes only refinement over its whole length can distinguish."""
    return (nodes, [[[i, i + 1] for i in range(nodes - 1)]])


@needs_kernel
def test_nodes_at_different_places_of_a_chain_are_not_merged(threads):
    layout = Layout((2,), 16)
    assert nodes_left(layout, batch_of((2,), [chain(9)])) == 9
    assert nodes_left(layout, batch_of((2,), [chain(9)] * 3)) == 9
    threads(3)
    assert nodes_left(layout, batch_of((2,), [chain(9)] * 3)) == 27


@needs_kernel
def test_the_first_rounds_run_on_smaller_graphs():
    # After t rounds, nodes at most t - 1 from an end of the chain can be distinguished.
    [stages] = stages_of(Layout((2,), 16), batch_of((2,), [chain(41)]), 30)
    assert stages[0] == (1, 3)
    assert [until for until, _ in stages] == sorted({until for until, _ in stages})
    assert all(nodes == min(41, 2 * until + 1) for until, nodes in stages[:-1])
    assert stages[-1] == (30, 41)
    # If there are fewer rounds, nodes that they cannot distinguish stay merged.
    assert stages_of(Layout((2,), 16), batch_of((2,), [chain(41)]), 5)[0][-1] == (5, 11)


@needs_kernel
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    count=st.integers(1, 3),
    depths=st.sets(st.integers(1, 20), min_size=1, max_size=3).map(sorted),
)
def test_stages_change_no_embedding_and_no_gradient(seed, count, depths):
    rng = np.random.default_rng(seed)
    layout = Layout((2, 1), 16)
    marked = [[[int(v)] for v in rng.integers(30, size=int(rng.integers(3)))] for _ in range(4)]
    chains = [(30, [*chain(30)[1], marks]) for marks in marked]
    cpu_kernel.use_threads(count)
    try:
        assert_equal(random_weights(layout, seed), layout, batch_of((2, 1), chains), depths,
                     values=1e-11, gradients=1e-9)  # fmt: skip
    finally:
        cpu_kernel.use_threads(1)


@needs_kernel
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 100_000), copies=st.integers(2, 4), count=st.integers(1, 3))
def test_copies_of_an_instance_are_merged_with_equal_results(seed, copies, count):
    rng = np.random.default_rng(seed)
    arities = (1, 2, 3)
    layout = Layout(arities, 16)
    nodes = int(rng.integers(2, 6))
    atoms = [rng.integers(nodes, size=(int(rng.integers(5)), k)).tolist() for k in arities]
    batch = batch_of(arities, [(nodes, atoms)] * copies)
    cpu_kernel.use_threads(count)
    try:
        if count == 1:
            assert nodes_left(layout, batch) <= nodes
        assert_equal(random_weights(layout, seed), layout, batch, [1, 4], values=1e-12,
                     gradients=1e-10)  # fmt: skip
    finally:
        cpu_kernel.use_threads(1)
