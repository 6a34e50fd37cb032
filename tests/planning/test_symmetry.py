"""Interchangeable objects: by hand, compared with exchanging all pairs, and in the network."""

from collections import defaultdict
from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.domains.splits import domain_pddl, instances
from regoal.networks.encoder import Encoder
from regoal.networks.relations import relations_of
from regoal.planning import symmetry
from regoal.planning.actions import DUMMY_ACTION
from regoal.planning.goals import Atom
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.pddl.conjunctions import is_plain
from regoal.planning.symmetry import Symmetry

# Three parameters of three types, and nothing that distinguishes the objects.
LUNCH = """(define (domain lunch) (:requirements :strips :typing)
  (:types bread filling box child)
  (:predicates (fresh ?b - bread) (open ?f - filling) (empty ?x - box) (packed ?x - box)
    (sweet ?f - filling) (treat ?x - box) (fed ?c - child) (fond ?c - child))
  (:action pack :parameters (?b - bread ?f - filling ?x - box)
    :precondition (and (fresh ?b) (open ?f) (empty ?x))
    :effect (and (packed ?x) (not (fresh ?b)) (not (open ?f)) (not (empty ?x))))
  (:action pack-treat :parameters (?b - bread ?f - filling ?x - box)
    :precondition (and (fresh ?b) (open ?f) (sweet ?f) (empty ?x))
    :effect (and (packed ?x) (treat ?x) (not (fresh ?b)) (not (open ?f)) (not (empty ?x))))
  (:action feed :parameters (?x - box ?c - child) :precondition (packed ?x)
    :effect (and (fed ?c) (not (packed ?x)))))"""

LUNCH_THREE = """(define (problem three) (:domain lunch)
  (:objects b1 b2 b3 - bread f1 f2 f3 f4 - filling x1 x2 - box c1 c2 c3 - child)
  (:init (fresh b1) (fresh b2) (fresh b3) (open f1) (open f2) (open f3) (open f4) (sweet f4)
    (empty x1) (empty x2) (fond c2)) (:goal (and (fed c1) (fed c2) (fed c3))))"""

# Two parameters of one type, static relations, a constant, negative preconditions and goals,
# 0-ary atoms, an effect on all balls, a parameter that only a negative precondition restricts.
BALLS = """(define (domain balls)
  (:requirements :strips :typing :equality :negative-preconditions :conditional-effects)
  (:types ball room - object) (:constants hall - room)
  (:predicates (in ?b - ball ?r - room) (door ?r ?s - room) (here ?r - room) (tied ?a ?b - ball)
    (heavy ?b - ball) (held ?b - ball) (dark) (odd ?b - ball) (painted ?b - ball))
  (:action go :parameters (?r ?s - room) :precondition (and (here ?r) (door ?r ?s))
    :effect (and (here ?s) (not (here ?r))))
  (:action take :parameters (?b - ball ?r - room)
    :precondition (and (here ?r) (in ?b ?r) (not (heavy ?b)))
    :effect (and (held ?b) (not (in ?b ?r))))
  (:action put :parameters (?b - ball ?r - room) :precondition (and (held ?b) (here ?r))
    :effect (and (in ?b ?r) (not (held ?b))))
  (:action tie :parameters (?a ?b - ball)
    :precondition (and (held ?a) (held ?b) (not (= ?a ?b)) (not (tied ?a ?b)))
    :effect (tied ?a ?b))
  (:action paint :parameters (?b - ball)
    :precondition (and (here hall) (not (painted ?b)) (not (dark)))
    :effect (and (painted ?b) (dark)))
  (:action lamp :parameters () :precondition (dark)
    :effect (and (not (dark)) (forall (?b - ball) (when (held ?b) (odd ?b))))))"""


def balls_problem(balls, rooms, init, goal):
    objects = [f"{x} - ball" for x in balls] + [f"{x} - room" for x in rooms]
    return f"""(define (problem p) (:domain balls) (:objects {" ".join(objects)})
      (:init {" ".join(init)}) (:goal (and {" ".join(goal)})))"""


