"""States, actions and goals as relations: worked out by hand, in batches, under other names."""

import gc
import random
import weakref
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import FERRY, FERRY_TWO
from regoal.networks.encoder import Encoder
from regoal.networks.relations import index_of, relations_of
from regoal.planning.actions import DUMMY_ACTION
from regoal.planning.goals import Atom, Goal
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.matching.schema import Matching, Symbol, match
from regoal.planning.pddl import library_text

ON_BC = Goal.of([Atom("on", ("b", "c"))])


def rows_of(encoder, batch):
    """Return the atoms of a batch by relation, as tuples of nodes."""
    found, start = {}, 0
    for relation, count, size in zip(
        encoder.relations, batch.atom_counts, batch.argument_counts, strict=True
    ):
        nodes = batch.args[start : start + size].reshape(count, relation.arity)
        if count:
            found[relation.kind, relation.name] = [tuple(row) for row in nodes.tolist()]
        start += size
    assert start == len(batch.args)
    return found


def q_by_action(network, encoder, state, goal, layers=3):
    batch = encoder.batch([(state, goal)])
    return dict(
        zip(
            map(str, encoder.state(state).actions),
            network.q_values(batch, layers)[0].tolist(),
            strict=True,
        )
    )


def after(task, *steps):
    state = task.initial_state
    for step in steps:
        found = {str(action): action for action in task.applicable_actions(state)}
        state = task.successor(state, found[step])
    return state


# Achieved goals

CARS = """(define (domain cars) (:requirements :strips)
  (:predicates (ferry-at ?p) (at ?c ?p) (on ?c) (free) (car ?c) (place ?p))
  (:action sail :parameters (?p ?q) :precondition (and (ferry-at ?p) (place ?q))
    :effect (and (ferry-at ?q) (not (ferry-at ?p))))
  (:action board :parameters (?c ?p) :precondition (and (at ?c ?p) (ferry-at ?p) (free))
    :effect (and (on ?c) (not (at ?c ?p)) (not (free))))
  (:action leave :parameters (?c ?p) :precondition (and (on ?c) (ferry-at ?p))
    :effect (and (at ?c ?p) (free) (not (on ?c)))))"""


def two_cars(first, second):
    """Write a problem with two cars that belong to q and r, and a ferry far from both."""
    return f"""(define (problem two) (:domain cars) (:objects a b p q r)
      (:init (car a) (car b) (place p) (place q) (place r) (ferry-at p) (free)
        (at a {first}) (at b {second}))
      (:goal (and (at a q) (at b r))))"""


PICTURES = """(define (domain pictures) (:requirements :strips)
  (:predicates (place ?p) (camera ?c) (taken ?p ?c))
  (:action take :parameters (?p ?c) :precondition (and (place ?p) (camera ?c))
    :effect (taken ?p ?c)))"""


def four_pictures(*taken):
    """Write a problem that asks for pictures of two places by two cameras; some are taken."""
    return f"""(define (problem four) (:domain pictures) (:objects p q c d)
      (:init (place p) (place q) (camera c) (camera d) {" ".join(f"(taken {x})" for x in taken)})
      (:goal (and (taken p c) (taken p d) (taken q c) (taken q d))))"""


@pytest.mark.parametrize("achieved_goals", [False, True])
@pytest.mark.parametrize(
    ("domain", "problems"),
    [
        # In both states, each car is at a place that some car should be at, and each place has one
        # car. So without achieved goals, no weights and no number of rounds can distinguish them.
        pytest.param(CARS, [two_cars(*where) for where in ("qr", "rq")], id="cars"),
        # Each place has a picture and is a goal for both cameras, and each camera has taken one.
        # Only a message of a missing picture tells the states apart; one of an achieved does not.
        pytest.param(
            PICTURES,
            [four_pictures(*taken) for taken in (("p c", "p d", "q c", "q d"), ("p c", "q d"))],
            id="pictures",
        ),
    ],
)
def test_a_state_where_the_goal_holds_and_one_that_looks_alike(
    read_task, policy, domain, problems, achieved_goals
):
    tasks = [read_task(domain, problem) for problem in problems]
    relations = relations_of(schema_of(tasks[0].domain), achieved_goals=achieved_goals)
    network = policy(relations)
    there, elsewhere = (
        q_by_action(network, Encoder(relations), task.initial_state, tasks[0].goal, layers=8)
        for task in tasks
    )
    values, others = sorted(there.values()), sorted(elsewhere.values())
    assert (values == pytest.approx(others, abs=1e-5)) is not achieved_goals


