"""The plain evaluator compared with states, truth values and costs worked out by hand."""

import sys

import pytest

from regoal.planning.plain.problem import read_problem, read_typed_list
from regoal.planning.plain.state import State, allow_nested_calls, cost, fits

DOMAIN = """; a comment (with brackets
(define (domain Farm) (:requirements :adl :derived-predicates :action-costs)
  (:types cow hen - animal animal - object place)
  (:constants yard - place)
  (:predicates (at ?a - animal ?p - place) (path ?p ?q - place) (fed ?a - animal) (noisy)
    (near ?p ?q - place) (alone ?a - animal) (calm))
  (:functions (total-cost) - number (length ?p ?q - place) - number)
  (:derived (near ?p ?q) (or (path ?p ?q) (exists (?r - place) (and (path ?p ?r) (near ?r ?q)))))
  (:derived (alone ?a - animal) (forall (?b - animal ?p - place)
    (or (= ?a ?b) (not (at ?b ?p)) (not (at ?a ?p)))))
  (:derived (calm) (not (exists (?a - hen) (not (alone ?a)))))
  (:action Walk :parameters (?a - animal ?p?q - place) :precondition (and (at ?a ?p) (near ?p ?q))
    :effect (and (not (at ?a ?p)) (at ?a ?q) (increase (total-cost) (length ?p ?q))
      (when (not (alone ?a)) (noisy)) (increase (total-cost) 0.5)))
  (:action feed :parameters (?x - (either cow hen)) :effect (and (forall (?a - hen) (and
      (when (calm) (fed ?a)) (not (fed ?a)))) (fed ?x)))
  (:action hush :precondition (imply (noisy) (calm)) :effect (not (noisy))))
"""
PROBLEM = """(define (problem small) (:domain farm) (:objects c - cow h k - hen hill lake - place)
  (:init (at c yard) (at h yard) (at k lake) (path yard hill) (path hill lake) (not (fed c))
    (= (total-cost) 0) (= (length yard hill) 2) (= (length yard lake) 4))
  (:goal (and (at c lake) (not (noisy)))) (:metric minimize (total-cost)))
"""


@pytest.fixture
def problem():
    return read_problem(DOMAIN, PROBLEM)


@pytest.fixture
def state(problem):
    return State(problem, problem.initial)


def run(state, name, *objects):
    """Execute an action if it is applicable, and return whether it is."""
    action = state.problem.actions[name]
    if not state.holds(action.precondition, action.bind(objects)):
        return False
    state.execute(action, action.bind(objects))
    return True


def test_what_the_files_say(problem):
    assert problem.objects == {
        "yard": {"place", "object"},
        "c": {"cow", "animal", "object"},
        "h": {"hen", "animal", "object"},
        "k": {"hen", "animal", "object"},
        "hill": {"place", "object"},
        "lake": {"place", "object"},
    }
    assert list(problem.actions) == ["walk", "feed", "hush"]
    assert problem.actions["walk"].parameters == [
        ("?a", {"animal"}), ("?p", {"place"}), ("?q", {"place"}),
    ]  # fmt: skip
    assert problem.actions["feed"].parameters == [("?x", {"cow", "hen"})]
    assert problem.initial == {
        ("at", "c", "yard"), ("at", "h", "yard"), ("at", "k", "lake"),
        ("path", "yard", "hill"), ("path", "hill", "lake"),
    }  # fmt: skip
    assert problem.values == {
        ("total-cost",): 0, ("length", "yard", "hill"): 2, ("length", "yard", "lake"): 4,
    }  # fmt: skip
    assert problem.has_costs
    assert problem.strata == {"near": 0, "alone": 0, "calm": 0}  # `calm` negates twice


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("a b - t c", [("a", {"t"}), ("b", {"t"}), ("c", {"object"})]),
        ("a - t - t b - u", [("a", {"t"}), ("b", {"u"})]),
        ("", []),
    ],
)
def test_typed_lists(words, found):
    assert read_typed_list(words.split()) == found


def test_types_may_stand_below_several(problem):
    types = "(:types a - b a - c d - a)"
    domain = f"(define (domain t) {types} (:predicates (p)))"
    read = read_problem(domain, "(define (problem t) (:objects x - d) (:init) (:goal (p)))")
    assert read.objects == {"x": {"a", "b", "c", "d", "object"}}


@pytest.mark.parametrize(
    ("fact", "true"),
    [
        ("near yard hill", True),
        ("near yard lake", True),
        ("near lake yard", False),
        ("near yard yard", False),
        ("alone c", False),
        ("alone k", True),
        ("calm", False),
        ("noisy", False),
    ],
)
def test_facts_of_the_initial_state(state, fact, true):
    assert state.holds(fact.split(), {}) is true


@pytest.mark.parametrize(
    ("condition", "true"),
    [
        ([], True),
        (["and"], True),
        (["or"], False),
        (["not", ["or"]], True),
        (["imply", ["calm"], ["noisy"]], True),
        (["imply", ["at", "c", "yard"], ["noisy"]], False),
        (["=", "?x", "c"], True),
        (["=", "?x", "h"], False),
        (["forall", {}, ["noisy"]], False),
        (["exists", {"?x": {}}, ["and"]], False),
        (["forall", {"?x": {}}, ["noisy"]], True),
        (["exists", {"?x": {"h": None, "k": None}}, ["at", "?x", "lake"]], True),
        (["forall", {"?x": {"h": None, "k": None}}, ["at", "?x", "lake"]], False),
        (["and", ["exists", {"?x": {"k": None}}, ["alone", "?x"]], ["at", "?x", "yard"]], True),
    ],
)
def test_conditions_with_x_being_c(state, condition, true):
    assert state.holds(condition, {"?x": "c"}) is true


