"""Execution in several processes: the same results, and no process that is lost or left over."""

import contextlib
import errno
import itertools
import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from regoal.errors import PddlError, RegoalError
from regoal.evaluation import process_pool as side_by_side
from regoal.evaluation.execution import execute
from regoal.evaluation.process_pool import execute_side_by_side, most_processes
from regoal.networks.encoder import Encoder
from regoal.networks.kernels.cpu import kernel as cpu_kernel
from regoal.networks.relations import relations_of
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.task import Task
from regoal.records.results import Outcome


@pytest.fixture
def several(ways):
    """Tasks of seven sizes: from a through 2 to 8 cells, of which every other goal is cut off."""
    found = []
    for count in range(2, 9):
        cells = "abcdefgh"[:count]
        roads = [x + y for x, y in itertools.pairwise(cells)]
        found.append(ways(roads if count % 2 else roads[:-1], cells[-1], cells))
    return found


@pytest.fixture
def run(several, policy):
    """Runs tasks with some policy, as `execute_side_by_side` wants it."""
    relations = relations_of(schema_of(several[0].domain))
    network, encoder = policy(relations), Encoder(relations)

    def start(tasks, stop):
        return execute(network, encoder, tasks, layers=3, stop=stop)

    return start


def solved_by(task, action):
    """The end of an execution with one action."""
    actions = [SimpleNamespace(name=action, objects=())]
    return SimpleNamespace(
        task=task,
        outcome=Outcome.SOLVED,
        actions=actions,
        returns=0,
        seconds=0.0,
        fault=None,
        found_by="greedy",
        steps=1,
        evaluations=1,
        expansions=0,
    )


@pytest.fixture(autouse=True)
def _nothing_left():
    before, children = set(threading.enumerate()), list_children()
    yield
    assert list_children() <= children  # other tests may have left some that serve them all
    assert set(threading.enumerate()) <= before  # others of before may have ended


def list_children():
    """Return the processes whose parent is this one, also those that have ended unseen."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            parent = stat.read_text().rpartition(")")[2].split()[1]
            found |= {stat.parent.name} if int(parent) == os.getpid() else set()
    return found


@pytest.mark.parametrize("processes", [2, 3, 50])
def test_processes_find_what_one_finds(several, run, processes):
    alone = dict(execute_side_by_side(run, several, processes=1))
    found = dict(execute_side_by_side(run, several, processes=processes))
    assert found.keys() == alone.keys() == set(several)
    for task, ended in found.items():
        assert ended._replace(seconds=0) == alone[task]._replace(seconds=0)
    outcomes = [found[task].outcome for task in several]
    assert outcomes == [Outcome.DEAD_END, Outcome.SOLVED] * 3 + [Outcome.DEAD_END]


@pytest.mark.parametrize("processes", [1, 2])
def test_what_a_task_has_met_is_let_go_when_its_end_was_looked_at(
    several, run, monkeypatch, processes
):
    """Not before, and by the thread that looks: the state must be of the same library object."""
    found, met = [], []
    forget = Task.forget_states

    def noted(task):
        met.append((task, threading.current_thread()))
        forget(task)

    monkeypatch.setattr(Task, "forget_states", noted)
    for task, _ in execute_side_by_side(run, several, processes=processes):
        time.sleep(0.02)  # the others go on meanwhile
        assert [known for known, _ in met] == found
        found.append(task)
    assert met == [(task, threading.main_thread()) for task in found]
    assert set(found) == set(several)


def test_processes_work_beside_each_other(several):
    def run(tasks, stop):
        time.sleep(0.2)
        for task in tasks:
            yield solved_by(task, str(os.getpid()))

    sizes = {}
    for task, ended in execute_side_by_side(run, several, processes=3):
        sizes.setdefault(ended.actions[0].name, []).append(len(task.objects))
    assert sizes[str(os.getpid())] == [6, 3]
    assert sorted(sizes.values()) == [[6, 3], [7, 4], [8, 5, 2]]


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [(PddlError("p1.pddl is odd."), PddlError, "^p1.pddl is odd.$"),
     (MemoryError(), MemoryError, None),
     (ZeroDivisionError("by 0"), RuntimeError, "ZeroDivisionError: by 0")],
)  # fmt: skip
def test_an_error_in_a_process_is_raised_here(several, error, raised, message):
    def run(tasks, stop):
        if several[0] in tasks:
            raise error
        return iter(())

    with pytest.raises(raised, match=message):
        list(execute_side_by_side(run, several, processes=2))


def test_a_process_that_is_killed_is_an_error(several):
    here = os.getpid()

    def run(tasks, stop):
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return endless(tasks, stop)

    with pytest.raises(RegoalError, match=r"exit code -9.*OMP_NUM_THREADS=1"):
        list(execute_side_by_side(run, several, processes=2))


def endless(tasks, stop, first=()):
    yield from first
    while not stop():
        time.sleep(0.01)


def test_stop_is_asked_here(several, run):
    def some(tasks, stop):
        return endless(tasks, stop, first=run(tasks[:1], stop=stop))

    found = []
    start = time.monotonic()
    for task, _ in execute_side_by_side(some, several, processes=2, stop=lambda: len(found) == 2):
        found.append(task)
    assert {len(task.objects) for task in found} == {8, 7}
    assert time.monotonic() - start < 10


def test_processes_end_with_whoever_wants_no_more(several, run):
    def some(tasks, stop):
        return endless(tasks, stop, first=run(tasks[:1], stop=stop))

    found = execute_side_by_side(some, several, processes=2)
    next(found)
    found.close()


def test_nobody_waits_for_what_nobody_reads(several):
    """More than a pipe holds is on its way from here when the others are no longer wanted."""

    def run(tasks, stop):
        for task in tasks:
            yield solved_by(task, "x" * 2**20)

    found = execute_side_by_side(run, several, processes=2)
    next(found)
    found.close()


@pytest.mark.parametrize("made", [0, 1])
def test_where_no_process_can_be_made_this_one_does_it(several, run, monkeypatch, made):
    forks, fork = [], os.fork

    def limited():
        if len(forks) == made:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        forks.append(None)
        return fork()

    monkeypatch.setattr(os, "fork", limited)
    found = dict(execute_side_by_side(run, several, processes=3))
    assert found.keys() == set(several)
    assert len(forks) == made


def test_one_process_a_thread(policy, threads, monkeypatch, relations):
    network = policy(relations["blocks"])
    assert most_processes(network) == 1
    threads(3)
    assert most_processes(network) == 3
    assert most_processes(SimpleNamespace(on_cpu=False)) == 1
    monkeypatch.setattr(side_by_side.sys, "platform", "darwin")
    assert most_processes(network) == 1


def test_a_process_has_one_thread(several, threads):
    threads(2)

    def run(tasks, stop):
        for task in tasks:
            yield solved_by(task, str(cpu_kernel.threads()))

    ended = dict(execute_side_by_side(run, several, processes=2))
    assert {x.actions[0].name for x in ended.values()} == {"1"}
    assert cpu_kernel.threads() == 2
