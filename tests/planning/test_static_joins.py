"""Bindings of actions are those that types, equalities and static atoms allow."""

import pytest
from hypothesis import HealthCheck, given, settings

from conftest import reachable
from networks.plain_relaxed_plans import list_actions
from planning.strips_domains import domains, problems
from regoal.errors import UsageError
from regoal.planning.static_joins import FixedLiterals, list_bindings


def bindings_of(task, schema, most=1000):
    domain, numbers = task.domain.text.content, task.object_index
    atoms = (*task.static_atoms, *task.initial_state.fluent_atoms)
    fixed = FixedLiterals(domain, task.types_of, numbers, atoms)
    places = [fixed.list_objects(v.types) for v in schema.parameters]
    rows = list_bindings(schema, places, fixed.of(schema), numbers, most)
    assert rows.shape[1] == len(schema.parameters)
    return [tuple(task.objects[i] for i in row) for row in rows.tolist()]


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(domain=domains(), problem=problems())
def test_random_domains(read_task, domain, problem):
    task = read_task(domain, problem)
    changing = task.domain.text.content.changing
    applicable = {a for state in reachable(task) for a in task.applicable_actions(state)}
    for schema in task.domain.text.content.actions:
        found = bindings_of(task, schema)
        static = {
            action.objects
            for action, (needs, _) in list_actions(task)
            if action.name == schema.name
            and all(
                (atom in task.static_atoms) == positive
                for atom, positive in needs
                if atom.predicate not in changing
            )
        }
        assert set(found) <= static
        assert set(found) >= {action.objects for action in applicable if action.name == schema.name}
        assert len(set(found)) == len(found)


CLUB = """(define (domain club) (:requirements :strips :typing :negative-preconditions :equality)
  (:types person) (:constants ann - person)
  (:predicates (knows ?a ?b - person) (open) (in ?a - person) (banned ?a - person))
  (:action bring :parameters (?a ?b ?c - person)
    :precondition (and (open) (knows ?a ?b) (knows ?b ?b) (not (banned ?a)) (not (= ?a ?b))
      (knows ann ?c) (not (in ?c)))
    :effect (in ?c)))"""
NIGHT = """(define (problem night) (:domain club) (:objects bob cas dan - person)
  (:init (open) (knows bob cas) (knows cas cas) (knows dan cas) (knows ann dan) (knows ann cas)
    (knows bob bob) (banned dan)) (:goal (in bob)))"""


def test_constants_repeated_variables_and_negated_atoms(read_task):
    task = read_task(CLUB, NIGHT)
    (schema,) = task.domain.text.content.actions
    assert sorted(bindings_of(task, schema)) == [
        ("ann", "cas", "cas"), ("ann", "cas", "dan"), ("bob", "cas", "cas"), ("bob", "cas", "dan"),
    ]  # fmt: skip
    closed = read_task(CLUB, NIGHT.replace("(open)", ""))
    assert bindings_of(closed, schema) == []


def test_too_many(read_task):
    task = read_task(CLUB, NIGHT)
    (schema,) = task.domain.text.content.actions
    with pytest.raises(UsageError, match="ground actions of bring: more than 3"):
        bindings_of(task, schema, most=3)
    assert len(bindings_of(task, schema, most=100)) == 4


def test_what_no_action_adds_is_where_it_was(read_task):
    # The man walks and tools are carried, but a nut stays at its gate; a tool may be dropped.
    domain = """(define (domain nuts) (:requirements :strips :typing) (:types place thing - object
        nut tool man - thing)
      (:predicates (at ?x - thing ?p - place) (carried ?t - tool) (tight ?n - nut))
      (:action walk :parameters (?m - man ?p ?q - place) :precondition (at ?m ?p)
        :effect (and (at ?m ?q) (not (at ?m ?p))))
      (:action take :parameters (?m - man ?t - tool ?p - place)
        :precondition (and (at ?m ?p) (at ?t ?p)) :effect (and (carried ?t) (not (at ?t ?p))))
      (:action turn :parameters (?m - man ?t - tool ?n - nut ?p - place)
        :precondition (and (at ?m ?p) (at ?n ?p) (carried ?t) (not (tight ?n)))
        :effect (tight ?n)))"""
    problem = """(define (problem gates) (:domain nuts) (:objects p q r - place m - man t - tool
      n o - nut) (:init (at m p) (at t q) (at n r) (at o r)) (:goal (and (tight n) (tight o))))"""
    task = read_task(domain, problem)
    walk, take, turn = task.domain.text.content.actions
    assert len(bindings_of(task, walk)) == 9
    assert bindings_of(task, take) == [("m", "t", "q")]
    assert sorted(bindings_of(task, turn)) == [("m", "t", "n", "r"), ("m", "t", "o", "r")]
    dropped = domain.replace("(carried ?t) (not (at ?t ?p))", "(carried ?t) (at ?t ?p)")
    task = read_task(dropped, problem)
    _, take, turn = task.domain.text.content.actions
    assert len(bindings_of(task, take)) == 3
    assert len(bindings_of(task, turn)) == 2
