"""Checkpoints: a training that is restored goes on as if it had never stopped."""

import os
import time
from dataclasses import astuple, replace

import numpy as np
import pytest
import torch

from regoal.config import HINDSIGHTS, LAPTOP, PAPER
from regoal.errors import UsageError
from regoal.learning.checkpoint import KIND, read_checkpoint, save_checkpoint
from regoal.learning.dqn import train
from regoal.learning.learner import Learner
from regoal.learning.replay import Replay
from regoal.learning.snapshot import Training
from regoal.learning.streams import Streams
from regoal.learning.trajectory import Transition
from regoal.networks import tensor_file
from regoal.networks.encoder import Encoder
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.planning.goals import Atom, Goal
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of

DOMAIN = """(define (domain stacks)
  (:requirements :strips :derived-predicates :negative-preconditions)
  (:predicates (on ?x ?y) (table ?x) (clear ?x) (above ?x ?y) (used))
  (:derived (above ?x ?y) (or (on ?x ?y) (exists (?z) (and (on ?x ?z) (above ?z ?y)))))
  (:action stack :parameters (?x ?y)
    :precondition (and (table ?x) (clear ?x) (clear ?y) (not (= ?x ?y)))
    :effect (and (on ?x ?y) (used) (not (table ?x)) (not (clear ?y))))
  (:action unstack :parameters (?x ?y) :precondition (and (on ?x ?y) (clear ?x))
    :effect (and (table ?x) (clear ?y) (not (on ?x ?y)))))"""


def problem(names, goal):
    init = " ".join(f"(table {x}) (clear {x})" for x in names)
    return (
        f"(define (problem p) (:domain stacks) (:objects {' '.join(names)}) (:init {init}) "
        f"(:goal (and {goal})))"
    )


@pytest.fixture
def paths(tmp_path):
    (tmp_path / "domain.pddl").write_text(DOMAIN)
    texts = [
        problem("abc", "(on a b) (on b c)"),
        problem("cab", "(on c a) (not (table b))"),
        problem("abcd", "(above a d) (on b c)"),
    ]
    for i, text in enumerate(texts):
        (tmp_path / f"p{i}.pddl").write_text(text)
    return [tmp_path / "domain.pddl", *(tmp_path / f"p{i}.pddl" for i in range(len(texts)))]


def config_of(**changes):
    small = {"layers": 3, "embedding_size": 16, "updates": 4, "batch_size": 8, "horizon": 12}
    small |= {"replay_capacity": 60, "episodes": 6, "curriculum": PAPER.curriculum}
    return replace(LAPTOP, **{**small, **changes})


def training_of(paths, config, seed=0):
    """A training in a fresh state, of tasks that are read anew."""
    domain = load_domain(paths[0])
    tasks = [load_task(domain, path) for path in paths[1:]]
    relations = relations_of(schema_of(domain))
    network = QNetwork(relations, config.embedding_size, seed=seed)
    replay = Replay(
        config.replay_capacity, exponent=config.priority_exponent, weight=config.priority_weight
    )
    learner = Learner(network, Encoder(relations), config)
    return Training(tasks, learner, replay, Streams.from_seed(seed))


def numbers(stats):
    return astuple(stats)[:-2]  # without seconds


def contents(training):
    """Everything that a training holds, as values that do not name its tasks."""
    index = {task: i for i, task in enumerate(training.tasks)}
    learner, replay = training.learner, training.replay
    moments = learner.optimizer.state[learner.online.weights]
    return (
        {name: network.weights.tolist() for name, network in learner.networks().items()},
        {name: value.tolist() for name, value in moments.items()},
        [
            (index[t.state.task], t.state.atoms, t.action, t.next_state.atoms, t.goal, t.solved)
            for t in replay.transitions
        ],
        (replay.priorities.tolist(), replay.next_slot, replay.largest),
        [rng.bit_generator.state for rng in vars(training.streams).values()],
    )


@pytest.mark.parametrize("hindsight", HINDSIGHTS)
def test_a_restored_training_goes_on_with_the_same_numbers(tmp_path, paths, hindsight):
    config, file = config_of(hindsight=hindsight), tmp_path / "c.safetensors"
    straight = training_of(paths, config)
    expected = [numbers(stats) for stats in train(*straight)]
    stopped = training_of(paths, config)
    seen = []
    for stats in train(*stopped):
        seen.append(numbers(stats))
        if stats.episode in (1, 4):
            save_checkpoint(file, stopped, {"episode": stats.episode})
            kept = contents(stopped)
            checkpoint, notes = read_checkpoint(file)
            restored = training_of(paths, config, seed=99)
            checkpoint.restore(restored)
            assert notes == ()
            assert contents(restored) == kept
            rest = [numbers(x) for x in train(*restored, checkpoint.record["episode"])]
            assert seen + rest == expected
            assert contents(restored) == contents(straight)


def test_restoring_forgets_what_the_old_target_network_said(tmp_path, paths):
    config, file = config_of(), tmp_path / "c.safetensors"
    training = training_of(paths, config)
    next(train(*training))
    save_checkpoint(file, training, {})
    expected = [numbers(x) for x in train(*training, 1)][:2]
    other = training_of(paths, config, seed=5)
    for _ in train(*other):
        pass
    other.learner.update(other.replay.sample(8, np.random.default_rng(0)), 1)  # remembers values
    checkpoint, _ = read_checkpoint(file)
    checkpoint.restore(other)
    assert [numbers(x) for x in train(*other, 1)][:2] == expected