@pytest.mark.parametrize("achieved_goals", [False, True])
def test_the_picture_that_is_missing(read_task, policy, achieved_goals):
    # Each place lacks one picture and has the other, and so does each camera. That a place and a
    # camera lack the same picture is a property of both.
    task = read_task(PICTURES, four_pictures("p c", "q d"))
    relations = relations_of(schema_of(task.domain), achieved_goals=achieved_goals)
    values = q_by_action(
        policy(relations), Encoder(relations), task.initial_state, task.goal, layers=8
    )
    useful, useless = values["(take p d)"], values["(take p c)"]
    assert (useful == pytest.approx(useless, abs=1e-5)) is not achieved_goals


def test_actions_and_atoms_that_mention_a_missing_literal(read_task):
    # Nodes: p 0, q 1, c 2, d 3, then (take p c) 4, (take p d) 5, (take q c) 6, (take q d) 7.
    domain = PICTURES.replace("(taken ?p ?c))", "(taken ?p ?c) (seen ?c ?p ?q))", 1).replace(
        ":precondition (and", ":precondition (and (not (seen ?c ?p ?p))"
    )
    problem = four_pictures("p c").replace("(:init", "(:init (seen d p q) (seen c p q)")
    task = read_task(domain, problem)
    encoder = Encoder(relations_of(schema_of(task.domain), achieved_goals=True))
    goal = Goal(frozenset({Atom("taken", ("p", "d"))}), frozenset({Atom("taken", ("p", "c"))}))
    assert [str(a) for a in encoder.state(task.initial_state).actions] == [
        "(take p c)", "(take p d)", "(take q c)", "(take q d)",
    ]  # fmt: skip
    rows = rows_of(encoder, encoder.batch([(task.initial_state, goal)]))
    assert rows["aim", "taken"] == [(5,)]
    assert rows["aim-not", "taken"] == [(4,)]
    assert rows["match", "taken"] == [(0, 2)]
    assert ("match", "seen") not in rows, "it never changes"


def test_goal_literals_that_are_true_are_achieved(read_task):
    # Nodes: a 0, b 1, p 2, q 3, r 4.
    task = read_task(CARS, two_cars("q", "q"))
    goal = Goal(frozenset(task.goal.atoms), frozenset({Atom("on", ("a",)), Atom("free", ())}))
    relations = relations_of(schema_of(task.domain), achieved_goals=True)
    encoder = Encoder(relations)
    rows = rows_of(encoder, encoder.batch([(task.initial_state, goal)]))
    assert rows["missing", "at"] == [(1, 4)]
    assert rows["achieved", "at"] == [(0, 3)]
    assert rows["achieved-not", "on"] == [(0,)]
    assert len(rows["missing-not", "free"]) == encoder.state(task.initial_state).nodes
    assert ("missing-not", "on") not in rows
    assert ("achieved-not", "free") not in rows
    holding = after(task, "(sail p q)", "(board a q)")
    rows = rows_of(encoder, encoder.batch([(holding, goal)]))
    assert rows["missing", "at"] == [(0, 3), (1, 4)]
    assert rows["missing-not", "on"] == [(0,)]
    assert ("achieved", "at") not in rows
    assert ("achieved-not", "on") not in rows
    assert ("missing-not", "free") not in rows
    assert len(rows["achieved-not", "free"]) == encoder.state(holding).nodes


# Worked out by hand


