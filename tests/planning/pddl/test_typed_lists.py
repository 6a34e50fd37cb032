"""Typed lists with empty groups, and long typed lists."""

import logging

import pymimir
import pytest

from regoal.errors import PddlError, UnsupportedPddlError
from regoal.planning.load import load_domain, load_task
from regoal.planning.pddl.library_text import MAX_GROUPS
from regoal.planning.pddl.types import MAX_TYPES

DOMAIN = """(define (domain shelves)
  (:types shelf book - object{types})
  (:constants top - shelf{constants})
  (:predicates (on ?b - book ?s - shelf{predicates}) (tidy) (heavy ?b - book))
  (:functions (total-cost) - number (weight ?b - book{functions}) - number)
  (:action put :parameters (?b - book ?s - shelf{parameters})
    :precondition (forall (?o - book{variables}) (heavy ?o))
    :effect (and (on ?b ?s) (increase (total-cost) (weight ?b)))))
"""
PROBLEM = """(define (problem two) (:domain shelves)
  (:objects a b - book low - shelf{objects})
  (:init (heavy a) (heavy b) (= (weight a) 2) (= (weight b) 1))
  (:goal (and (on a top) (on b low))) (:metric minimize (total-cost)))
"""
PLACES = (
    "types", "constants", "predicates", "functions", "parameters", "variables", "objects",
)  # fmt: skip


@pytest.fixture
def read(tmp_path):
    def read(domain, problem):
        for name, text in (("domain.pddl", domain), ("problem.pddl", problem)):
            (tmp_path / name).write_text(text)
        return load_task(load_domain(tmp_path / "domain.pddl"), tmp_path / "problem.pddl")

    return read


def with_group(group, *places):
    return (
        text.format(**{place: group if place in places else "" for place in PLACES})
        for text in (DOMAIN, PROBLEM)
    )


def shown(task):
    actions = task.applicable_actions(task.initial_state)
    return [str(action) for action in actions], task.objects, task.types_of, task.domain.types


@pytest.mark.parametrize("group", [" - book", "\n - (either shelf book)"])
@pytest.mark.parametrize("place", PLACES)
def test_an_empty_group_is_read_with_one_line_of_warning(read, caplog, place, group):
    plain = read(*with_group("", place))
    with caplog.at_level(logging.WARNING):
        found = read(*with_group(group, place))
    assert shown(found) == shown(plain)
    [warning] = caplog.messages
    file = "problem.pddl" if place == "objects" else "domain.pddl"
    assert f"{file}, line " in warning
    assert "is ignored" in warning
    assert "\n" not in warning


def test_the_line_is_that_of_the_group_and_others_are_counted(read, caplog):
    domain, problem = with_group(" - shelf - book", "parameters", "constants")
    read(domain, problem)
    [warning] = caplog.messages
    assert "domain.pddl, line 3: no name stands before '- shelf'" in warning
    assert warning.endswith("(and in 3 more places)")


def test_functions_have_empty_groups_too(read, caplog):
    domain, problem = with_group("", "")
    domain = domain.replace("(:functions", "(:functions - number")
    read(domain, problem)
    assert "line 5: no name stands before '- number'" in caplog.text


def test_an_error_comes_without_warnings(read, caplog):
    domain, problem = with_group(" - shelf", "constants")
    with pytest.raises(PddlError, match="there is no predicate 'light'"):
        read(domain.replace("(heavy ?o)", "(light ?o)"), problem)
    assert not caplog.messages


def test_or_of_nothing_is_named(read, caplog):
    domain, problem = with_group("", "")
    read(domain.replace("(heavy ?o)", "(or (or) (heavy ?o))"), problem)
    [warning] = caplog.messages
    assert "line 7: an 'or' of nothing never holds (in the precondition of action put)" in warning


PLAIN = """(define (domain d) (:types {types}) (:predicates (p ?x) (done))
  (:action a :parameters ({parameters}) :precondition (p ?x0) :effect (done)))
"""
TASK = """(define (problem q) (:domain d) (:objects {objects}) (:init (p o0)) (:goal (done)))
"""


def test_thousands_of_objects_overflow_no_stack(read):
    many = " ".join(f"o{i}" for i in range(20_000))
    task = read(PLAIN.format(types="t", parameters="?x0 - t"), TASK.format(objects=f"{many} - t"))
    assert len(task.applicable_actions(task.initial_state)) == 1


def test_thousands_of_groups_are_put_together(read):
    names = [f"o{i} - t{i % 2}" for i in range(8 * MAX_GROUPS)]
    domain = PLAIN.format(types="t0 t1 - object", parameters="?x0 - t0")
    task = read(domain, TASK.format(objects=" ".join(names)))
    assert task.objects[:3] == ("o0", "o1", "o2")
    assert task.types_of["o1"] == ("t1",)


def test_as_many_types_and_variables_as_are_read(read):
    types = " ".join(f"t{i}" for i in range(MAX_TYPES))
    objects = " ".join(f"o{i} - t{i}" for i in range(MAX_TYPES))
    parameters = " ".join(f"?x{i}" for i in range(4))
    task = read(PLAIN.format(types=types, parameters=parameters), TASK.format(objects=objects))
    assert len(task.domain.types) == MAX_TYPES


def test_more_types_or_variables_are_refused(read):
    types = " ".join(f"t{i}" for i in range(MAX_TYPES + 1))
    with pytest.raises(UnsupportedPddlError, match=r"domain\.pddl, line 1: .*more than 2000 types"):
        read(PLAIN.format(types=types, parameters="?x0"), TASK.format(objects="o0"))
    parameters = " ".join(f"?x{i}" for i in range(MAX_TYPES + 1))
    with pytest.raises(UnsupportedPddlError, match="more than 2000 variables in one list"):
        read(PLAIN.format(types="t", parameters=parameters), TASK.format(objects="o0"))


@pytest.mark.parametrize("made", [pymimir.Domain])
def test_as_many_parameters_as_are_read(tmp_path, made):
    types = " ".join(f"t{i}" for i in range(2))
    parameters = " ".join(f"?x{i} - t{i % 2}" for i in range(MAX_TYPES))
    path = tmp_path / "domain.pddl"
    path.write_text(PLAIN.format(types=types, parameters=parameters))
    assert isinstance(load_domain(path).library_domain, made)
