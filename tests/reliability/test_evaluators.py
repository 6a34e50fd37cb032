import math
import random

import pytest

from regoal.planning.pddl.normal_form import NormalForm
from regoal.planning.plain.problem import read_problem
from reliability.evaluators import compare, compare_texts
from reliability.fast_downward import best_cost, judge
from reliability.random_domains import domain_and_problem

SECONDS = 12
TWO_USES = """(define (domain d) (:requirements :adl :derived-predicates)
  (:predicates (broken) (out) (ok))
  (:derived (out) (broken))
  (:derived (ok) (not (out)))
  (:derived (ok) (and (out) (broken)))
  (:action go :precondition (not (ok)) :effect (broken)))
"""
PROBLEM = "(define (problem p) (:domain d) (:init) (:goal (broken)))\n"


def test_the_engine_agrees_with_the_plain_evaluator_on_random_domains():
    found = compare(domains=10_000, seed=1, seconds=SECONDS)
    assert found.faults == []
    assert found.domains > 0  # hundreds on an idle machine
    assert found.derived > 0


@pytest.mark.planner
def test_fast_downward_finds_plans_of_the_cost_that_is_best_plainly():
    pytest.importorskip("up_fast_downward")
    counts, faults = judge(domains=6, seed=1)
    assert faults == []
    assert counts["solved"] > 0


@pytest.mark.parametrize(
    ("goal", "cost"), [("(and (broken) (ok))", 1), ("(and)", 0), ("(not (ok))", math.inf)]
)
def test_the_best_cost(goal, cost):
    domain = TWO_USES.replace(":precondition (not (ok))", ":precondition (ok)")
    assert best_cost(read_problem(domain, PROBLEM.replace("(broken)", goal))) == cost


def test_domains_depend_on_the_seed_alone():
    texts = [domain_and_problem(random.Random(seed), derived=True) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_an_engine_that_mistakes_the_strata_is_noticed(monkeypatch):
    assert compare_texts((TWO_USES, PROBLEM)).faults == []
    monkeypatch.setattr(NormalForm, "separate_uses", lambda _, rules: rules)
    [fault] = compare_texts((TWO_USES, PROBLEM)).faults
    assert fault.startswith("atoms: [('ok',)]")


@pytest.mark.parametrize(
    ("old", "new"),
    [("(:action go", "(:action go :parameters (?x - nothing)"), ("(broken))\n", "(borken))\n")],
)
def test_a_refused_domain_is_a_fault(old, new):
    [fault] = compare_texts((TWO_USES.replace(old, new), PROBLEM)).faults
    assert fault.startswith("refused: ")