@st.composite
def ball_problems(draw):
    balls = [f"b{i}" for i in range(draw(st.integers(0, 7)))]
    rooms = [f"r{i}" for i in range(draw(st.integers(0, 3)))]
    everywhere = ["hall", *rooms]
    init = [f"(here {draw(st.sampled_from(everywhere))})"]
    for pair in permutations(everywhere, 2):
        init += [f"(door {pair[0]} {pair[1]})"] * draw(st.booleans())
    kinds = draw(st.lists(st.sampled_from(["(held {})", "(in {} hall)", "(in {} r0)"]), max_size=2))
    for ball in balls:  # of few kinds, so that many are the same
        kind = draw(st.sampled_from([*kinds, "(in {} hall)"])).format(ball)
        init += [kind] * ("r0" in rooms or "r0" not in kind)
        init += [f"(heavy {ball})"] * (draw(st.integers(0, 5)) == 0)
    if len(balls) > 1 and draw(st.booleans()):
        init.append(f"(tied {balls[0]} {balls[1]})")
    goal = draw(st.sets(st.sampled_from([*balls, "hall"])))
    literals = [f"(odd {x})" if x in balls else "(not (here hall))" for x in sorted(goal)]
    negative = draw(st.sets(st.sampled_from([*balls, "hall"])))
    literals += [f"(not (painted {x}))" if x in balls else "(dark)" for x in sorted(negative)]
    return balls_problem(balls, rooms, init, literals or ["(dark)"])


def atoms_with_goal(state, goal):
    """Return all atoms that say something about an object, goal literals included."""
    goals = {Atom(f"goal {positive} {a.predicate}", a.objects) for a, positive in goal.literals()}
    return state.atoms | goals


def exchanged(atoms, first, second):
    swap = {first: second, second: first}
    return {Atom(p, tuple(swap.get(x, x) for x in objects)) for p, objects in atoms}


def checked(task, state, q_of_whole, q_over):
    """Return the representatives of a state after checking them against the whole state."""
    found = Symmetry(task, task.goal).representatives(state)
    whole = task.applicable_actions(state)
    equal = {action: list(found.equal_actions(action)) for action in found.actions}
    together = [action for actions in equal.values() for action in actions]
    assert sorted(together) == sorted(whole)
    assert set(found.actions) <= set(whole)
    assert list(found.actions) == sorted(found.actions)
    over = dict(zip(found.actions, q_over(found), strict=True))
    q = dict(zip(whole, q_of_whole(state), strict=True))
    for action, actions in equal.items():
        assert actions == sorted(actions)
        assert actions[:1] in ([], [action])
        assert over[action] == pytest.approx(q[action], rel=1e-9)
        for other in actions:
            assert q[other] == pytest.approx(over[action], rel=1e-9)
    return found


def checks(task, policy, seed=0):
    """A function that checks a state with random weights in double precision."""
    relations = relations_of(schema_of(task.domain), achieved_goals=True, relaxed_plans=True)
    network = policy(relations, 16, seed=seed).double()
    encoder = Encoder(relations)

    def whole(state):
        return network.q_values(encoder.batch([(state, task.goal)]), 4)[0].tolist()

    def over(found):
        return network.q_values(encoder.join([encoder.input_over(found, task.goal)]), 4)[0].tolist()

    return lambda state: checked(task, state, whole, over)


# Worked by hand


def test_lunch(read_task, policy):
    task = read_task(LUNCH, LUNCH_THREE)
    found = checks(task, policy)(task.initial_state)
    assert found.counts == {"b1": 3, "f1": 3, "f4": 1, "x1": 2, "c1": 2, "c2": 1}
    assert list(found.counts) == ["b1", "f1", "f4", "x1", "c1", "c2"]
    assert found.dropped == 6
    assert [str(action) for action in found.actions] == [
        *("(pack b1 f1 x1)", "(pack b1 f4 x1)", "(pack-treat b1 f4 x1)")
    ]
    assert len(task.applicable_actions(task.initial_state)) == 3 * 4 * 2 + 3 * 2
    equal = [str(action) for action in found.equal_actions(found.actions[2])]
    assert equal == [f"(pack-treat b{b} f4 x{x})" for b in (1, 2, 3) for x in (1, 2)]


