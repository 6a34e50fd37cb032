"""A run reads its inputs, and holds problems out if no validation problems are given."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regoal.runs.inputs import MOST_HELD_OUT, hold_out, read_inputs

DOMAIN = """(define (domain doors) (:requirements :strips)
  (:predicates (open ?d))
  (:action pull :parameters (?d) :precondition (and) :effect (open ?d)))"""


@pytest.fixture
def folder(tmp_path):
    """Makes a domain and problems with 1, 2, 3, ... doors."""

    def make(count):
        (tmp_path / "domain.pddl").write_text(DOMAIN)
        (tmp_path / "problems").mkdir()
        for doors in range(1, count + 1):
            (tmp_path / f"problems/p{doors}.pddl").write_text(
                f"(define (problem p{doors}) (:domain doors)"
                f" (:objects {' '.join(f'd{i}' for i in range(doors))})"
                f" (:init) (:goal (open d0)))"
            )
        return tmp_path

    return make


def read(folder):
    told = []
    inputs = read_inputs(folder / "domain.pddl", folder / "problems", None, told.append)
    return [task.name for task in inputs.tasks], [task.name for task in inputs.validation], told


def test_the_largest_fifth_is_held_out_and_named(folder):
    tasks, validation, told = read(folder(10))
    assert (tasks, validation) == ([f"p{i}" for i in range(1, 9)], ["p9", "p10"])
    assert told == [
        "held out to choose the policy by, as the largest: p9, p10. So few problems (2) say little "
        "of how well a policy carries over; 50 problems of growing size are a good number"
    ]


def test_enough_problems_need_no_warning(folder):
    *_, told = read(folder(50))
    assert told == [
        "held out to choose the policy by, as the largest: p41, p42, p43, p44, p45 and others"
    ]


def test_a_single_problem_is_used_for_both(folder):
    tasks, validation, (told,) = read(folder(1))
    assert tasks == validation == ["p1"]
    assert "one problem only" in told


@given(st.lists(st.integers(1, 5), min_size=2, max_size=150))
def test_every_problem_is_used_once_and_none_that_is_held_out_is_smaller(sizes):
    tasks = [SimpleNamespace(number=i, objects=range(n)) for i, n in enumerate(sizes)]
    kept, held_out = hold_out(tasks)
    assert kept
    assert 1 <= len(held_out) <= MOST_HELD_OUT
    assert sorted(x.number for x in (*kept, *held_out)) == list(range(len(sizes)))
    assert max(len(x.objects) for x in kept) <= min(len(x.objects) for x in held_out)
