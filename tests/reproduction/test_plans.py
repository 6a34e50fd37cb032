"""`python -m reproduction.plans`: what it runs, and its table."""

from dataclasses import replace

import pytest

from regoal.records.json_lines import write_json_lines
from regoal.records.results import Outcome, PlanResult
from regoal.records.run_record import read_results
from reproduction import cells, plans

PLAN = PlanResult(
    problem="p001", domain="gripper", method="lifted", outcome=Outcome.SOLVED,
    plan_length=10, plan_cost=10, seconds=1.0, steps=10, found_by="greedy",
)  # fmt: skip
LATE = replace(
    PLAN, outcome=Outcome.TIME_LIMIT, plan_length=None, plan_cost=None, seconds=60, found_by=""
)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write the records of a test of Gripper with some time limit into an empty folder."""
    monkeypatch.setattr(cells, "RESULTS_FOLDER", tmp_path)

    def write(limit, *results):
        file = tmp_path / f"plans/gripper.{limit}.jsonl"
        file.parent.mkdir(exist_ok=True)
        write_json_lines(file, [result.to_json() for result in results])
        return read_results(file)

    return write


def read_row(folder):
    ((_, *cells_),) = plans.make_table(folder).rows
    return [cell.text for cell in cells_]


def test_the_row_of_a_domain(write, tmp_path):
    greedy = [replace(PLAN, problem=f"p{i:03}") for i in range(1, 97)]
    searched = replace(PLAN, plan_length=40, short_length=30, found_by="search")
    dead = replace(LATE, problem="p099", outcome=Outcome.DEAD_END)
    first = [*greedy, replace(searched, problem="p097"), replace(LATE, problem="p098"), dead]
    write("1m", *first)
    assert read_row(tmp_path)[:5] == ["96", "0", "1", "97, and 1 to try", "97, and 2 to try"]
    first.append(replace(LATE, problem="p100"))
    write("1m", *first)
    found = replace(searched, problem="p098", found_by="commitment", plan_length=23)
    write("5m", found, replace(LATE, problem="p100", seconds=300))
    assert read_row(tmp_path) == [
        *("96", "1", "1", "97", "98", f"{(960 + 40 + 23) / 98:.1f}", f"{(960 + 60) / 98:.1f}"),
        *("-", "-", "no action leads on: p099; time limit reached: p100"),
    ]


def test_what_ran_out_of_time_is_tried_again(write, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(plans, "test_problems", lambda *_: tmp_path / "problems")
    (tmp_path / "problems").mkdir()
    for i in range(3):
        (tmp_path / f"problems/p00{i}.pddl").touch()
    ended = [replace(LATE, problem="p000"), replace(PLAN, problem="p001")]
    ended.append(replace(LATE, problem="p002", outcome=Outcome.NO_PLAN))
    tried = []

    def run(command, files, folder, domain, limit):
        assert command == ["evaluate", "gripper", "--search"]
        assert folder == tmp_path / "plans"
        tried.append((limit, [path.stem for path in files]))
        write(limit, *(result for result in ended if result.problem in tried[-1][1]))

    monkeypatch.setattr(plans, "run_test", run)
    monkeypatch.setattr("sys.argv", ["plans", "--only", "gripper"])
    plans.main()
    assert tried == [("1m", ["p000", "p001", "p002"]), ("5m", ["p000"])]
    assert "| Gripper | 1 | 0 | 0 |" in capsys.readouterr().out
    plans.main()
    assert len(tried) == 2, "nothing is run twice"
