"""The learner, the training loop, and that a small policy is learnt."""

import dataclasses
import hashlib
import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regoal.learning.exploration
from regoal.config import Decay, TrainConfig
from regoal.evaluation.execution import execute
from regoal.learning import td_learning
from regoal.learning.dqn import train
from regoal.learning.learner import MISTAKE_MARGIN, Learner
from regoal.learning.problem_choice import smallest
from regoal.learning.replay import Replay, Sample
from regoal.learning.streams import Streams
from regoal.learning.trajectory import MISTAKE, Transition
from regoal.networks.encoder import Encoder
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.planning.goals import Goal
from regoal.planning.matching.library_schema import schema_of
from regoal.records.results import Outcome

STILL = Decay(start=1e-12, end=1e-12, episodes=1)
"""A step size that changes no weight in single precision."""

CONFIG = TrainConfig(
    episodes=3,
    embedding_size=16,
    layers=4,
    learning_rate=Decay(start=1e-3, end=1e-5, episodes=2),
    temperature=Decay(start=1.0, end=0.5, episodes=2),
    discount=0.9,
    updates=4,
    batch_size=8,
    replay_capacity=60,
    trajectories=2,
    horizon=15,
)


@pytest.fixture
def learner(relations, policy):
    network = policy(relations["blocks"], CONFIG.embedding_size)
    return Learner(network, Encoder(relations["blocks"]), CONFIG)


@pytest.fixture
def sample(tasks, walk):
    """Five made-up transitions, one of which reaches its goal, with unequal weights."""
    task = tasks["blocks"]["tower"]
    states, actions = walk(task, 5, seed=4)
    goals = [task.goal] * 4 + [Goal(states[5].atoms)]
    transitions = [
        Transition(states[i], actions[i], states[i + 1], goal, int(states[i + 1].satisfies(goal)))
        for i, goal in enumerate(goals)
    ]
    weights = np.array([1.0, 0.5, 0.25, 0.1, 0.05])
    return Sample(np.arange(5), transitions, weights)


def q_of(network, encoder, transition, layers):
    batch = encoder.batch([(transition.state, transition.goal)])
    return network(batch, [layers])[0][transition.action]


def errors_of(learner, transitions, layers):
    """Signed TD errors one by one, from the definition."""
    errors = []
    for t in transitions:
        batch = learner.encoder.batch([(t.next_state, t.goal)])
        future = learner.target.q_values(batch, learner.config.layers)[0].max()
        target = -1.0 if t.solved else -1.0 + learner.config.discount * future.item()
        errors.append(q_of(learner.online, learner.encoder, t, layers) - target)
    return torch.stack(errors)


# One optimisation step


def test_update_keeps_targets_within_their_bounds(learner, sample):
    # Weights drawn at random give values far from those that steps of cost 1 can have.
    free = errors_of(learner, sample.transitions, 4).detach()
    learner.config = dataclasses.replace(CONFIG, bound_targets=True)
    ways = [t._replace(remaining=1 if t.solved else 3) for t in sample.transitions]
    values = [q_of(learner.online, learner.encoder, t, 4).item() for t in ways]
    _, errors = learner.update(sample._replace(transitions=ways), depth=2)
    targets = (torch.tensor(values) - errors).tolist()
    discount = CONFIG.discount
    for t, target, error, value in zip(ways, targets, free.tolist(), values, strict=True):
        least, most = (-1.0, -1.0) if t.solved else (-1.0 - discount - discount**2, -1.0 - discount)
        assert target == pytest.approx(min(max(value - error, least), most), abs=1e-4)


def test_a_mistake_is_learnt_to_be_worse_than_the_other_actions(learner, sample):
    mistakes = [t._replace(remaining=MISTAKE) for t in sample.transitions]
    values = [q_of(learner.online, learner.encoder, t, 4).item() for t in mistakes]
    _, errors = learner.update(sample._replace(transitions=mistakes), depth=2)
    for t, value, error in zip(mistakes, values, errors.tolist(), strict=True):
        batch = learner.encoder.batch([(t.state, t.goal)])
        q = learner.target.q_values(batch, learner.config.layers)[0].tolist()
        others = [x for i, x in enumerate(q) if i != t.action] or q
        target = min(-1.0, max(others)) - MISTAKE_MARGIN
        assert value - error == pytest.approx(target, abs=1e-4)


