"""The states along plans, compared with those of the planning engine."""

import pytest

from regoal.errors import UsageError
from regoal.planning.plain.replay import Change, split_goal
from regoal.planning.replays import load_replay, load_replays

DOMAIN = """(define (domain courier)
  (:requirements :strips :typing :negative-preconditions)
  (:types place parcel - object)
  (:predicates (here ?p - place) (lies ?x - parcel ?p - place) (held ?x - parcel) (seen ?p - place))
  (:action walk :parameters (?p ?q - place) :precondition (here ?p)
    :effect (and (here ?q) (seen ?q) (not (here ?p))))
  (:action grab :parameters (?x - parcel ?p - place) :precondition (and (here ?p) (lies ?x ?p))
    :effect (and (held ?x) (not (lies ?x ?p)))))
"""
PROBLEM = """(define (problem one) (:domain courier) (:objects shop depot - place b - parcel)
  (:init (here depot) (lies b shop) (seen depot)) (:goal (and (held b) (not (here depot)))))
"""


@pytest.fixture
def files(tmp_path):
    """Writes a plan next to its domain and problem, and returns the three paths."""

    def write(plan):
        found = [tmp_path / name for name in ("domain.pddl", "p1.pddl", "p1.plan")]
        for path, text in zip(found, (DOMAIN, PROBLEM, plan), strict=True):
            path.write_text(text)
        return found

    return write


def states_of(replay):
    states = [set(replay.initial)]
    for change in replay.changes:
        states.append((states[-1] - set(change.removed)) | set(change.added))
    return states


def test_changes_by_hand(files):
    replay = load_replay(*files("(walk depot shop)\n(walk shop shop)\n(grab b shop)\n"), "one")
    assert replay.initial == {("here", "depot"), ("lies", "b", "shop"), ("seen", "depot")}
    assert replay.changes == (
        Change(
            ("walk", "depot", "shop"), (("here", "shop"), ("seen", "shop")), (("here", "depot"),)
        ),
        Change(("walk", "shop", "shop"), (), ()),
        Change(("grab", "b", "shop"), (("held", "b"),), (("lies", "b", "shop"),)),
    )
    assert replay.goal == ((("held", "b"), True), (("here", "depot"), False))
    assert (replay.domain, replay.problem, replay.cost, replay.fault) == ("courier", "one", 3.0, "")
    assert replay.predicates == {"here": 1, "lies": 2, "held": 1, "seen": 1}


def test_an_invalid_plan_ends_before_the_step_that_fails(files):
    replay = load_replay(*files("(walk depot shop)\n(grab b depot)\n(walk shop depot)\n"), "one")
    assert [change.step for change in replay.changes] == [("walk", "depot", "shop")]
    assert "step 2" in replay.fault


def test_a_plan_that_misses_the_goal_is_shown_to_its_end(files):
    replay = load_replay(*files("(walk depot shop)\n"), "one")
    assert len(replay.changes) == 1
    assert "(held b) does not hold" in replay.fault


@pytest.mark.parametrize("seed", range(3))
def test_states_equal_those_of_the_engine(tasks, walk, tmp_path, seed):
    for problems in tasks.values():
        for name, task in problems.items():
            states, actions = walk(task, 12, seed)
            steps = [
                task.applicable_actions(state)[action]
                for state, action in zip(states, actions, strict=False)
            ]
            if any(step.name == "<dummy>" for step in steps):
                continue
            plan = tmp_path / f"{name}.plan"
            plan.write_text("".join(f"{step}\n" for step in steps))
            replay = load_replay(task.path.with_name("domain.pddl"), task.path, plan, name)
            engine = [{(a.predicate, *a.objects) for a in state.atoms} for state in states]
            assert states_of(replay) == engine


def test_goals_with_parts_that_are_no_literals():
    goal = ["and", ["a"], ["and", ["not", ["b", "x"]]], ["forall", {}, ["c"]], ["not", ["or"]]]
    assert split_goal(goal) == (((("a",), True), (("b", "x"), False)), 2)
    assert split_goal([]) == ((), 0)


def test_plans_are_found_by_the_names_of_problems(files, tmp_path):
    domain, problem, _ = files("(walk depot shop)\n")
    (tmp_path / "p2.pddl").write_text(PROBLEM)
    assert [r.problem for r in load_replays([tmp_path], [tmp_path], None)] == ["p1"]
    assert [r.problem for r in load_replays([tmp_path / "p1.plan"], [problem], domain)] == ["p1"]


def test_what_is_wrong_with_folders_is_said(files, tmp_path):
    files("")
    with pytest.raises(UsageError, match="in the same order"):
        load_replays([tmp_path], [], None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"p1\.plan"):
        load_replays([tmp_path / "empty"], [tmp_path], None)
