import os
import signal

import pymimir
import pytest

from regoal import cli
from regoal.planning.mimir import crash_isolation as trial

DOMAIN = "(define (domain d) (:predicates (p)) (:action a :effect (p)))"
PROBLEM = "(define (problem q) (:domain d) (:init) (:goal (p)))"


@pytest.mark.parametrize("number", trial.CRASHES)
def test_a_crash_is_named_and_survived(number):
    assert trial.crash_of(lambda: os.kill(os.getpid(), number)) == number.name


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, None])
def test_all_else_is_no_crash(number):
    assert trial.crash_of(lambda: os.kill(os.getpid(), number) if number else 1 / 0) == ""


def test_without_processes_nothing_is_tried(monkeypatch):
    def none():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", none)
    assert trial.crash_of(lambda: os.kill(os.getpid(), signal.SIGSEGV)) == ""


@pytest.mark.parametrize("kind", ["Domain", "Problem"])
def test_a_crash_of_the_library_is_an_error_that_names_the_file(
    tmp_path, monkeypatch, capsys, kind
):
    files = {"domain.pddl": DOMAIN, "problem.pddl": PROBLEM, "plan": "(a)\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    words = ["validate", *(str(tmp_path / name) for name in files)]
    assert cli.run(words) == 0
    monkeypatch.setattr(pymimir, kind, lambda *_: os.kill(os.getpid(), signal.SIGSEGV))
    assert cli.run(words) == 31
    told = capsys.readouterr().err
    assert f"{kind.lower()}.pddl: the PDDL library crashes on this file (SIGSEGV)" in told
