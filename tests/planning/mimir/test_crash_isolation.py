import os
import signal

import pymimir
import pytest

from regoal.errors import PddlError
from regoal.planning.load import load_domain, load_task
from regoal.planning.mimir import crash_isolation as trial
from regoal.planning.mimir import library

DOMAIN = "(define (domain d) (:predicates (p)) (:action a :effect (p)))"
PROBLEM = "(define (problem q) (:domain d) (:init) (:goal (p)))"


@pytest.mark.parametrize("number", trial.CRASHES)
def test_a_crash_is_named_and_survived(number):
    assert trial.find_crash(lambda: os.kill(os.getpid(), number)) == number.name


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, None])
def test_all_else_is_no_crash(number):
    assert trial.find_crash(lambda: os.kill(os.getpid(), number) if number else 1 / 0) == ""


def test_without_processes_nothing_is_tried(monkeypatch):
    def none():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", none)
    assert trial.find_crash(lambda: os.kill(os.getpid(), signal.SIGSEGV)) == ""


def test_only_larger_texts_than_were_tried_get_a_copy(tmp_path, monkeypatch):
    (tmp_path / "domain.pddl").write_text(DOMAIN)
    tried = []
    monkeypatch.setattr(library, "find_crash", lambda make: tried.append(make) or "")
    domain = load_domain(tmp_path / "domain.pddl")
    assert not tried
    monkeypatch.setattr(library, "LARGEST_TRIED", len(domain.text.text) - 1)
    load_domain(tmp_path / "domain.pddl")
    assert len(tried) == 1


@pytest.mark.parametrize("kind", ["Domain", "Problem"])
def test_a_crash_of_the_library_is_an_error_that_names_the_file(tmp_path, monkeypatch, kind):
    domain, problem = tmp_path / "domain.pddl", tmp_path / "problem.pddl"
    domain.write_text(DOMAIN)
    problem.write_text(PROBLEM)
    monkeypatch.setattr(library, "LARGEST_TRIED", 0)
    monkeypatch.setattr(pymimir, kind, lambda *_: os.kill(os.getpid(), signal.SIGSEGV))
    message = rf"{kind.lower()}\.pddl: the PDDL library crashes on this file \(SIGSEGV\)"
    with pytest.raises(PddlError, match=message):
        load_task(load_domain(domain), problem)
