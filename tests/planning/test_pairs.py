"""Pairs of facts are those of the definition, and are asked about plain domains only."""

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import regoal.planning.pairs
from planning.dead_end_domains import MARKET, THREE_THINGS, WAX
from planning.graphs import graph
from planning.plain_pairs import find_choices, find_never_last, find_pairs
from planning.strips_domains import domains, problems
from regoal.planning.goals import Atom, Goal
from regoal.planning.pairs import Pairs
from regoal.planning.relaxation import Relaxation
from regoal.system.cancellation import StoppedError, stopping


def pairs_of(pairs, state):
    """Return the possible pairs from a state as sets of facts."""
    facts = list(pairs._numbers)
    *_, table = pairs._grow([i for i, fact in enumerate(facts) if state.holds(fact[0]) == fact[1]])
    return {frozenset((facts[i], facts[j])) for i, j in np.argwhere(table[:-1, :-1])}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(domain=domains(), problem=problems())
def test_random_domains(read_task, domain, problem):
    task = read_task(domain, problem)
    pairs, relaxation = Pairs(task), Relaxation(task)
    states, alive = graph(task)
    for state in {states[0], states[-1]}:
        expected = find_pairs(task, state)
        facts = set(pairs._numbers)
        assert pairs_of(pairs, state) == {pair for pair in expected if pair <= facts}
        literals = list(task.goal.literals())
        possible = all(frozenset((x, y)) in expected for x in literals for y in literals)
        never_last = find_never_last(task, expected, literals)
        ordered = all(state.holds(atom) == positive for atom, positive in never_last)
        missing = {fact for fact in literals if state.holds(fact[0]) != fact[1]}
        supplied = all(
            any(len(set(chosen)) == len(chosen) for chosen in product(*choices))
            for choices in find_choices(task, expected, missing)
        )
        assert pairs.reaches(state, task.goal) == (possible and ordered and supplied)
    assert all(pairs.reaches(state, task.goal) for state in alive)
    for state in states:
        assert relaxation.reaches(state, task.goal) or not pairs.reaches(state, task.goal)


@pytest.fixture
def blocks(tasks):
    return tasks["blocks"]["three"]


def test_no_other_block_is_held_or_lies_on_the_same_one(blocks):
    # (on a b): b can carry one block, and a hand can hold one.
    found = pairs_of(Pairs(blocks), blocks.initial_state)
    on, held = {x: (Atom("on", (x, "b")), True) for x in "ac"}, (Atom("holding", ("c",)), True)
    assert frozenset((on["a"], held)) in found
    assert frozenset((on["a"], on["c"])) not in found
    assert frozenset((held, (Atom("holding", ("a",)), True))) not in found
    assert frozenset((held, (Atom("handempty", ()), True))) not in found


# Behind b1, which is waxed, three tiles are left; any two of them can be waxed from the third.
COLUMN = """(define (problem column) (:domain wax) (:objects a1 b1 c1 d1 e1 a2 - tile)
  (:init (on d1) (dry c1) (dry e1) (dry a1) (dry a2) (waxed b1)
    (north a1 b1) (north b1 c1) (north c1 d1) (north d1 e1) (beside a1 a2) (beside a2 a1))
  (:goal (and (waxed b1) (waxed c1) (waxed d1) (waxed e1))))"""


def test_some_fact_of_a_goal_must_be_made_last(read_task):
    task = read_task(WAX, COLUMN)
    pairs, state, goal = Pairs(task), task.initial_state, task.goal
    for left_out in sorted(goal.atoms):
        part = Goal.of(goal.atoms - {left_out})
        assert pairs.reaches(state, part) == (left_out.objects != ("b1",))
    assert not pairs.reaches(state, goal)
    assert not any(state.satisfies(goal) for state in graph(task)[0])
    # From the dry b1 on the tiles can be waxed one after another, from the last one on.
    open_column = read_task(WAX, COLUMN.replace("(waxed b1)", "(dry b1)", 1))
    assert Pairs(open_column).reaches(open_column.initial_state, goal)