def test_averaged_weights_follow_the_online_ones(relations, policy, sample):
    config = dataclasses.replace(CONFIG, average=0.6)
    network = policy(relations["blocks"], config.embedding_size)
    learner = Learner(network, Encoder(relations["blocks"]), config)
    expected = network.weights.detach().clone()
    for step in range(1, 17):
        learner.update(sample, depth=2)
        kept = min(0.6, step / (step + 9))  # 0.1, 0.18, ..., 0.59, 0.61
        expected = kept * expected + (1 - kept) * network.weights.detach()
    torch.testing.assert_close(learner.averaged.weights, expected)
    trained = learner.trained_weights()
    kept = trained != 0  # all but the relations that the sample does not have
    assert torch.equal(trained[kept], learner.averaged.weights[kept])


def test_without_averages_the_policy_is_the_online_network(learner):
    assert learner.averaged is learner.online


def test_update_returns_unweighted_errors_and_the_weighted_loss(learner, sample):
    last, early = (errors_of(learner, sample.transitions, n).detach() for n in (4, 2))
    loss, errors = learner.update(sample, depth=2)
    torch.testing.assert_close(errors, last, rtol=1e-4, atol=1e-4)
    weight = torch.from_numpy(sample.weights).float()
    expected = sum(
        (torch.nn.functional.huber_loss(e, torch.zeros(5), reduction="none") * weight).mean()
        for e in (last, early)
    )
    assert loss == pytest.approx(expected.item(), rel=1e-4)
    assert not errors.requires_grad


def test_the_gradient_is_that_of_the_weighted_loss(learner, sample):
    weight = torch.from_numpy(sample.weights).float()
    losses = [
        td_learning.weighted_mean(
            td_learning.huber_loss(errors_of(learner, sample.transitions, n), delta=1.0), weight
        )
        for n in (3, 4)
    ]
    (expected,) = torch.autograd.grad(sum(losses), learner.online.weights)
    learner.update(sample, depth=3)
    gradient = learner.online.weights.grad
    scale = expected.abs().max()
    torch.testing.assert_close(gradient / scale, expected / scale, rtol=0, atol=1e-4)


def test_weights_of_zero_change_nothing(learner, sample):
    before = learner.online.weights.detach().clone()
    nothing = sample._replace(weights=np.zeros(5))
    loss, errors = learner.update(nothing, depth=1)
    assert loss == 0.0
    assert errors.abs().max() > 0
    assert torch.equal(learner.online.weights, before)
    learner.update(sample, depth=1)
    assert not torch.equal(learner.online.weights, before)


def test_one_depth_counts_once(learner, sample):
    expected = errors_of(learner, sample.transitions, 4).detach()
    weight = torch.from_numpy(sample.weights).float()
    loss, _ = learner.update(sample, depth=4)
    huber = td_learning.huber_loss(expected, delta=1.0)
    assert loss == pytest.approx((huber * weight).mean().item(), rel=1e-4)


def test_the_target_network_follows_only_when_told(learner, sample):
    assert torch.equal(learner.target.weights, learner.online.weights)
    start = learner.target.weights.clone()
    for _ in range(2):
        learner.update(sample, depth=1)
    assert torch.equal(learner.target.weights, start)
    assert not torch.equal(learner.online.weights, start)
    learner.sync_target()
    assert torch.equal(learner.target.weights, learner.online.weights)
    learner.update(sample, depth=1)
    assert not torch.equal(learner.target.weights, learner.online.weights)
    assert learner.target.weights.grad is None


