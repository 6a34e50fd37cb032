"""A state is called dead only if no plan leads from it to the goal."""

import random

import pytest

from conftest import walked
from regoal.domains import spanner
from regoal.domains.splits import domain_pddl
from regoal.errors import TooWideError
from regoal.planning.datalog import grounding
from regoal.planning.dead_ends import first_dead_end, is_dead
from regoal.planning.goals import Atom, Goal
from regoal.planning.relaxation import Relaxation, Relaxations

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
    assert first_dead_end(walked(shop, names), shop.goal, Relaxations()) == expected


def test_other_goals_than_the_tasks(shop):
    states = walked(shop, ["(lose a)", "(lose b)", "(lose c)"])
    assert first_dead_end(states, Goal.of([Atom("coin", ("c",))]), Relaxations()) == 3
    assert first_dead_end(states, Goal.of([Atom("thing", ("c",))]), Relaxations()) == 0
    assert first_dead_end(states, Goal.of([Atom("thing", ("x",))]), Relaxations()) is None


def test_what_cannot_be_seen_whole_is_not_called_dead(shop, monkeypatch):
    # With one coin left: a coin, or nothing and one thing of two at most; that makes 4 states.
    state, relaxation = walked(shop, ["(lose a)", "(lose b)"])[-1], Relaxation(shop)
    assert is_dead(state, shop.goal, relaxation, most_states=4)
    assert not is_dead(state, shop.goal, relaxation, most_states=3)

    def too_many(state):
        raise TooWideError("too many actions")

    monkeypatch.setattr(shop, "applicable_actions", too_many)
    assert not is_dead(state, shop.goal, relaxation)


def test_a_task_with_too_many_rules_for_the_relaxation(shop, monkeypatch):
    monkeypatch.setattr(grounding, "MOST_STEPS", 1)
    assert first_dead_end(walked(shop, ["(lose a)", "(lose b)"]), shop.goal, Relaxations()) == 2


def test_every_state_of_a_small_spanner_is_judged_rightly(read_task):
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
    relaxation = Relaxation(task)
    assert 20 < len(alive) < len(ways) - 10
    seen_by_relaxation = {state for state in ways if not relaxation.reaches(state, task.goal)}
    dead = {state for state in ways if is_dead(state, task.goal, relaxation)}
    assert dead == set(ways) - set(alive)
    assert seen_by_relaxation < dead
    few = {s for s in ways if is_dead(s, task.goal, relaxation, most_states=3)}
    assert seen_by_relaxation < few < dead
