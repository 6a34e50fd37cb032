"""Shortened plans: worked out by hand, and random ones against the plain evaluator."""

import random
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planning.relaxation_domains import domains, problems
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.goals import Goal
from regoal.planning.load import load_domain, load_task
from regoal.planning.plain.problem import read_problem
from regoal.planning.plain.state import State as PlainState
from regoal.planning.plain.state import allow_nested_calls, cost, fits
from regoal.planning.shortening import grounding
from regoal.planning.shortening import shorten as shortening
from regoal.planning.shortening.grounding import Grounder
from regoal.planning.shortening.shorten import OUT_OF_TIME, reduce, shorten
from regoal.planning.shortening.trajectory import Trajectory

# Things in a case move with it; a guard lets the case in if all that is in it is marked.
CASE = """(define (domain case) (:requirements :adl) (:types place thing)
  (:predicates (case ?p - place) (at ?t - thing ?p - place) (in ?t - thing) (marked ?t - thing)
    (guarded ?p - place) (closed))
  (:action move :parameters (?a ?b - place)
    :precondition (and (case ?a) (not (= ?a ?b)) (or (not (guarded ?b))
      (and (closed) (forall (?t - thing) (imply (in ?t) (marked ?t))))))
    :effect (and (case ?b) (not (case ?a))
      (forall (?t - thing) (when (in ?t) (and (at ?t ?b) (not (at ?t ?a)))))))
  (:action put :parameters (?t - thing ?p - place)
    :precondition (and (case ?p) (at ?t ?p) (not (closed))) :effect (in ?t))
  (:action take :parameters (?t - thing) :precondition (and (in ?t) (not (closed)))
    :effect (not (in ?t)))
  (:action mark :parameters (?t - thing) :precondition (exists (?p - place) (at ?t ?p))
    :effect (when (not (closed)) (marked ?t)))
  (:action turn :parameters ()
    :effect (and (when (closed) (not (closed))) (when (not (closed)) (closed)))))"""

CASE_ONE = """(define (problem one) (:domain case) (:objects p q r - place a b c - thing)
  (:init (case p) (at a p) (at b q) (at c r) (guarded r)) (:goal (and (at a r) (at b p))))"""

# Blocks with derived predicates; a heavy block costs more.
TOWERS = """(define (domain towers) (:requirements :adl :derived-predicates :action-costs)
  (:predicates (on ?x ?y) (clear ?x) (above ?x ?y) (lifted) (seen ?x))
  (:functions (total-cost) - number (weight ?x) - number)
  (:derived (clear ?x) (not (exists (?y) (on ?y ?x))))
  (:derived (above ?x ?y) (or (on ?x ?y) (exists (?z) (and (on ?x ?z) (above ?z ?y)))))
  (:action move :parameters (?x ?y) :precondition (and (clear ?x) (clear ?y) (not (= ?x ?y)))
    :effect (and (on ?x ?y) (forall (?z) (when (not (= ?z ?y)) (not (on ?x ?z))))
      (increase (total-cost) (weight ?x))))
  (:action drop :parameters (?x) :precondition (clear ?x)
    :effect (and (forall (?z) (not (on ?x ?z))) (increase (total-cost) 0)))
  (:action look :parameters (?x ?y) :precondition (above ?x ?y)
    :effect (and (seen ?x) (increase (total-cost) 2))))"""

TOWERS_ONE = """(define (problem one) (:domain towers) (:objects a b c d)
  (:init (on a b) (on c d) (= (weight a) 1) (= (weight b) 2) (= (weight c) 0) (= (weight d) 5))
  (:goal (and (on a c))) (:metric minimize (total-cost)))"""


@dataclass
class Plain:
    """A task in the plain evaluator, which executes steps in simple and slow ways."""

    problem: object

    def start(self):
        return PlainState(self.problem, self.problem.initial)

    def can(self, state, step):
        action = self.problem.actions[step.name]
        return fits(self.problem, action.parameters, step.objects) and state.holds(
            action.precondition, action.bind(step.objects)
        )

    def do(self, state, step):
        action = self.problem.actions[step.name]
        state.execute(action, action.bind(step.objects))

    def is_goal(self, state, goal):
        return all(
            state.holds([atom.predicate, *atom.objects], {}) is positive
            for atom, positive in goal.literals()
        )

    def is_plan(self, plan, goal):
        state = self.start()
        for step in plan:
            if not self.can(state, step):
                return False
            self.do(state, step)
        return self.is_goal(state, goal)

    def cost(self, plan):
        actions = self.problem.actions
        return sum(
            cost(self.problem, actions[s.name], actions[s.name].bind(s.objects)) for s in plan
        )

    def removed_with(self, plan, positions, first, goal):
        """The positions that go if one does, or None if the goal is missed without them."""
        state, removed = self.start(), []
        for i in positions:
            if i == first or (i > first and not self.can(state, plan[i])):
                removed.append(i)
            else:
                self.do(state, plan[i])
        return removed if self.is_goal(state, goal) else None


