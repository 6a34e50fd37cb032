"""Episodes that are cut, and memory that runs out: neither changes what is learnt."""

import logging
from dataclasses import replace

import pytest
import torch

from regoal.config import LAPTOP
from regoal.learning.dqn import train
from regoal.learning.learner import Learner
from regoal.learning.replay import Replay
from regoal.learning.streams import Streams
from regoal.networks.encoder import Encoder
from regoal.networks.q_network import QNetwork

CONFIG = replace(
    LAPTOP, layers=3, embedding_size=16, updates=3, batch_size=5, horizon=6, trajectories=2,
    replay_capacity=20, episodes=4,
)  # fmt: skip


@pytest.fixture
def training(tasks, relations):
    def make():
        network = QNetwork(relations["blocks"], 16, seed=0)
        replay = Replay(20, exponent=0.6, weight=0.4)
        learner = Learner(network, Encoder(relations["blocks"]), CONFIG)
        return list(tasks["blocks"].values()), learner, replay, Streams.from_seed(1)

    return make


def values_of(training):
    _, learner, replay, streams = training
    moments = learner.optimizer.state[learner.online.weights]
    tensors = [*(n.weights for n in learner.networks().values()), *moments.values()]
    return (
        [t.detach().numpy().tobytes() for t in tensors],
        list(replay.transitions),
        replay.priorities.tobytes(),
        (replay.next_slot, replay.largest),
        streams.replay.bit_generator.state,
        streams.exploration.bit_generator.state,
        streams.problems.bit_generator.state,
        streams.depth.bit_generator.state,
    )


def stats_of(episodes):
    return [replace(x, explore_seconds=0, optimise_seconds=0) for x in episodes]


@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("asked", [1, 3, 7, 8, 9])
def test_a_cut_episode_leaves_no_trace(training, after, asked):
    whole, cut = training(), training()
    expected = stats_of(train(*whole))
    first = train(*cut)
    done = [next(first) for _ in range(after)]
    before, times = values_of(cut), []
    again = train(*cut, first_episode=after, stop=lambda: times.append(1) or len(times) >= asked)
    assert list(again) == []
    assert values_of(cut) == before
    rest = train(*cut, first_episode=after)
    assert stats_of([*done, *rest]) == expected
    assert values_of(cut) == values_of(whole)


def test_where_memory_runs_out_batches_are_halved_once(training, monkeypatch, caplog):
    _, learner, replay, streams = made = training()
    list(train(*made))
    sample = replay.sample(5, streams.replay)
    learner.optimizer.zero_grad()
    targets = learner._targets(sample.transitions)
    found = learner._add_gradient(sample, slice(0, 5), targets, 2)
    expected_loss, expected_errors = float(found[0]), found[1]
    expected = learner.online.weights.grad.clone()
    real, sizes = Learner._add_gradient, []

    def short(self, sample, part, *rest):
        sizes.append(part.stop - part.start)
        if sizes[-1] > 3:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to ...")
        return real(self, sample, part, *rest)

    monkeypatch.setattr(Learner, "_add_gradient", short)
    monkeypatch.setattr(learner.optimizer, "step", lambda: None)
    with caplog.at_level(logging.WARNING):
        loss, errors = learner.update(sample, 2)
        learner.update(sample, 2)
    assert sizes == [5, 2, 3, 2, 3]
    assert [record.message for record in caplog.records] == [
        "memory ran out: training goes on with half batches, which takes longer"
    ]
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    torch.testing.assert_close(errors, expected_errors)
    torch.testing.assert_close(learner.online.weights.grad, expected)
    with pytest.raises(RuntimeError, match="allocate"):
        learner.update(replay.sample(8, streams.replay), 2)


def test_other_errors_are_raised(training, monkeypatch):
    _, learner, replay, streams = made = training()
    list(train(*made))
    monkeypatch.setattr(
        Learner, "_add_gradient", lambda *_: (_ for _ in ()).throw(RuntimeError("x"))
    )
    with pytest.raises(RuntimeError, match="x"):
        learner.update(replay.sample(5, streams.replay), 2)