def test_three_blocks(tasks, encoders):
    # Nodes: a 0, b 1, c 2, (pick-up c) 3, (unstack a b) 4.
    task, encoder = tasks["blocks"]["three"], encoders["blocks"]
    batch = encoder.batch([(task.initial_state, task.goal)])
    names = [f"{r.kind} {r.name} {r.arity}" for r in encoder.relations]
    predicates = ("clear 1", "handempty 1", "holding 1", "on 2", "ontable 1")
    assert names == [
        *(f"state {name}" for name in predicates),
        *("action pick-up 2", "action put-down 2", "action stack 3", "action unstack 3"),
        *(f"missing {name}" for name in predicates),
        *(f"missing-not {name}" for name in predicates),
        *(f"achieved {name}" for name in predicates),
        *(f"achieved-not {name}" for name in predicates),
        *("aim on 1", "aim-not on 1", "match on 2"),
    ]
    assert batch.atom_counts.tolist() == [2, 5, 0, 1, 2, 1, 0, 0, 1, 0, 0, 0, 1] + [0] * 19
    assert batch.args.tolist() == [0, 2, 0, 1, 2, 3, 4, 0, 1, 1, 2, 3, 2, 4, 0, 1, 1, 2]
    assert batch.nodes == 5
    assert batch.object_nodes.tolist() == [0, 1, 2]
    assert batch.action_nodes.tolist() == [3, 4]
    assert batch.action_counts == (2,)


def test_a_second_instance_begins_behind_the_first(tasks, encoders):
    three, tower = tasks["blocks"]["three"], tasks["blocks"]["tower"]
    held = after(tower, "(pick-up b3)")
    batch = encoders["blocks"].batch([(three.initial_state, ON_BC), (held, tower.goal)])
    rows = rows_of(encoders["blocks"], batch)
    assert batch.node_counts.tolist() == [5, 4 + 4]
    assert rows["state", "clear"] == [(0,), (2,), (5,), (6,), (8,)]
    assert rows["state", "holding"] == [(7,)]
    assert rows["action", "put-down"] == [(9, 7)]
    assert rows["action", "stack"] == [(10, 7, 5), (11, 7, 6), (12, 7, 8)]
    assert rows["missing", "on"] == [(1, 2), (5, 6), (6, 7), (7, 8)]
    assert batch.object_instance.tolist() == [0] * 3 + [1] * 4
    assert batch.action_instance.tolist() == [0] * 2 + [1] * 4
    assert batch.instance_atom_counts.sum(axis=0).tolist() == batch.atom_counts.tolist()


def test_types_constants_static_atoms_and_negative_goals(tasks, encoders):
    # Nodes: depot 0, p 1, q 2, a 3, b 4, then (board a p) 5, (sail p q) 6.
    task, encoder = tasks["ferry"]["two"], encoders["ferry"]
    assert task.objects == ("depot", "p", "q", "a", "b")
    rows = rows_of(encoder, encoder.batch([(task.initial_state, task.goal)]))
    assert rows["type", "place"] == [(0,), (1,), (2,)]
    assert rows["type", "vehicle"] == [(3,), (4,)]
    assert rows["type", "car"] == [(3,)]
    assert rows["constant", "depot"] == [(0,)]
    assert not any(name == "object" for _, name in rows)
    assert rows["state", "route"] == [(0, 1), (1, 2), (2, 1)]
    assert rows["state", "fee"] == [(2,)]
    assert rows["missing", "at"] == [(3, 2)]
    assert rows["missing", "at-ferry"] == [(0,)]
    assert rows["achieved-not", "full"] == [(i,) for i in range(7)]
    assert ("achieved", "full") not in rows
    assert rows["action", "board"] == [(5, 3, 1)]
    assert rows["action", "sail"] == [(6, 1, 2)]


def test_a_negative_goal_is_not_a_positive_one(tasks, encoders, policy):
    task, encoder = tasks["ferry"]["two"], encoders["ferry"]
    network = policy(encoder.relations)
    at = [Atom("at", ("a", "p"))]
    wanted = q_by_action(network, encoder, task.initial_state, Goal.of(at))
    unwanted = q_by_action(network, encoder, task.initial_state, Goal.of([], at))
    assert all(abs(wanted[a] - unwanted[a]) > 1e-4 for a in wanted)


