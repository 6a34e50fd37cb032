"""Large problems, whose applicable actions are found by joins, against the library's own."""

import random

import pytest

from conftest import FERRY, FERRY_TWO
from regoal.errors import TooWideError
from regoal.planning import applicable
from regoal.planning.actions import DUMMY_ACTION
from regoal.planning.goals import Atom
from regoal.planning.load import load_domain, load_task
from regoal.planning.pddl import library_text
from regoal.planning.pddl.conjunctions import is_strips
from reliability import random_domains

SLIDES = (
    """(define (domain slides) (:requirements :adl) (:types cell way tile)
  (:constants up down - way)
  (:predicates (at ?t - tile ?c - cell) (next ?a ?b - cell ?w - way) (bare ?c - cell)
    (loop ?a ?b - cell) (wet) (seen ?c - cell) (heavy ?t - tile) (slow))
  (:action slide :parameters (?t - tile ?a ?b - cell ?w - way)
    :precondition (and (at ?t ?a) (next ?a ?b ?w) (bare ?b) (not (wet)))
    :effect (and (at ?t ?b) (not (at ?t ?a)) (bare ?a) (not (bare ?b)) (seen ?b)
      (slow)))
  (:action up :parameters (?t - tile ?a ?b - cell)
    :precondition (and (at ?t ?a) (next ?a ?b up) (not (seen ?b)) (not (= ?a ?b)))
    :effect (and (at ?t ?b) (not (at ?t ?a)) (bare ?a) (not (bare ?b))))
  (:action spin :parameters (?a - cell) :precondition (and (loop ?a ?a) (bare ?a) (= ?a ?a))
    :effect (and (wet) (not (bare ?a))))
  (:action dry :parameters (?x ?y - (either cell tile)) :precondition (and (wet) (not (= ?x ?y)))
    :effect (and (not (wet)) (forall (?c - cell) (not (seen ?c))))))""",
    """(define (problem small) (:domain slides) (:objects a b c d - cell s t - tile)
  (:init (at s a) (at t b) (bare c) (bare d) (next a b up) (next b c up) (next c d up)
    (next b a down) (next c b down) (next d c down) (next d d up) (loop c c) (loop a b)
    (loop d d) (heavy t))
  (:goal (and (at s d) (seen c) (slow))))""",
)


def load_both(folder, monkeypatch, domain, problem):
    """Load a task as it is, and as if it were large."""
    (folder / "domain.pddl").write_text(domain)
    (folder / "p.pddl").write_text(problem)
    read = load_domain(folder / "domain.pddl")
    small = load_task(read, folder / "p.pddl")
    monkeypatch.setattr(library_text, "LARGE", 0)
    large = load_task(read, folder / "p.pddl")
    monkeypatch.setattr(library_text, "LARGE", 10**6)
    return small, large


def check_walk(small, large, rng, steps):
    """Compare the two on a walk that now and then goes back to an earlier state.

    An atom that only impossible actions change is static in a small task and not in a large one.
    """
    assert small.goal == large.goal
    pairs = [(small.initial_state, large.initial_state)]
    for _ in range(steps):
        a, b = pairs[-1] if rng.random() < 0.8 else rng.choice(pairs)
        assert a.atoms == b.atoms
        actions = small.applicable_actions(a)
        assert large.applicable_actions(b) == actions
        assert a.satisfies(small.goal) == b.satisfies(large.goal)
        action = rng.choice(actions)
        twin = large.applicable_actions(b)[actions.index(action)]
        pairs.append((small.successor(a, action), large.successor(b, twin)))
        assert large.state_of(pairs[-1][1].fluent_atoms) == pairs[-1][1]


@pytest.mark.parametrize(("domain", "problem"), [SLIDES, (FERRY, FERRY_TWO)])
def test_walks_are_equal(tmp_path, monkeypatch, domain, problem):
    small, large = load_both(tmp_path, monkeypatch, domain, problem)
    for seed in range(5):
        check_walk(small, large, random.Random(seed), 40)
    large.forget_states()
    check_walk(small, large, random.Random(5), 10)


def test_walks_in_random_plain_domains_are_equal(tmp_path, monkeypatch):
    met = 0
    for seed in range(120):
        rng = random.Random(seed)
        domain, problem = random_domains.domain_and_problem(rng, derived=False)
        try:
            small, large = load_both(tmp_path, monkeypatch, domain, problem)
        except Exception:
            continue
        if is_strips(small.domain.text.content):
            met += len(small.applicable_actions(small.initial_state)) > 1
            check_walk(small, large, rng, 8)
        else:
            assert large._text.static is None
    assert met > 2


def test_only_changeable_atoms_are_given_to_the_library(tmp_path, monkeypatch):
    small, large = load_both(tmp_path, monkeypatch, *SLIDES)
    for name, needed in (("next", False), ("loop", False), ("heavy", False), ("bare", True)):
        assert f"(is-{name} " in small._text.text
        assert (f"(is-{name} " in large._text.text) == needed
    assert Atom("next", ("a", "b", "up")) in large.static_atoms
    assert large.initial_state.holds(Atom("next", ("a", "b", "up")))


def test_too_many_actions(tmp_path, monkeypatch):
    _, large = load_both(tmp_path, monkeypatch, FERRY, FERRY_TWO)
    monkeypatch.setattr(applicable, "MOST_APPLICABLE", 1)
    with pytest.raises(TooWideError, match=r"p\.pddl: .* \(more than 1\)"):
        large.applicable_actions(large.initial_state)
    monkeypatch.setattr(applicable, "MOST_APPLICABLE", 10)
    assert len(large.applicable_actions(large.initial_state)) > 1


def test_the_dummy_leaves_the_state(tmp_path, monkeypatch):
    _, large = load_both(tmp_path, monkeypatch, FERRY, FERRY_TWO)
    assert large.successor(large.initial_state, DUMMY_ACTION) == large.initial_state
