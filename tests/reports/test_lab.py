import json

import pytest
from downward.reports.absolute import AbsoluteReport
from downward.reports.compare import ComparativeReport
from downward.reports.scatter import ScatterPlotReport
from lab.tools import has_unexplained_error

from regoal import cli
from regoal.errors import UsageError
from regoal.records.json_lines import write_json, write_json_lines
from regoal.records.results import Outcome, PlanResult
from regoal.records.run_record import load_run
from regoal.reports.lab import ATTRIBUTES, ERRORS, make_attributes, write_properties
from reproduction.lab import write_reports


def a_result(problem, outcome=Outcome.SOLVED, length=7, **changes):
    solved = outcome is Outcome.SOLVED
    values = {
        "problem": problem, "domain": "pddl-name", "method": "lifted", "outcome": outcome,
        "plan_length": length if solved else None, "plan_cost": float(length) if solved else None,
        "seconds": 2.0, "steps": length, "returns": 0, "policy": "abc",
    }  # fmt: skip
    return PlanResult(**(values | changes))


@pytest.fixture
def write_run(tmp_path):
    def write(name, config, results):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        write_json(folder / "config.json", config)
        write_json_lines(folder / "results.jsonl", [result.to_json() for result in results])
        return folder

    return write


@pytest.fixture
def runs(write_run):
    """A training and LAMA on three problems of one domain; one problem of each is not solved."""
    trained = [
        a_result("p1"), a_result("p2", length=9, returns=2), a_result("p3", Outcome.STEP_LIMIT)
    ]  # fmt: skip
    lama = [
        a_result("p1", length=8, policy=""), a_result("p2", Outcome.TIME_LIMIT, policy=""),
        a_result("p3", length=4, policy=""),
    ]  # fmt: skip
    config = {"domain": "Blocks_L", "hindsight": "lifted", "seed": 4, "layers": 3}
    return [
        write_run("trained", config, trained),
        write_run("lama", {"domain": "blocks-l", "method": "lama", "time-limit": "5m"}, lama),
    ]


def properties(runs, out):
    return json.loads(write_properties(map(load_run, runs), out).read_text())


def test_a_result_has_labs_names(runs, tmp_path):
    found = properties(runs, tmp_path / "eval")
    assert len(found) == 6
    assert found["regoal-lifted-4-blocks-l-p2"] == {
        "id": ["regoal-lifted-4", "blocks-l", "p2"],
        "algorithm": "regoal-lifted-4", "domain": "blocks-l", "problem": "p2",
        "run_dir": str(runs[0]), "error": "success", "unexplained_errors": [],
        "coverage": 1, "coverage_without_returns": 0, "cost": 9, "plan_length": 9, "steps": 9,
        "returns": 2, "planner_wall_clock_time": 2.0,
        "local_revision": "not recorded", "component_options": ["layers=3"],
    }  # fmt: skip
    failed = found["lama-blocks-l-p2"]
    assert failed["error"] == "search-out-of-time"
    assert failed["coverage"] == 0
    assert {"cost", "plan_length", "returns", "coverage_without_returns"}.isdisjoint(failed)
    assert failed["component_options"] == ["time-limit=5m"]


def test_only_what_regoal_calls_unexpected_is_unexplained_to_lab(write_run, tmp_path):
    results = [a_result(outcome.key, outcome) for outcome in ERRORS]
    assert set(ERRORS) == set(Outcome)
    run = write_run("run", {"domain": "d", "hindsight": "state", "seed": 0}, results)
    found = properties([run], tmp_path / "eval").values()
    unexplained = {run["problem"] for run in found if has_unexplained_error(run)}
    assert unexplained == {"invalid_plan", "error"}


def test_the_three_reports_are_made_without_unexplained_errors(runs, tmp_path, capsys):
    evaluation = str(write_properties(map(load_run, runs), tmp_path / "runs-eval").parent)
    pair = [("lama", "regoal-lifted-4")]
    reports = {
        "absolute.html": AbsoluteReport(attributes=["error", *make_attributes()]),
        "comparative.html": ComparativeReport(pair, attributes=make_attributes()),
        "plot.png": ScatterPlotReport(attributes=make_attributes(["plan_length"])),
    }
    for name, report in reports.items():
        report(evaluation, str(tmp_path / name))
    said = "".join(capsys.readouterr())
    assert said.count("Report contains 0 runs with unexplained errors") == len(reports)
    assert not {"WARNING", "ERROR", "CRITICAL"} & set(said.split())
    absolute = (tmp_path / "absolute.html").read_text()
    for attribute in ATTRIBUTES:
        assert f"{attribute.name} - " in absolute
    assert "regoal-lifted-4" in (tmp_path / "comparative.html").read_text()
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_attributes_say_what_is_better_and_how_to_aggregate():
    of = {str(attribute): attribute for attribute in make_attributes()}
    assert list(of) == [attribute.name for attribute in ATTRIBUTES]
    assert (of["coverage"].min_wins, of["coverage"].absolute) == (False, True)
    assert of["coverage"].function([1, 0, 1]) == 2
    assert (of["plan_length"].min_wins, of["plan_length"].absolute) == (True, False)
    time = of["planner_wall_clock_time"]
    assert (time.min_wins, time.scale) == (True, "log")
    assert time.function([2.0, 8.0]) == pytest.approx(4.0)
    with pytest.raises(UsageError, match="no attribute 'expansions'"):
        make_attributes(["expansions"])


def test_one_algorithm_has_one_run_on_a_domain(runs, write_run, tmp_path):
    again = write_run("again", {"domain": "blocks-l", "method": "lama"}, [a_result("p9")])
    with pytest.raises(UsageError, match=r"lama and .*again are both lama on blocks-l"):
        properties([*runs, again], tmp_path / "eval")


def test_runs_without_results_are_refused(write_run, tmp_path):
    empty = write_run("empty", {"domain": "d", "hindsight": "state", "seed": 0}, [])
    with pytest.raises(UsageError, match="No run has test results yet"):
        properties([empty], tmp_path / "eval")
    assert not (tmp_path / "eval").exists()


def test_the_command_writes_the_file(runs, tmp_path, capsys):
    out = tmp_path / "eval"
    assert cli.run(["export", "lab", *map(str, runs), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}/properties\n"
    assert len(json.loads((out / "properties").read_text())) == 6


def test_the_example_makes_its_reports_from_the_committed_results(tmp_path):
    write_reports(tmp_path)
    found = json.loads((tmp_path / "regoal-eval" / "properties").read_text())
    assert {run["algorithm"] for run in found.values()} == {"regoal-lifted-0", "lama"}
    assert not any(map(has_unexplained_error, found.values()))
    for name in ("absolute.html", "comparative.html", "plan_length.png"):
        assert (tmp_path / name).is_file()
