"""Ground rules of tasks worked by hand."""

import pytest

from regoal.planning.datalog import grounding
from regoal.planning.datalog.grounding import TooManyRulesError, ground
from regoal.planning.datalog.rules import write_rules
from regoal.planning.goals import Atom
from regoal.planning.pddl.domain import parse_domain
from regoal.system.cancellation import StoppedError, stopping

DOMAIN = """(define (domain line) (:requirements :adl) (:types place)
  (:predicates (at ?x - place) (next ?x ?y - place) (done))
  (:action go :parameters (?x ?y - place) :precondition (and (at ?x) (next ?x ?y))
    :effect (and (at ?y) (not (at ?x))))
  (:action end :parameters () :precondition (forall (?x - place) (not (at ?x))) :effect (done)))"""
NEXT = [Atom("next", pair) for pair in (("a", "b"), ("b", "c"), ("d", "a"))]
TYPES = dict.fromkeys("abcd", ("place",))


@pytest.fixture
def line(tmp_path):
    (tmp_path / "domain.pddl").write_text(DOMAIN)
    return write_rules(parse_domain(tmp_path / "domain.pddl"))


def at(place, positive=True):
    return Atom("at", (place,)), positive


def test_rules_over_atoms_that_are_possible_and_negative_ones_over_all(line):
    rules, atoms = ground(line, NEXT, [at("a")[0]], TYPES)
    assert (at("b"), (at("a"),)) in rules
    assert (at("c"), (at("b"),)) in rules
    assert at("a") not in [head for head, _ in rules]  # d is never reached
    everywhere = tuple(at(place, positive=False) for place in "abcd")
    assert ((Atom("done", ()), True), everywhere) in rules
    assert {a for a in atoms if a.predicate == "at"} == {at("a")[0], at("b")[0], at("c")[0]}


def test_a_rule_is_found_once_though_it_is_matched_twice(line):
    rules, _ = ground(line, NEXT, [at("a")[0], at("d")[0]], TYPES)
    assert len(set(rules)) == len(rules)


def test_types_bound_the_objects(line):
    rules, _ = ground(line, NEXT, [at("a")[0]], {**TYPES, "d": ()})
    assert ((Atom("done", ()), True), tuple(at(p, positive=False) for p in "abc")) in rules


def test_a_task_with_too_many_rules_is_refused(line, monkeypatch):
    monkeypatch.setattr(grounding, "MOST_STEPS", 4)
    with pytest.raises(TooManyRulesError):
        ground(line, NEXT, [at("a")[0]], TYPES)


def test_grounding_can_be_stopped(line, monkeypatch):
    monkeypatch.setattr(grounding, "CHECK_EVERY", 1)
    with stopping(lambda: True), pytest.raises(StoppedError):
        ground(line, NEXT, [at("a")[0]], TYPES)