def test_remembered_target_values_are_fresh_ones(learner, sample):
    first = errors_of(learner, sample.transitions, 4).detach()
    # The second step finds all values remembered, the third only some: order and batch differ.
    learner.update(sample._replace(weights=np.zeros(5)), depth=1)
    order = [4, 2, 0, 0, 3, 1]
    shuffled = Sample(np.array(order), [sample.transitions[i] for i in order], np.zeros(len(order)))
    _, errors = learner.update(shuffled, depth=1)
    torch.testing.assert_close(errors, first[order], rtol=1e-4, atol=1e-4)
    # After new weights they are forgotten.
    with torch.no_grad():
        learner.online.weights.mul_(0.5)
    learner.sync_target()
    fresh = errors_of(learner, sample.transitions, 4).detach()
    _, errors = learner.update(sample._replace(weights=np.zeros(5)), depth=1)
    torch.testing.assert_close(errors, fresh, rtol=1e-4, atol=1e-4)
    assert (fresh - first).abs().max() > 1e-3


# The loop


def run(tasks, relations, policy, config, seed=0):
    encoder = Encoder(relations["blocks"])
    learner = Learner(policy(relations["blocks"], config.embedding_size), encoder, config)
    replay = Replay(
        config.replay_capacity, exponent=config.priority_exponent, weight=config.priority_weight
    )
    problems = [tasks["blocks"]["tower"], tasks["blocks"]["three"]]
    return learner, replay, train(problems, learner, replay, Streams.from_seed(seed))


def test_schedules_and_statistics_an_episode(tasks, relations, policy):
    learner, replay, episodes = run(tasks, relations, policy, CONFIG)
    seen = []
    for stats in episodes:
        (group,) = learner.optimizer.param_groups
        seen.append((stats.episode, group["lr"], stats.learning_rate, stats.temperature))
        assert torch.equal(learner.target.weights, learner.online.weights)
        assert replay.faults() == []
        assert stats.trajectories == 2
        assert stats.transitions >= stats.parts > 0
        assert stats.goal_size >= 1
        assert stats.trajectory_length == pytest.approx(stats.transitions / stats.parts)
    assert [x[0] for x in seen] == [1, 2, 3]
    assert [x[1] for x in seen] == pytest.approx([1e-3, 5.05e-4, 1e-5])
    assert [x[2] for x in seen] == pytest.approx([1e-3, 5.05e-4, 1e-5])
    assert [x[3] for x in seen] == pytest.approx([1.0, 0.75, 0.5])


@pytest.mark.parametrize("ladder", [False, True])
def test_an_episode_explores_at_its_temperatures(tasks, relations, policy, monkeypatch, ladder):
    used, real = [], regoal.learning.exploration.rollout

    def rollout(*arguments, temperatures, **options):
        used.append(temperatures)
        return real(*arguments, temperatures=temperatures, **options)

    monkeypatch.setattr(regoal.learning.exploration, "rollout", rollout)
    config = dataclasses.replace(CONFIG, ladder=ladder)
    list(run(tasks, relations, policy, config)[2])
    rungs = [[x, math.sqrt(x)] if ladder else [x, x] for x in (1.0, 0.75, 0.5)]
    assert used == [pytest.approx(rung) for rung in rungs]


class Sized:
    """A problem of which nothing but its size is asked."""

    def __init__(self, size):
        self.objects = range(size)


@given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=30), share=st.floats(1e-6, 2.0))
def test_the_smallest_problems(sizes, share):
    tasks = [Sized(size) for size in sizes]
    found = smallest(tasks, share)
    assert found == [task for task in tasks if task in found]
    left = [len(task.objects) for task in tasks if task not in found]
    largest = max(len(task.objects) for task in found)
    assert all(size > largest for size in left)
    wanted = math.ceil(share * len(sizes))
    assert len(found) >= min(wanted, len(sizes))
    assert sum(size < largest for size in sizes) < max(wanted, 1)


