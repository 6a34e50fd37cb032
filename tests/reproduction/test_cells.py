"""Cells: what is run, what is recorded, and what is not run again."""

import shutil
import sys

import pytest

from lamps import write_lamps
from regoal.errors import UsageError
from regoal.records.json_lines import read_jsonl, write_json_lines
from regoal.sweeps.sweep_file import read_sweep
from reproduction import ablation, cells, steadiness

FILE = """
out = {out!r}
domains = ["lamps-own"]
hindsight = ["lifted"]
seeds = [0, 1]
preset = "laptop"
budget_minutes = 1
{test}
[overrides]
episodes = 2
layers = 2
embedding_size = 16
updates = 2
validate_every = 1
threads = 1
[variants.preset]
[variants.flat]
ladder = false
[pddl."%-own"]
domain = "$OWN/%/domain.pddl"
training = "$OWN/%/training[:3]"
validation = "$OWN/%/training[3:]"
test.easy = "$OWN/%/easy"
test.hard = "$OWN/%/hard"
"""
PROGRAM = """
import json, pathlib, sys
options = dict(zip(sys.argv, sys.argv[1:]))
folder = pathlib.Path(options["--out"])
folder.mkdir(parents=True)
if {fail!r} in str(folder):
    sys.exit("no such luck")
config = {{"domain": "x", "hindsight": "lifted", "seed": int(options["--seed"])}}
config["environment"] = {{"commit": "abcdefgh", "machine": "m"}}
(folder / "config.json").write_text(json.dumps(config))
keys = ("episode", "solved", "tried", "problems", "plan_length", "robust", "kept", "elapsed_s")
validations = [(5, 1, 4, 4, 9, 0, True, 30.0), (10, 4, 4, 4, 20, 3, True, 90.0)]
lines = [json.dumps(dict(zip(keys, values))) + "\\n" for values in validations]
(folder / "validation.jsonl").write_text("".join(lines))
(folder / "episodes.jsonl").write_text('{{"episode": 10, "elapsed_s": 80.0}}\\n')
"""


@pytest.fixture
def sweep(monkeypatch, tmp_path):
    """Read a sweep over lamps: four cells, with files of 1 to 4 lamps, and 2 and 5 for tests."""
    write_lamps(tmp_path / "given/lamps", training=(1, 2, 3, 4), easy=(2,), hard=(5,))
    monkeypatch.setenv("OWN", str(tmp_path / "given"))

    def read(test="test = false", text=FILE):
        path = tmp_path / "sweep.toml"
        path.write_text(text.format(out=str(tmp_path / "runs"), test=test))
        return read_sweep(path)

    return read


@pytest.fixture
def program(tmp_path):
    def write(fail="never"):
        script = tmp_path / "program.py"
        script.write_text(PROGRAM.format(fail=fail))
        return [sys.executable, str(script)]

    return write


NAMES = [f"{variant}/lamps-own/lifted/{seed}" for variant in ("flat", "preset") for seed in (0, 1)]


def test_what_has_a_record_is_not_run_again_even_without_its_folder(
    sweep, program, tmp_path, capsys
):
    file = tmp_path / "results/x.jsonl"
    assert not cells.run_cells(sweep(), file, only=["preset/"], program=program())
    assert list(cells.read_records(file)) == NAMES[2:]
    shutil.rmtree(tmp_path / "runs")
    assert not cells.run_cells(sweep(), file, program=program())
    assert "2 of 4 cells have their records" in capsys.readouterr().out
    assert [record["name"] for record in read_jsonl(file)] == NAMES
    assert not (tmp_path / "runs/preset").exists()
    assert not cells.run_cells(sweep(), file, program=["never"])


