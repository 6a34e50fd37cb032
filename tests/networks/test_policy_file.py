"""Policies on disk: they are exact, have the same bytes every time, and faults are noticed."""

import json
import os
import pickle
import struct

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regoal.errors import EXIT_USAGE, UsageError
from regoal.networks import policy_file
from regoal.networks.encoder import Encoder
from regoal.networks.policy_encoder import policy_encoder
from regoal.networks.policy_file import (
    Policy,
    describe_policy,
    find_policy,
    load_policy,
    save_policy,
    shipped_policies,
)
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.networks.tensor_file import Kind, read_tensor_file, write_tensor_file
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of

LAMPS = """(define (domain lamps) (:requirements :strips :typing) (:types lamp)
  (:predicates (lit ?l - lamp) (dark) (beside ?a ?b - lamp))
  (:action turn-on :parameters (?l - lamp) :precondition (dark)
    :effect (and (lit ?l) (not (dark))))
  (:action swap :parameters (?a ?b - lamp) :precondition (and (lit ?a) (beside ?a ?b))
    :effect (and (lit ?b) (not (lit ?a)))))"""
PROBLEM = """(define (problem two) (:domain lamps) (:objects x y - lamp)
  (:init (dark) (beside x y)) (:goal (lit y)))"""
RENAMED = LAMPS.replace("turn-on", "turnon").replace("beside", "next-to")
OTHER = """(define (domain walk) (:requirements :strips) (:predicates (at ?x))
  (:action go :parameters (?a ?b) :precondition (at ?a) :effect (and (at ?b) (not (at ?a)))))"""


