import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from regoal.errors import UsageError
from regoal.records.json_lines import json_line
from regoal.records.results import Outcome, PlanResult
from regoal.records.run_record import load_run
from regoal.sweeps.commands import finished, print_commands
from regoal.sweeps.run_sweep import run_sweep
from regoal.sweeps.sweep_file import read_sweep
from regoal.system import processes
from regoal.system.files import short_digest

A_RESULT = PlanResult(
    problem="p1", domain="blocks", method="lifted", outcome=Outcome.DEAD_END,
    plan_length=None, plan_cost=None, seconds=0.1, steps=2,
)  # fmt: skip
FILE = """
out = {out!r}
domains = ["blocks", "blocks-l"]
hindsight = ["lifted", "state"]
seeds = [3, 4]
preset = "laptop"
budget_minutes = 1.5
{more}
"""
PROGRAM = """
import json, os, pathlib, sys, time
command, *rest = sys.argv[1:]
options = dict(zip(rest, rest[1:]))
out = pathlib.Path(options["--out"])
with open({calls!r}, "a") as calls:
    calls.write(json.dumps([command, *rest, os.environ.get("OMP_NUM_THREADS")]) + "\\n")
{extra}
if command == "generate":
    out.mkdir(parents=True)
    (out / "domain.pddl").touch()
elif command == "train":
    assert pathlib.Path(rest[0]).is_file()
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text('{{"domain": "pddl name", "hindsight": "lifted", "seed": 3}}')
else:
    out.touch()
"""


@pytest.fixture
def grid(tmp_path):
    def read(more=""):
        path = tmp_path / "sweep.toml"
        path.write_text(FILE.format(out=str(tmp_path / "out"), more=more))
        return read_sweep(path)

    return read


@pytest.fixture
def program(tmp_path):
    """A script that stands for the command line, and what it was called with."""

    def write(extra=""):
        script = tmp_path / "program.py"
        script.write_text(PROGRAM.format(calls=str(tmp_path / "calls"), extra=extra))
        return [sys.executable, str(script)]

    return write


def calls(tmp_path):
    return [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]


def test_the_grid_goes_seed_by_seed(grid):
    names = [setting.name for setting in grid().settings]
    assert names == [
        f"{domain}/{hindsight}/{seed}"
        for seed in (3, 4)
        for domain in ("blocks", "blocks-l")
        for hindsight in ("lifted", "state")
    ]


def test_one_domain_may_have_other_goals_and_minutes(grid):
    more = '[for.Blocks]\nhindsight = ["propositional"]\n[for.blocks-l]\nbudget_minutes = 40'
    assert [(s.name, s.budget_minutes) for s in grid(more).settings if s.seed == 3] == [
        ("blocks/propositional/3", 1.5), ("blocks-l/lifted/3", 40), ("blocks-l/state/3", 40),
    ]  # fmt: skip


def test_a_sweep_runs_everything_once(grid, program, tmp_path):
    told = []
    grid_ = grid("instances_seed = 7\n[overrides]\nlayers = 2\nlearn_dead_ends = false")
    assert run_sweep(grid_, tell=told.append, program=program()) == []
    assert told[0] == "8 runs, 0 of them finished"
    assert (
        told[1] == f"blocks/lifted/3 begins; its output goes to {tmp_path}/out/blocks/lifted/3.log"
    )
    assert any(re.fullmatch(r"1/8 blocks/lifted/3 finished, about \d+:\d\d left", x) for x in told)
    assert told[-1] == "8/8 blocks-l/state/4 finished"
    made = calls(tmp_path)
    assert [call[0] for call in made] == ["generate"] * 6 + ["train", "evaluate"] * 8
    out = tmp_path / "out"
    instances = out / "instances/seed-7/blocks"
    assert made[6][:-1] == [
        *("train", f"{instances}/train/domain.pddl", "--problems", f"{instances}/train"),
        *("--validation", f"{instances}/validation", "--hindsight", "lifted", "--seed", "3"),
        *(
            "--name",
            "blocks",
            "--preset",
            "laptop",
            "--budget",
            "1.5m",
            "--layers",
            "2",
            "--no-learn-dead-ends",
        ),
        *("--out", f"{out}/blocks/lifted/3", "--resume"),
    ]
    assert made[7][:-1] == [
        *("evaluate", f"{out}/blocks/lifted/3", "--problems", f"{instances}/test"),
        *("--out", f"{out}/blocks/lifted/3/results.jsonl", "--resume"),
    ]
    assert all(call[-2:-1] == ["7"] for call in made[:6])
    assert load_run(out / "blocks-l/lifted/3").domain == "blocks-l"

    assert run_sweep(grid_, tell=told.append, program=program()) == []
    assert told[-1] == "8 runs, 8 of them finished"
    assert len(calls(tmp_path)) == len(made), "a finished run must not run again"
    for more in ("", "instances_seed = 8\n[overrides]\nlayers = 2\nlearn_dead_ends = false"):
        with pytest.raises(UsageError, match="holds a run with other settings"):
            run_sweep(grid(more), tell=told.append, program=program())


