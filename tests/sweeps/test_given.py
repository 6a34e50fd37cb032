import pytest

from regoal.errors import UsageError
from regoal.planning.problem_files import problem_files
from regoal.records.json_lines import write_json
from regoal.records.run_record import DONE
from regoal.sweeps.commands import copy_given_problems, done_record, finished, print_commands
from regoal.sweeps.given import find_given, find_problems
from regoal.sweeps.run_sweep import run_sweep
from regoal.sweeps.sweep_file import read_sweep

FILE = """
out = {out!r}
domains = ["blocks", "tiny-own", "lamps"]
hindsight = ["lifted"]
seeds = [0]
preset = "laptop"
budget_minutes = 1
[pddl."%-own"]
domain = "$LAMPS/%/domain.pddl"
training = "$LAMPS/%/training[:7]"
validation = "$LAMPS/%/training[8::2]"
test.easy = "$LAMPS/%/easy"
test.hard = ["$LAMPS/%/hard/p*.pddl", "$LAMPS/%/more/p9.pddl"]
[pddl.lamps]
domain = "$LAMPS/tiny/domain.pddl"
training = "$LAMPS/tiny/training"
{more}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with twelve training problems; each file holds its own name."""
    files = [
        *("domain.pddl", "more/p9.pddl", "hard/p2.pddl", "hard/p1.pddl", "hard/notes.txt"),
        *(f"training/p{i}.pddl" for i in range(1, 13)),
        *(f"easy/p{i}.pddl" for i in (1, 2)),
    ]
    for name in files:
        path = tmp_path / "given" / "tiny" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    monkeypatch.setenv("LAMPS", str(tmp_path / "given"))
    return tmp_path / "given" / "tiny"


@pytest.fixture
def sweep(folder, tmp_path):
    def read(more="", text=FILE):
        path = tmp_path / "sweep.toml"
        path.write_text(text.format(out=str(tmp_path / "out"), more=more))
        return read_sweep(path)

    return read


def held(folder):
    return [path.read_text() for path in problem_files(folder)]


def test_files_are_copied_in_natural_order_by_slices_and_parts(sweep):
    grid = sweep()
    copy_given_problems(grid)
    of = {split: grid.instances("tiny-own", split) for split in ("train", "validation", "test")}
    assert held(of["train"]) == [f"training/p{i}.pddl" for i in range(1, 8)]
    assert held(of["validation"]) == ["training/p9.pddl", "training/p11.pddl"]
    assert [path.name for path in problem_files(of["test"])] == [
        *("easy-p1.pddl", "easy-p2.pddl", "hard-p1.pddl", "hard-p2.pddl", "hard-p9.pddl"),
    ]
    assert held(of["test"])[-1] == "more/p9.pddl"
    assert all((path / "domain.pddl").read_text() == "domain.pddl" for path in of.values())
    assert grid.splits("lamps") == ["train"]
    assert held(grid.instances("lamps", "train")) == [f"training/p{i}.pddl" for i in range(1, 13)]


def test_a_set_that_is_there_needs_no_files(sweep, monkeypatch):
    copy_given_problems(sweep())
    monkeypatch.delenv("LAMPS")
    copy_given_problems(sweep())
    other = sweep(text=FILE.replace("[:7]", "[:6]"))
    assert other.instances("tiny-own", "train") != sweep().instances("tiny-own", "train")
    with pytest.raises(UsageError, match="environment variable LAMPS, which is not set"):
        copy_given_problems(other)


def test_commands_name_what_is_there_and_leave_out_what_is_not(sweep):
    more = "[test]\nmax_steps = 7\ntime_limit = '30m'\nmemory_limit = '8G'"
    grid = sweep(more)
    lines = print_commands(grid)
    assert sum(line.startswith("regoal generate blocks ") for line in lines) == 3
    own, lamps = (next(x for x in lines if f"--name {n} " in x) for n in ("tiny-own", "lamps"))
    train, validation, test = (grid.instances("tiny-own", s) for s in grid.splits("tiny-own"))
    assert f"train {train}/domain.pddl --problems {train} --validation {validation} " in own
    assert f"--problems {test} " in own
    assert "--max-steps 7 --memory-limit 8G --time-limit 30m --resume" in own
    assert "--validation" not in lamps
    assert "evaluate" not in lamps