def walk_at_random(task, rng, steps):
    """A random walk and a goal of a few literals that hold at its end."""
    state, plan, seen = task.initial_state, [], set()
    for _ in range(steps):
        action = rng.choice(task.applicable_actions(state))
        if action is DUMMY_ACTION:
            break
        plan.append(action)
        state = task.successor(state, action)
        seen.update(state.fluent_atoms)
    true = sorted(state.fluent_atoms)
    false = sorted(seen.difference(true))
    goal = Goal.of(
        rng.sample(true, min(len(true), rng.randint(0, 2))),
        rng.sample(false, min(len(false), rng.randint(0, 2))),
    )
    return plan, goal


def is_valid_in_library(task, plan, goal):
    state = task.initial_state
    for action in plan:
        if action not in task.applicable_actions(state):
            return False
        state = task.successor(state, action)
    return state.satisfies(goal)


def follow(task, plan):
    """The plan as a trajectory, and whether all its conditions are evaluated."""
    grounder = Grounder(task)
    steps = [grounder.ground(action) for action in plan]
    goal, watched = grounder.ground_goal()
    trajectory = Trajectory(steps, grounder.initial, goal, watched, grounder.predicates)
    return trajectory, not (watched or any(step.watched for step in steps))


def check_removals(task, plan, plain, goal, rng):
    """Compare removals with the plain twin's, then remove one, until there are none."""
    trajectory, exact = follow(task, plan)
    while True:
        found, kept = [], trajectory.kept
        for first in kept:
            removal = trajectory.find_removal(first)
            if exact:
                expected = plain.removed_with(plan, kept, first, goal)
                assert (removal.steps if removal else None) == expected
            if removal:
                assert removal.cost == plain.cost([plan[i] for i in removal.steps])
                found.append(removal)
        if not found:
            return
        removal = rng.choice(found)
        trajectory.remove(removal)
        assert trajectory.kept == [i for i in kept if i not in removal.steps]
        assert plain.is_plan([plan[i] for i in trajectory.kept], goal)


def check(task, seed, steps):
    """Shorten a random plan, and return the lengths and the note."""
    rng = random.Random(seed)
    plan, goal = walk_at_random(task, rng, steps)
    original, task.goal = task.goal, goal
    try:
        plain = Plain(read_problem(*task.sources))
        with allow_nested_calls(plain.problem):
            assert plain.is_plan(plan, goal)
            short, note = reduce(task, plan)
            assert plain.is_plan(short, goal)
            assert plain.cost(short) <= plain.cost(plan)
            rest = iter(plan)
            assert all(action in rest for action in short)  # a part of it, in its order
            assert is_valid_in_library(task, short, goal)
            if note:
                assert short == plan
            elif seed % 3 == 0:  # this is what takes most of the time
                check_removals(task, plan, plain, goal, rng)
    finally:
        task.goal = original
    return len(plan), len(short), note


def steps_of(text):
    """The steps of a text such as `go a b, go b c`."""
    words = (step.split() for step in text.split(", "))
    return [GroundAction(name, tuple(objects)) for name, *objects in words]


# Two ways to the goal; what a dear one costs is spent although a cheap one would do.
SHOP = """(define (domain shop) (:requirements :action-costs) (:predicates (paid) (got) (open))
  (:functions (total-cost) - number)
  (:action enter :parameters () :effect (and (open) (increase (total-cost) 1)))
  (:action cheap :parameters () :precondition (open)
    :effect (and (got) (increase (total-cost) 2)))
  (:action pay :parameters () :effect (and (paid) (increase (total-cost) 1)))
  (:action dear :parameters () :precondition (paid)
    :effect (and (got) (increase (total-cost) 7))))"""

SHOP_ONE = """(define (problem one) (:domain shop) (:init ) (:goal (got))
  (:metric minimize (total-cost)))"""

# What the effect of `save` does depends on a derived predicate.
ALARM = """(define (domain alarm) (:requirements :adl :derived-predicates)
  (:predicates (fire) (smoke) (alarm) (safe))
  (:derived (alarm) (or (fire) (smoke)))
  (:action light :parameters () :effect (and (fire) (smoke)))
  (:action save :parameters () :effect (when (alarm) (safe))))"""

