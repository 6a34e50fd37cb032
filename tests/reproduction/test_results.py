"""`python -m reproduction.results`: what it keeps, and what its table says."""

import csv
import json
from pathlib import Path

import pytest

from regoal.records.json_lines import json_line
from regoal.records.results import Outcome, PlanResult
from regoal.system.files import short_digest

SOLVED = PlanResult(
    problem="p1", domain="maze", method="lifted", outcome=Outcome.SOLVED,
    plan_length=7, plan_cost=7, seconds=0.1, steps=7,
)  # fmt: skip


@pytest.fixture
def results(monkeypatch, tmp_path):
    """The module, with a folder of its own to keep runs in."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    from reproduction import results

    monkeypatch.setattr(results, "OUT", tmp_path / "kept" / "results")
    results.OUT.mkdir(parents=True)
    return results


@pytest.fixture
def run(tmp_path):
    """The folder of a run that was trained and tested."""
    folder = tmp_path / "runs/maze/lifted/0"
    folder.mkdir(parents=True)
    config = {"domain": "maze", "hindsight": "lifted", "seed": 0, "layers": 3, "policy_layers": 8}
    for name in ("config.json", "done.json"):
        (folder / name).write_text(json.dumps(config))
    episode = {"episode": 5, "elapsed_s": 60.0, "goal_size": 1.0, "trajectory_length": 2.0}
    validation = {"episode": 5, "elapsed_s": 90.0, "solved": 1, "problems": 1}
    (folder / "episodes.jsonl").write_text(json_line(episode))
    (folder / "validation.jsonl").write_text(json_line(validation))
    (folder / "policy.safetensors").write_bytes(b"tested")
    tested = SOLVED.to_json() | {"policy": short_digest(folder / "policy.safetensors")}
    (folder / "results.jsonl").write_text(json_line(tested))
    return folder


def collect(results, monkeypatch, *runs):
    monkeypatch.setattr("sys.argv", ["results", *map(str, runs)])
    results.main()
    return list(csv.DictReader((results.OUT / "coverage.csv").read_text().splitlines()))


def test_the_row_of_a_run(results, run, monkeypatch):
    (row,) = collect(results, monkeypatch, run)
    assert {key: row[key] for key in ("coverage", "minutes", "layers", "policy_layers")} == {
        "coverage": "1", "minutes": "1.5", "layers": "3", "policy_layers": "8",
    }  # fmt: skip
    assert (results.OUT / "maze/lifted/0/results.jsonl").is_file()


def test_a_run_that_went_on_after_its_test_is_left_out(results, run, monkeypatch, capsys):
    (before,) = collect(results, monkeypatch, run)
    (run / "policy.safetensors").write_bytes(b"better")
    (run / "episodes.jsonl").write_text(json_line({"episode": 9, "elapsed_s": 120.0}))
    assert collect(results, monkeypatch, run) == [before]
    assert "left out: trained further after its test" in capsys.readouterr().out
