"""Commitment to one goal literal after another, and attempts by all means."""

import itertools

import pytest
import torch

import regoal.evaluation.batching
import regoal.evaluation.commitment
from regoal.evaluation.attempts import Means
from regoal.evaluation.commitment import Commitment
from regoal.networks.encoder import Encoder
from regoal.networks.parameters import Layout
from regoal.networks.relations import relations_of
from regoal.planning.dead_ends import DeadEnds
from regoal.planning.goals import Atom, Goal
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.plans import validate_plan
from regoal.records.results import Outcome

LINE = """(define (domain line) (:requirements :strips)
  (:predicates (at ?x) (seen ?x) (next ?x ?y))
  (:action go :parameters (?x ?y) :precondition (and (at ?x) (next ?x ?y))
    :effect (and (at ?y) (seen ?y) (not (at ?x)))))"""

CELLS = "abcde"


@pytest.fixture
def line(read_task):
    """Five cells in a row, from b; the first and the last are to be seen."""
    ways = [f"(next {x} {y})" for x, y in itertools.pairwise(CELLS)]
    ways += [f"(next {y} {x})" for x, y in itertools.pairwise(CELLS)]
    return read_task(
        LINE,
        f"(define (problem five) (:domain line) (:objects {' '.join(CELLS)})"
        f"(:init (at b) (seen b) {' '.join(ways)}) (:goal (and (seen a) (seen e))))",
    )


class Nearest:
    """Stands for a network that knows the steps to a single cell, and for two cells none."""

    layout = Layout((), 16)

    def __init__(self, encoder):
        self.encoder = encoder
        self.asked = []

    def input(self, state, goal):
        self.asked.append(goal)
        x, wanted = self.encoder.input(state, goal)
        missing = [a.objects[0] for a in goal.atoms if not state.holds(a)]
        # Without a way there is only the dummy action, which has no objects.
        q = [-self.steps(a.objects[1], missing) if a.objects else -9 for a in x.actions]
        return x, wanted, q

    @staticmethod
    def steps(cell, missing):
        if len(missing) != 1:
            return 9
        return 1 + abs(CELLS.index(cell) - CELLS.index(missing[0]))

    def forget(self, task):
        self.encoder.forget(task)

    def join(self, inputs):
        return inputs

    def q_values(self, batch, layers):
        return [torch.tensor(q, dtype=torch.float32) for _, _, q in batch]


@pytest.fixture
def nearest(monkeypatch):
    # Inputs have a third part here, which estimates of memory do not need.
    monkeypatch.setattr(regoal.evaluation.batching.Memory, "estimate", lambda self, x: 1)

    def build(task):
        return Nearest(Encoder(relations_of(schema_of(task.domain))))

    return build


def test_it_goes_to_the_nearest_literal_then_to_the_next(line, nearest):
    network = nearest(line)
    commitment = Commitment(network, network, line, 1)
    assert commitment.run(max_steps=10) is Outcome.SOLVED
    steps = ["(go b a)", "(go a b)", "(go b c)", "(go c d)", "(go d e)"]
    assert [str(a) for a in commitment.actions] == steps
    assert commitment.steps == 5
    # Both literals are rated in b, then one state before each action. The last literal is not
    # compared with others.
    assert commitment.evaluations == 2 + 5
    a, e = (Atom("seen", (x,)) for x in "ae")
    both = Goal.of([a, e])
    assert network.asked == [Goal.of([a]), Goal.of([e]), Goal.of([a]), *[both] * 4]
    # (at b) (seen a) (seen b) is another state than the first one.
    assert commitment.returns == 0


def test_what_is_reached_when_the_steps_are_over_is_said(line, nearest):
    network = nearest(line)
    commitment = Commitment(network, network, line, 1)
    assert commitment.run(max_steps=3) is Outcome.STEP_LIMIT
    assert (len(commitment.actions), commitment.steps) == (1, 3)