def test_as_many_stay_as_one_action_takes(read_task, policy):
    balls = [f"b{i}" for i in range(1, 6)]
    init = ["(here hall)", *(f"(held {x})" for x in balls)]
    task = read_task(BALLS, balls_problem(balls, ["r1", "r2", "r3"], init, ["(odd b3)"]))
    found = checks(task, policy)(task.initial_state)
    # Two balls may be tied, and a move needs two rooms; b3 is in the goal.
    assert found.counts == {"hall": 1, "b1": 3, "b2": 1, "b3": 1, "r1": 2, "r2": 1}
    ties = [action for action in found.actions if action.name == "tie"]
    assert sorted(str(a) for a in ties) == [
        f"(tie {a} {b})" for a, b in permutations(("b1", "b2", "b3"), 2)
    ]
    firsts = {str(a): len(list(found.equal_actions(a))) for a in ties}
    # Of equal ones only the first has the others: 4 * 3, and 4 with b3 on either side.
    assert firsts == {
        **{"(tie b1 b2)": 12, "(tie b2 b1)": 0, "(tie b1 b3)": 4, "(tie b2 b3)": 0},
        **{"(tie b3 b1)": 4, "(tie b3 b2)": 0},
    }


def test_static_preconditions_say_what_an_action_takes(read_task, policy):
    domain = """(define (domain d) (:requirements :strips :negative-preconditions)
      (:predicates (cup ?x) (tray ?x) (on ?x ?y) (full ?x) (old ?x))
      (:action lay :parameters (?x ?y) :precondition (and (cup ?x) (tray ?y)) :effect (on ?x ?y))
      (:action pour :parameters (?x ?y ?z) :effect (full ?y)
        :precondition (and (cup ?x) (cup ?y) (cup ?z) (full ?x) (not (old ?y)) (not (full ?z)))))"""
    problem = """(define (problem p) (:domain d) (:objects a b c d e f g h i j t u)
      (:init (cup a) (cup b) (cup c) (cup d) (cup e) (cup f) (cup g) (cup h) (tray t) (tray u)
        (old f) (old g) (old h) (full i) (full j)) (:goal (full t)))"""
    task = read_task(domain, problem)
    found = checks(task, policy)(task.initial_state)
    # Three cups, two of them old ones, one tray, and what no action takes; t is in the goal.
    assert found.counts == {"a": 3, "b": 1, "c": 1, "f": 2, "g": 1, "i": 2, "t": 1, "u": 1}


def test_atoms_between_objects_distinguish_them(read_task):
    balls = ["b1", "b2", "b3", "b4", "b5"]
    tied = ["(tied b1 b2)", "(tied b2 b1)", "(tied b3 b4)", "(tied b3 b5)"]
    init = ["(here hall)", *(f"(in {x} hall)" for x in balls), *tied]
    task = read_task(BALLS, balls_problem(balls, [], init, ["(dark)"]))
    symmetry = Symmetry(task, task.goal)
    assert symmetry.most_dropped == 3
    # b4 and b5 are alike, but two may stay; b1 and b2 are tied to each other.
    assert symmetry.representatives(task.initial_state).classes == {}


def test_representatives_are_the_first_by_name(read_task):
    balls = ["b10", "b9", "b2", "b1"]
    init = ["(here hall)", *(f"(in {x} hall)" for x in balls)]
    task = read_task(BALLS, balls_problem(balls, [], init, ["(dark)"]))
    found = Symmetry(task, task.goal).representatives(task.initial_state)
    assert found.counts == {"hall": 1, "b10": 1, "b1": 3}
    assert list(found.counts) == ["hall", "b10", "b1"]
    assert set(found.classes) == set(balls)
    assert [*found.classes["b9"]] == ["b1", "b10", "b2", "b9"]


def test_nothing_applicable(read_task, policy):
    task = read_task(LUNCH, LUNCH_THREE.replace("(open f", "(sweet f"))
    found = checks(task, policy)(task.initial_state)
    assert found.actions == (DUMMY_ACTION,)
    assert list(found.equal_actions(DUMMY_ACTION)) == [DUMMY_ACTION]


