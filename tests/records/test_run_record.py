import json
import subprocess
import sys

import pytest

from regoal.errors import UsageError
from regoal.records.json_lines import append_json_line, read_jsonl, write_json
from regoal.records.run_record import CONFIG, RESULTS, find_runs, keep_episodes_before, load_run

RESULT = {
    "problem": "p10",
    "domain": "blocks",
    "method": "lifted",
    "outcome": "solved",
    "plan_length": 6,
    "plan_cost": 6,
    "seconds": 0.5,
    "steps": 6,
}


def test_episodes_after_the_checkpoint_are_dropped(tmp_path):
    path = tmp_path / "episodes.jsonl"
    keep_episodes_before(path, 2)
    assert not path.exists()
    for episode in range(4):
        append_json_line(path, {"episode": episode})
    keep_episodes_before(path, 2)
    assert read_jsonl(path) == [{"episode": 0}, {"episode": 1}]


def test_a_run_is_read_into_values(tmp_path):
    config = {"domain": "Childsnack_AF", "hindsight": "lifted", "seed": 3, "preset": "laptop"}
    write_json(tmp_path / CONFIG, config)
    for problem in ("p10", "p2", "p10"):
        append_json_line(tmp_path / RESULTS, RESULT | {"problem": problem})
    run = load_run(tmp_path)
    assert (run.domain, run.method, run.seed) == ("childsnack-af", "lifted", 3)
    assert run.config == config
    assert [r.problem for r in run.results] == ["p2", "p10"]
    assert run.episodes == run.validation == []


def test_results_alone_are_a_run_without_training(tmp_path):
    path = tmp_path / "lama.jsonl"
    path.write_text(json.dumps(RESULT | {"method": "lama"}))
    run = load_run(path)
    assert (run.domain, run.method, len(run.results)) == ("blocks", "lama", 1)
    path.write_text("")
    with pytest.raises(UsageError, match="holds no results yet"):
        load_run(path)


def test_what_is_no_run_is_refused_with_the_remedy(tmp_path):
    with pytest.raises(UsageError, match=r"is not a run: it has no config\.json"):
        load_run(tmp_path)
    with pytest.raises(UsageError, match="is not a folder"):
        load_run(tmp_path / "missing")
    with pytest.raises(UsageError, match="holds no run"):
        find_runs([tmp_path])
    (tmp_path / CONFIG).write_text("{}")
    with pytest.raises(UsageError, match="must say its 'domain'"):
        _ = load_run(tmp_path).domain
    (tmp_path / CONFIG).write_text("[]")
    with pytest.raises(UsageError, match="must hold a JSON object"):
        load_run(tmp_path)
    (tmp_path / CONFIG).write_text("{")
    with pytest.raises(UsageError, match="is not JSON"):
        load_run(tmp_path)


def test_a_bad_result_is_named(tmp_path):
    write_json(tmp_path / CONFIG, {})
    append_json_line(tmp_path / RESULTS, RESULT | {"outcome": "won"})
    with pytest.raises(UsageError, match=r"results\.jsonl, line 1: outcome must be one of"):
        load_run(tmp_path)


def test_runs_are_found_below_in_natural_order(tmp_path):
    for seed in (10, 2):
        (tmp_path / f"blocks/lifted/{seed}").mkdir(parents=True)
        write_json(tmp_path / f"blocks/lifted/{seed}" / CONFIG, {})
    found = find_runs([tmp_path, tmp_path / "blocks"])
    assert [path.name for path in found] == ["2", "10"]


def test_reading_runs_loads_neither_torch_nor_the_planner():
    code = (
        "import sys, regoal.records.run_record\n"
        "bad = {'torch', 'pymimir', 'matplotlib', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'loaded {bad}' if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
