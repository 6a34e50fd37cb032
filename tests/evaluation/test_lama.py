import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regoal.errors import UsageError
from regoal.evaluation import lama
from regoal.records.results import Outcome, problem_names

DOMAIN = """
(define (domain Tower) ; three operators would do, these are four
  (:requirements :strips)
  (:predicates (on ?x ?y) (table ?x) (free ?x) (held ?x) (hand))
  (:action lift :parameters (?x)
    :precondition (and (free ?x) (table ?x) (hand))
    :effect (and (held ?x) (not (free ?x)) (not (table ?x)) (not (hand))))
  (:action lower :parameters (?x)
    :precondition (held ?x)
    :effect (and (free ?x) (table ?x) (hand) (not (held ?x))))
  (:action place :parameters (?x ?y)
    :precondition (and (held ?x) (free ?y))
    :effect (and (on ?x ?y) (free ?x) (hand) (not (held ?x)) (not (free ?y))))
  (:action take :parameters (?x ?y)
    :precondition (and (on ?x ?y) (free ?x) (hand))
    :effect (and (held ?x) (free ?y) (not (on ?x ?y)) (not (free ?x)) (not (hand)))))
"""
PROBLEM = """
(define (problem three) (:domain tower) (:objects a b c)
  (:init (table a) (table b) (table c) (free a) (free b) (free c) (hand))
  (:goal {goal}))
"""
TOWER = "(and (on a b) (on b c))"


@pytest.fixture
def tower(tmp_path):
    def write(goal, name="p01"):
        problem = tmp_path / f"{name}.pddl"
        problem.parent.mkdir(parents=True, exist_ok=True)
        problem.write_text(PROBLEM.format(goal=goal))
        return domain, problem

    domain = tmp_path / "domain.pddl"
    domain.write_text(DOMAIN)
    return write


def fake_driver(tmp_path, monkeypatch, code):
    """Replace Fast Downward by a script, which finds its arguments in `sys.argv`."""
    driver = tmp_path / "driver.py"
    driver.write_text(f"import os, sys, time\n{code}\n")
    monkeypatch.setattr(lama, "fast_downward", lambda: driver)


def run(pair, tmp_path, time_limit_s=20):
    return lama.run_lama(
        *pair, time_limit_s=time_limit_s, memory_limit_mib=1000, plan_path=tmp_path / "out/plan"
    )


@pytest.mark.planner
def test_three_blocks_from_a_relative_path(tower, tmp_path, monkeypatch):
    domain, problem = tower(TOWER)
    monkeypatch.chdir(tmp_path)
    result = run((Path(domain.name), Path(problem.name)), tmp_path)
    assert (result.problem, result.domain, result.method) == ("p01", "tower", "lama")
    assert result.outcome is Outcome.SOLVED
    assert result.plan_length == result.plan_cost == result.steps == 4
    assert (tmp_path / "out/plan").read_text().splitlines() == [
        "(lift b)",
        "(place b c)",
        "(lift a)",
        "(place a b)",
        "; cost = 4 (unit cost)",
    ]
    assert not list(tmp_path.glob("*.sas")), "the planner must work in a separate folder"


@pytest.mark.planner
def test_a_goal_that_holds_has_an_empty_plan(tower, tmp_path):
    result = run(tower("(and (free a))"), tmp_path)
    assert (result.outcome, result.plan_length, result.plan_cost) == (Outcome.SOLVED, 0, 0)


@pytest.mark.planner
def test_without_a_plan_no_file_is_left(tower, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/plan").write_text("an old plan")
    result = run(tower("(and (on a b) (on b a))"), tmp_path)
    assert (result.outcome, result.plan_length) == (Outcome.NO_PLAN, None)
    assert not (tmp_path / "out/plan").exists()


@pytest.mark.planner
def test_bad_pddl_is_an_error_with_a_warning(tower, tmp_path, caplog):
    result = run(tower("(and (on a z))"), tmp_path)
    assert result.outcome is Outcome.ERROR
    assert re.search(r"LAMA failed on .*: .*\bz\b", caplog.text)


@pytest.mark.planner
def test_a_folder_comes_in_the_order_given(tower, tmp_path, caplog):
    problems = [tower(TOWER, "p2"), tower("(and (on a b))", "p10"), tower(TOWER, "p1")]
    plans = tmp_path / "plans"
    found = list(
        lama.lama_folder(
            problems,
            jobs=2,
            limits=lama.Limits(20, 1000),
            plans=plans,
            fault_of=lambda _, problem, plan: "it is p1" if problem.stem == "p1" else "",
        )
    )
    assert [(r.problem, r.outcome, r.plan_length) for r in found] == [
        ("p2", Outcome.SOLVED, 4),
        ("p10", Outcome.SOLVED, 2),
        ("p1", Outcome.INVALID_PLAN, None),
    ]
    assert sorted(path.name for path in plans.iterdir()) == [
        "p1.plan.invalid",
        "p10.plan",
        "p2.plan",
    ]
    assert f"LAMA's plan for p1 is refused and kept as {plans}/p1.plan.invalid: it is p1" in (
        caplog.text
    )


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (12, Outcome.NO_PLAN),
        (20, Outcome.MEMORY_LIMIT),
        (21, Outcome.TIME_LIMIT),
        (22, Outcome.MEMORY_LIMIT),
        (23, Outcome.TIME_LIMIT),
        (-24, Outcome.TIME_LIMIT),  # the driver ends so if the translator ran out of time
        (35, Outcome.ERROR),
    ],
)
def test_exit_codes(tower, tmp_path, monkeypatch, code, outcome):
    fake_driver(tmp_path, monkeypatch, f"sys.exit({code})")
    assert run(tower(TOWER), tmp_path).outcome is outcome