@pytest.mark.parametrize("kind", ["state", "goal", "goal-not"])
def test_a_0ary_atom_reaches_the_network(kind, read_task, policy):
    domain = """(define (domain door) (:requirements :strips) (:predicates (open) (at ?x) (shut))
      (:action go :parameters (?x) :precondition (at ?x) :effect (and (not (at ?x)) (open)))
      (:action out :parameters (?x) :precondition (and (open) (shut) (at ?x)) :effect (not (open)))
      )"""
    problem = """(define (problem p) (:domain door) (:objects x y)
      (:init (at x) (at y) {}) (:goal (and (at x) {})))"""
    extra = {"state": ("(open)", ""), "goal": ("", "(open)"), "goal-not": ("", "(not (open))")}
    plain = read_task(domain, problem.format("", ""))
    other = read_task(domain, problem.format(*extra[kind]))
    encoder = Encoder(relations_of(schema_of(plain.domain)))
    one = q_by_action(policy(encoder.relations), encoder, plain.initial_state, plain.goal)
    two = q_by_action(policy(encoder.relations), encoder, other.initial_state, other.goal)
    assert one.keys() == two.keys()
    assert all(abs(one[a] - two[a]) > 1e-4 for a in one)


def test_a_static_0ary_atom_reaches_action_nodes_too(read_task, policy):
    domain = """(define (domain d) (:requirements :strips) (:predicates (on) (at ?x))
      (:action go :parameters (?x) :precondition (and (on) (at ?x)) :effect (not (at ?x)))
      (:action stay :parameters (?x) :precondition (at ?x) :effect (at ?x)))"""
    problem = "(define (problem p) (:domain d) (:objects x y) (:init (at x) {}) (:goal (at y)))"
    without, with_on = (read_task(domain, problem.format(x)) for x in ("", "(on)"))
    encoder = Encoder(relations_of(schema_of(without.domain)))
    batch = encoder.batch([(with_on.initial_state, with_on.goal)])
    assert rows_of(encoder, batch)["state", "on"] == [(0,), (1,), (2,), (3,)]
    network = policy(encoder.relations)
    one = q_by_action(network, encoder, without.initial_state, without.goal)
    two = q_by_action(network, encoder, with_on.initial_state, with_on.goal)
    assert abs(one["(stay x)"] - two["(stay x)"]) > 1e-4


def test_a_domain_without_objects(tasks, encoders, policy):
    task, encoder = tasks["lamp"]["dark"], encoders["lamp"]
    network = policy(encoder.relations)
    dark, light = task.initial_state, after(task, "(light)")
    warm = after(task, "(light)", "(wait)")
    batch = encoder.batch([(dark, task.goal), (light, task.goal), (warm, task.goal)])
    assert batch.node_counts.tolist() == [1, 1, 1]
    assert len(batch.object_nodes) == 0
    rows = rows_of(encoder, batch)
    assert rows["state", "lit"] == [(1,)]
    assert rows["state", "warm"] == [(2,)]
    assert rows["missing", "warm"] == [(0,), (1,)]
    assert rows["achieved", "warm"] == [(2,)]
    values = [q.item() for q in network.q_values(batch, 2)]
    assert len({round(value, 4) for value in values}) == 3


def test_the_dummy_action_is_a_node_without_relations(tasks, encoders, policy):
    task, encoder = tasks["roads"]["end"], encoders["roads"]
    assert encoder.state(task.initial_state).actions == (DUMMY_ACTION,)
    batch = encoder.batch([(task.initial_state, task.goal)])
    assert batch.action_nodes.tolist() == [2]
    assert 2 not in batch.args.tolist()
    (q,) = policy(encoder.relations).q_values(batch, 2)
    assert q.shape == (1,)
    assert q.isfinite().all()