def test_test_false_only_trains_and_is_told_apart_later(sweep):
    only = sweep(text="test = false\n" + FILE)
    assert only.splits("blocks") == only.splits("tiny-own") == ["train", "validation"]
    assert not any("evaluate" in line for line in print_commands(only))
    for setting in only.settings:
        only.folder(setting).mkdir(parents=True)
        write_json(only.folder(setting) / DONE, done_record(only, setting))
    assert all(finished(only, setting) for setting in only.settings)
    with pytest.raises(UsageError, match="holds a run with other settings"):
        finished(sweep(), sweep().settings[0])


def test_missing_files_end_a_sweep_before_it_begins(sweep, folder):
    (folder / "hard/p1.pddl").unlink()
    (folder / "hard/p2.pddl").unlink()
    with pytest.raises(UsageError, match=r"hard/p\*\.pddl names no problems: there is no such"):
        run_sweep(sweep(), tell=pytest.fail, program=["never"])
    (folder / "domain.pddl").unlink()
    with pytest.raises(UsageError, match=r"domain\.pddl is not a file"):
        run_sweep(sweep(), tell=pytest.fail, program=["never"])


def test_places(folder):
    assert [path.stem for path in find_problems("$LAMPS/tiny/training[-3:]")] == [
        "p10",
        "p11",
        "p12",
    ]
    assert [path.stem for path in find_problems("$LAMPS/t*/training/p1[0-1].pddl[1:]")] == ["p11"]
    with pytest.raises(UsageError, match="its 12 problems have none with these numbers"):
        find_problems("$LAMPS/tiny/training[20:]")


def test_two_files_of_one_name_are_refused(sweep, folder):
    (folder / "more/p9.pddl").rename(folder / "more/p1.pddl")
    grid = sweep(text=FILE.replace("p9.pddl", "p1.pddl"))
    with pytest.raises(UsageError, match="have one name"):
        copy_given_problems(grid)
    assert not grid.instances("tiny-own", "test").exists()


def test_an_own_entry_comes_before_patterns():
    entry = {"domain": "%.pddl", "training": "%"}
    table = {"%-own": entry, "a-own": {"domain": "own.pddl", "training": "t"}}
    assert find_given(table, "a-own").domain == "own.pddl"
    assert find_given(table, "b-own").domain == "b.pddl"
    assert find_given(table, "own") is None


def test_variants_are_runs_of_their_own(sweep):
    more = "[overrides]\nlayers = 3\n[variants.all]\n[variants.flat]\nladder = false\nlayers = 2"
    settings = sweep(more).settings
    assert [setting.name for setting in settings] == [
        *("all/blocks/lifted/0", "all/tiny-own/lifted/0", "all/lamps/lifted/0"),
        *("flat/blocks/lifted/0", "flat/tiny-own/lifted/0", "flat/lamps/lifted/0"),
    ]
    assert [s.overrides for s in settings[2:4]] == [{"layers": 3}, {"layers": 2, "ladder": False}]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('training = "$LAMPS/tiny/training"', ""), "pddl.lamps lacks the key 'training'"),
        (("[pddl.lamps]", "[pddl.lamps]\ntrain = 3"), "pddl.lamps has unknown keys: train"),
        (('training = "$LAMPS/tiny/training"', "training = 3"), "lamps: training must be a folder"),
        (('domain = "$LAMPS/tiny/domain.pddl"', "domain = []"), "lamps: domain must be the path"),
        (("test.easy", "test.'ea/sy'"), "a part needs a name"),
        (('"lamps"', '"lamps", "ferry"'), "domains has 'ferry'. Choose from: blocks, .*; or name"),
        (("tiny-own", "tiny_x-own"), "'tiny_x-own' cannot be a name here"),
        (("{more}", "[variants.instances]"), "'instances' cannot be a name here"),
        (("{more}", "[variants.a]\nlayers = 0"), "override layers: layers must be above 0"),
        (("{more}", "[variants]\na = 3"), "variants.a must be a table of options"),
        (("{more}", "[test]\nsteps = 3"), "test has the option 'steps'. Choose from: layers, "),
        (("{more}", "[test]\nmax_steps = 0"), "test: max_steps must be above 0"),
        (("{more}", "[test]\nmemory_limit = '100M'"), "memory_limit: The memory limit must be at"),
        (("{more}", "[test]\nmax_steps = true"), "test: max_steps = True has the wrong type"),
        (("{more}", "[test]\ntime_limit = 'long'"), "test: time_limit: 'long' is not a duration"),
    ],
)
def test_bad_files_are_refused(sweep, change, message):
    with pytest.raises(UsageError, match=message):
        sweep(text=FILE.replace(*change))