def test_the_translators_output_is_shown_as_text(tower, tmp_path, monkeypatch, caplog):
    said = "Traceback:\n  File x\nKeyError: 'zug ö'\n".encode()
    fake_driver(tmp_path, monkeypatch, f"print({said!r}, file=sys.stderr)\nsys.exit(30)")
    assert run(tower(TOWER), tmp_path).outcome is Outcome.ERROR
    assert caplog.messages[0].endswith("p01.pddl: File x KeyError: 'zug ö'")


def test_a_translator_that_python_denies_memory_is_out_of_memory(tower, tmp_path, monkeypatch):
    fake_driver(tmp_path, monkeypatch, "raise MemoryError")
    assert run(tower(TOWER), tmp_path).outcome is Outcome.MEMORY_LIMIT


def test_the_plan_file_counts_and_not_the_exit_code(tower, tmp_path, monkeypatch):
    plan = "(lift a)\\n(place a b)\\n; cost = 7 (general cost)\\n"
    fake_driver(tmp_path, monkeypatch, f"open('plan', 'w').write('{plan}'); sys.exit(23)")
    result = run(tower(TOWER), tmp_path)
    assert (result.outcome, result.plan_length, result.plan_cost) == (Outcome.SOLVED, 2, 7)
    fake_driver(tmp_path, monkeypatch, f"open('plan', 'w').write('{plan}'[:20]); sys.exit(23)")
    assert run(tower(TOWER), tmp_path).outcome is Outcome.TIME_LIMIT


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A killed process without a parent may still wait for init.
    return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"


SLEEPER = """
import subprocess
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
open({pids!r}, 'a').write(str(child.pid) + chr(10))
time.sleep(60)
"""


def wait_until(condition):
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


def test_a_call_that_hangs_is_killed_with_its_children(tower, tmp_path, monkeypatch):
    pids = tmp_path / "pids"
    fake_driver(tmp_path, monkeypatch, SLEEPER.format(pids=str(pids)))
    monkeypatch.setattr(lama.Limits, "wall_clock_s", 1.5)
    assert run(tower(TOWER), tmp_path).outcome is Outcome.TIME_LIMIT
    wait_until(lambda: not is_alive(int(pids.read_text())))


def test_stopping_early_kills_what_still_runs(tower, tmp_path, monkeypatch):
    pids = tmp_path / "pids"
    quick = "if sys.argv[-1].endswith('p1.pddl'): sys.exit(12)\n"
    fake_driver(tmp_path, monkeypatch, quick + SLEEPER.format(pids=str(pids)))
    problems = [tower(TOWER, name) for name in ("p1", "p2", "p3", "p4")]
    found = lama.lama_folder(problems, jobs=2, limits=lama.Limits(60, 1000), plans=tmp_path / "out")
    assert next(found).outcome is Outcome.NO_PLAN
    wait_until(lambda: pids.exists() and pids.read_text().count("\n") == 2)
    start = time.monotonic()
    found.close()
    assert time.monotonic() - start < 10
    children = [int(pid) for pid in pids.read_text().split()]
    assert len(children) == 2, "p4 must not have been started"
    wait_until(lambda: not any(map(is_alive, children)))


def test_missing_parts_are_named_with_the_remedy(tower, tmp_path, monkeypatch):
    domain, problem = tower(TOWER)
    with pytest.raises(UsageError, match=r"absent\.pddl is not a file"):
        run((domain, problem.with_name("absent.pddl")), tmp_path)
    with pytest.raises(UsageError, match=r"at least 2 seconds, got 1\.5"):
        run((domain, problem), tmp_path, time_limit_s=1.5)
    with pytest.raises(UsageError, match="at least 1 MiB, got 0"):
        lama.Limits(5, 0)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'regoal\[baselines\]'"):
        lama.fast_downward()


def test_names_are_unique_and_depend_on_the_files_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [Path("t/easy/p01.pddl"), tmp_path / "t/hard/p01.pddl", Path("t/hard/x.y.pddl")]
    assert problem_names(paths) == ["easy/p01", "hard/p01", "hard/x.y"]
    assert problem_names([]) == []


def test_no_planner_library_is_loaded():
    code = (
        "import sys, regoal.evaluation.lama as lama\n"
        "bad = {'torch', 'pymimir', 'up_fast_downward', 'unified_planning'} & set(sys.modules)\n"
        "sys.exit(f'loaded {bad}' if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
