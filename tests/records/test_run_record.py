import json
import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.errors import UsageError
from regoal.records import run_record as run_dir

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


def test_lines_come_back_in_order(tmp_path):
    path = tmp_path / "episodes.jsonl"
    for episode in range(3):
        run_dir.append_json_line(path, {"episode": episode, "note": "ä\nb"})
    assert [r["episode"] for r in run_dir.read_jsonl(path)] == [0, 1, 2]
    assert path.read_bytes().count(b"\n") == 3


def test_numbers_that_are_not_finite_become_null(tmp_path):
    path = tmp_path / "episodes.jsonl"
    run_dir.append_json_line(path, {"loss": math.nan, "sizes": [1.0, math.inf]})
    assert run_dir.read_jsonl(path) == [{"loss": None, "sizes": [1.0, None]}]
    assert math.isnan(run_dir.as_float(None))


@settings(deadline=None, max_examples=40)
@given(cut=st.integers(0, 60))
def test_a_kill_at_any_byte_costs_at_most_the_last_record(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("run") / "episodes.jsonl"
    for episode in range(4):
        run_dir.append_json_line(path, {"episode": episode, "x": "}"})
    data = path.read_bytes()
    cut = min(cut, len(data))
    path.write_bytes(data[:cut])
    whole = data[:cut].count(b"\n") + data[:cut].endswith(b'"}"}')  # cut just before a line end
    assert len(run_dir.read_jsonl(path)) == whole
    run_dir.append_json_line(path, {"episode": 9})
    episodes = [record["episode"] for record in run_dir.read_jsonl(path)]
    assert episodes == [*range(whole), 9]


def test_a_bad_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "episodes.jsonl"
    path.write_text('{"episode": 0}\n{"epis\n{"episode": 2}\n')
    with pytest.raises(UsageError, match=r"episodes\.jsonl, line 2 is not JSON"):
        run_dir.read_jsonl(path)
    path.write_text("[" * 5000 + "\n")
    with pytest.raises(UsageError, match="line 1 is not JSON: it is nested too deeply"):
        run_dir.read_jsonl(path)
    path.write_text("3\n")
    with pytest.raises(UsageError, match="line 1 must hold a JSON object"):
        run_dir.read_jsonl(path)


def test_episodes_after_the_checkpoint_are_dropped(tmp_path):
    path = tmp_path / "episodes.jsonl"
    run_dir.keep_episodes_before(path, 2)
    assert not path.exists()
    for episode in range(4):
        run_dir.append_json_line(path, {"episode": episode})
    run_dir.keep_episodes_before(path, 2)
    assert run_dir.read_jsonl(path) == [{"episode": 0}, {"episode": 1}]


def test_a_run_is_read_into_values(tmp_path):
    config = {"domain": "Childsnack_AF", "hindsight": "lifted", "seed": 3, "preset": "laptop"}
    run_dir.write_json(tmp_path / run_dir.CONFIG, config)
    for problem in ("p10", "p2", "p10"):
        run_dir.append_json_line(tmp_path / run_dir.RESULTS, RESULT | {"problem": problem})
    run = run_dir.load_run(tmp_path)
    assert (run.domain, run.method, run.seed) == ("childsnack-af", "lifted", 3)
    assert run.config == config
    assert [r.problem for r in run.results] == ["p2", "p10"]
    assert run.episodes == run.validation == []


def test_results_alone_are_a_run_without_training(tmp_path):
    path = tmp_path / "lama.jsonl"
    path.write_text(json.dumps(RESULT | {"method": "lama"}))
    run = run_dir.load_run(path)
    assert (run.domain, run.method, len(run.results)) == ("blocks", "lama", 1)
    path.write_text("")
    with pytest.raises(UsageError, match="holds no results yet"):
        run_dir.load_run(path)


def test_what_is_no_run_is_refused_with_the_remedy(tmp_path):
    with pytest.raises(UsageError, match=r"is not a run: it has no config\.json"):
        run_dir.load_run(tmp_path)
    with pytest.raises(UsageError, match="is not a folder"):
        run_dir.load_run(tmp_path / "missing")
    with pytest.raises(UsageError, match="holds no run"):
        run_dir.find_runs([tmp_path])
    (tmp_path / run_dir.CONFIG).write_text("{}")
    with pytest.raises(UsageError, match="must say its 'domain'"):
        _ = run_dir.load_run(tmp_path).domain
    (tmp_path / run_dir.CONFIG).write_text("[]")
    with pytest.raises(UsageError, match="must hold a JSON object"):
        run_dir.load_run(tmp_path)
    (tmp_path / run_dir.CONFIG).write_text("{")
    with pytest.raises(UsageError, match="is not JSON"):
        run_dir.load_run(tmp_path)


def test_a_bad_result_is_named(tmp_path):
    run_dir.write_json(tmp_path / run_dir.CONFIG, {})
    run_dir.append_json_line(tmp_path / run_dir.RESULTS, RESULT | {"outcome": "won"})
    with pytest.raises(UsageError, match=r"results\.jsonl, line 1: outcome must be one of"):
        run_dir.load_run(tmp_path)


def test_runs_are_found_below_in_natural_order(tmp_path):
    for seed in (10, 2):
        (tmp_path / f"blocks/lifted/{seed}").mkdir(parents=True)
        run_dir.write_json(tmp_path / f"blocks/lifted/{seed}" / run_dir.CONFIG, {})
    found = run_dir.find_runs([tmp_path, tmp_path / "blocks"])
    assert [path.name for path in found] == ["2", "10"]


def test_reading_runs_loads_neither_torch_nor_the_planner():
    code = (
        "import sys, regoal.records.run_record\n"
        "bad = {'torch', 'pymimir', 'matplotlib', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'loaded {bad}' if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
