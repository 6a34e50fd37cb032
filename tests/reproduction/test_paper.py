"""`python -m reproduction.paper`: which seed it shows, what it says of misses and missing cells."""

import csv
from collections import Counter

import pytest

from lamps import write_lamps
from regoal.errors import UsageError
from regoal.records.json_lines import json_line, read_jsonl
from regoal.records.results import Outcome, PlanResult
from regoal.reports.paper import LIFTED
from regoal.sweeps.commands import done_record
from regoal.sweeps.sweep_file import read_sweep
from reproduction import cells, paper

FILE = """
out = "runs"
domains = ["maze", "reward", "reward-l"]
hindsight = ["lifted"]
seeds = [0, 1, 2]
preset = "laptop"
budget_minutes = 1
[for.reward]
hindsight = ["lifted", "state"]
"""
TINY = """
out = {out!r}
domains = ["lamps-own"]
hindsight = ["lifted"]
seeds = [0, 1]
preset = "laptop"
budget_minutes = 1
[overrides]
episodes = 1
layers = 2
embedding_size = 16
updates = {updates}
validate_every = 1
threads = 1
[pddl."%-own"]
domain = "$OWN/%/domain.pddl"
training = "$OWN/%/training[:2]"
validation = "$OWN/%/training[2:]"
test = "$OWN/%/easy"
"""
WON, LOOPED = ["solved", 6, 0.1, 0], ["solved", 10, 0.1, 2]
STUCK, LATE = ["dead_end", None, 0.1, 0], ["step_limit", None, 0.1, 0]


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Read a sweep that is not run, with a folder of results of its own."""
    monkeypatch.setattr(cells, "RESULTS_FOLDER", tmp_path / "results")
    (tmp_path / "sweep.toml").write_text(FILE)
    return read_sweep(tmp_path / "sweep.toml")


def make_records(sweep, **cells_):
    """Records by the names of their cells: each has its validations and outcomes of tests."""
    settings = {s.name: s for s in sweep.settings}
    records = {}
    for name, (validation, *outcomes) in cells_.items():
        domain, hindsight, seed = name.split("/")
        records[name] = {
            **{"name": name, "domain": domain, "hindsight": hindsight, "seed": int(seed)},
            "settings": done_record(sweep, settings[name]),
            **{"commit": "abcdefgh", "episodes": 9, "minutes": 2.04, "validation": validation},
            "test": {f"p{i}": outcome for i, outcome in enumerate(outcomes)},
        }
    return records


def rows_of(table):
    return [[cell.text for cell in row] for row in table.rows]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ([5, 3, 4, 4, 90, 0, 1], [5, 2, 4, 4, 9, 4, 1]),
        ([5, 4, 4, 4, 90, 3, 1], [5, 4, 4, 4, 9, 2, 1]),
        ([5, 4, 4, 4, 8, 3, 1], [5, 4, 4, 4, 9, 3, 1]),
        ([5, 20, 20, 20, 8, 18, 1], [5, 20, 20, 20, 9, 19, 1]),  # equal in tenths
        ([5, 0, 4, 4, 0, 0, 1], [5, 4, 4, 4, 9, 4, 0]),  # nothing was kept
    ],
)
def test_validation_chooses_the_seed(better, worse):
    def record(seed, validation):
        return {"seed": seed, "validation": [validation], "test": {}}

    for order in ((better, worse), (worse, better)):
        records = [record(seed, validation) for seed, validation in enumerate(order)]
        assert paper.choose(records)["validation"] == [better]
    assert paper.choose([record(1, better), record(0, better)])["seed"] == 0


def test_the_policy_that_was_kept_last_is_rated():
    first, last, unkept = [5, 1, 4, 4, 9, 0, 1], [10, 2, 4, 4, 9, 0, 1], [15, 4, 4, 4, 9, 0, 0]
    score = paper.measure({"validation": [first, last, unkept], "test": {}})
    assert score.validation.episode == 10


def test_the_tables(sweep, tmp_path):
    """Reward has the paper's 58 solved with lifted goals, and LAMA's 99; Maze has none."""
    good, bad = [5, 4, 4, 4, 9, 0, 1], [5, 1, 4, 4, 9, 0, 1]
    records = make_records(
        sweep,
        **{
            "reward/lifted/0": ([bad], STUCK, LATE, STUCK),
            "reward/lifted/2": ([good], WON, LOOPED, STUCK),
            "reward-l/lifted/0": ([good], WON, WON, WON),
            "maze/lifted/0": ([good], *[LATE] * 7),
        },
    )
    lama = tmp_path / "results/reward/lama/0/results.jsonl"
    lama.parent.mkdir(parents=True)
    plan = PlanResult(
        problem="p0", domain="reward", method="lama", outcome=Outcome.SOLVED,
        plan_length=7, plan_cost=7, seconds=0.1, steps=7,
    )  # fmt: skip
    lama.write_text(json_line(plan.to_json()))
    [coverage, misses], text = paper.summarise(records, sweep)
    assert rows_of(coverage) == [
        ["Reward", "lifted", "0, 2", "2", "2", "0", "1", "8.0", "2.0", "58", "95.9", "1", "7.0",
         "99", "121.8"],
        ["Reward-L", "lifted", "0", "0", "3", "3", "3", "6.0", "2.0", "85", "93.4", "1", "7.0",
         "99", "121.8"],
        ["Maze", "lifted", "0", "0", "0", "0", "0", "-", "2.0", "-", "-", "-", "-", "-", "-"],
        ["mean of 2 rows", "lifted", "", "", "2.5", "1.5", "2.0", "", "", "71.5", "", "", "",
         "99.0", ""],
    ]  # fmt: skip
    assert coverage.notes[-2:] == (
        "No record yet of 8 cells: seeds 0, 1, 2 of Reward state; "
        "seeds 1, 2 of Maze lifted, Reward-L lifted; seed 1 of Reward lifted.",
        "Commits: abcdefg.",
    )
    assert rows_of(misses) == [
        ["Reward", "lifted", "2", "no action leads on", "1", "p2"],
        ["Maze", "lifted", "0", "step limit reached", "7", "p0, p1, p2, p3, p4, ..."],
    ]
    lines = list(csv.DictReader(text.splitlines()))
    assert [(line["domain"], line["seed"], line["chosen"]) for line in lines] == [
        ("reward", "0", "0"), ("reward", "2", "1"), ("reward-l", "0", "1"), ("maze", "0", "1"),
    ]  # fmt: skip
    assert lines[0]["misses"] == "dead_end: p0 p2; step_limit: p1"
    assert (
        text.splitlines()[2]
        == "reward,lifted,2,1,9,2.04,4,0,9,4,2,1,3,16,8.0,8.0,dead_end: p2,abcdefg"
    )


def test_what_most_rows_lack_is_said_once(sweep):
    good = [5, 4, 4, 4, 9, 0, 1]
    names = [s.name for s in sweep.settings if s.seed == 0]
    records = make_records(sweep, **{name: ([good], WON) for name in names})
    [coverage, misses], _ = paper.summarise(records, sweep)
    assert "No record yet of 8 cells: seeds 1, 2 of all rows." in coverage.notes
    assert misses.notes == ("There are none.",)
    records[names[0]]["settings"] = {}
    [coverage, _], _ = paper.summarise(records, sweep)
    assert "seeds 0, 1, 2 of Maze lifted; seeds 1, 2 of all rows but Maze lifted." in " ".join(
        coverage.notes
    )
    assert "Maze" not in [row[0] for row in rows_of(coverage)]


def test_the_command_trains_records_and_shows_its_table(tmp_path, monkeypatch, capsys):
    write_lamps(tmp_path / "given/lamps", training=(1, 2, 3), easy=(2, 4))
    monkeypatch.setenv("OWN", str(tmp_path / "given"))
    monkeypatch.setattr(cells, "REPRODUCTION", tmp_path)
    results = tmp_path / "results"
    monkeypatch.setattr(cells, "RESULTS_FOLDER", results)

    def call(*words, updates=1):
        text = TINY.format(out=str(tmp_path / "runs"), updates=updates)
        (tmp_path / "paper.toml").write_text(text)
        monkeypatch.setattr("sys.argv", ["paper", *words])
        paper.main()
        return capsys.readouterr().out

    results.mkdir()
    (results / "coverage.csv").write_text("of earlier runs")
    assert "has no record yet" in call("--table")
    assert (results / "coverage.csv").read_text() == "of earlier runs"

    said = call("--only", "/0")
    [record] = read_jsonl(results / "paper.jsonl")
    solved = Counter(outcome for outcome, *_ in record["test"].values())["solved"]
    assert f"| Lamps-own | lifted | 0 | 0 | {solved} | {solved} |" in said
    assert "No record yet of 1 cells: seed 1 of all rows." in said
    [line] = csv.DictReader((results / "coverage.csv").read_text().splitlines())
    assert (line["solved"], line["tested"], line["chosen"]) == (str(solved), "2", "1")

    assert "No record yet of 2 cells" in call("--table", updates=2)
    with pytest.raises(UsageError, match="record of lamps-own/lifted/0 with other settings"):
        call(updates=2)


def test_the_sweep_file_has_the_rows_of_the_paper_and_seeds_in_turn():
    settings = read_sweep(cells.REPRODUCTION / "paper.toml").settings
    rows = {(s.domain, s.hindsight) for s in settings}
    learned = [(d, m) for m in ("lifted", "propositional") for d in [*LIFTED, "maze"]]
    assert len(learned) == 2 * 16
    assert rows == {*learned, ("blocks", "state")}
    assert [s.seed for s in settings] == [0] * 33 + [1] * 33 + [2] * 33
    assert {s.domain for s in settings if s.budget_minutes == 30} == {
        "visitall", "visitall-l", "maze",
    }  # fmt: skip
    assert {s.budget_minutes for s in settings} == {15, 30}
    assert all(s.overrides == {"threads": 1} for s in settings), "no domain has own settings"
