"""What begins a relaxed plan: by hand, by definition, and as the network sees it."""

from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings

from networks.plain_relaxed_plans import find_steps
from networks.test_encoder import rows_of
from planning.strips_domains import domains, problems
from regoal.domains.splits import DOMAINS, domain_pddl, instances
from regoal.networks import relaxed_plans
from regoal.networks.encoder import Encoder
from regoal.networks.relations import relations_of
from regoal.networks.relaxed_plans import RelaxedPlans, RelaxedPlansOfTasks
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.matching.schema import match

# A van in a row of places fetches parcels and brings them to others.
VAN = """(define (domain van) (:requirements :strips :typing) (:types place parcel)
  (:predicates (van ?p - place) (at ?x - parcel ?p - place) (in ?x - parcel) (empty)
    (road ?p ?q - place) (closed))
  (:action drive :parameters (?p ?q - place) :precondition (and (van ?p) (road ?p ?q))
    :effect (and (van ?q) (not (van ?p))))
  (:action load :parameters (?x - parcel ?p - place)
    :precondition (and (van ?p) (at ?x ?p) (empty))
    :effect (and (in ?x) (not (at ?x ?p)) (not (empty))))
  (:action unload :parameters (?x - parcel ?p - place) :precondition (and (van ?p) (in ?x))
    :effect (and (at ?x ?p) (empty) (not (in ?x)))))"""


def row(length, van, parcels, more=""):
    """A problem with places p0, p1, ... in a row; each parcel is somewhere and belongs somewhere.

    A parcel that is at no place is in the van.
    """
    roads = [f"(road p{i} p{j})" for i in range(length) for j in (i - 1, i + 1) if 0 <= j < length]
    places = [
        f"(at x{i} p{a})" if a is not None else f"(in x{i})" for i, (a, _) in enumerate(parcels)
    ]
    empty = "" if any(a is None for a, _ in parcels) else "(empty)"
    goal = [f"(at x{i} p{b})" for i, (_, b) in enumerate(parcels)]
    return f"""(define (problem row) (:domain van)
      (:objects {" ".join(f"p{i}" for i in range(length))} - place
        {" ".join(f"x{i}" for i in range(len(parcels)))} - parcel)
      (:init (van p{van}) {empty} {" ".join((*roads, *places))} {more})
      (:goal (and {" ".join(goal)})))"""


def steps_of(task, state=None):
    state = state or task.initial_state
    missing = [fact for fact in task.goal.literals() if state.holds(fact[0]) != fact[1]]
    steps = RelaxedPlans(task).find_steps(state, missing)
    assert len(set(steps)) == len(steps)
    return {(str(step.action), step.towards) for step in steps}


def test_a_van_sees_where_the_nearest_parcel_is(read_task):
    # The relaxed plan also drives to p9, from where the van is; but to unload lacks two facts.
    task = read_task(VAN, row(10, 4, [(0, 9), (7, 9), (4, 4)]))
    assert steps_of(task) == {
        ("(drive p4 p3)", None),
        ("(drive p4 p5)", None),
        ("(drive p4 p3)", "drive"),
        ("(drive p4 p5)", "drive"),
        ("(drive p4 p5)", "load"),
    }


def test_a_van_that_is_full_sees_where_to_unload(read_task):
    # x1 is nearer than p0, where x0 belongs, but the van must be empty to load it.
    task = read_task(VAN, row(10, 4, [(None, 0), (5, 9)]))
    found = steps_of(task)
    assert {name for action, name in found if action == "(drive p4 p3)"} == {
        None,
        "drive",
        "unload",
    }
    assert {name for action, name in found if action == "(drive p4 p5)"} == {None, "drive"}
    assert ("(unload x0 p4)", None) in found, "it makes the van empty"


def test_what_is_out_of_reach_begins_nothing(read_task):
    problem = row(4, 0, [(3, 1)]).replace("(road p2 p3)", "")
    assert steps_of(read_task(VAN, problem)) == set()
    problem = row(4, 0, [(2, 1)]).replace("(:goal (and", "(:goal (and (closed) (not (road p0 p1))")
    assert ("(drive p0 p1)", "load") in steps_of(read_task(VAN, problem))


@pytest.mark.parametrize("kernel", ["1", "0"])
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(domain=domains(), problem=problems())
def test_random_domains(read_task, monkeypatch, kernel, domain, problem):
    monkeypatch.setenv("REGOAL_KERNEL", kernel)
    task = read_task(domain, problem)
    plans, state = RelaxedPlans(task), task.initial_state
    for _ in range(3):
        missing = [fact for fact in task.goal.literals() if state.holds(fact[0]) != fact[1]]
        found = plans.find_steps(state, missing)
        assert len(set(found)) == len(found)
        assert set(found) == find_steps(task, state, missing)
        actions = task.applicable_actions(state)
        assert {step.action for step in found} <= set(actions)
        state = task.successor(state, actions[-1]) if actions else state


def test_tasks_that_are_too_large_or_not_plain_have_none(read_task, monkeypatch):
    task = read_task(VAN, row(5, 0, [(4, 1)]))
    assert steps_of(task)
    monkeypatch.setattr(relaxed_plans, "MOST_ACTIONS", 7)
    assert steps_of(task) == set()
    monkeypatch.undo()
    monkeypatch.setattr("regoal.planning.fact_codes.LARGEST", 10)
    assert steps_of(task) == set()
    monkeypatch.undo()
    quantified = VAN.replace(
        "(and (van ?p) (in ?x))", "(and (van ?p) (exists (?y - parcel) (in ?y)))"
    )
    assert steps_of(read_task(quantified, row(5, 0, [(4, 1)]))) == set()


