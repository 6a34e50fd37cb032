"""Dead ends by delete relaxation are never states from which the goal can be reached."""

import random
from itertools import islice

import pytest

from conftest import walked
from regoal.domains.splits import domain_pddl, instances
from regoal.planning.datalog import grounding
from regoal.planning.goals import Atom, Goal
from regoal.planning.load import load_domain, load_task
from regoal.planning.relaxation import Relaxation

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


@pytest.fixture
def read(tmp_path):
    """Reads a task from the texts of its two files."""

    def make(domain, problem):
        (tmp_path / "domain.pddl").write_text(domain)
        (tmp_path / "p1.pddl").write_text(problem)
        return load_task(load_domain(tmp_path / "domain.pddl"), tmp_path / "p1.pddl")

    return make


def dead(task, names, goal=None):
    """Return the position of the first state of a walk that the relaxation calls dead, or None."""
    return first_dead(walked(task, names), goal or task.goal)


def first_dead(states, goal):
    relaxation = Relaxation(states[0].task)
    reached = [relaxation.reaches(state, goal) for state in states]
    assert reached == sorted(reached, reverse=True)  # once dead, dead for good
    return reached.index(False) if False in reached else None


WALKS = [
    (["(walk a b)", "(walk b c)"], 2),  # the key can never be fetched again
    (["(walk a b)", "(take k b)", "(drop k)", "(walk b c)"], 3),
    (["(walk a b)", "(take k b)", "(walk b c)"], None),
    (["(walk a b)", "(take k b)", "(walk b c)", "(unlock k d)"], None),
    ([], None),
]


@pytest.mark.parametrize(("names", "expected"), WALKS)
def test_the_first_state_that_is_dead(read, names, expected):
    assert dead(read(DOMAIN, PROBLEM), names) == expected


def test_other_goals_than_the_tasks(read):
    task = read(DOMAIN, PROBLEM)
    walk = ["(walk a b)", "(walk b c)"]
    a, c = Atom("at", ("a",)), Atom("at", ("c",))
    assert dead(task, walk, Goal.of([a])) == 1
    assert dead(task, walk, Goal.of([c, Atom("next", ("a", "b"))])) is None
    assert dead(task, walk, Goal.of([c, Atom("next", ("b", "a"))])) == 0
    assert dead(task, walk, Goal.of([c], [Atom("next", ("b", "a"))])) is None
    assert dead(task, walk, Goal.of([c], [Atom("next", ("a", "b"))])) == 0


def test_a_negative_goal_that_the_task_does_not_have_counts_as_possible(read):
    goal = Goal.of([], [Atom("open", ("d",))])
    walk = ["(walk a b)", "(take k b)", "(unlock k d)"]
    assert dead(read(DOMAIN, PROBLEM), walk, goal) is None


ALIKE = [
    (
        "(held ?k)\n    :effect (and (open",
        "(and (held ?k) (not (open ?d)))\n    :effect (and (open",
    ),
    ("(held ?k) :effect (not (held ?k))", "(held ?k) :effect (when (held ?k) (not (held ?k)))"),
    ("(and (at ?x) (lies ?k ?x))", "(or (and (lies ?k ?x) (at ?x)) (and (open ?k) (at ?x)))"),
    ("(and (at ?x) (lies ?k ?x))", "(exists (?y) (and (at ?x) (lies ?k ?y) (= ?x ?y)))"),
]


@pytest.mark.parametrize(("old", "new"), ALIKE)
@pytest.mark.parametrize(("names", "expected"), WALKS)
def test_other_words_for_the_same_domain_have_the_same_dead_ends(read, old, new, names, expected):
    assert DOMAIN.count(old) == 1
    assert dead(read(DOMAIN.replace(old, new), PROBLEM), names) == expected


# Lamps burn until water puts one out. There is one jug of water. You leave when it is dark.
LAMPS = """
(define (domain lamps) (:requirements :adl :derived-predicates) (:types lamp)
  (:constants a b - lamp)
  (:predicates (lit ?x - lamp) (water) (open ?x - lamp) (out) (dark) (glow))
  DERIVED
  (:action pour :parameters (?x - lamp) :precondition (and (water) (lit ?x))
    :effect (and (not (water)) (not (lit ?x))))
  (:action spill :parameters () :precondition (water) :effect (not (water)))
  (:action light :parameters (?x - lamp) :precondition (not (lit ?x)) :effect (lit ?x))
  (:action leave :parameters () :precondition CONDITION :effect (out)))
"""
DARK = "(:derived (dark) (forall (?x - lamp) (not (lit ?x))))"
GLOW = "(:derived (glow) (exists (?x - lamp) (lit ?x)))"
LEAVING = [
    ("(not (lit a))", "", ["(spill)"], 1),
    ("(not (lit a))", "", ["(pour a)", "(light a)"], 2),
    ("(not (lit a))", "", ["(pour a)"], None),
    ("(forall (?x - lamp) (not (lit ?x)))", "", ["(spill)"], 1),
    ("(forall (?x - lamp) (not (lit ?x)))", "", [], None),  # one jug does for both, relaxed
    ("(forall (?x - lamp) (or (lit ?x) (out)))", "", ["(pour a)"], None),
    ("(exists (?x - lamp) (not (lit ?x)))", "", ["(pour a)", "(light a)"], 2),
    ("(imply (lit a) (water))", "", ["(spill)"], 1),
    ("(imply (lit a) (water))", "", ["(pour a)"], None),
    ("(forall (?x - lamp) (exists (?y - lamp) (not (= ?x ?y))))", "", ["(spill)"], None),
    (
        "(forall (?x - lamp) (exists (?y - lamp) (and (= ?x ?y) (not (lit ?y)))))",
        "",
        ["(spill)"],
        1,
    ),
    ("(dark)", DARK, ["(spill)"], 1),
    ("(dark)", DARK, ["(pour a)"], 1),  # the jug is empty, and b burns
    ("(dark)", DARK, [], None),
    ("(not (glow))", GLOW, ["(pour a)"], None),  # what is derived counts as possibly false
]


