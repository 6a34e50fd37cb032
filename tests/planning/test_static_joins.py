"""Bindings of actions are those that types, equalities and static atoms allow."""

import pytest
from hypothesis import HealthCheck, given, settings

from networks.plain_relaxed_plans import list_actions
from planning.strips_domains import domains, problems
from regoal.errors import UsageError
from regoal.planning.static_joins import list_bindings, list_objects, list_static


def bindings_of(task, schema, most=1000):
    domain, numbers = task.domain.text.content, task.object_index
    places = [list_objects(task.types_of, v.types) for v in schema.parameters]
    static = list_static(domain, task.static_atoms, numbers)
    rows = list_bindings(schema, places, static, numbers, most)
    assert rows.shape[1] == len(schema.parameters)
    return [tuple(task.objects[i] for i in row) for row in rows.tolist()]


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(domain=domains(), problem=problems())
def test_random_domains(read_task, domain, problem):
    task = read_task(domain, problem)
    changing = task.domain.text.content.changing
    for schema in task.domain.text.content.actions:
        found = bindings_of(task, schema)
        expected = {
            action.objects
            for action, (needs, _) in list_actions(task)
            if action.name == schema.name
            and all(
                (atom in task.static_atoms) == positive
                for atom, positive in needs
                if atom.predicate not in changing
            )
        }
        assert set(found) == expected
        assert len(found) == len(expected)


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
    with pytest.raises(UsageError, match="more than 3 ground actions of bring"):
        bindings_of(task, schema, most=3)
    assert len(bindings_of(task, schema, most=100)) == 4