def test_a_record(sweep, program, tmp_path):
    file = tmp_path / "x.jsonl"
    cells.run_cells(sweep(), file, only=["flat/lamps-own/lifted/1"], program=program())
    [record] = read_jsonl(file)
    assert record["settings"]["overrides"]["ladder"] is False
    assert {key: record[key] for key in record if key != "settings"} == {
        **{"name": NAMES[1], "variant": "flat", "domain": "lamps-own"},
        **{"hindsight": "lifted", "seed": 1, "commit": "abcdefgh", "machine": "m"},
        **{"episodes": 10, "minutes": 1.5, "test": {}},
        "validation": [[5, 1, 4, 4, 9, 0, 1], [10, 4, 4, 4, 20, 3, 1]],
    }


def test_records_of_other_settings_are_refused(sweep, program, tmp_path):
    file = tmp_path / "x.jsonl"
    cells.run_cells(sweep(), file, program=program())
    with pytest.raises(
        UsageError, match=r"record of preset/lamps-own/lifted/0 with other settings"
    ):
        cells.run_cells(sweep(text=FILE.replace("updates = 2", "updates = 3")), file)


def test_a_failed_cell_has_no_record(sweep, program, tmp_path):
    file = tmp_path / "x.jsonl"
    failures = cells.run_cells(sweep(), file, program=program(fail="flat"))
    assert [failure.step for failure in failures] == [f"{name} train" for name in NAMES[:2]]
    assert list(cells.read_records(file)) == NAMES[2:]


def test_records_are_taken_from_folders(sweep, program, tmp_path):
    file, other = tmp_path / "x.jsonl", tmp_path / "y.jsonl"
    cells.run_cells(sweep(), file, only=["preset"], program=program())
    folders = [tmp_path / "runs" / name for name in (NAMES[2], NAMES[0])]
    folders[1].mkdir(parents=True)  # not finished
    cells.add_records(other, folders)
    assert read_jsonl(other) == read_jsonl(file)[:1]
    changed = read_jsonl(other)[0] | {"minutes": 7}
    write_json_lines(other, [changed])
    cells.add_records(other, folders)
    assert read_jsonl(other) == read_jsonl(file)[:1], "a new record replaces the old one"


def test_cells_are_trained_and_tested_by_parts_under_limits(sweep, tmp_path):
    file = tmp_path / "x.jsonl"
    test = 'test = {max_steps = 9, time_limit = "60s", memory_limit = "8G"}'
    assert not cells.run_cells(sweep(test), file, only=["preset/lamps-own/lifted/0"])
    [record] = read_jsonl(file)
    assert [len(record["validation"]), record["episodes"]] == [2, 2]
    assert {name: found[:2] for name, found in record["test"].items()} == {
        "easy-p2": ["solved", 2], "hard-p5": ["solved", 5],
    }  # fmt: skip
    assert record["settings"]["test"] == {"max_steps": 9, "time_limit": "60s", "memory_limit": "8G"}


def test_steadiness(sweep):
    complete, none = [1, 4, 4, 4], [1, 0, 1, 4]
    after = [none, none, complete, *([complete] * 9), none]
    assert steadiness.measure(after).steady
    assert not steadiness.measure([*after, none]).steady
    assert steadiness.measure([none, none]).first is None
    assert not steadiness.measure([none, complete]).steady, "nothing after it shows nothing"

    def record(name, seed, validation):
        variant, domain = name.split("/")
        shared = {"commit": "abcdefgh", "minutes": 2, "episodes": 9, "hindsight": "lifted"}
        own = {"variant": variant, "domain": domain, "seed": seed, "validation": validation}
        return shared | own

    records = {
        "a": record("flat/lamps-own", 0, [none]),
        "b": record("preset/lamps-own", 1, [[5, 0, 1, 4], [10, 4, 4, 4], [15, 2, 4, 4]]),
        "c": record("preset/lamps-own", 0, [[5, 4, 4, 4], [10, 4, 4, 4]]),
    }
    [table], text = steadiness.summarise(records, sweep())
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["preset", "lamps-own", "0, 1", "5, 10", "1 of 1, 0 of 1", "1.00, 0.50", "1 of 2"],
        ["flat", "lamps-own", "0", "never", "0 of 0", "-", "0 of 1"],
    ]
    assert text.splitlines()[1] == "preset,lamps-own,0,9,2,2,5,1,1,1.000,abcdefg"
    assert text.splitlines()[3] == "flat,lamps-own,0,9,2,1,,0,0,,abcdefg"