def test_tasks_that_were_used_long_ago_are_dropped(read_task, monkeypatch):
    tasks = [read_task(VAN, row(length, 0, [(length - 1, 1)])) for length in (4, 5, 6)]
    sizes, plans = [RelaxedPlans(task).actions for task in tasks], RelaxedPlansOfTasks()

    def ask(task, drive):
        action = task.applicable_actions(task.initial_state)[0]
        state = task.successor(task.initial_state, action) if drive else task.initial_state
        assert plans.find_steps(state, task.goal)

    monkeypatch.setattr(relaxed_plans, "MOST_KEPT", sizes[0] + sizes[2])
    for task, drive in ((tasks[0], False), (tasks[1], False), (tasks[0], True), (tasks[2], False)):
        ask(task, drive)
    assert list(plans._plans) == [tasks[0], tasks[2]]
    monkeypatch.setattr(relaxed_plans, "MOST_KEPT", 0)
    ask(tasks[1], True)
    assert list(plans._plans) == [tasks[1]]


def test_what_was_found_is_remembered_until_it_is_to_be_forgotten(read_task, monkeypatch):
    task, plans = read_task(VAN, row(5, 0, [(4, 1)])), RelaxedPlansOfTasks()
    found = plans.find_steps(task.initial_state, task.goal)
    assert plans.find_steps(task.initial_state, task.goal) is found
    monkeypatch.setattr(relaxed_plans, "MOST_REMEMBERED", 2 * len(found))
    state = task.initial_state
    for _ in range(2):
        state = task.successor(state, task.applicable_actions(state)[-1])
        plans.find_steps(state, task.goal)
    again = plans.find_steps(task.initial_state, task.goal)
    assert again is not found
    assert again == found
    for forget in (lambda: plans.forget(task), plans.forget_states):
        forget()
        once_more = plans.find_steps(task.initial_state, task.goal)
        assert once_more is not again
        assert once_more == again
        again = once_more


@pytest.mark.parametrize("name", [name for name in DOMAINS if not name.endswith("-l")])
def test_the_kernel_and_numpy_agree_on_the_built_in_domains(read_task, walk, name):
    instance = list(islice(instances(name, "train"), 12))[-1]
    task = read_task(domain_pddl(name), instance.to_pddl())
    plans = RelaxedPlans(task)
    assert plans.actions > 0
    for state in walk(task, 1, 8)[0]:
        missing = [fact for fact in task.goal.literals() if state.holds(fact[0]) != fact[1]]
        fast = plans.find_steps(state, missing)
        kernel, plans._kernel = plans._kernel, None
        assert sorted(map(str, plans.find_steps(state, missing))) == sorted(map(str, fast))
        plans._kernel = kernel
        assert fast or not missing or not task.applicable_actions(state)


# As the network sees it


@pytest.mark.parametrize("achieved_goals", [True, False])
def test_atoms_of_actions_that_begin_a_relaxed_plan(read_task, achieved_goals):
    # Nodes: p0 0, ..., p9 9, x0 10, x1 11; (drive p4 p3) 12, (drive p4 p5) 13, (unload x0 p4) 14.
    task = read_task(VAN, row(10, 4, [(None, 0), (5, 9)]))
    schema = schema_of(task.domain)
    encoder = Encoder(relations_of(schema, achieved_goals=achieved_goals, relaxed_plans=True))
    plain = Encoder(relations_of(schema, achieved_goals=achieved_goals))
    rows, others = (
        rows_of(e, e.batch([(task.initial_state, task.goal)])) for e in (encoder, plain)
    )
    assert rows.pop(("helpful", "drive")) == [(12,), (13,)]
    assert rows.pop(("helpful", "unload")) == [(14,)]
    assert rows.pop(("towards", "drive")) == [(12,), (13,)]
    assert rows.pop(("towards", "unload")) == [(12,)]
    assert rows == others


def test_a_renamed_domain_has_the_same_atoms(read_task):
    texts = VAN, row(10, 4, [(0, 9)])
    renamed = list(texts)
    for old, new in {"drive": "go", "action load": "action fetch", "(van ": "(lorry "}.items():
        renamed = [text.replace(old, new) for text in renamed]
    task, other = read_task(*texts), read_task(*renamed)
    schema = schema_of(task.domain)
    relations = relations_of(schema, relaxed_plans=True)
    matching = match(schema, schema_of(other.domain))
    encoders = Encoder(relations), Encoder(relations, matching)
    rows = [
        rows_of(e, e.batch([(t.initial_state, t.goal)]))
        for e, t in zip(encoders, (task, other), strict=True)
    ]
    assert rows[0] == rows[1]
    assert ("towards", "load") in rows[0]


def test_a_corridor_longer_than_the_network_sees(read_task, policy):
    # With two rounds, the van does not see the parcel; what begins a relaxed plan shows the way.
    task = read_task(VAN, row(21, 10, [(0, 20)]))
    for seen in (False, True):
        relations = relations_of(schema_of(task.domain), achieved_goals=True, relaxed_plans=seen)
        network, encoder = policy(relations, 16), Encoder(relations)
        batch = encoder.batch([(task.initial_state, task.goal)])
        left, right = network.q_values(batch, 2)[0].tolist()
        assert (left == pytest.approx(right, abs=1e-6)) is not seen
