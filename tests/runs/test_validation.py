"""Validation: a policy that cannot become the best is run on the smallest problems only."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from regoal.config import LAPTOP
from regoal.errors import RegoalError
from regoal.planning.actions import GroundAction
from regoal.records.results import Outcome
from regoal.runs import validation as selection
from regoal.runs.validation import validate


@pytest.fixture
def problems(monkeypatch):
    """Makes problems with 1, 2, 3, ... objects; those whose size is in `solvable` are solved.

    With noise only those up to size `with_noise` are.
    """

    def make(count, solvable, with_noise=99):
        tried = []

        def execute(network, encoder, tasks, *, noise, **options):
            for task in tasks:
                tried.append(len(task.objects))
                solved = len(task.objects) in solvable
                solved = solved and (not noise or len(task.objects) <= with_noise)
                yield SimpleNamespace(
                    task=task,
                    actions=[GroundAction("go", ())] * len(task.objects),
                    outcome=Outcome.SOLVED if solved else Outcome.STEP_LIMIT,
                    returns=0,
                    seconds=0.0,
                    fault=None,
                    found_by="",
                    steps=len(task.objects),
                    evaluations=0,
                    expansions=0,
                )

        monkeypatch.setattr(selection, "execute", execute)
        monkeypatch.setattr(selection, "Encoder", lambda *arguments, **options: None)
        tasks = [SimpleNamespace(objects=range(size)) for size in range(count, 0, -1)]
        for task in tasks:
            task.renewed = lambda task=task: task
            task.forget_states = lambda: None
        return tasks, tried

    return make


def run(tasks, best=0, noise=0.0):
    network = SimpleNamespace(relations=())
    config = replace(LAPTOP, validation_noise=noise)
    return validate(7, network, tasks, config, lambda: False, best)


def test_every_problem_is_run_where_the_policy_may_become_the_best(problems):
    tasks, tried = problems(8, solvable={1, 2, 3, 8})
    assert run(tasks, best=4) == selection.Validation(7, 4, 8, 1 + 2 + 3 + 8, 8)
    assert tried == [1, 2, 3, 4, 5, 6, 7, 8]


def test_nothing_more_is_run_after_a_first_quarter_without_a_plan(problems):
    tasks, tried = problems(10, solvable={4, 5, 6})
    found = run(tasks)
    assert (found.solved, found.tried, found.problems) == (0, 3, 10)
    assert tried == [1, 2, 3]
    assert str(found) == "0 of the 3 smallest solved, the others not tried"


def test_nothing_more_is_run_once_the_best_is_out_of_reach(problems):
    tasks, _ = problems(8, solvable={1, 3, 4, 5, 6, 7, 8})
    assert run(tasks, best=8).tried == 2
    assert run(tasks, best=7).tried == 8


def test_all_the_others_are_run_together(problems):
    tasks, tried = problems(9, solvable={1, 2, 3})
    assert run(tasks, best=7).tried == 9
    assert tried == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_a_policy_that_may_become_the_best_is_run_with_noise_too(problems):
    tasks, tried = problems(8, solvable={1, 2, 3, 8}, with_noise=2)
    found = run(tasks, best=4, noise=2.0)
    assert found == selection.Validation(7, 4, 8, 1 + 2 + 3 + 8, 8, robust=2)
    assert tried == [1, 2, 3, 4, 5, 6, 7, 8] * 2
    assert str(found) == "4/8 solved, 2 with noise, 14 actions in all"
    tried.clear()
    assert run(tasks, best=5, noise=2.0).robust == 0
    assert tried == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_fault_that_another_worker_met_is_raised_here_too(problems):
    tasks, _ = problems(4, solvable={1, 2, 3, 4})
    fault = RegoalError("action a: its cost is missing.")
    workers = SimpleNamespace(rank=0, count=2, gather=lambda mine: [mine, (1, [], fault)])
    with pytest.raises(RegoalError, match="its cost is missing"):
        validate(7, SimpleNamespace(relations=()), tasks, LAPTOP, lambda: False, workers=workers)


@pytest.mark.parametrize("raised", [False, True])
def test_a_fault_ends_the_part_and_reaches_all_workers(problems, monkeypatch, raised):
    tasks, tried = problems(40, solvable=range(1, 41))
    execute, told = selection.execute, []

    def faulty(network, encoder, tasks, **options):
        for execution in execute(network, encoder, tasks, **options):
            if len(execution.task.objects) == 3:
                if raised:
                    raise MemoryError
                execution.outcome, execution.fault = Outcome.ERROR, RegoalError("no cost")
            yield execution

    monkeypatch.setattr(selection, "execute", faulty)
    workers = SimpleNamespace(rank=0, count=2, gather=lambda mine: told.append(mine) or [mine])
    with pytest.raises(MemoryError if raised else RegoalError):
        validate(7, SimpleNamespace(relations=()), tasks, LAPTOP, lambda: False, workers=workers)
    [(ended, lengths, fault)] = told
    assert (ended, lengths) == (1, [1])
    assert isinstance(fault, MemoryError if raised else RegoalError)
    assert tried == [1, 3]


def test_problems_of_one_size_are_all_run(problems):
    # As in Maze, where no problem says more than another of what the policy can do.
    tasks, tried = problems(8, solvable=set())
    for task in tasks:
        task.objects = range(4)
    assert run(tasks, best=0).tried == 8
    assert tried == [4] * 8


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_few_problems(problems, count):
    tasks, tried = problems(count, solvable=set(range(10)))
    assert run(tasks).complete
    assert tried == list(range(1, count + 1))
