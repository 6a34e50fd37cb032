"""A state is called dead only if no plan leads from it to the goal."""

import random

import pytest
from hypothesis import HealthCheck, given, settings

import regoal.planning.dead_ends
import regoal.planning.pairs
from conftest import walked
from planning.dead_end_domains import TASKS
from planning.graphs import graph
from planning.strips_domains import domains, problems
from regoal.domains import spanner
from regoal.domains.splits import domain_pddl
from regoal.errors import TooWideError
from regoal.planning.datalog import grounding
from regoal.planning.dead_ends import DeadEnds, first_dead_end, is_dead
from regoal.planning.goals import Atom, Goal

# Each coin buys one thing, or is lost. One coin would do for everything in the relaxation.
SHOP = """
(define (domain shop) (:requirements :strips)
  (:predicates (coin ?c) (mine ?t) (thing ?t))
  (:action buy :parameters (?c ?t) :precondition (and (coin ?c) (thing ?t))
    :effect (and (mine ?t) (not (coin ?c))))
  (:action lose :parameters (?c) :precondition (coin ?c) :effect (not (coin ?c))))
"""
THINGS = """
(define (problem two-things) (:domain shop) (:objects a b c x y)
  (:init (coin a) (coin b) (coin c) (thing x) (thing y)) (:goal (and (mine x) (mine y))))
"""


@pytest.fixture
def shop(read_task):
    return read_task(SHOP, THINGS)


WALKS = [
    (["(lose a)", "(lose b)"], 2),  # one coin is left for two things
    (["(lose a)", "(lose b)", "(lose c)"], 2),
    (["(buy a x)", "(lose b)", "(lose c)"], 3),
    (["(buy a x)", "(buy b x)", "(lose c)"], 3),
    (["(buy a x)", "(lose b)", "(buy c y)"], None),
    (["(lose a)"], None),
    ([], None),
]


@pytest.mark.parametrize(("names", "expected"), WALKS)
def test_counts_that_the_relaxation_does_not_see(shop, names, expected):
    assert first_dead_end(walked(shop, names), shop.goal, DeadEnds(shop)) == expected


def test_other_goals_than_the_tasks(shop):
    states = walked(shop, ["(lose a)", "(lose b)", "(lose c)"])
    assert first_dead_end(states, Goal.of([Atom("coin", ("c",))]), DeadEnds(shop)) == 3
    assert first_dead_end(states, Goal.of([Atom("thing", ("c",))]), DeadEnds(shop)) == 0
    assert first_dead_end(states, Goal.of([Atom("thing", ("x",))]), DeadEnds(shop)) is None


@pytest.fixture
def no_pairs(monkeypatch):
    """Leaves the proof to the relaxation and to visiting states."""
    monkeypatch.setattr(regoal.planning.pairs, "MOST_CELLS", 0)


def test_what_cannot_be_seen_whole_is_not_called_dead(shop, monkeypatch, no_pairs):
    # With one coin left: a coin, or nothing and one thing of two at most; that makes 4 states.
    state, tests = walked(shop, ["(lose a)", "(lose b)"])[-1], DeadEnds(shop)
    assert is_dead(state, shop.goal, tests, most_states=4)
    assert not is_dead(state, shop.goal, tests, most_states=3)

    def too_many(state):
        raise TooWideError("too many actions")

    monkeypatch.setattr(shop, "applicable_actions", too_many)
    assert not is_dead(state, shop.goal, tests)


def test_a_task_with_too_many_rules_for_the_relaxation(shop, monkeypatch):
    monkeypatch.setattr(grounding, "MOST_STEPS", 1)
    monkeypatch.setattr(regoal.planning.pairs, "MOST_RULES", 1)
    assert first_dead_end(walked(shop, ["(lose a)", "(lose b)"]), shop.goal, DeadEnds(shop)) == 2


def test_pairs_are_asked_before_states_are_visited(shop):
    tests, states = DeadEnds(shop), walked(shop, ["(lose a)", "(lose b)"])
    assert tests.relaxation.reaches(states[2], shop.goal)
    assert [is_dead(state, shop.goal, tests, most_states=0) for state in states] == [0, 0, 1]
    assert not is_dead(states[2], Goal.of([Atom("mine", ("x",))]), tests, most_states=0)


def test_every_state_of_a_small_spanner_is_judged_rightly(read_task, no_pairs):
    instance = spanner.generate(random.Random(1), nuts=2, longest_path=6, spare_spanners=1)
    task = read_task(domain_pddl("spanner"), instance.to_pddl())
    ways = {task.initial_state: set()}
    waiting = [task.initial_state]
    while waiting:
        state = waiting.pop()
        for action in task.applicable_actions(state):
            after = task.successor(state, action)
            if after not in ways:
                waiting.append(after)
            ways.setdefault(after, set()).add(state)
    alive = [state for state in ways if state.satisfies(task.goal)]
    for state in alive:
        alive += [before for before in ways[state] if before not in alive]
    tests = DeadEnds(task)
    assert 20 < len(alive) < len(ways) - 10
    seen_by_relaxation = {state for state in ways if not tests.relaxation.reaches(state, task.goal)}
    dead = {state for state in ways if is_dead(state, task.goal, tests)}
    assert dead == set(ways) - set(alive)
    assert seen_by_relaxation < dead
    few = {s for s in ways if is_dead(s, task.goal, tests, most_states=3)}
    assert seen_by_relaxation < few < dead


@pytest.mark.parametrize("name", TASKS)
def test_no_state_that_is_alive_is_called_dead(read_task, name):
    task = read_task(*TASKS[name])
    states, alive = graph(task)
    tests = DeadEnds(task)
    relaxed = {s for s in states if not tests.relaxation.reaches(s, task.goal)}
    found = {state for state in states if tests.has(state)}
    assert len(alive) > 20
    assert relaxed < found <= set(states) - alive
    assert {state for state in states if tests.has(state)} == found


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(domain=domains(), problem=problems())
def test_in_random_domains_neither(read_task, domain, problem):
    task = read_task(domain, problem)
    _, alive = graph(task)
    tests = DeadEnds(task)
    assert not any(tests.has(state) for state in alive)


def test_a_test_that_finds_nothing_at_first_is_given_up(shop, monkeypatch):
    # (lose c) is no dead end. With one coin left, pairs find one, and with none the relaxation too.
    monkeypatch.setattr(regoal.planning.dead_ends, "TESTED_FIRST", 2)
    states = walked(shop, ["(lose c)", "(lose b)", "(lose a)"])
    in_time, late, later = DeadEnds(shop), DeadEnds(shop), DeadEnds(shop)
    assert [in_time.has(states[i]) for i in (0, 2, 0, 0, 2)] == [0, 1, 0, 0, 1]
    assert [late.has(states[i]) for i in (0, 1, 2, 3)] == [0, 0, 0, 0]
    assert [later.has(states[i]) for i in (3, 0, 0, 2, 3)] == [1, 0, 0, 0, 1]


def test_pairs_are_given_up_sooner_in_large_tasks(shop, monkeypatch):
    states = walked(shop, ["(lose c)", "(lose b)", "(lose a)"])
    cells = regoal.planning.pairs.Pairs(shop).cells
    # 3 coins, 2 of mine, and the fact that always holds; 6 ways to buy and 3 to lose.
    assert cells == 6 * (6 + 6 + 3)
    monkeypatch.setattr(regoal.planning.dead_ends, "CELLS_FIRST", cells)
    tests = DeadEnds(shop)
    assert [tests.has(states[i]) for i in (0, 2, 3)] == [0, 0, 1]