@pytest.mark.parametrize(("condition", "derived", "names", "expected"), LEAVING)
def test_conditions_by_hand(read, condition, derived, names, expected):
    domain = LAMPS.replace("CONDITION", condition).replace("DERIVED", derived)
    problem = "(define (problem two) (:domain lamps) (:init (lit a) (lit b) (water)) (:goal (out)))"
    assert dead(read(domain, problem), names) == expected


EFFECTS = [
    ("(forall (?x - lamp) (when (open ?x) (not (lit ?x))))", "(not (lit a))", [], None),
    ("(forall (?x - lamp) (when (open ?x) (not (lit ?x))))", "(not (lit b))", [], 0),
    ("(when (water) (not (lit b)))", "(not (lit b))", ["(spill)"], 1),
    ("(when (not (water)) (not (lit b)))", "(not (lit b))", ["(spill)"], None),
    ("(and (lit b) (not (lit b)))", "(not (lit b))", ["(spill)"], None),
]


@pytest.mark.parametrize(("effect", "goal", "names", "expected"), EFFECTS)
def test_effects_and_negative_goals_by_hand(read, effect, goal, names, expected):
    domain = LAMPS.replace("(out)))", f"{effect}))").replace("CONDITION", "()")
    domain = domain.replace("DERIVED", "").replace("(not (water)) (not (lit ?x))", "(not (water))")
    problem = (
        "(define (problem two) (:domain lamps)"
        f" (:init (lit a) (lit b) (open a) (water)) (:goal {goal}))"
    )
    assert dead(read(domain, problem), names) == expected


def test_an_action_without_a_cost_that_only_the_relaxation_applies_is_no_error(read):
    # Only without deletes is the runner in two places at once.
    domain = DOMAIN.replace(":strips", ":strips :action-costs").rstrip()[:-1]
    domain = domain.replace("(:action walk", "(:functions (total-cost) (fee ?x ?y)) (:action walk")
    domain += (
        "(:action pay :parameters (?x ?y) :precondition (and (at ?x) (at ?y) (next ?x ?y))"
        " :effect (and (open ?x) (increase (total-cost) (fee ?x ?y)))))"
    )
    problem = PROBLEM.rstrip()[:-1].replace("(:init", "(:init (= (total-cost) 0)")
    task = read(domain, f"{problem} (:metric minimize (total-cost)))")
    walk = ["(walk a b)", "(walk b c)"]
    assert dead(task, walk, Goal.of([Atom("at", ("a",))])) == 1


def test_of_a_task_with_too_many_rules_no_state_is_called_dead(read, monkeypatch):
    monkeypatch.setattr(grounding, "MOST_STEPS", 5)
    assert dead(read(DOMAIN, PROBLEM), ["(walk a b)", "(walk b c)"]) is None


def test_a_state_that_the_initial_one_cannot_reach_is_never_called_dead(read):
    task = read(DOMAIN, PROBLEM)
    state = task.state_of([Atom("at", ("d",))])
    assert Relaxation(task).reaches(state, Goal.of([Atom("open", ("d",))]))


@pytest.fixture(scope="module")
def snacks(tmp_path_factory):
    """Six small problems of Childsnack, also with an equivalent negative precondition."""
    plain, found = domain_pddl("childsnack"), []
    assert plain.count("(not (= ?from ?to))") == 1
    for text in (plain, plain.replace("(not (= ?from ?to))", "(not (at ?t ?to))")):
        folder = tmp_path_factory.mktemp("snacks")
        (folder / "domain.pddl").write_text(text)
        domain, tasks = load_domain(folder / "domain.pddl"), []
        for i, instance in enumerate(islice(instances("childsnack", "train"), 6)):
            (folder / f"p{i}.pddl").write_text(instance.to_pddl())
            tasks.append(load_task(domain, folder / f"p{i}.pddl"))
        found.append(tasks)
    return zip(*found, strict=True)


def test_a_negative_precondition_leaves_the_dead_ends_of_childsnack(snacks):
    found = []
    for task, other in snacks:
        for seed in range(3):
            states = randomly_walked(other, 30, seed)
            same = [task.state_of(state.fluent_atoms) for state in states]
            found.append(first_dead(states, other.goal))
            assert found[-1] == first_dead(same, task.goal)
    assert sum(position is not None for position in found) >= 5


def randomly_walked(task, steps, seed):
    rng, states = random.Random(seed), [task.initial_state]
    for _ in range(steps):
        states.append(task.successor(states[-1], rng.choice(task.applicable_actions(states[-1]))))
    return states
