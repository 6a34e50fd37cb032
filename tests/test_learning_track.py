"""The commands of the learning track: numbered results, and limits from outside."""

import os
import signal
from dataclasses import replace

import pytest

import conftest
from regoal import cli
from regoal.commands import learning_track
from regoal.config import LAPTOP
from regoal.evaluation import evaluate, variations
from regoal.networks.policy_file import load_policy
from regoal.planning.plans import check_plan_file
from regoal.records.results import Outcome

SMALL = replace(
    LAPTOP,
    layers=2, embedding_size=16, updates=1, episodes=2, validate_every=1, validation_steps=20,
    horizon=20, patience=0,
)  # fmt: skip


@pytest.fixture(autouse=True)
def signals(monkeypatch):
    """Small trainings, and the signal handlers of the command line, until the end of the test."""
    monkeypatch.setattr(learning_track, "LAPTOP", SMALL)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGXCPU)}
    signal.signal(signal.SIGTERM, cli._terminate)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def files(tmp_path):
    """The domain and two problems, in folders of their own."""
    for name, text in (("domain", conftest.ROADS), ("ring", conftest.ROADS_RING)):
        (tmp_path / f"{name}.pddl").write_text(text, encoding="utf-8")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "ring.pddl").write_text(
        conftest.ROADS_FORK.replace("(here d)))", "(here b)))"), encoding="utf-8"
    )
    return [tmp_path / "domain.pddl", tmp_path / "ring.pddl", tmp_path / "more" / "ring.pddl"]


def regoal(*words):
    return cli.run([str(word) for word in words])


def learn(knowledge, files):
    return regoal("learn", knowledge, *files)


def test_learn_writes_numbered_policies_and_nothing_else(tmp_path, files, capsys):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "dk.9").write_text("of an earlier call")
    assert learn(folder / "dk", files) == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"dk.{i}" for i in range(1, len(names) + 1)]
    last = load_policy(folder / names[-1])
    assert last.schema.action_arities == {"go": 2}
    assert last.facts["domain"] == "roads"
    assert "of an earlier call" not in (folder / names[-1]).read_text(errors="replace")
    assert "held out to choose the policy by" in capsys.readouterr().out


def test_solve_takes_the_last_policy_and_numbers_valid_plans(tmp_path, files, capsys):
    assert learn(tmp_path / "dk", files) == 0
    (tmp_path / "plan.7").write_text("of an earlier call")
    domain, _, fork = files
    assert regoal("solve", tmp_path / "dk", domain, fork, tmp_path / "plan") == 0
    assert not (tmp_path / "plan.7").exists()
    assert check_plan_file(domain, fork, tmp_path / "plan.1").valid
    assert f"{tmp_path / 'plan.1'}: 1 step(s), cost 1, after " in capsys.readouterr().out
    assert regoal("solve", tmp_path / "dk.1", domain, fork, tmp_path / "plan") == 0
    (tmp_path / "dk.2").unlink(missing_ok=True)
    (tmp_path / "dk.1").unlink()
    assert regoal("solve", tmp_path / "dk", domain, fork, tmp_path / "plan") == 36
    assert not list(tmp_path.glob("plan*"))


def test_plans_are_written_only_if_they_cost_less(tmp_path, files, monkeypatch):
    assert learn(tmp_path / "dk", files) == 0
    domain, ring, _ = files
    ring.write_text(  # from a by c and back costs more steps than straight on
        "(define (problem p) (:domain roads) (:objects a b c d) (:init (here a) (road a b)"
        " (road a c) (road c a) (road b d)) (:goal (here d)))",
        encoding="utf-8",
    )
    straight, longer = ["ab", "bd"], ["ac", "ca", "ab", "bd"]

    def plan(task, pairs):
        return [task.ground("go", pair) for pair in pairs]

    def attempt(policy, encoder, task, settings):
        return evaluate.Solution(Outcome.SOLVED, plan(task, longer), "")

    def others(policy, encoder, task, settings, most):
        assert most == 4
        yield from (plan(task, longer), plan(task, straight), plan(task, straight))

    monkeypatch.setattr(evaluate, "solve", attempt)
    monkeypatch.setattr(variations, "vary", others)
    assert regoal("solve", tmp_path / "dk", domain, ring, tmp_path / "plan") == 0
    found = [path.read_text() for path in sorted(tmp_path.glob("plan.*"))]
    assert found == [
        "(go a c)\n(go c a)\n(go a b)\n(go b d)\n; cost = 4 (unit cost)\n",
        "(go a b)\n(go b d)\n; cost = 2 (unit cost)\n",
    ]


def test_a_proof_that_there_is_no_plan_gives_11_and_no_file(tmp_path, files):
    assert learn(tmp_path / "dk", files) == 0
    domain, ring, _ = files
    ring.write_text(conftest.ROADS_END, encoding="utf-8")
    assert regoal("solve", tmp_path / "dk", domain, ring, tmp_path / "plan") == 11
    assert not list(tmp_path.glob("plan*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGXCPU])
@pytest.mark.parametrize(("plans", "code"), [(0, 23), (1, 2)])
def test_a_time_limit_from_outside_ends_solve(tmp_path, files, monkeypatch, number, plans, code):
    assert learn(tmp_path / "dk", files) == 0

    def stop(*of):
        os.kill(os.getpid(), number)
        return iter(())

    monkeypatch.setattr(*((variations, "vary") if plans else (evaluate, "solve")), stop)
    domain, _, fork = files
    assert regoal("solve", tmp_path / "dk", domain, fork, tmp_path / "plan") == code
    assert len(list(tmp_path.glob("plan*"))) == plans


@pytest.mark.parametrize(("plans", "code"), [(0, 22), (1, 1)])
def test_memory_that_runs_out_ends_solve(tmp_path, files, monkeypatch, plans, code):
    assert learn(tmp_path / "dk", files) == 0

    def fail(*of):
        raise MemoryError

    monkeypatch.setattr(*((variations, "vary") if plans else (evaluate, "solve")), fail)
    domain, _, fork = files
    assert regoal("solve", tmp_path / "dk", domain, fork, tmp_path / "plan") == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGXCPU])
def test_a_time_limit_from_outside_ends_learn_with_what_it_has(
    tmp_path, files, monkeypatch, number
):
    write = learning_track.write_next
    monkeypatch.setattr(learning_track, "LAPTOP", replace(SMALL, episodes=1000))

    def write_and_stop(*of):
        os.kill(os.getpid(), number)
        return write(*of)

    monkeypatch.setattr(learning_track, "write_next", write_and_stop)
    (tmp_path / "out").mkdir()
    assert learn(tmp_path / "out" / "dk", files) == 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["dk.1"]
    load_policy(tmp_path / "out" / "dk.1")


def test_learn_names_the_problem_file_that_is_wrong(tmp_path, files, capsys):
    files[2].write_text("(define (problem p) (:domain roads) (:objects a) (:init) (:goal (hre a)))")
    assert learn(tmp_path / "dk", files) == 31
    assert f"{files[2]}, line 1" in capsys.readouterr().err
    assert learn(tmp_path / "dk", files[:1]) == 36
    assert "at least one problem file" in capsys.readouterr().err
    assert learn(tmp_path / "nowhere" / "dk", files) == 36
