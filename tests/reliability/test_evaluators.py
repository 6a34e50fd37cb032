import random

import pytest

from regoal.planning.pddl.normal_form import NormalForm
from reliability.evaluators import compare, compare_texts
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
    assert found.domains >= 10
    assert found.derived >= found.domains / 3


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