def test_odd_names_stay_apart(tasks, encoders):
    task, encoder = tasks["odd"]["more"], encoders["odd"]
    # Nodes: type 0, keys 1, to 2; (items …) needs (keys to), so (keys to) 3 and (train) 4.
    batch = encoder.batch([(task.initial_state, task.goal)])
    rows = rows_of(encoder, batch)
    assert [str(a) for a in encoder.state(task.initial_state).actions] == ["(keys to)", "(train)"]
    assert rows["type", "type"] == [(0,), (1,)]
    assert rows["type", "keys"] == [(2,)]
    assert rows["state", "to"] == [(0, 1), (1, 0)]
    assert rows["state", "train"] == [(i,) for i in range(5)]
    assert rows["action", "train"] == [(4,)]
    assert rows["action", "keys"] == [(3, 2)]
    assert rows["missing", "type"] == [(0,)]
    assert ("state", "keys") not in rows
    assert max(r.arity for r in encoder.relations) == 5


def test_symbols_of_no_action_are_left_out(read_task):
    domain = """(define (domain d) (:requirements :strips :typing) (:types a b)
      (:predicates (p ?x - a) (unused ?x - a))
      (:action go :parameters (?x - a) :precondition (p ?x) :effect (not (p ?x))))"""
    task = read_task(
        domain,
        "(define (problem q) (:domain d) (:objects x - a y - b) (:init (p x) (unused x))"
        " (:goal (and (p x) (unused x))))",
    )
    encoder = Encoder(relations_of(schema_of(task.domain)))
    assert [(r.kind, r.name) for r in encoder.relations] == [
        ("type", "a"), ("state", "p"), ("action", "go"), ("goal", "p"), ("goal-not", "p"),
    ]  # fmt: skip
    rows = rows_of(encoder, encoder.batch([(task.initial_state, task.goal)]))
    assert rows["goal", "p"] == [(0,)]


# Remembering


def test_states_are_encoded_once_and_the_oldest_forgotten(tasks, relations):
    task = tasks["blocks"]["three"]
    encoder = Encoder(relations["blocks"])
    first = encoder.state(task.initial_state)
    assert encoder.state(task.initial_state) is first
    small = Encoder(relations["blocks"], remember=first.numbers)
    first = small.state(task.initial_state)
    assert small.state(task.initial_state) is first
    small.state(after(task, "(pick-up c)"))
    assert small.state(task.initial_state) is not first
    nothing = Encoder(relations["blocks"], remember=0)
    batch = nothing.batch([(task.initial_state, task.goal)] * 2)
    assert batch.args.tolist() != []
    assert nothing.state(task.initial_state) is not nothing.state(task.initial_state)


def test_one_task_can_be_forgotten(tasks, relations):
    one, other = tasks["blocks"]["three"].renewed(), tasks["blocks"]["tower"]
    encoder = Encoder(relations["blocks"])
    kept = encoder.state(other.initial_state)
    before = encoder.batch([(one.initial_state, one.goal)])
    encoder.forget(one)
    assert encoder.state(other.initial_state) is kept
    again = encoder.batch([(one.initial_state, one.goal)])
    assert np.array_equal(again.args, before.args)
    encoder.forget(one)
    left = weakref.ref(one)
    del one, before, again
    gc.collect()
    assert left() is None


# Batches


def pairs_of(tasks, walk, name, seed, count=6):
    rng = np.random.default_rng(seed)
    pairs = []
    for i in range(count):
        problems = list(tasks[name].values())
        task = problems[int(rng.integers(len(problems)))]
        states, _ = walk(task, int(rng.integers(0, 8)), seed * 100 + i)
        other = states[int(rng.integers(len(states)))]
        goal = task.goal if rng.integers(2) else Goal(other.atoms)
        pairs.append((states[-1], goal))
    return pairs


@pytest.mark.parametrize("name", ["blocks", "ferry", "odd", "lamp", "roads"])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_a_batch_gives_what_each_instance_gives(tasks, walk, policy, relations, name, seed, data):
    encoder = Encoder(relations[name])
    network = policy(encoder.relations).double()
    pairs = pairs_of(tasks, walk, name, seed)
    order = data.draw(st.permutations(range(len(pairs))))
    alone = [network.q_values(encoder.batch([pair]), 4)[0] for pair in pairs]
    together = network.q_values(encoder.batch([pairs[i] for i in order]), 4)
    for i, q in zip(order, together, strict=True):
        torch.testing.assert_close(q, alone[i], rtol=1e-10, atol=1e-10)


