"""Dead ends by delete relaxation: right where they show, never where the goal can be reached."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.planning.goals import Atom, Goal
from regoal.planning.mimir import action_bound as width
from regoal.planning.relaxation import first_dead_end
from regoal.planning.task import load_domain, load_task

# A runner on one-way steps must fetch a key on the way, and each key opens one door.
DOMAIN = """
(define (domain keys)
  (:requirements :strips)
  (:predicates (at ?x) (next ?x ?y) (lies ?k ?x) (held ?k) (open ?d))
  (:action walk :parameters (?x ?y) :precondition (and (at ?x) (next ?x ?y))
    :effect (and (at ?y) (not (at ?x))))
  (:action take :parameters (?k ?x) :precondition (and (at ?x) (lies ?k ?x))
    :effect (and (held ?k) (not (lies ?k ?x))))
  (:action unlock :parameters (?k ?d) :precondition (held ?k)
    :effect (and (open ?d) (not (held ?k))))
  (:action drop :parameters (?k) :precondition (held ?k) :effect (not (held ?k))))
"""
PROBLEM = """
(define (problem two-doors) (:domain keys)
  (:objects a b c k d)
  (:init (at a) (next a b) (next b c) (lies k b))
  (:goal (and (at c) (open d))))
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    def make(change=lambda text: text):
        folder = tmp_path_factory.mktemp("keys")
        (folder / "domain.pddl").write_text(change(DOMAIN))
        (folder / "p1.pddl").write_text(PROBLEM)
        return load_task(load_domain(folder / "domain.pddl"), folder / "p1.pddl")

    return make


def walked(task, names):
    """The states of a walk by action names such as "(walk a b)"."""
    states = [task.initial_state]
    for name in names:
        (action,) = (a for a in task.applicable_actions(states[-1]) if str(a) == name)
        states.append(task.successor(states[-1], action))
    return states


WALKS = [
    (["(walk a b)", "(walk b c)"], 2),  # the key stays behind, for ever
    (["(walk a b)", "(take k b)", "(drop k)", "(walk b c)"], 3),
    (["(walk a b)", "(take k b)", "(walk b c)"], None),
    (["(walk a b)", "(take k b)", "(walk b c)", "(unlock k d)"], None),
    ([], None),
]


@pytest.mark.parametrize(("names", "expected"), WALKS)
def test_the_first_state_that_is_dead(keys, names, expected):
    task = keys()
    assert first_dead_end(walked(task, names), task.goal) == expected


def test_other_goals_than_the_tasks(keys):
    task = keys()
    states = walked(task, ["(walk a b)", "(walk b c)"])
    assert first_dead_end(states, Goal.of([Atom("at", ("a",))])) == 1
    assert first_dead_end(states, Goal.of([Atom("at", ("c",)), Atom("next", ("a", "b"))])) is None


NOT_RELAXED = [
    (
        "(held ?k)\n    :effect (and (open",
        "(and (held ?k) (not (open ?d)))\n    :effect (and (open",
    ),
    ("(held ?k) :effect (not (held ?k))", "(held ?k) :effect (when (held ?k) (not (held ?k)))"),
    ("(and (at ?x) (lies ?k ?x))", "(or (lies ?k ?x) (and (at ?x) (lies ?k ?x)))"),
]


@pytest.mark.parametrize(("old", "new"), NOT_RELAXED)
def test_what_cannot_be_relaxed_is_dead_only_without_actions(keys, old, new):
    task = keys(lambda text: text.replace(old, new))
    assert old in DOMAIN
    states = walked(task, ["(walk a b)", "(take k b)", "(drop k)", "(walk b c)"])
    stuck = task.is_dead_end(states[-1])
    assert first_dead_end(states, task.goal) == (4 if stuck else None)


def test_an_action_without_a_cost_that_only_the_relaxation_applies_is_no_error(tmp_path):
    # Only without deletes is the runner in two places at once.
    action = (
        "(:functions (total-cost) (fee ?x ?y)) (:action pay :parameters (?x ?y) :precondition"
        " (and (at ?x) (at ?y) (next ?x ?y)) :effect (and (open ?x)"
        " (increase (total-cost) (fee ?x ?y))))"
    )
    functions, _, pay = action.partition(") (:action")
    domain = DOMAIN.replace("(:action walk", f"{functions})\n  (:action walk", 1)
    domain = domain.replace(":strips", ":strips :action-costs").rstrip()[:-1]
    (tmp_path / "domain.pddl").write_text(f"{domain}\n  (:action{pay})")
    (tmp_path / "p1.pddl").write_text(
        PROBLEM.rstrip()[:-1].replace("(:init", "(:init (= (total-cost) 0)")
        + "(:metric minimize (total-cost)))"
    )
    task = load_task(load_domain(tmp_path / "domain.pddl"), tmp_path / "p1.pddl")
    states = walked(task, ["(walk a b)", "(walk b c)"])
    assert first_dead_end(states, task.goal) == 2  # in c nothing but the dummy action is left
    assert first_dead_end(states[:2], Goal.of([Atom("at", ("a",))])) is None


def test_a_relaxation_too_wide_to_be_expanded_tells_nothing(keys, monkeypatch):
    monkeypatch.setattr(width, "MOST_APPLICABLE", 1)
    task = keys()
    state = task.successor(task.initial_state, task.applicable_actions(task.initial_state)[0])
    assert first_dead_end([state], Goal.of([Atom("at", ("a",))])) is None


def reachable(task, state):
    """Whether a goal state can be reached, by looking at all states."""
    seen, waiting = {state}, [state]
    while waiting:
        now = waiting.pop()
        if now.satisfies(task.goal):
            return True
        for action in task.applicable_actions(now):
            after = task.successor(now, action)
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return False


@settings(max_examples=40, deadline=None)
@given(choices=st.lists(st.integers(0, 10), min_size=1, max_size=6))
def test_a_dead_state_reaches_no_goal(keys, choices):
    task = keys()
    states = [task.initial_state]
    for choice in choices:
        actions = task.applicable_actions(states[-1])
        states.append(task.successor(states[-1], actions[choice % len(actions)]))
    dead = first_dead_end(states, task.goal)
    for i, state in enumerate(states):
        if dead is not None and i >= dead:
            assert not reachable(task, state)
