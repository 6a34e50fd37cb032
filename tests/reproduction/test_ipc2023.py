"""`python -m reproduction.ipc2023`: trains, tests, goes on, and its tables."""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lamps import write_lamps
from regoal.errors import UsageError
from regoal.records.results import Outcome, PlanResult
from regoal.records.run_record import read_results
from regoal.sweeps.sweep_file import read_sweep
from reproduction import cells, ipc2023, ipc2023_tables, timed_tests

FILE = """
out = {out!r}
domains = ["lamps-2023"]
hindsight = ["lifted"]
seeds = [0]
preset = "laptop"
budget_minutes = 1
test = false
[overrides]
episodes = 1
layers = 2
embedding_size = 16
updates = 1
threads = 1
[pddl."%-2023"]
domain = "$IPC2023/%/domain.pddl"
training = "$IPC2023/%/training[:2]"
test.easy = "$IPC2023/%/testing/easy"
test.medium = "$IPC2023/%/testing/medium"
test.hard = "$IPC2023/%/testing/hard"
"""
PLAN = PlanResult(
    problem="easy-p1", domain="ferry", method="lifted", outcome=Outcome.SOLVED,
    plan_length=10, plan_cost=10, seconds=1.0, steps=10,
)  # fmt: skip


def failed(problem):
    return replace(PLAN, problem=problem, outcome=Outcome.TIME_LIMIT, plan_length=None)


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Call the command with a track of one domain, in a folder of its own."""
    write_lamps(
        tmp_path / "given/lamps",
        training=(1, 2, 3), testing_easy=(1, 2), testing_medium=(3,), testing_hard=(4,),
    )  # fmt: skip
    (tmp_path / "ipc2023.toml").write_text(FILE.format(out=str(tmp_path / "runs")))
    for module in (cells, ipc2023):
        monkeypatch.setattr(module, "REPRODUCTION", tmp_path, raising=False)
        monkeypatch.setattr(module, "RESULTS_FOLDER", tmp_path / "results")
    for module in (ipc2023, ipc2023_tables):
        monkeypatch.setattr(module, "DOMAINS", ("lamps",))
    given = {"lamps": {"easy": 2, "medium": 1, "hard": 1}}
    monkeypatch.setattr(ipc2023_tables, "GIVEN", given)
    monkeypatch.setattr(ipc2023_tables, "PUBLISHED", {"Best (1999)": (45,)})
    monkeypatch.setenv("IPC2023", str(tmp_path / "given"))

    def main(*words):
        monkeypatch.setattr("sys.argv", ["ipc2023", *words])
        ipc2023.main()

    return main


def test_it_trains_tests_and_goes_on_from_what_it_has_left(call, tmp_path, monkeypatch, capfd):
    call("trained")
    said = capfd.readouterr().out
    assert "| trained | 2+1+1 | 4 | 100.0 |" in said
    assert "| trained, greedy | 2+1+1 | 4 | 100.0 |" in said
    assert "| shipped" not in said
    assert "| trained: steps | 2.5 | - |" in said
    assert "| lamps | 0 |" in said
    assert "| Best (1999), of 90 | 45 | 45 | 5.0 |" in said
    records = tmp_path / "results/ipc2023/trained/lamps.2m.jsonl"
    names = ["easy-p1", "easy-p2", "hard-p4", "medium-p3"]
    assert [result.problem for result in read_results(records)] == names
    rows = (tmp_path / "results/ipc2023.csv").read_text().splitlines()
    assert rows[1].startswith("lamps,trained,easy,2,2,2,2,2,2.00,3,")
    assert rows[4].startswith("sum,trained,,4,4,4,4,4,4.00,10,")

    # Another machine: no run folders, and half of the records.
    shutil.rmtree(tmp_path / "runs")
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join(lines[:2]))
    call("trained")
    said = capfd.readouterr().out
    assert "trained lamps: 2 problems left, 2m each" in said
    assert "trained lamps: 0 problems left, 30m each" in said
    assert "2 of 4 problems have their results" in said
    assert not (tmp_path / "runs/lamps-2023").exists(), "it is not trained again"
    assert [result.problem for result in read_results(records)] == names

    monkeypatch.delenv("IPC2023")
    call("--table")
    assert "| trained | 2+1+1 | 4 | 100.0 |" in capfd.readouterr().out


def test_a_lost_policy_is_missed(call, tmp_path, monkeypatch):
    sweep = read_sweep(tmp_path / "ipc2023.toml")
    monkeypatch.setattr(ipc2023, "run_cells", lambda *_: ())
    with pytest.raises(UsageError, match="lamps-2023/lifted/0 is trained, but there is neither"):
        ipc2023.train(sweep, tmp_path / "policy")


@pytest.mark.planner
def test_lama_is_a_method(call, tmp_path, capfd):
    pytest.importorskip("up_fast_downward")
    call("lama")
    assert "| lama | 2+1+1 | 4 | 100.0 |" in capfd.readouterr().out
    call("lama")
    assert "lama lamps: 0 problems left" in capfd.readouterr().out


def test_scores(call):
    del call  # for its domain
    results = dict.fromkeys([(m, "lamps") for m in ("trained", "shipped", "lama")], ())
    results["trained", "lamps"] = [
        replace(PLAN, plan_length=10, seconds=1.0, returns=1, found_by="greedy"),
        replace(PLAN, problem="easy-p2", plan_length=40, short_length=30, seconds=9.0),
        failed("hard-p1"),
    ]
    results["lama", "lamps"] = [
        replace(PLAN, plan_length=5), failed("easy-p2"), failed("hard-p1"),
        replace(PLAN, problem="hard-p2", plan_length=0),
    ]  # fmt: skip
    ours = ipc2023_tables.score(results, "trained", "lamps")
    assert (ours.given, len(ours.solved), ours.quality, ours.seconds) == (4, 2, 5 / 10 + 1, 5.0)
    assert ipc2023_tables.score(results, "lama", "lamps", "hard").quality == 1
    assert ipc2023_tables.score(results, "lama", "lamps", "easy").quality == 1
    table = ipc2023_tables.coverage_table(results)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["problems given: easy + medium + hard", "2+1+1", "4", "-"],
        ["trained", "2+0+0", "2", "50.0"],
        ["trained, greedy", "1+0+0", "1", "25.0"],
        ["lama", "1+0+1", "2", "50.0"],
        ["Best (1999), of 90", "45", "45", "5.0"],
    ]
    assert table.notes == ("Not yet tested on all problems: trained lamps (3 of 4).",)
    rows = [[cell.text for cell in row] for row in ipc2023_tables.quality_table(results).rows]
    assert rows == [
        ["trained: quality", "1.5", "1.5"],
        ["trained: steps", "25.0", "-"],
        ["trained: shortened", "20.0", "-"],
        ["trained: seconds", "5.0", "-"],
        ["lama: quality", "2.0", "2.0"],
        ["lama: steps", "2.5", "-"],
        ["lama: shortened", "2.5", "-"],
        ["lama: seconds", "1.0", "-"],
    ]
    rows = ipc2023_tables.to_csv(results, dict.fromkeys(results, "2m")).splitlines()
    assert rows[1] == "lamps,trained,easy,2,2,2,1,1,1.50,50,5.00,2m"
    assert rows[-3] == "sum,trained,,4,3,2,1,1,1.50,50,5.00,"


def test_the_table_of_trainings(call):
    del call
    record = {"domain": "lamps-2023", "seed": 1, "minutes": 2.04, "episodes": 20, "commit": "abc"}
    validation = [[5, 0, 1, 4], [10, 4, 4, 4], [15, 2, 4, 4], [20, 4, 4, 4]]
    table = ipc2023_tables.training_table({
        "a": record | {"validation": validation},
        "b": record | {"validation": validation[:1], "seed": 2},
    })  # fmt: skip
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["lamps", "1", "2.0", "20", "4 of 4", "10; 1 of 2"],
        ["lamps", "2", "2.0", "20", "0 of 4", "-"],
    ]


def test_only_what_ran_out_of_time_is_tried_with_a_longer_limit(call, tmp_path, capfd):
    call("trained", "--time-limits", "2m")
    short = tmp_path / "results/ipc2023/trained/lamps.2m.jsonl"
    kept = read_results(short)
    late = replace(kept[0], outcome=Outcome.TIME_LIMIT, plan_length=None, seconds=120.0)
    ended = replace(kept[1], outcome=Outcome.UNSOLVABLE, plan_length=None)
    records = [late, ended, *kept[2:]]
    short.write_text("".join(json.dumps(r.to_json()) + "\n" for r in records))
    capfd.readouterr()
    assert timed_tests.find_limit(short.parent, "lamps") == "2m"
    call("trained", "--time-limits", "3m")
    said = capfd.readouterr().out
    assert "trained lamps: 1 problems left, 3m each" in said
    assert "| trained | 1+1+1 | 3 | 75.0 |" in said
    long = read_results(short.with_name("lamps.3m.jsonl"))
    assert [result.problem for result in long] == [late.problem]
    assert timed_tests.find_limit(short.parent, "lamps") == "3m"
    call("trained", "--time-limits", "3m")
    assert "trained lamps: 0 problems left, 3m each" in capfd.readouterr().out


def test_the_time_that_problems_had(tmp_path):
    def write(limit, *results):
        lines = [json.dumps(result.to_json()) + "\n" for result in results]
        (tmp_path / f"ferry.{limit}.jsonl").write_text("".join(lines))

    assert timed_tests.find_limit(tmp_path, "ferry") == ""
    one, other = failed("hard-p1"), failed("hard-p2")
    write("60s", PLAN, one, other)
    assert timed_tests.find_limit(tmp_path, "ferry") == "60s"
    write("30m", one)
    assert timed_tests.find_limit(tmp_path, "ferry") == "60s to 30m"
    write("30m", one, replace(PLAN, problem="hard-p2"))
    assert timed_tests.find_limit(tmp_path, "ferry") == "30m"
    write("2h", replace(PLAN, problem="hard-p1"))
    assert timed_tests.find_limit(tmp_path, "ferry") == "2h"


def test_published_figures_add_up_and_the_sweep_file_can_be_read():
    sums = {name: sum(n or 0 for n in row) for name, row in ipc2023_tables.PUBLISHED.items()}
    assert list(sums.values()) == [572, 560, 548, 557, 364, 228]
    sweep = read_sweep(ipc2023.REPRODUCTION / "ipc2023.toml")
    assert [s.domain for s in sweep.settings] == [f"{name}-2023" for name in ipc2023.DOMAINS]
    assert sweep.settings[0].budget_minutes <= 60


def test_what_it_has_started_ends_with_it(tmp_path):
    file = tmp_path / "pid"
    waiting = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    code = (
        "import sys; from regoal.cli import script; from reproduction import timed_tests;"
        f"script(lambda: timed_tests.run_and_wait([sys.executable, '-c', {waiting!r}]))"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", code], cwd=root) as process:
        while not (file.is_file() and file.read_text()):
            assert process.poll() is None
            time.sleep(0.02)
        process.terminate()
        assert process.wait(60) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)