ALARM_ONE = """(define (problem one) (:domain alarm) (:init ) (:goal (safe)))"""


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        # A loop, and a detour that ends where it began.
        ("pick-up b1, put-down b1, pick-up b3, stack b3 b4, pick-up b2, stack b2 b3, "
         "pick-up b1, stack b1 b2",
         "pick-up b3, stack b3 b4, pick-up b2, stack b2 b3, pick-up b1, stack b1 b2"),
        # The first pick-up goes with the stack and unstack that need it; b3 is then put elsewhere.
        ("pick-up b3, stack b3 b1, unstack b3 b1, stack b3 b4, pick-up b2, stack b2 b3, "
         "pick-up b1, stack b1 b2",
         "pick-up b3, stack b3 b4, pick-up b2, stack b2 b3, pick-up b1, stack b1 b2"),
    ],
)  # fmt: skip
def test_blocks(plan, expected, tasks):
    task = tasks["blocks"]["tower"]
    short, verdict, note = shorten(task, steps_of(plan))
    assert short == steps_of(expected)
    assert (verdict.valid, verdict.cost, note) == (True, 6.0, "")


def test_the_shortest_way_through_visited_states_is_taken(ways):
    # To cut the loop that ends in a last would leave a, d, b, e; b was reached from a before.
    task = ways(("ab", "bc", "ca", "ad", "db", "be"), "e", "abcde")
    plan = steps_of("go a b, go b c, go c a, go a d, go d b, go b e")
    assert shorten(task, plan).actions == steps_of("go a b, go b e")


@pytest.mark.parametrize("plan", ["enter, cheap, pay, dear", "pay, dear, enter, cheap"])
def test_what_costs_most_goes_first(plan, read_task):
    task = read_task(SHOP, SHOP_ONE)
    short, verdict, _ = shorten(task, steps_of(plan))
    assert (short, verdict.cost) == (steps_of("enter, cheap"), 3.0)


def test_effects_on_a_derived_condition_are_left_alone(read_task):
    task, plan = read_task(ALARM, ALARM_ONE), steps_of("save, light, save")
    short, verdict, note = shorten(task, plan)
    assert (short, note) == (plan, "effects depend on derived predicates")
    assert verdict.valid


def test_without_time_the_plan_stays(ways):
    task, plan = ways(("ab", "ba"), "b", "ab"), steps_of("go a b, go b a, go a b")
    assert reduce(task, plan, 0.0) == (plan, OUT_OF_TIME)


def test_a_fault_here_costs_no_plan(ways, monkeypatch, caplog):
    task, plan = ways(("ab", "ba"), "b", "ab"), steps_of("go a b, go b a, go a b")
    monkeypatch.setattr(shortening, "reduce", lambda *_: shortening.Reduced(plan[:2], ""))
    short, verdict, _ = shorten(task, plan)
    assert (short, verdict.valid) == (plan, True)
    assert "was not shortened" in caplog.text


def test_large_conditions_are_only_watched(read_task, monkeypatch):
    monkeypatch.setattr(grounding, "MOST_PARTS", 1)
    task = read_task(CASE, CASE_ONE)
    for seed in range(30):
        check(task, seed, steps=15)


def test_too_many_effects_are_left_alone(read_task, monkeypatch):
    monkeypatch.setattr(grounding, "MOST_EFFECTS", 3)
    plan = steps_of("turn, turn, move p q")
    assert reduce(read_task(CASE, CASE_ONE), plan) == (plan, "effects name too many atoms")


WORLDS = {
    "strips": ("blocks", "tower"),
    "negative": ("ferry", "two"),
    "conditional": (CASE, CASE_ONE),
    "derived, costs": (TOWERS, TOWERS_ONE),
}


@pytest.mark.parametrize("world", WORLDS)
def test_random_plans(world, tasks, read_task):
    domain, problem = WORLDS[world]
    task = tasks[domain][problem] if domain in tasks else read_task(domain, problem)
    lengths = Counter()
    for seed in range(250):
        before, after, note = check(task, seed, steps=2 + seed % 20)
        assert not note
        lengths.update(before=before, after=after)
    assert 2 * lengths["after"] < lengths["before"]


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(domain=domains(), problem=problems(), seed=st.integers(0, 1000))
def test_random_domains(tmp_path, domain, problem, seed):
    (tmp_path / "domain.pddl").write_text(domain)
    (tmp_path / "p1.pddl").write_text(problem)
    task = load_task(load_domain(tmp_path / "domain.pddl"), tmp_path / "p1.pddl")
    _, _, note = check(task, seed, steps=10)
    assert note in ("", "effects depend on derived predicates")
