"""States with too many applicable actions are refused, in bounded time and memory."""

import os
import time

import pytest

from regoal.errors import EXIT_MEMORY, TooWideError
from regoal.planning.mimir import action_bound as width
from regoal.planning.mimir import crash_isolation as trial
from regoal.planning.mimir.action_bound import SchemaBound
from regoal.system.cancellation import StoppedError, stopping

SIX = """(define (domain six) (:predicates (p ?x) (q ?x ?y) (done))
  (:action big :parameters (?a ?b ?c ?d ?e ?f)
    :precondition (and (p ?a) (p ?b) (p ?c) (p ?d) (p ?e) (p ?f))
    :effect (and (q ?a ?f) (not (p ?b)) (done))))"""


def six(objects, true):
    names = [f"o{i}" for i in range(objects)]
    atoms = " ".join(f"(p {name})" for name in names[:true])
    return f"(define (problem x) (:domain six) (:objects {' '.join(names)}) (:init {atoms})\n" + (
        "(:goal (done)))"
    )


FORTY = f"""(define (domain forty) (:predicates (here ?x) (done))
  (:action big :parameters ({" ".join(f"?v{i}" for i in range(40))}) :effect (done)))"""
TWO = "(define (problem y) (:domain forty) (:objects a b) (:init (here a)) (:goal (done)))"


@pytest.mark.parametrize(("domain", "problem"), [(SIX, six(25, 25)), (FORTY, TWO)])
def test_a_state_that_is_too_wide_is_refused(read_task, monkeypatch, domain, problem):
    monkeypatch.setattr(width, "TRIAL_MIB", 64)
    task = read_task(domain, problem)
    with pytest.raises(TooWideError, match=r"\.pddl: a state has too many applicable") as error:
        task.applicable_actions(task.initial_state)
    assert error.value.exit_code == EXIT_MEMORY


def test_the_count_decides_if_the_bound_does_not(read_task, monkeypatch):
    monkeypatch.setattr(width, "MOST_APPLICABLE", 63)
    for true, fits in ((2, False), (1, True)):  # 64 actions and 1
        task = read_task(SIX, six(3, true))
        if fits:
            assert len(task.applicable_actions(task.initial_state)) == 1
        else:
            with pytest.raises(TooWideError):
                task.applicable_actions(task.initial_state)


@pytest.mark.parametrize("asked", [lambda: True, lambda: time.monotonic() > end])
def test_counting_is_stopped_and_its_copy_ends(read_task, monkeypatch, asked):
    global end  # noqa: PLW0603
    end = time.monotonic() + 0.3
    made, fork = [], os.fork
    monkeypatch.setattr(os, "fork", lambda: made.append(fork()) or made[-1])
    task = read_task(SIX, six(25, 25))
    with pytest.raises(StoppedError), stopping(asked):
        task.applicable_actions(task.initial_state)
    assert time.monotonic() < end + 5
    assert made
    for child in made:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def test_the_bound_takes_the_smallest_literals_that_cover_the_parameters():
    schema = SchemaBound(
        3, (("road", frozenset({0, 1})), ("at", frozenset({0})), ("of", frozenset({2})))
    )
    assert schema.bound({"road": 12, "at": 1, "of": 5}, 10) == 1 * 10 * 5
    assert schema.bound({"road": 3, "of": 5}, 10) == 3 * 5
    assert schema.bound({}, 10) == 10**3
    assert SchemaBound(0, ()).bound({}, 10) == 1


def test_no_bound_is_below_the_number_of_actions(tasks, walk):
    for problems in tasks.values():
        for task in problems.values():
            bound = task._action_bound
            for state in walk(task, 5, 1)[0]:
                counts = {v: 0 for _, v in bound._changing}
                for atom in state.fluent_atoms:
                    counts[atom.predicate] += 1
                sizes = {**bound._static, **{k: counts[v] for k, v in bound._changing}}
                actions = task._list_library_actions(state)
                assert len(actions) <= bound._bound(sizes) <= bound._bound(bound._static)


def test_counting_fails_with_too_little_memory():
    assert trial.count_in_copy(lambda: 7, mib=64) == 7
    assert trial.count_in_copy(lambda: len(bytearray(2**30)), mib=64) is None
    assert trial.count_in_copy(lambda: os.abort() or 1, mib=64) is None