def test_changes_are_made_at_once_and_additions_win(state):
    assert run(state, "feed", "c")
    assert not state.holds(["fed", "h"], {})  # not calm, so only the deletion counts
    assert run(state, "walk", "c", "yard", "hill")
    assert state.holds(["noisy"], {})  # c was not alone before it left
    assert state.holds(["calm"], {})
    assert run(state, "feed", "c")
    assert state.holds(["fed", "h"], {})
    assert run(state, "hush")
    assert run(state, "walk", "c", "hill", "lake")
    assert not state.holds(["noisy"], {})  # c was alone on the hill
    assert not state.holds(["calm"], {})  # but k is not any more
    assert state.holds(state.problem.goal, {})
    assert not run(state, "walk", "c", "lake", "yard")


def test_costs(problem):
    walk, feed = problem.actions["walk"], problem.actions["feed"]
    assert cost(problem, walk, walk.bind(("c", "yard", "lake"))) == 4.5
    assert cost(problem, walk, walk.bind(("c", "hill", "lake"))) is None
    assert cost(problem, feed, feed.bind(("c",))) == 0
    free = read_problem(DOMAIN, PROBLEM.replace("(:metric minimize (total-cost))", ""))
    assert cost(free, walk, walk.bind(("c", "yard", "lake"))) == 1


def test_types_of_arguments(problem):
    parameters = problem.actions["feed"].parameters
    assert fits(problem, parameters, ["k"])
    assert not fits(problem, parameters, ["lake"])


LADDER = """(define (domain ladder) (:requirements :adl :derived-predicates)
  (:predicates (up ?x ?y) (mark ?x) (even ?x) (odd ?x) (reach ?x) (cut ?x) (both ?x) (odder ?x))
  (:derived (both ?x) (and (odd ?x) (even ?x)))
  (:derived (even ?x) (mark ?x))
  (:derived (even ?x) (exists (?y) (and (up ?y ?x) (odd ?y))))
  (:derived (odd ?x) (exists (?y) (and (up ?y ?x) (even ?y))))
  (:derived (reach ?x) (forall (?y) (imply (up ?y ?x) (reach ?y))))
  (:derived (odder ?x) (and (odd ?x) (not (both ?x)) (not (not (odd ?x)))))
  (:action set :parameters (?x ?y) :effect (up ?x ?y)))
"""


def ladder(ways, *objects):
    text = " ".join(f"(up {a} {b})" for a, b in ways)
    problem = (
        f"(define (problem l) (:domain ladder) (:objects {' '.join(objects)})"
        f"(:init (mark {objects[0]}) {text}) (:goal (and)))"
    )
    read = read_problem(LADDER, problem)
    return State(read, read.initial)


def true_of(state, predicate):
    return [name for name in state.problem.objects if state.holds([predicate, name], {})]


def test_recursion_of_two_predicates_of_one_stratum():
    state = ladder(["ab", "bc", "cd"], *"abcd")
    assert true_of(state, "odd") == ["b", "d"]
    assert true_of(state, "even") == ["a", "c"]
    assert true_of(state, "reach") == ["a", "b", "c", "d"]
    assert true_of(state, "odder") == ["b", "d"]
    assert {name for name, level in state.problem.strata.items() if level} == {"odder"}


def test_a_circle_does_not_support_itself():
    state = ladder(["bc", "cb", "ca"], *"abc")
    assert true_of(state, "odd") == []
    assert true_of(state, "reach") == []
    run(state, "set", "a", "b")  # a circle of three: everything is odd and even
    assert true_of(state, "both") == ["a", "b", "c"]
    assert true_of(state, "odder") == []


@pytest.mark.parametrize("first", range(6))
def test_the_first_question_changes_no_answer(first):
    objects = [f"n{i}" for i in range(6)]
    ways = [(objects[i], objects[(i * i + 1) % 6]) for i in range(6)]
    state, other = ladder(ways, *objects), ladder(ways, *objects)
    for name in ("even", "odd", "both", "reach"):
        state.holds([name, objects[first]], {})
    for name in ("reach", "odder", "both", "odd", "even"):
        assert true_of(state, name) == true_of(other, name)


def test_a_hundred_strata():
    names = [f"d{i}" for i in range(100)]
    rules = [f"(:derived ({a}) (not ({b})))" for a, b in zip(names[1:], names, strict=False)]
    declared = " ".join(f"({name})" for name in ("p", *names))
    domain = f"(define (domain s) (:predicates {declared}) (:derived (d0) (p)) {' '.join(rules)})"
    read = read_problem(domain, "(define (problem s) (:init (p)) (:goal (d99)))")
    assert read.strata["d99"] == 99
    state, before = State(read, read.initial), sys.getrecursionlimit()
    with allow_nested_calls(read):
        assert state.holds(["d98"], {})
        assert not state.holds(read.goal, {})
    assert sys.getrecursionlimit() == before