def test_several_at_a_time_get_one_thread_each(grid, program, tmp_path):
    assert run_sweep(grid(), jobs=2, tell=lambda _: None, program=program()) == []
    assert {call[-1] for call in calls(tmp_path)} == {"1"}


def test_a_failed_run_stops_no_other_and_is_reported(grid, program, tmp_path):
    extra = 'if command == "train" and "state/4" in str(out): sys.exit("no such luck")'
    failures = run_sweep(grid(), tell=lambda _: None, program=program(extra))
    assert [(f.step, f.exit_code) for f in failures] == [
        ("blocks/state/4 train", 1),
        ("blocks-l/state/4 train", 1),
    ]
    assert "no such luck" in failures[0].log.read_text()
    log = tmp_path / "out/blocks/state/4.log"
    assert str(failures[0]).endswith(f"exit code 1 (no such luck); its output is in {log}")
    done = [s.name for s in grid().settings if finished(grid(), s)]
    assert len(done) == 6
    # The next call tries the failed ones alone.
    before = len(calls(tmp_path))
    assert run_sweep(grid(), tell=lambda _: None, program=program()) == []
    assert [call[0] for call in calls(tmp_path)[before:]] == ["train", "evaluate"] * 2


def test_a_run_that_went_on_after_its_test_is_tested_anew(grid, program, tmp_path):
    assert run_sweep(grid(), tell=lambda _: None, program=program()) == []
    folder = tmp_path / "out/blocks/lifted/3"
    setting = next(s for s in grid().settings if s.name == "blocks/lifted/3")
    (folder / "policy.safetensors").write_bytes(b"tested")
    of = {"policy": short_digest(folder / "policy.safetensors")}
    (folder / "results.jsonl").write_text(json_line(A_RESULT.to_json() | of))
    assert finished(grid(), setting)
    (folder / "policy.safetensors").write_bytes(b"better")
    assert not finished(grid(), setting)

    before = len(calls(tmp_path))
    assert run_sweep(grid(), tell=lambda _: None, program=program()) == []
    training, testing = calls(tmp_path)[before:]
    assert (training[0], testing[0]) == ("train", "evaluate")
    assert "--resume" in training
    assert "--resume" not in testing


def test_without_instances_a_domain_is_left_out(grid, program, tmp_path):
    extra = 'if command == "generate" and rest[0] == "blocks": sys.exit(36)'
    failures = run_sweep(grid(), tell=lambda _: None, program=program(extra))
    assert [f.step for f in failures] == ["generate blocks --split train"]
    assert not (tmp_path / "out/instances/seed-0/blocks/train").exists()
    assert sum(call[0] == "evaluate" for call in calls(tmp_path)) == 4


def test_an_interrupt_lets_runs_save(grid, program, tmp_path):
    extra = """
import signal
def save(*_):
    (out / "saved").touch()
    sys.exit(0)
if command == "train":
    out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, save)
    (out / "started").touch()
    time.sleep(60)
"""
    out = tmp_path / "out"
    started = [out / "blocks/lifted/3/started", out / "blocks/state/3/started"]

    def interrupt():
        while not all(path.exists() for path in started):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_sweep(grid(), jobs=2, tell=lambda _: None, program=program(extra))
    thread.join()
    assert len(list(out.rglob("saved"))) == len(list(out.rglob("started"))) == 2


def test_what_does_not_end_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "GRACE_S", 0.2)
    running = processes.Processes({})
    code = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    )
    codes = []
    log = tmp_path / "log"
    thread = threading.Thread(
        target=lambda: codes.append(running.run([sys.executable, "-c", code], log, lambda: True))
    )
    thread.start()
    while not (log.exists() and log.read_text().endswith("\n\n")):
        time.sleep(0.02)
    running.stop()
    thread.join(10)
    assert codes == [-signal.SIGKILL]
    assert running.run(["never"], log, lambda: True) == -signal.SIGTERM, (
        "nothing starts after a stop"
    )


def test_a_set_that_another_sweep_has_made_meanwhile_is_taken(grid, program, tmp_path):
    extra = """
if command == "generate" and options["--split"] == "test":
    ready = out.parent / "test"
    ready.mkdir(parents=True)
    (ready / "domain.pddl").touch()
"""
    assert run_sweep(grid(), tell=lambda _: None, program=program(extra)) == []
    assert list((tmp_path / "out").rglob("*.tmp")) == []


def test_options_in_a_table_are_options(grid):
    more = (
        "[overrides]\nthreads = 2\ntemperature.episodes = 50\n[overrides.learning_rate]\nend = 1e-5"
    )
    for setting in grid(more).settings:
        assert setting.overrides == {
            "threads": 2, "temperature.episodes": 50, "learning_rate.end": 1e-5,
        }  # fmt: skip