def test_ablation(sweep):
    def record(variant, seed, validation, *outcomes):
        test = {f"p{i}": [outcome, None, 0.1, 0] for i, outcome in enumerate(outcomes)}
        own = {"variant": variant, "seed": seed, "validation": validation, "test": test}
        shared = {"domain": "lamps-own", "commit": "abcdefgh", "minutes": 2, "episodes": 9}
        return shared | own

    half, whole, unkept = [5, 2, 4, 4, 9, 0, 1], [10, 4, 4, 4, 9, 0, 1], [15, 3, 4, 4, 9, 0, 0]
    records = {
        "a": record("flat", 0, [half], "solved", "dead_end", "dead_end"),
        "b": record("preset", 1, [half, whole, unkept], "solved", "solved"),
        "c": record("preset", 0, [whole], "solved", "time_limit"),
    }
    first, validation, test = ablation.summarise(records, sweep())[0]
    assert [[cell.text for cell in row] for row in first.rows] == [
        ["preset", "10, 10"],
        ["flat", "never"],
    ]
    assert [row[1].text for row in validation.rows] == ["100, 100", "50"]
    assert [row[1].text for row in test.rows] == ["50, 100", "33"]
    text = ablation.summarise(records, sweep())[1]
    assert text.splitlines()[1:] == [
        "preset,lamps-own,0,9,2,10,4,4,1,2,abcdefg",
        "preset,lamps-own,1,9,2,10,4,4,2,2,abcdefg",
        "flat,lamps-own,0,9,2,,2,4,1,3,abcdefg",
    ]


def test_the_sweep_files_of_tables_can_be_read():
    found = read_sweep(cells.REPRODUCTION / "steadiness.toml")
    assert len(found.settings) == 2 * 3 * 7
    assert found.test is None
    found = read_sweep(cells.REPRODUCTION / "ablation.toml")
    assert len(found.settings) == 12 * 3 * 7


def test_an_ablation_changes_one_thing_each():
    common, *others = {
        s.variant: s.overrides for s in read_sweep(cells.REPRODUCTION / "ablation.toml").settings
    }.values()
    for overrides in others:
        changed = {name.partition(".")[0] for name in overrides.keys() - common.keys()}
        assert len(changed) == 1
        assert common.items() <= overrides.items()


@pytest.mark.parametrize("name", ["steadiness", "ablation"])
def test_the_commands_show_their_tables(name, sweep, program, tmp_path, monkeypatch, capsys):
    """With run folders as arguments: these are recorded and shown, nothing is run."""
    cells.run_cells(sweep(), tmp_path / "x.jsonl", program=program())
    (tmp_path / f"{name}.toml").write_text((tmp_path / "sweep.toml").read_text())
    monkeypatch.setattr(cells, "REPRODUCTION", tmp_path)
    monkeypatch.setattr(cells, "RESULTS_FOLDER", tmp_path / "results")
    capsys.readouterr()
    command = {"steadiness": steadiness, "ablation": ablation}[name]
    monkeypatch.setattr("sys.argv", [name, "--table"])
    command.main()
    assert "has no record yet" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", [name, str(tmp_path / "runs")])
    command.main()
    said = capsys.readouterr().out
    assert "| preset | " in said
    assert "Commits: abcdefg." in said
    assert len((tmp_path / "results" / f"{name}.csv").read_text().splitlines()) == 1 + 4
    assert read_jsonl(tmp_path / "results" / f"{name}.jsonl") == read_jsonl(tmp_path / "x.jsonl")