def test_facts_of_a_goal_that_use_something_up_need_one_each(read_task):
    # Two coins do not buy three things; three do, as long as none is wasted.
    task = read_task(MARKET, THREE_THINGS)
    assert not Pairs(task).reaches(task.initial_state, task.goal)
    assert not graph(task)[1]
    rich = read_task(
        MARKET,
        THREE_THINGS.replace("c1 c2 - coin", "c1 c2 c3 - coin").replace(
            "(coin c1)", "(coin c1) (coin c3)"
        ),
    )
    pairs = Pairs(rich)
    states, alive = graph(rich)
    assert 1 < len(alive) < len(states)
    assert all(pairs.reaches(state, rich.goal) == (state in alive) for state in states)


def test_other_goals_than_the_tasks(blocks):
    pairs, state = Pairs(blocks), blocks.initial_state
    on = {(x, y): Atom("on", (x, y)) for x in "abc" for y in "abc"}
    assert pairs.reaches(state, Goal.of([on["a", "b"], on["b", "c"]]))
    assert not pairs.reaches(state, Goal.of([on["a", "b"], on["c", "b"]]))
    assert not pairs.reaches(state, Goal.of([Atom("on", ("a", "d"))]))
    # Whether an atom is false is followed only if a condition or the task's goal asks for it.
    assert pairs.reaches(state, Goal.of([on["a", "b"]], [on["a", "b"]]))
    assert pairs.reaches(state, Goal.of([]))


def test_a_negative_goal(read_task, tasks):
    lamp = "(define (problem dark) (:domain lamp) (:init ) (:goal (and (warm) (not (lit)))))"
    domain = tasks["lamp"]["dark"].domain.text.content.source
    task = read_task(domain, lamp)
    pairs = Pairs(task)
    assert all(pairs.reaches(state, task.goal) for state in graph(task)[0])
    contradiction = Goal.of([Atom("lit", ())], [Atom("lit", ())])
    assert not pairs.reaches(task.initial_state, contradiction)


CONDITIONS = {
    "(p)": True,
    "(and (p) (and (not (q)) (and)))": True,
    "(or (p) (q))": False,
    "(imply (p) (q))": False,
    "(exists (?x) (r ?x))": False,
    "(forall (?x) (r ?x))": False,
    "(not (or (p) (q)))": True,
}
EFFECTS = {
    "(and (q) (not (p)))": True,
    "(when (p) (q))": False,
    "(when (or (p) (q)) (q))": False,
    "(forall (?x) (r ?x))": False,
}


@pytest.mark.parametrize(
    ("condition", "effect", "derived", "plain"),
    [
        *((condition, "(q)", "", plain) for condition, plain in CONDITIONS.items()),
        *(("(p)", effect, "", plain) for effect, plain in EFFECTS.items()),
        ("(p)", "(q)", "(:derived (s) (p))", False),
    ],
)
def test_only_plain_domains_are_tested(read_task, condition, effect, derived, plain):
    task = read_task(
        f"(define (domain d) (:requirements :adl :derived-predicates)"
        f" (:predicates (p) (q) (r ?x) (s)) {derived}"
        f" (:action act :parameters () :precondition {condition} :effect {effect}))",
        "(define (problem one) (:domain d) (:objects a) (:init ) (:goal (and (q) (p))))",
    )
    pairs = Pairs(task)
    assert (pairs.cells > 0) == plain
    assert pairs.reaches(task.initial_state, task.goal) != plain


def test_tasks_that_are_too_large_are_left_alone(blocks, monkeypatch):
    goal = Goal.of([Atom("on", ("a", "b")), Atom("on", ("c", "b"))])
    cells = Pairs(blocks).cells
    monkeypatch.setattr(regoal.planning.pairs, "MOST_CELLS", cells)
    assert not Pairs(blocks).reaches(blocks.initial_state, goal)
    monkeypatch.setattr(regoal.planning.pairs, "MOST_CELLS", cells - 1)
    assert Pairs(blocks).reaches(blocks.initial_state, goal)
    monkeypatch.undo()
    monkeypatch.setattr(regoal.planning.pairs, "MOST_RULES", 3)
    assert Pairs(blocks).reaches(blocks.initial_state, goal)


def test_the_work_can_be_ended(blocks):
    pairs = Pairs(blocks)
    with pytest.raises(StoppedError), stopping(lambda: True):
        pairs.reaches(blocks.initial_state, blocks.goal)