def test_a_batch_in_single_precision(tasks, walk, policy, encoders):
    for name, encoder in encoders.items():
        network = policy(encoder.relations, 32)
        pairs = pairs_of(tasks, walk, name, seed=5, count=10)
        alone = [network.q_values(encoder.batch([pair]), 10)[0] for pair in pairs]
        together = network.q_values(encoder.batch(pairs), 10)
        for one, other in zip(alone, together, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["blocks", "ferry", "roads"])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_some_actions_alone_are_read_out(tasks, walk, policy, relations, name, seed, data):
    encoder = Encoder(relations[name])
    network = policy(encoder.relations).double()
    batch = encoder.batch(pairs_of(tasks, walk, name, seed))
    everything = torch.cat(network.q_values(batch, 4))
    chosen = sorted(data.draw(st.sets(st.integers(0, len(everything) - 1), min_size=1)))
    fewer = batch.only(np.array(chosen))
    assert sum(fewer.action_counts) == len(chosen)
    found = network.q_values(fewer, 4)
    assert tuple(map(len, found)) == fewer.action_counts
    torch.testing.assert_close(torch.cat(found), everything[chosen], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["blocks", "ferry", "odd", "lamp", "roads"])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 9))
def test_shards_cover_each_instance_once(tasks, walk, relations, name, seed, count):
    encoder = Encoder(relations[name])
    batch = encoder.batch(pairs_of(tasks, walk, name, seed))
    shards = batch.shards(count)
    assert 1 <= len(shards) <= count
    assert shards[0].first_node == 0
    assert shards[-1].last_node == batch.nodes
    assert not shards[0].begin.any()
    assert (shards[-1].end == batch.atom_counts).all()
    for one, other in pairwise(shards):
        assert one.last_node == other.first_node
        assert (one.end == other.begin).all()
    # No atom of a shard has an argument outside the shard's nodes.
    starts = np.cumsum(batch.argument_counts) - batch.argument_counts
    for shard in shards:
        assert shard.first_node < shard.last_node
        for r, relation in enumerate(encoder.relations):
            first, last = (starts[r] + x[r] * relation.arity for x in (shard.begin, shard.end))
            nodes = batch.args[first:last]
            assert ((shard.first_node <= nodes) & (nodes < shard.last_node)).all()


def test_atoms_of_two_parts_in_one_relation_stay_in_the_order_of_instances(tasks):
    # An artificial matching: a changeable and a static predicate become one relation.
    task = tasks["ferry"]["two"]
    schema = schema_of(task.domain)
    encoder = Encoder(relations_of(schema))
    encoder._index["state", "at-ferry"] = encoder._index["state", "fee"]
    batch = encoder.batch([(task.initial_state, task.goal)] * 3)
    rows = rows_of(encoder, batch)["state", "fee"]
    assert rows == [(2,), (1,), (9,), (8,), (16,), (15,)]


# Other names


RENAMED = """(define (domain towers) (:requirements :strips :typing) (:types object)
  (:predicates (is-clear ?x - object) (free-hand) (above ?x ?y - object) (held ?x - object)
    (on-table ?x - object) (painted ?x - object))
  (:action grab :parameters (?x - object)
    :precondition (and (is-clear ?x) (on-table ?x) (free-hand))
    :effect (and (held ?x) (not (on-table ?x)) (not (is-clear ?x)) (not (free-hand))))
  (:action drop :parameters (?x - object) :precondition (held ?x)
    :effect (and (is-clear ?x) (free-hand) (on-table ?x) (not (held ?x))))
  (:action put :parameters (?below ?x - object) :precondition (and (held ?x) (is-clear ?below))
    :effect (and (not (held ?x)) (not (is-clear ?below)) (is-clear ?x) (free-hand)
                 (above ?x ?below)))
  (:action take :parameters (?below ?x - object)
    :precondition (and (above ?x ?below) (is-clear ?x) (free-hand))
    :effect (and (held ?x) (is-clear ?below) (not (is-clear ?x)) (not (free-hand))
                 (not (above ?x ?below)))))"""