def domain_of(folder, text, name="domain.pddl"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return load_domain(folder / name)


def policy_of(folder, seed=0):
    schema = schema_of(domain_of(folder, LAMPS))
    network = QNetwork(relations_of(schema), 4, seed=seed)
    return Policy(
        network.to_function(), schema, 3, {"seed": seed, "share": 0.1, "hindsight": "lifted"}
    )


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "policy.safetensors"
    save_policy(path, policy_of(tmp_path / "pddl"))
    return path


def assert_refused(path, match):
    with pytest.raises(UsageError, match=match) as error:
        load_policy(path)
    assert error.value.exit_code == EXIT_USAGE
    assert str(path) in str(error.value)
    assert len(str(error.value)) < 400 + len(str(path))


def test_what_is_read_is_what_was_written(tmp_path, saved):
    policy, read = policy_of(tmp_path / "pddl"), load_policy(saved)
    assert np.array_equal(read.network.weights, policy.network.weights)
    assert read.network.relations == policy.network.relations
    assert (read.schema, read.layers, read.facts) == (policy.schema, policy.layers, policy.facts)
    domain = domain_of(tmp_path / "pddl", LAMPS)
    (tmp_path / "p.pddl").write_text(PROBLEM)
    task = load_task(domain, tmp_path / "p.pddl")
    encoder, notes = policy_encoder(read, domain)
    batch = encoder.batch([(task.initial_state, task.goal)])
    own = Encoder(policy.network.relations).batch([(task.initial_state, task.goal)])
    assert np.array_equal(read.network.q_values(batch, 3)[0], policy.network.q_values(own, 3)[0])
    assert notes == ()


def test_equal_policies_have_equal_bytes_and_readable_names(tmp_path, saved):
    again = tmp_path / "again.safetensors"
    for _ in range(5):
        save_policy(again, policy_of(tmp_path / "pddl"))
        assert again.read_bytes() == saved.read_bytes()
    save_policy(again, load_policy(saved))
    assert again.read_bytes() == saved.read_bytes()
    save_policy(again, policy_of(tmp_path / "pddl", seed=1))
    assert again.read_bytes() != saved.read_bytes()
    names = safetensors.numpy.load_file(saved)
    assert names["message/state:beside/weight_in"].shape == (8, 8)
    assert {"update/weight_out", "norm/scale", "readout/bias_out"} <= names.keys()


def test_a_renamed_domain_is_read_with_a_note_and_another_is_refused(tmp_path, saved):
    policy = load_policy(saved)
    encoder, notes = policy_encoder(policy, domain_of(tmp_path / "renamed", RENAMED))
    assert encoder.relations == policy.network.relations
    assert "turn-on = turnon" in notes[0]
    assert "beside = next-to" in notes[0]
    with pytest.raises(UsageError, match=r"(?s)policy: lamps.*domain: walk"):
        policy_encoder(policy, domain_of(tmp_path / "other", OTHER))


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("executed",)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 7,
        b"(define (domain d))",
        struct.pack("<Q", 1 << 62) + b"{}",
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 100_000) + b"[" * 100_000,
        safetensors.numpy.save({"weights": np.zeros(3)}),
        safetensors.numpy.save({"weights": np.zeros(3)}, {"format": "pt"}),
        safetensors.numpy.save({"weights": np.zeros(3)}, {"regoal": "[1"}),
        safetensors.numpy.save({"weights": np.zeros(3)}, {"regoal": "[1]"}),
        safetensors.numpy.save({"weights": np.zeros(3)}, {"regoal": "{}"}),
        pickle.dumps(Bomb()),
    ],
    ids=range(13),
)
def test_what_is_no_policy_is_refused(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "policy.safetensors"
    path.write_bytes(data)
    assert_refused(path, "is not a policy")
    assert not (tmp_path / "executed").exists()


def test_missing_files_and_folders_are_refused(tmp_path):
    assert_refused(tmp_path / "none.safetensors", "not a file")
    assert_refused(tmp_path, "not a file")


def test_a_checkpoint_or_another_version_is_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensor_file(path, Kind("checkpoint", 1, oldest=1), {}, {"a": np.zeros(1)})
    assert_refused(path, "is a regoal checkpoint")
    for version in (0, 99):
        write_tensor_file(path, Kind("policy", version, version), {}, {"a": np.zeros(1)})
        assert_refused(path, f"version {version}")


def test_a_policy_of_the_first_version_is_read(saved):
    policy = load_policy(saved)
    facts, tensors = read_tensor_file(saved, policy_file.KIND)
    path = saved.with_name("first.safetensors")
    write_tensor_file(path, Kind("policy", 1, oldest=1), without_version(facts), tensors)
    older = load_policy(path)
    assert older.network.relations == policy.network.relations
    assert np.array_equal(older.network.weights, policy.network.weights)


def without_version(facts):
    return {key: value for key, value in facts.items() if key not in ("format", "version")}


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(share=st.floats(0, 1), bit=st.integers(0, 7), cut=st.booleans())
def test_any_cut_or_flipped_bit_is_noticed(saved, share, bit, cut):
    data = bytearray(saved.read_bytes())
    at = min(int(share * len(data)), len(data) - 1)
    if cut:
        del data[at:]
    else:
        data[at] ^= 1 << bit
    path = saved.with_name("damaged.safetensors")
    path.write_bytes(data)
    with pytest.raises(UsageError):
        load_policy(path)


def forged(saved, change_facts=lambda facts: None, change=lambda tensors: None):
    """Write a file with wrong content and a correct checksum."""
    facts = json.loads(json.loads(header(saved))["__metadata__"]["regoal"])
    del facts["sha256"]
    tensors = safetensors.numpy.load_file(saved)
    change_facts(facts)
    change(tensors)
    path = saved.with_name("forged.safetensors")
    write_tensor_file(path, policy_file.KIND, facts, tensors)
    return path


def header(path):
    data = path.read_bytes()
    return data[8 : 8 + int.from_bytes(data[:8], "little")]


@pytest.mark.parametrize(
    "facts",
    [
        {"embedding_size": 10**12},
        {"embedding_size": 0},
        {"embedding_size": -4},
        {"embedding_size": "many"},
        {"layers": 0},
        {"layers": 10**9},
        {"layers": None},
        {"relations": []},
        {"relations": [["goal", "lit", 1], ["state", "lit", 1]]},
        {"relations": [["state", "lit", 10**9]]},
        {"relations": 7},
        {"schema": {}},
        {"schema": None},
        {"training": 3},
    ],
    ids=str,
)
def test_impossible_descriptions_are_refused(saved, facts):
    assert_refused(
        forged(saved, lambda found: found.update(facts)), "not a valid policy|does not describe"
    )


def test_a_description_is_read_alone_and_refused_if_it_makes_no_sense(saved):
    found = load_policy(saved)
    assert describe_policy(saved) == (found.schema, found.layers)
    for facts in ({"layers": None}, {"schema": {}}):
        path = forged(saved, lambda had, facts=facts: had.update(facts))
        with pytest.raises(UsageError, match="does not describe"):
            describe_policy(path)
    with pytest.raises(UsageError, match="is not a file"):
        describe_policy(saved.parent / "none.safetensors")


def test_a_schema_with_huge_arities_is_refused(saved):
    def grow(facts):
        facts["schema"]["actions"][0]["arity"] = 10**12

    assert_refused(forged(saved, grow), "does not describe")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(saved, value):
    assert_refused(
        forged(
            saved,
            change=lambda t: t.update({"update/bias_in": np.full_like(t["update/bias_in"], value)}),
        ),
        "not finite",
    )


def test_weights_of_another_shape_or_type_are_refused(saved):
    assert_refused(forged(saved, change=lambda t: t.pop("update/bias_in")), "do not fit")
    assert_refused(forged(saved, change=lambda t: t.update(more=np.zeros(1))), "do not fit")
    half = {"update/bias_in": np.zeros(8, dtype=np.float16)}
    assert_refused(forged(saved, change=lambda t: t.update(half)), "32-bit")


def test_saving_leaves_the_old_file_when_it_fails(tmp_path, saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(OSError, match="no space"):
        save_policy(saved, policy_of(tmp_path / "pddl", seed=1))
    assert saved.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == [saved.name]


def test_policies_are_found_by_file_folder_and_name(tmp_path, saved, monkeypatch):
    assert find_policy(saved) == saved
    assert find_policy(str(tmp_path)) == saved
    monkeypatch.setattr(policy_file, "shipped_policies", lambda: {"lamps": saved})
    monkeypatch.chdir(tmp_path / "pddl")
    assert find_policy("lamps") == saved
    (tmp_path / "pddl" / "lamps").mkdir()
    assert find_policy("lamps") == saved  # an empty folder of this name does not hide it
    with pytest.raises(UsageError, match=r"blocks is not a policy: there is no such.*\(lamps\)"):
        find_policy("blocks")
    with pytest.raises(UsageError, match=r"holds no policy\.safetensors"):
        find_policy(tmp_path / "pddl")


def test_every_shipped_policy_can_be_read():
    for name, path in shipped_policies().items():
        policy = load_policy(path)
        assert describe_policy(path) == (policy.schema, policy.layers), name