def test_objects_left_out_bring_no_more_actions(read_task, monkeypatch):
    # Without their atoms seven of the nine balls would look as if they could be painted.
    balls = [f"b{i}" for i in range(9)]
    init = ["(here hall)", *(f"(painted {x})" for x in balls)]
    task = read_task(BALLS, balls_problem(balls, [], init, ["(dark)"]))
    asked, applicable_actions = [], task.applicable_actions

    def noted(state):
        asked.append(applicable_actions(state))
        return asked[-1]

    monkeypatch.setattr(task, "applicable_actions", noted)
    found = Symmetry(task, task.goal).representatives(task.initial_state)
    assert len(found.counts) == 3
    assert found.actions == (DUMMY_ACTION,)
    assert asked == [(DUMMY_ACTION,)]


COSTS = """(define (domain toll) (:requirements :strips :action-costs)
  (:predicates (at ?t) (place ?p) (been ?p)) (:functions (toll ?p) (total-cost))
  (:action visit :parameters (?p) :precondition (place ?p)
    :effect (and (been ?p) (increase (total-cost) (toll ?p)))))"""


def test_costs_distinguish_objects(read_task):
    problem = """(define (problem p) (:domain toll) (:objects a b c d e)
      (:init (place a) (place b) (place c) (place d) (place e) (= (total-cost) 0)
        (= (toll a) 1) (= (toll b) 1) (= (toll c) 2) (= (toll d) 2) (= (toll e) 3))
      (:goal (been a)){})"""
    task = read_task(COSTS, problem.format(" (:metric minimize (total-cost))"))
    found = Symmetry(task, task.goal).representatives(task.initial_state)
    assert found.counts == {"a": 1, "b": 1, "c": 2, "e": 1}  # a is in the goal
    assert [a.objects for a in found.actions] == [("a",), ("b",), ("c",), ("e",)]
    task = read_task(COSTS, problem.format(""))
    found = Symmetry(task, task.goal).representatives(task.initial_state)
    assert found.counts == {"a": 1, "b": 4}


@pytest.mark.parametrize(
    ("precondition", "derived"),
    [
        ("(or (p ?x) (q ?x))", ""),
        ("(exists (?y) (p ?y))", ""),
        ("(forall (?y) (p ?y))", ""),
        ("(not (and (p ?x) (q ?x)))", ""),
        ("(p ?x)", "(:derived (r ?x) (p ?x))"),
    ],
)
def test_other_domains_are_refused(read_task, precondition, derived):
    domain = f"""(define (domain d) (:requirements :adl :derived-predicates)
      (:predicates (p ?x) (q ?x) (r ?x)) {derived}
      (:action act :parameters (?x) :precondition {precondition} :effect (q ?x)))"""
    objects = "(define (problem p) (:domain d) (:objects a b) (:init (p a)) (:goal (q a)))"
    task = read_task(domain, objects)
    assert not is_plain(task.domain.text.content)
    with pytest.raises(ValueError, match="nested preconditions"):
        Symmetry(task, task.goal)


def test_conjunctions_of_conjunctions_are_plain(read_task):
    domain = """(define (domain d) (:requirements :adl) (:predicates (p ?x) (q ?x))
      (:action act :parameters (?x) :precondition (and (p ?x) (and (not (or (q ?x) (not (p ?x))))))
        :effect (q ?x)) (:action free :parameters () :effect (and)))"""
    problem = """(define (problem p) (:domain d) (:objects a b c)
      (:init (p a) (p b) (p c)) (:goal (and (q a) (q b) (q c))))"""
    task = read_task(domain, problem)
    assert Symmetry(task, task.goal).representatives(task.initial_state).counts == {"a": 3}


# Against exchanging all pairs, and the whole state