RENAMED_THREE = """(define (problem three) (:domain towers) (:objects c b a)
  (:init (above a b) (on-table b) (on-table c) (is-clear a) (is-clear c) (free-hand) (painted b))
  (:goal (and (above b c))))"""

NAMES = {"grab": "pick-up", "drop": "put-down", "put": "stack", "take": "unstack"}


def test_a_renamed_domain_gives_the_same_values(tasks, read_task, relations, policy):
    task, other = tasks["blocks"]["three"], read_task(RENAMED, RENAMED_THREE)
    matching = match(schema_of(task.domain), schema_of(other.domain))
    ours, theirs = Encoder(relations["blocks"]), Encoder(relations["blocks"], matching)
    network = policy(relations["blocks"]).double()
    here, there = task.initial_state, other.initial_state
    for step in ["take b a", "drop a", "grab b", "put a b", "take a b"]:
        one = q_by_action(network, ours, here, task.goal)
        two = q_by_action(network, theirs, there, other.goal)
        translated = {}
        for action, value in two.items():
            name, *objects = action.strip("()").split()
            translated[f"({' '.join((NAMES[name], *reversed(objects)))})"] = value
        assert translated == pytest.approx(one, rel=1e-10, abs=1e-10)
        name, *objects = step.split()
        same = f"({' '.join((NAMES[name], *reversed(objects)))})"
        found = {str(a): a for a in other.applicable_actions(there)}
        there = other.successor(there, found[f"({step})"])
        found = {str(a): a for a in task.applicable_actions(here)}
        here = task.successor(here, found[same])


TYPED = """(define (domain move) (:requirements :strips :typing) (:types ball room)
  (:predicates (in ?b - ball ?r - room))
  (:action move :parameters (?b - ball ?from ?to - room) :precondition (in ?b ?from)
    :effect (and (in ?b ?to) (not (in ?b ?from)))))"""

UNTYPED = """(define (domain move) (:requirements :strips)
  (:predicates (in ?b ?r) (ball ?b) (room ?r))
  (:action move :parameters (?from ?to ?b)
    :precondition (and (in ?b ?from) (ball ?b) (room ?from) (room ?to))
    :effect (and (in ?b ?to) (not (in ?b ?from)))))"""


@pytest.mark.parametrize("policy_is_typed", [True, False])
def test_a_type_can_match_a_static_predicate(read_task, policy, policy_is_typed):
    typed = read_task(
        TYPED,
        "(define (problem p) (:domain move) (:objects x y - ball r s - room)"
        " (:init (in x r) (in y s)) (:goal (in x s)))",
    )
    untyped = read_task(
        UNTYPED,
        "(define (problem p) (:domain move) (:objects r s x y)"
        " (:init (ball x) (ball y) (room r) (room s) (in x r) (in y s)) (:goal (in x s)))",
    )
    one, two = (typed, untyped) if policy_is_typed else (untyped, typed)
    relations = relations_of(schema_of(one.domain))
    matching = match(schema_of(one.domain), schema_of(two.domain))
    network = policy(relations).double()
    q = q_by_action(network, Encoder(relations), one.initial_state, one.goal)
    other = q_by_action(network, Encoder(relations, matching), two.initial_state, two.goal)

    def moves(values, is_typed):
        found = {}
        for action, value in values.items():
            _, *objects = action.strip("()").split()
            ball, source, to = objects if is_typed else (objects[2], *objects[:2])
            found[ball, source, to] = value
        return found

    assert moves(other, not policy_is_typed) == pytest.approx(
        moves(q, policy_is_typed), rel=1e-10, abs=1e-10
    )