def test_an_episode_draws_from_the_smallest_problems(tasks, relations, policy, monkeypatch):
    drawn, real = [], regoal.learning.exploration.rollout

    def rollout(chosen, *arguments, **options):
        drawn.append({len(task.objects) for task in chosen})
        return real(chosen, *arguments, **options)

    monkeypatch.setattr(regoal.learning.exploration, "rollout", rollout)
    curriculum = Decay(start=0.1, end=1.0, episodes=2)
    config = dataclasses.replace(CONFIG, trajectories=20, curriculum=curriculum)
    list(run(tasks, relations, policy, config)[2])
    sizes = {len(task.objects) for task in tasks["blocks"].values()}
    assert len(sizes) == 2
    assert drawn[0] == {min(sizes)}
    assert drawn[2] == sizes


def test_priorities_are_unweighted_errors(tasks, relations, policy):
    config = dataclasses.replace(CONFIG, episodes=1, learning_rate=STILL, priority_weight=1.0)
    learner, replay, episodes = run(tasks, relations, policy, config)
    list(episodes)
    expected = errors_of(learner, replay.transitions, config.layers).detach().abs().numpy() + 1e-6
    priorities = replay.priorities[: len(replay)]
    sampled = priorities != 1.0
    assert sampled.any()
    assert priorities[sampled].tolist() == pytest.approx(expected[sampled].tolist(), rel=1e-3)


def test_nothing_to_learn_from(tasks, relations, policy):
    # From its initial state nothing is ever reached: the goal holds at once.
    config = dataclasses.replace(CONFIG, episodes=1)
    encoder = Encoder(relations["roads"])
    learner = Learner(policy(relations["roads"]), encoder, config)
    before = learner.online.weights.detach().clone()
    replay = Replay(10, exponent=0.6, weight=0.4)
    (stats,) = train([tasks["roads"]["done"]], learner, replay, Streams.from_seed(0))
    assert (stats.solved, stats.parts, stats.transitions, stats.loss) == (2, 0, 0, 0.0)
    assert torch.equal(learner.online.weights, before)


def test_training_goes_on_from_an_episode(tasks, relations, policy):
    learner, replay, _ = run(tasks, relations, policy, CONFIG)
    rest = train([tasks["blocks"]["three"]], learner, replay, Streams.from_seed(0), 2)
    assert [stats.episode for stats in rest] == [3]


def test_letting_go_of_states_changes_nothing(tasks, relations, policy, monkeypatch):
    weights, kept = [], []
    for every in (1000, 1):
        monkeypatch.setattr("regoal.learning.dqn.FORGET_EVERY", every)
        fresh = {"blocks": {name: task.renewed() for name, task in tasks["blocks"].items()}}
        learner, replay, episodes = run(fresh, relations, policy, CONFIG)
        list(episodes)
        weights.append(learner.online.weights.detach().clone())
        kept.append([(t.state.atoms, t.action, t.next_state.atoms) for t in replay.transitions])
        assert replay.faults() == []
    assert torch.equal(*weights)
    assert kept[0] == kept[1]


def test_states_from_before_never_equal_new_ones(tasks):
    task = tasks["blocks"]["three"].renewed()
    before = task.initial_state
    task.forget_states()
    assert task.initial_state != before
    assert task.initial_state.atoms == before.atoms
    assert task.state_of(before.fluent_atoms) == task.initial_state


def test_streams_do_not_shift_each_other():
    one, other = Streams.from_seed(7), Streams.from_seed(7)
    one.problems.random(100)
    assert one.replay.random() == other.replay.random()
    assert one.depth.random() != other.ties.random()
    assert Streams.from_seed(8).replay.random() != Streams.from_seed(7).replay.random()


GOLDEN = """
import hashlib, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from regoal.config import Decay, TrainConfig
from regoal.learning.dqn import train
from regoal.learning.streams import Streams
from regoal.learning.learner import MISTAKE_MARGIN, Learner
from regoal.learning.replay import Replay
from regoal.networks.encoder import Encoder
from regoal.networks.relations import relations_of
from regoal.networks.q_network import QNetwork
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.load import load_domain, load_task

domain = load_domain(Path(sys.argv[1]))
tasks = [load_task(domain, Path(path)) for path in sys.argv[2:]]
relations = relations_of(schema_of(domain))
still = Decay(start=1e-3, end=1e-3, episodes=1)
warm = Decay(start=1.0, end=1.0, episodes=1)
config = TrainConfig(episodes=2, embedding_size=16, layers=3, updates=3, batch_size=8, horizon=12,
                     learning_rate=still, temperature=warm)
network = QNetwork(relations, 16, seed=1)
learner = Learner(network, Encoder(relations), config)
replay = Replay(50, exponent=0.6, weight=0.4)
for stats in train(tasks, learner, replay, Streams.from_seed(5)):
    print(stats.parts, stats.transitions, stats.goal_size, stats.loss)
print(hashlib.sha256(network.weights.detach().numpy().tobytes()).hexdigest())
"""


