"""Workers that share the work. Here they are threads of one process that exchange values."""

import dataclasses
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.config import Decay, TrainConfig
from regoal.distributed import collectives as parallel
from regoal.distributed.collectives import ALONE, Workers
from regoal.learning.dqn import train
from regoal.learning.learner import Learner
from regoal.learning.replay import Replay, Sample
from regoal.learning.streams import Streams
from regoal.learning.trajectory import Transition
from regoal.networks.encoder import Encoder
from regoal.planning.goals import Goal

CONFIG = TrainConfig(
    episodes=3,
    embedding_size=16,
    layers=4,
    learning_rate=Decay(start=1e-3, end=1e-5, episodes=2),
    discount=0.9,
    updates=4,
    target_every=2,
    batch_size=8,
    replay_capacity=60,
    trajectories=2,
    horizon=15,
)


@dataclass(frozen=True)
class ThreadWorker(Workers):
    """A worker that runs in a thread."""

    barrier: threading.Barrier | None = None
    given: dict[int, object] = dataclasses.field(default_factory=dict)

    def gather(self, value):
        self.given[self.rank] = value
        self.barrier.wait(60)
        values = [self.given[rank] for rank in range(self.count)]
        self.barrier.wait(60)
        return values

    def sum(self, *tensors):
        parts = self.gather([tensor.detach().clone() for tensor in tensors])
        return [torch.stack(same).sum(dim=0) for same in zip(*parts, strict=True)]


def each(count, work):
    """Run `work` for each of so many workers, and return the results."""
    barrier, given = threading.Barrier(count), {}

    def run(rank):
        try:
            return work(ThreadWorker(rank, count, barrier, given))
        except BaseException:
            barrier.abort()  # else the others would wait for ever
            raise

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@given(st.integers(0, 50), st.integers(1, 9))
@settings(deadline=None)
def test_shares_leave_nothing_out_and_are_of_about_one_size(items, count):
    parts = [range(items)[Workers(rank, count).share(items)] for rank in range(count)]
    assert [i for part in parts for i in part] == list(range(items))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_one_worker_keeps_what_it_has():
    tensor = torch.tensor([1.0, 2.0])
    assert ALONE.sum(tensor)[0] is tensor
    assert ALONE.gather("x") == ["x"]
    assert ALONE.share(5) == slice(0, 5)


def some_transitions(task, walk):
    states, actions = walk(task, 7, seed=4)
    goals = [task.goal] * 6 + [Goal(states[7].atoms)]
    return [
        Transition(states[i], actions[i], states[i + 1], goal, int(states[i + 1].satisfies(goal)))
        for i, goal in enumerate(goals)
    ]


@pytest.mark.parametrize("count", [2, 3, 7])
def test_a_step_of_several_workers_is_that_of_one(tasks, relations, policy, walk, count):
    weights = np.array([1.0, 0.5, 0.25, 0.1, 0.05, 0.7, 0.2])

    def step(workers):
        transitions = some_transitions(tasks["blocks"]["tower"].renewed(), walk)
        learner = Learner(
            policy(relations["blocks"]), Encoder(relations["blocks"]), CONFIG, workers
        )
        loss, errors = learner.update(Sample(np.arange(7), transitions, weights), depth=2)
        known = [q.tolist() for q in learner._target_values.values()]
        return loss, errors, learner.online.weights.grad, known, learner.online.weights.detach()

    loss, errors, gradient, known, _ = step(ALONE)
    scale = gradient.abs().max()
    assert scale > 0
    found = each(count, step)
    for other in found:
        assert other[0] == pytest.approx(loss, rel=1e-5)
        torch.testing.assert_close(other[1], errors, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(other[2] / scale, gradient / scale, rtol=0, atol=1e-5)
        assert len(known) == 6
        for ours, theirs in zip(known, other[3], strict=True):
            assert theirs == pytest.approx(ours, rel=1e-5)
    for other in found[1:]:
        assert torch.equal(other[4], found[0][4])
        assert torch.equal(other[1], found[0][1])
        assert other[3] == found[0][3]


def trained(tasks, relations, policy, workers, config=CONFIG):
    """Train, and return the weights and the replay buffer as values that can be compared."""
    learner = Learner(policy(relations["blocks"]), Encoder(relations["blocks"]), config, workers)
    replay = Replay(config.replay_capacity, exponent=0.6, weight=0.4)
    problems = [tasks["blocks"][name].renewed() for name in ("tower", "three")]
    list(train(problems, learner, replay, Streams.from_seed(3)))
    kept = [
        (
            problems.index(t.state.task),
            t.state.atoms,
            t.action,
            t.next_state.atoms,
            t.goal,
            t.solved,
        )
        for t in replay.transitions
    ]
    return learner.online.weights.detach(), kept, replay.priorities.tolist()


def test_all_workers_stay_the_same(tasks, relations, policy):
    # Three workers share two trajectories, so one of them has none.
    first, *others = each(3, lambda workers: trained(tasks, relations, policy, workers))
    again = each(3, lambda workers: trained(tasks, relations, policy, workers))[0]
    for weights, kept, priorities in (*others, again):
        assert torch.equal(weights, first[0])
        assert kept == first[1]
        assert priorities == first[2]
    assert len(first[1]) > 10


def test_exploration_does_not_depend_on_how_many_workers_there_are(tasks, relations, policy):
    still = Decay(start=1e-12, end=1e-12, episodes=1)
    config = dataclasses.replace(CONFIG, learning_rate=still, trajectories=4, replay_capacity=500)

    def found(count):
        return each(count, lambda workers: trained(tasks, relations, policy, workers, config))[0][1]

    assert found(2) == found(3)


def test_a_connected_process_ends_without_taking_the_interpreter_down():
    # Its output is complete, and nothing runs that the interpreter does at its end.
    code = (
        "import atexit; from regoal.distributed import collectives; "
        "atexit.register(print, 'at exit'); print('said'); collectives.leave(3)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\n", "")
    with open("/dev/full", "w", encoding="utf-8") as full:
        buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
        words = [sys.executable, "-c", code]
        done = subprocess.run(words, stdout=full, env=buffered, check=False)
    assert done.returncode == 120


def test_this_process_knows_whether_it_was_connected(monkeypatch):
    monkeypatch.setattr(parallel, "was_connected", False)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{found.getsockname()[1]}"
    with parallel.connected(parallel.Workers(0, 1), address):
        pass
    assert parallel.was_connected