def test_a_goal_is_never_read_as_a_type(read_task):
    # The policy's predicate `wet` is this domain's type `rain`, and there is a predicate `rain`.
    ours = schema_of(
        read_task(
            """(define (domain d) (:requirements :strips) (:predicates (wet ?x) (at ?x))
            (:action go :parameters (?x) :precondition (and (wet ?x) (at ?x))
              :effect (not (at ?x))))""",
            "(define (problem p) (:domain d) (:objects x) (:init (at x) (wet x)) (:goal (at x)))",
        ).domain
    )
    at, wet = Symbol("predicate", "at", 1), Symbol("predicate", "wet", 1)
    matching = Matching(
        {at: Symbol("predicate", "rain", 1), wet: Symbol("type", "rain", 1)},
        {"go": "go"},
        {"go": (0,)},
    )
    relations = relations_of(ours)
    index = index_of(relations, matching)
    names = {key: (relations[i].kind, relations[i].name) for key, i in index.items()}
    assert names == {
        ("state", "rain"): ("state", "at"),
        ("type", "rain"): ("state", "wet"),
        ("action", "go"): ("action", "go"),
        ("goal", "rain"): ("goal", "at"),
        ("goal-not", "rain"): ("goal-not", "at"),
    }


def test_an_action_with_existential_preconditions_keeps_its_own_arguments(read_task):
    task = read_task(
        """(define (domain d) (:requirements :adl) (:predicates (p ?x ?y) (q ?x))
        (:action go :parameters (?x) :precondition (exists (?y) (p ?x ?y)) :effect (q ?x)))""",
        "(define (problem e) (:domain d) (:objects x y z) (:init (p x y) (p x z)) (:goal (q x)))",
    )
    encoder = Encoder(relations_of(schema_of(task.domain)))
    rows = rows_of(encoder, encoder.batch([(task.initial_state, task.goal)]))
    assert rows["action", "go"] == [(3, 0)]


def test_the_order_of_objects_does_not_matter(read_task, tasks, encoders, policy):
    # Equivariance: another order of objects in the file permutes nodes and changes nothing else.
    task = tasks["blocks"]["tower"]
    text = task.path.read_text(encoding="utf-8").replace("b1 b2 b3 b4)\n", "b3 b1 b4 b2)\n")
    path = task.path.with_name("permuted.pddl")
    path.write_text(text, encoding="utf-8")
    other = load_task(task.domain, path)
    assert other.objects != task.objects
    encoder = encoders["blocks"]
    network = policy(encoder.relations).double()
    steps = ["(pick-up b2)", "(stack b2 b4)", "(pick-up b1)"]
    one = q_by_action(network, encoder, after(task, *steps), task.goal)
    two = q_by_action(network, encoder, after(other, *steps), other.goal)
    assert two == pytest.approx(one, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_a_large_task_has_the_input_of_a_small_one(tmp_path, monkeypatch, seed):
    """Equal index arrays give equal Q-values, whichever way actions are found."""
    (tmp_path / "domain.pddl").write_text(FERRY)
    (tmp_path / "p.pddl").write_text(FERRY_TWO)
    domain = load_domain(tmp_path / "domain.pddl")
    small = load_task(domain, tmp_path / "p.pddl")
    monkeypatch.setattr(library_text, "LARGE", 0)
    large = load_task(domain, tmp_path / "p.pddl")
    encoder = Encoder(relations_of(schema_of(domain), achieved_goals=True))
    rng, pair = random.Random(seed), (small.initial_state, large.initial_state)
    for _ in range(25):
        a, b = (encoder.batch([(state, small.goal)]) for state in pair)
        assert a.atom_counts.tolist() == b.atom_counts.tolist()
        assert np.array_equal(a.args, b.args)
        assert a.action_counts == b.action_counts
        action = rng.choice(small.applicable_actions(pair[0]))
        pair = (small.successor(pair[0], action), large.successor(pair[1], ground(large, action)))


def ground(task, action):
    """The action of another task with the same name and objects."""
    return action if action is DUMMY_ACTION else task.ground(action.name, action.objects)