def test_a_literal_that_takes_too_long_is_given_up_and_tried_again(line, nearest, monkeypatch):
    # Cell e seems to be nearly one step away from everywhere, so it comes first, and the policy
    # goes astray. Its three steps are taken back, and cell a is reached in one. Then cell e gets
    # 3, 6, 12 and 24 steps, which are enough.
    monkeypatch.setattr(regoal.evaluation.commitment, "SPARE_STEPS", 0)
    network = nearest(line)
    steps = network.steps
    network.steps = lambda cell, missing: 0.9 if missing == ["e"] else steps(cell, missing)
    commitment = Commitment(network, network, line, 1)
    assert commitment.run(max_steps=100) is Outcome.SOLVED
    a, e = (Atom("seen", (x,)) for x in "ae")
    first = [[a], [e], [e], [e], [e], [a]]  # a and e are compared, and e is tried for three steps
    assert network.asked[:6] == [Goal.of(atoms) for atoms in first]
    assert str(commitment.actions[0]) == "(go b a)"
    assert commitment.steps - len(commitment.actions) == 3 + 3 + 6 + 12
    assert validate_plan(line, commitment.actions).valid


def test_commitment_ends_if_no_action_leads_on(read_task, nearest):
    # From b, both a and c are one step away, and there is no way back from either.
    task = read_task(
        LINE,
        "(define (problem fork) (:domain line) (:objects a b c)"
        "(:init (at b) (next b a) (next b c)) (:goal (and (seen a) (seen c))))",
    )
    network = nearest(task)
    commitment = Commitment(network, network, task, 1)
    assert commitment.run(max_steps=100, time_limit_s=20) is Outcome.DEAD_END
    assert [str(action) for action in commitment.actions] == ["(go b a)"]
    # If dead ends are not entered, there is no first step.
    commitment = Commitment(network, network, task, 1, DeadEnds(task))
    assert commitment.run(max_steps=100, time_limit_s=20) is Outcome.DEAD_END
    assert commitment.actions == []


def test_commitment_can_be_stopped(line, nearest):
    network = nearest(line)
    commitment = Commitment(network, network, line, 1)
    stop = lambda: len(network.asked) > 3  # noqa: E731
    assert commitment.run(max_steps=10, stop=stop) is Outcome.TIME_LIMIT
    assert 0 < len(commitment.actions) < 5


def test_commitment_comes_after_greedy_execution(line, nearest):
    # For two literals all actions are equal, and the first into a new state is taken: (go b a) is
    # right, by chance. With one step it fails, and so does commitment; then search goes on.
    network = nearest(line)
    means = {"network": network, "encoder": network, "layers": 1}
    [greedy] = Means(**means).attempt([line])
    assert (greedy.outcome, greedy.found_by, len(greedy.actions)) == (Outcome.SOLVED, "greedy", 5)
    [found] = Means(**means, max_steps=1).attempt([line])
    assert (found.outcome, found.found_by) == (Outcome.SOLVED, "search")
    assert validate_plan(line, found.actions).valid
    assert found.steps == 1 + 4
    assert found.expansions > 0
    assert found.evaluations > 2 + found.steps
    [limited] = Means(**means, max_steps=1, max_expansions=1).attempt([line])
    assert (limited.outcome, limited.found_by, limited.actions) == (Outcome.NO_PLAN, "", ())
    assert "1 of 2 goal literals" in limited.explain()


def test_what_greedy_execution_proves_is_not_searched_for(tasks, policy):
    task = tasks["roads"]["end"]
    relations = relations_of(schema_of(task.domain))
    means = Means(network=policy(relations), encoder=Encoder(relations), layers=2)
    [found] = means.attempt([task])
    assert (found.outcome, found.expansions, found.steps) == (Outcome.UNSOLVABLE, 0, 0)
    assert "every state" in found.explain()


def test_stopped_attempts_are_not_yielded(tasks, policy):
    task = tasks["blocks"]["tower"]
    relations = relations_of(schema_of(task.domain))
    means = Means(network=policy(relations), encoder=Encoder(relations), layers=2)
    assert list(means.attempt([task], stop=lambda: True)) == []


def test_the_time_limit_covers_all_means(tasks, policy):
    task = tasks["blocks"]["tower"]
    relations = relations_of(schema_of(task.domain))
    means = Means(
        network=policy(relations), encoder=Encoder(relations), layers=2, time_limit_s=-1.0
    )
    [found] = means.attempt([task])
    assert found.outcome is Outcome.TIME_LIMIT