@settings(max_examples=40, deadline=None)
@given(ball_problems(), st.integers(0, 100))
def test_random_balls(read_task, walk, policy, problem, seed):
    task = read_task(BALLS, problem)
    check = checks(task, policy, seed)
    for state in walk(task, 6, seed)[0]:
        found = check(state)
        atoms = atoms_with_goal(state, task.goal)
        alike = defaultdict(set)
        for a, b in combinations(sorted(set(task.objects) - {"hall"}), 2):
            named = any(a in objects and b in objects for _, objects in atoms)
            same = task.types_of[a] == task.types_of[b] and exchanged(atoms, a, b) == atoms
            if same and not named:
                alike[a].add(b)
                alike[b].add(a)
        large = {tuple(sorted({x, *others})) for x, others in alike.items() if len(others) > 1}
        assert {tuple(of) for of in found.classes.values()} == large
        assert sum(found.counts.values()) == len(task.objects)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=4, max_size=4), st.integers(0, 100))
def test_random_lunches(read_task, walk, policy, sizes, seed):
    names = [[f"{kind}{i}" for i in range(n)] for kind, n in zip("bfxc", sizes, strict=True)]
    objects = zip(names, ("bread", "filling", "box", "child"), strict=True)
    init = [f"(fresh {x})" for x in names[0]] + [f"(open {x})" for x in names[1]]
    init += [f"(empty {x})" for x in names[2]] + [f"(sweet {x})" for x in names[1][::2]]
    problem = f"""(define (problem p) (:domain lunch)
      (:objects {" ".join(f"{' '.join(of)} - {kind}" for of, kind in objects)})
      (:init {" ".join(init)}) (:goal (and {" ".join(f"(fed {x})" for x in names[3])})))"""
    task = read_task(LUNCH, problem)
    check = checks(task, policy, seed)
    for state in walk(task, 6, seed)[0]:
        check(state)


def test_in_one_batch_with_whole_states(read_task, policy, monkeypatch):
    # Both as the kernel and as the plain definition compute it.
    task = read_task(LUNCH, LUNCH_THREE)
    relations = relations_of(schema_of(task.domain), achieved_goals=True)
    network, encoder = policy(relations, 16), Encoder(relations)
    found = Symmetry(task, task.goal).representatives(task.initial_state)
    whole = encoder.input(task.initial_state, task.goal)
    over = encoder.input_over(found, task.goal)
    for kernel in ("1", "0"):
        monkeypatch.setenv("REGOAL_KERNEL", kernel)
        batch = encoder.join([over, whole, over])
        assert np.bincount(batch.object_instance).tolist() == [12, 12, 12]
        first, second, third = network.q_values(batch, 5)
        torch.testing.assert_close(first, third)
        places = [whole[0].actions.index(action) for action in over[0].actions]
        torch.testing.assert_close(first, second[places], rtol=1e-5, atol=1e-5)


# Sums of hashes exclude objects first

# Roads from a place to itself: atoms that name an object twice.
LOOPS = """(define (domain loops) (:requirements :strips)
  (:predicates (at ?a) (road ?a ?b))
  (:action go :parameters (?a ?b) :precondition (and (at ?a) (road ?a ?b))
    :effect (and (at ?b) (not (at ?a)))))"""

LOOPS_SIX = """(define (problem six) (:domain loops) (:objects a b c d e f)
  (:init (at a) (road a a) (road b b) (road c c) (road f f) (road d e)) (:goal (at e)))"""


@pytest.mark.parametrize("name", ["loops", "miconic", "childsnack", "gripper", "visitall"])
def test_hashes_leave_no_interchangeable_object_out(name, read_task, monkeypatch):
    if name == "loops":
        task = read_task(LOOPS, LOOPS_SIX)
    else:
        *_, largest = instances(name, "train")
        task = read_task(domain_pddl(name), largest.to_pddl())
    found = Symmetry(task, task.goal).representatives(task.initial_state)
    monkeypatch.setattr(symmetry, "_find_candidates", lambda task, atoms: set(task.objects))
    expected = Symmetry(task, task.goal).representatives(task.initial_state)
    assert (found.counts, found.classes) == (expected.counts, expected.classes)
    if name == "loops":
        assert found.classes == {key: ["b", "c", "f"] for key in "bcf"}
