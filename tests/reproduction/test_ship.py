"""`python -m reproduction.ship`: which policies it copies."""

import shutil

from regoal.networks.policy_file import shipped_policies
from regoal.records.json_lines import json_line
from regoal.records.results import Outcome, PlanResult
from reproduction import ship

WON = PlanResult(
    problem="p1", domain="x", method="lifted", outcome=Outcome.SOLVED, plan_length=1, plan_cost=1,
    seconds=0.1, steps=1,
)  # fmt: skip
LOST = PlanResult(
    problem="p2", domain="x", method="lifted", outcome=Outcome.DEAD_END, plan_length=None,
    plan_cost=None, seconds=0.1, steps=1,
)  # fmt: skip


def test_it_copies_the_best_on_validation_if_it_solves_more_than_half(tmp_path, monkeypatch):
    """The policy of Gripper solved 10 validation problems, that of Blocks 20."""
    known = shipped_policies()
    runs = {
        "x/lifted/0": ("gripper", [WON]), "x/lifted/1": ("blocks", [WON]),
        "x/state/0": ("gripper", [WON]), "half/lifted/0": ("blocks", [WON, LOST]),
        "x-l/lifted/0": ("blocks", [WON]),
    }  # fmt: skip
    for name, (policy, results) in runs.items():
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        shutil.copy(known[policy], folder / "policy.safetensors")
        (folder / "results.jsonl").write_text("".join(json_line(r.to_json()) for r in results))
    monkeypatch.setattr(ship, "POLICIES", tmp_path / "policies")
    monkeypatch.setattr("sys.argv", ["ship", str(tmp_path / "runs")])
    ship.main()
    [copied] = (tmp_path / "policies").iterdir()
    assert copied.name == "x.safetensors"
    assert copied.read_bytes() == known["blocks"].read_bytes()


def test_of_the_learning_track_it_copies_the_domains_that_are_new(tmp_path, monkeypatch):
    known = shipped_policies()
    for domain, result in {"ferry": WON, "rovers": LOST, "spanner": WON}.items():
        folder = tmp_path / "runs" / f"{domain}-2023" / "lifted" / "0"
        folder.mkdir(parents=True)
        shutil.copy(known["gripper"], folder / "policy.safetensors")
        results = tmp_path / "results" / "ipc2023" / "trained" / f"{domain}.60s.jsonl"
        results.parent.mkdir(parents=True, exist_ok=True)
        results.write_text(json_line(result.to_json()))
    monkeypatch.setattr(ship, "POLICIES", tmp_path / "policies")
    monkeypatch.setattr(ship, "RESULTS_FOLDER", tmp_path / "results")
    monkeypatch.setattr("sys.argv", ["ship", str(tmp_path / "runs")])
    ship.main()
    assert [path.name for path in (tmp_path / "policies").iterdir()] == ["ferry.safetensors"]