def test_before_the_first_episode_there_is_a_checkpoint_too(tmp_path, paths):
    training, file = training_of(paths, config_of()), tmp_path / "c.safetensors"
    save_checkpoint(file, training, {"any": [1, None]}, {"best": torch.arange(3.0)})
    checkpoint, _ = read_checkpoint(file)
    fresh = training_of(paths, config_of(), seed=3)
    checkpoint.restore(fresh)
    assert contents(fresh) == contents(training)
    assert checkpoint.record == {"any": [1, None]}
    assert checkpoint.extra["best"].tolist() == [0, 1, 2]


def test_equal_trainings_have_equal_files(tmp_path, paths):
    for name in ("a", "b"):
        training = training_of(paths, config_of())
        next(train(*training))
        save_checkpoint(tmp_path / name, training, {})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.fixture
def two(tmp_path, paths):
    """The newest of two checkpoints."""
    training, file = training_of(paths, config_of()), tmp_path / "checkpoint.safetensors"
    for stats in train(*training):
        save_checkpoint(file, training, {"episode": stats.episode})
    return file


def test_the_one_before_is_kept(two):
    assert read_checkpoint(two)[0].record == {"episode": 6}
    previous = two.with_name("checkpoint.previous.safetensors")
    assert read_checkpoint(previous)[0].record == {"episode": 5}
    two.unlink()  # killed between renaming the old one and writing the new one
    checkpoint, notes = read_checkpoint(two)
    assert (checkpoint.record, notes) == ({"episode": 5}, ())


@pytest.mark.parametrize("at", [0, 3, 40, 0.3, 0.6, 0.95, -1])
@pytest.mark.parametrize("cut", [True, False])
def test_a_damaged_newest_one_is_reported_and_the_one_before_is_used(two, at, cut):
    data = bytearray(two.read_bytes())
    at = int(at * len(data)) if isinstance(at, float) else at
    if cut:
        del data[at:]
    else:
        data[at] ^= 4
    two.write_bytes(data)
    checkpoint, notes = read_checkpoint(two)
    assert checkpoint.record == {"episode": 5}
    assert len(notes) == 1
    assert "checkpoint.safetensors is damaged" in notes[0]
    assert "\n" not in notes[0]
    assert not two.exists()  # or the next checkpoint would put it in the place of the whole one


def test_two_damaged_ones_are_an_error_and_none_is_none(tmp_path, two):
    for path in tmp_path.glob("checkpoint*"):
        path.write_bytes(b"PK\3\4")
    with pytest.raises(UsageError, match=r"checkpoint\.safetensors.*previous"):
        read_checkpoint(two)
    assert read_checkpoint(tmp_path / "nothing.safetensors") == (None, ())


def changed(path, change):
    """Give a checkpoint another content under a right checksum."""
    facts, tensors = tensor_file.read_tensor_file(path, KIND)
    change(facts, tensors)
    facts = {k: v for k, v in facts.items() if k not in ("format", "version")}
    tensor_file.write_tensor_file(path, KIND, facts, tensors)


def test_one_that_does_not_describe_a_training_counts_as_damaged(two):
    changed(two, lambda facts, _: facts.pop("record"))
    checkpoint, notes = read_checkpoint(two)
    assert checkpoint.record == {"episode": 5}
    assert len(notes) == 1
    previous = two.with_name("checkpoint.previous.safetensors")
    changed(previous, lambda facts, _: facts.update(record=[]))
    with pytest.raises(UsageError, match="does not describe a training"):
        read_checkpoint(two)


def test_states_without_all_of_their_atoms_are_refused(two, paths):
    cut = "replay/set_atoms"
    changed(two, lambda _, tensors: tensors.update({cut: tensors[cut][:-1]}))
    with pytest.raises(UsageError, match="made by another training: its states do not have"):
        read_checkpoint(two)[0].restore(training_of(paths, config_of()))


def test_a_full_disk_leaves_the_one_before(two, paths, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(OSError, match="no space"):
        save_checkpoint(two, training_of(paths, config_of()), {"episode": 7})
    monkeypatch.undo()
    assert read_checkpoint(two)[0].record == {"episode": 6}
    save_checkpoint(two, training_of(paths, config_of()), {"episode": 7})
    assert read_checkpoint(two)[0].record == {"episode": 7}
    assert not list(two.parent.glob("*.tmp"))


@pytest.mark.parametrize("change", [{"embedding_size": 32}, {"replay_capacity": 50}])
def test_another_training_is_refused(two, paths, change):
    checkpoint, _ = read_checkpoint(two)
    with pytest.raises(UsageError, match="made by another training"):
        checkpoint.restore(training_of(paths, config_of(**change)))


def test_other_problems_are_refused(two, paths):
    checkpoint, _ = read_checkpoint(two)
    for others in (paths[:2], [paths[0], paths[3], paths[1], paths[2]]):
        with pytest.raises(UsageError, match="made by another training"):
            checkpoint.restore(training_of(others, config_of()))


def test_a_full_replay_buffer_is_written_fast(tmp_path, paths):
    names = [f"b{i}" for i in range(14)]
    (tmp_path / "big.pddl").write_text(problem(names, "(on b0 b1)"))
    training = training_of([paths[0], tmp_path / "big.pddl"], config_of(replay_capacity=1000))
    task, rng = training.tasks[0], np.random.default_rng(0)
    goals = [Goal.of([Atom("on", (x, y)), Atom("clear", (x,))]) for x in names for y in names]
    while len(training.replay) < 1000:
        state = task.initial_state
        for _ in range(20):
            actions = task.applicable_actions(state)
            action = int(rng.integers(len(actions)))
            after, goal = task.successor(state, actions[action]), goals[rng.integers(len(goals))]
            training.replay.extend(
                [Transition(state, action, after, goal, int(after.satisfies(goal)))]
            )
            state = after
    assert len({t.state for t in training.replay.transitions}) > 800
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        save_checkpoint(tmp_path / "c.safetensors", training, {})
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.3