def test_the_same_weights_in_every_process(tasks):
    problems = tasks["ferry"].values()
    paths = [str(next(iter(problems)).domain.path), *(str(task.path) for task in problems)]
    printed = []
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", GOLDEN, *paths],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        printed.append(done.stdout)
    assert printed[0] == printed[1]
    *episodes, digest = printed[0].splitlines()
    assert len(digest) == len(hashlib.sha256().hexdigest())
    assert any(float(line.split()[-1]) > 0 for line in episodes)


# Learning

CARRY = """(define (domain carry) (:requirements :strips)
  (:predicates (at ?b ?r) (robot ?r) (free) (holds ?b) (ball ?b) (room ?r))
  (:action move :parameters (?r ?s) :precondition (and (robot ?r) (room ?s))
    :effect (and (robot ?s) (not (robot ?r))))
  (:action grab :parameters (?b ?r) :precondition (and (at ?b ?r) (robot ?r) (free))
    :effect (and (holds ?b) (not (at ?b ?r)) (not (free))))
  (:action drop :parameters (?b ?r) :precondition (and (holds ?b) (robot ?r))
    :effect (and (at ?b ?r) (free) (not (holds ?b)))))"""


def carry_problem(rng, balls):
    names, rooms = [f"b{i}" for i in range(balls)], ["r0", "r1", "r2"]
    init = [f"(ball {b}) (at {b} {rng.choice(rooms)})" for b in names]
    init += [f"(room {r})" for r in rooms]
    goal = [f"(at {b} {rng.choice(rooms)})" for b in names]
    return (
        f"(define (problem p) (:domain carry) (:objects {' '.join(names + rooms)})"
        f" (:init {' '.join(init)} (free) (robot {rng.choice(rooms)}))"
        f" (:goal (and {' '.join(goal)})))"
    )


@pytest.mark.slow
def test_a_small_policy_is_learnt(read_task):
    # One robot carries balls between three rooms. As in a run, the best policy counts.
    rng = random.Random(3)
    training = [read_task(CARRY, carry_problem(rng, 1 + i % 3)) for i in range(30)]
    held_out = [read_task(CARRY, carry_problem(rng, 2 + i % 2)) for i in range(20)]
    config = TrainConfig(
        episodes=80,
        layers=4,
        learning_rate=Decay(start=2e-3, end=2e-4, episodes=60),
        temperature=Decay(start=1.0, end=0.1, episodes=30),
        updates=16,
        horizon=30,
        hindsight="lifted",
    )
    relations = relations_of(schema_of(training[0].domain))
    network, encoder = QNetwork(relations, 32, seed=1), Encoder(relations)
    learner = Learner(network, encoder, config)
    replay = Replay(1000, exponent=0.6, weight=0.4)
    coverage = [solved(network, encoder, held_out)]
    assert coverage[0] < len(held_out)
    for stats in train(training, learner, replay, Streams.from_seed(1)):
        assert np.isfinite(stats.loss)
        if stats.episode % 5 == 0:
            coverage.append(solved(network, encoder, held_out))
            if coverage[-1] == len(held_out):
                break
    # All but one, as rounding differs between processors and with it the course of a training.
    assert max(coverage) >= len(held_out) - 1, coverage


def solved(network, encoder, problems):
    ended = execute(network, encoder, problems, layers=4, max_steps=40)
    return sum(execution.outcome is Outcome.SOLVED for execution in ended)