def test_printed_commands_do_the_same_in_a_shell(program, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(FILE.format(out=str(tmp_path / "it's"), more=""))
    grid_ = read_sweep(path)
    lines = print_commands(grid_, program=program())
    assert lines[0] == "# first, once:"
    assert lines[7] == "# then, in any order:"
    assert len(lines) == 1 + 6 + 1 + 8
    for line in lines[:9]:
        subprocess.run(line, shell=True, check=True)
    assert finished(grid_, grid_.settings[0])
    left = print_commands(grid_)
    assert len(left) == 1 + 0 + 1 + 7
    assert left[2].startswith("regoal train ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("preset", "presets"), "lacks the key 'preset'"),
        (("[3, 4]", "[3, 3]"), "seeds must be a list without repetition"),
        (("[3, 4]", "[]"), "seeds must be a list without repetition"),
        (("[3, 4]", "[true]"), "an item of seeds = True has the wrong type"),
        (("[3, 4]", "3"), "seeds = 3 has the wrong type"),
        (("1.5", '"1.5"'), "budget_minutes = '1.5' has the wrong type"),
        (("preset", "episodes = 3\npreset"), "has unknown keys: episodes"),
        (("[3, 4]", "[3, 4"), "is not TOML"),
        (("1.5", "1" * 400), "budget_minutes lies above 0"),
        (("1.5", "nan"), "budget_minutes lies above 0"),
        (("1.5", "-1"), "budget_minutes lies above 0"),
        (("[3, 4]", "[" * 3000), "nested too deeply"),
        (("preset", "overrides = {layers = 1979-05-27}\npreset"), "override layers = datetime"),
        (("preset", "overrides = {seed = 7}\npreset"), "the sweep sets 'seed' itself"),
        (("preset", "overrides = {layerz = 7}\npreset"), "has no option 'layerz'"),
        (("preset", "overrides = {layers = 7.5}\npreset"), "layers = 7.5 has the wrong type"),
        (("preset", "overrides = {layers = 0}\npreset"), "override layers: layers must be above 0"),
        (
            ("preset", "overrides = {'temperature.shape' = 'steep'}\npreset"),
            "override temperature.shape: a decay is linear or geometric",
        ),
        (
            ("preset", "overrides = {'temperature.x' = 1}\npreset"),
            "temperature.x = 1 has the wrong",
        ),
        (("blocks-l", "blocks-x"), "domains has 'blocks-x'. Choose from: blocks, "),
        (("state", "lift"), "hindsight has 'lift'. Choose from: lifted, "),
        (("blocks-l", "Blocks"), "must be a list without repetition"),
        (("laptop", "labtop"), "preset has 'labtop'. Choose from: paper, laptop"),
        (("[3, 4]", "[-1]"), "a seed lies in"),
        (("preset", "for = {maze = {}}\npreset"), "for.maze is for none of the domains"),
        (("preset", "for = {blocks = 3}\npreset"), "for.blocks = 3 has the wrong type"),
        (
            ("preset", "for = {blocks = {seeds = [1]}}\npreset"),
            "for.blocks has unknown keys: seeds",
        ),
        (
            ("preset", "for = {blocks = {budget_minutes = true}}\npreset"),
            "for.blocks.budget_minutes = True has the wrong type",
        ),
        (
            ("preset", "for = {blocks = {budget_minutes = 0}}\npreset"),
            "budget_minutes lies above 0",
        ),
        (("preset", "for = {blocks = {hindsight = []}}\npreset"), "for.blocks.hindsight must be"),
        (("preset", "for = {blocks = {hindsight = ['x']}}\npreset"), "hindsight has 'x'"),
        (("preset", "overrides = {threads = -3}\npreset"), "threads = -3 is none that it can have"),
        (("preset", "overrides = {workers = 'two'}\npreset"), "workers = 'two' is none"),
        (("preset", "overrides = {workers = 1.0}\npreset"), "workers = 1.0 is none"),
        (("preset", "overrides = {device = 'gpu'}\npreset"), "device = 'gpu' is none"),
        (("preset", "overrides = {layers = [3]}\npreset"), "override layers = .3. has the wrong"),
    ],
)
def test_bad_files_are_refused(tmp_path, change, message):
    path = tmp_path / "sweep.toml"
    path.write_text(FILE.format(out="out", more="").replace(*change))
    with pytest.raises(UsageError, match=message):
        read_sweep(path)


def test_files_that_are_no_text_and_folders_that_cannot_be_are_refused(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_bytes(FILE.format(out="out", more="").encode() + b"# \xff")
    with pytest.raises(UsageError, match=r"sweep\.toml is not TOML"):
        read_sweep(path)
    path.write_text(FILE.format(out="x" * 3000, more=""))
    with pytest.raises(UsageError, match=r"sweep\.toml: a run cannot have its folder: File name"):
        read_sweep(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"absent\.toml cannot be read"):
        read_sweep(tmp_path / "absent.toml")
