import dataclasses
import errno
import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from regoal import cli, terminal
from regoal.commands import COMMANDS
from regoal.commands.planning import Policies
from regoal.commands.training import Train
from regoal.config import LAPTOP, PAPER, Decay, TrainConfig
from regoal.domains.splits import instances
from regoal.errors import EXIT_INTERNAL, PddlError, UsageError
from regoal.evaluation import evaluate as evaluation
from regoal.evaluation import process_pool
from regoal.evaluation.inputs import StateInput
from regoal.planning.plans import Verdict
from regoal.planning.shortening import shorten as shortening
from regoal.records.results import Outcome, PlanResult
from regoal.records.run_record import load_run, read_results
from regoal.runs.folder import explained_disk_errors
from regoal.sweeps.commands import print_commands
from regoal.sweeps.sweep_file import read_sweep

# Lamps that are switched on for good: every policy reaches every goal.
DOMAIN = """
(define (domain lamps)
  (:requirements :strips :typing)
  (:types lamp)
  (:predicates (dark ?l - lamp) (lit ?l - lamp) (broken ?l - lamp))
  (:action switch :parameters (?l - lamp) :precondition (dark ?l)
    :effect (and (lit ?l) (not (dark ?l)))))
"""
RENAMED = DOMAIN.replace("switch", "press").replace("lit", "bright")
TINY = (
    *("--layers", "2", "--embedding-size", "16", "--episodes", "2", "--updates", "2"),
    *("--validate-every", "1", "--batch-size", "4", "--threads", "1"),
)


def problem(lamps, goal=None, lit="lit"):
    names = [f"l{i}" for i in range(lamps)]
    wanted = goal or " ".join(f"({lit} {name})" for name in names)
    dark = " ".join(f"(dark {name})" for name in names)
    return (
        f"(define (problem p) (:domain lamps) (:objects {' '.join(names)} - lamp)\n"
        f"  (:init {dark}) (:goal (and {wanted})))\n"
    )


def write_problems(folder, sizes, domain=DOMAIN):
    folder.mkdir()
    (folder / "domain.pddl").write_text(domain)
    for size in sizes:
        (folder / f"p{size}.pddl").write_text(problem(size))
    return folder


def regoal(*words):
    return cli.run([str(word) for word in words])


def in_process_of_its_own(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "regoal.cli", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | environment,
    )


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lamps")
    train, validation = (
        write_problems(folder / "train", [1, 2, 3]),
        write_problems(folder / "validation", [4]),
    )
    code = regoal(
        *("train", train / "domain.pddl", "--problems", train, "--validation", validation),
        *("--out", folder / "run", *TINY),
    )
    assert code == 0
    return folder / "run"


@pytest.fixture
def lamps(tmp_path):
    return write_problems(tmp_path / "problems", [2, 3, 10])


# --- help and bad command lines


def test_help_loads_no_heavy_library():
    names = [*COMMANDS, "--help"]
    script = (
        "import sys; from regoal import cli\n"
        f"[cli.run([name, '--help']) for name in {names}]\n"
        "heavy = {'torch', 'pymimir', 'matplotlib', 'numpy'} & sys.modules.keys()\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_overview_names_every_command(capsys):
    assert regoal("--help") == 0
    text = capsys.readouterr().out
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert all(len(line) <= 100 for line in text.splitlines())


def test_version(capsys):
    assert regoal("--version") == 0
    assert capsys.readouterr().out.startswith("regoal ")


TRAIN = ("train", "d.pddl", "--problems", "a", "--validation", "b", "--out", "c")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], ""),
        (["teach"], "There is no command 'teach'. Commands: generate, train,"),
        (["train", "d.pddl"], "--problems"),
        ([*TRAIN, "--layerz", "3"], "--layerz"),
        ([*TRAIN, "--layers", "many"], "many"),
        ([*TRAIN, "--layers", "-3"], "layers must be above 0 and finite, got -3."),
        ([*TRAIN, "--budget", "10x"], "'10x' is not a duration such as 90s, 10m or 2h."),
        ([*TRAIN, "--preset", "desktop"], "desktop"),
        (["plan", "p", "d", "q", "--memory-limit", "8T"], "'8T' is not a memory size"),
        (["plan", "p", "d", "q", "--memory-limit", "20M"], "at least 512 MiB"),
        (["report"], "at least one run folder"),
        (["generate", "block", "--out", "x"], "Unknown domain 'block'"),
        (["evaluate", "no-such-policy", "--problems", "x"], "no-such-policy is not a policy"),
        (["sweep", "missing.toml"], "missing.toml cannot be read"),
        (["validate", "missing.pddl", "p", "q"], "missing.pddl"),
    ],
)
def test_a_bad_command_line_exits_with_36(words, told, capsys):
    assert regoal(*words) == 36
    said = capsys.readouterr().err
    assert told in said
    assert "Traceback" not in said


# --- errors


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (PddlError("d.pddl, line 3: no."), 31, "regoal: error: d.pddl, line 3: no.\n"),
        (KeyboardInterrupt(), 130, "regoal: error: Interrupted.\n"),
        (MemoryError(), 22, "regoal: error: Out of memory.\n"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 22, "Out of memory."),
        (PermissionError(13, "Permission denied", "/x/y"), 36, "/x/y: Permission denied."),
        (KeyError("wrong"), 32, "--debug"),
    ],
)
def test_every_error_has_its_code_and_message(error, code, told, capsys, monkeypatch):
    def fail(self):
        raise error

    monkeypatch.setattr(Policies, "run", fail)
    assert regoal("policies") == code
    said = capsys.readouterr().err
    assert told in said
    assert said.startswith("regoal: error: ")
    assert said.count("\n") == 1
    assert regoal("policies", "--debug") == code
    assert "Traceback" in capsys.readouterr().err


# --- presets


@pytest.mark.parametrize(
    ("words", "config"),
    [
        ((), LAPTOP),
        (("--preset", "laptop"), LAPTOP),
        (("--preset", "paper"), PAPER),
        (("--preset=paper",), PAPER),
        (
            ("--layers", "7", "--temperature.episodes", "9", "--preset", "paper", "--seed", "4"),
            dataclasses.replace(
                PAPER,
                layers=7,
                seed=4,
                temperature=Decay(start=1.0, end=0.1, episodes=9),
            ),
        ),
    ],
)
def test_defaults_come_from_the_preset(words, config):
    assert cli.parse([*TRAIN, *words]).config == config


def test_every_number_of_the_config_is_an_option(capsys):
    assert regoal("train", "--help") == 0
    text = capsys.readouterr().out
    for field in dataclasses.fields(TrainConfig):
        assert f"--{field.name.replace('_', '-')}" in text


def test_durations_and_sizes_are_read():
    command = cli.parse([*TRAIN, "--budget", "10m"])
    assert command.budget == 600
    command = cli.parse(["plan", "p", "d", "q", "--memory-limit", "2G", "--time-limit", "none"])
    assert (command.memory_limit, command.time_limit) == (2048, float("inf"))


# --- generate, validate


def test_generate_leaves_out_what_is_too_large_to_be_expanded(tmp_path, capsys):
    words = ("generate", "gripper-l", "--out", tmp_path)
    assert regoal(*words, "--max-states", "3") == 36
    assert "No training problem of gripper-l has as few as 3 states" in capsys.readouterr().err
    assert regoal(*words, "--max-states", "100") == 0
    assert 1 <= len(list(tmp_path.glob("p*.pddl"))) < len(list(instances("gripper-l", "train")))


def test_generate_writes_a_split(tmp_path, capsys):
    assert regoal("generate", "gripper", "--split", "validation", "--out", tmp_path) == 0
    assert capsys.readouterr().out.startswith("10 problems of gripper (validation)")
    assert len(list(tmp_path.glob("p*.pddl"))) == 10


@pytest.mark.parametrize(
    ("plan", "code", "told"),
    [
        ("(switch l0)\n(SWITCH L1)\n", 0, "valid, length 2, cost 2"),
        ("(switch l0)\n(switch l0)\n", 1, "INVALID, step 2 (line 2), (switch l0): "),
        ("(switch l0)\n", 1, "INVALID, after the last step the goal is missed: (lit l1)"),
    ],
)
def test_validate_says_which_step_fails(plan, code, told, lamps, capsys):
    file = lamps / "plan"
    file.write_text(plan)
    assert regoal("validate", lamps / "domain.pddl", lamps / "p2.pddl", file) == code
    assert told in capsys.readouterr().out


def test_validate_refuses_what_is_no_plan_or_no_pddl(lamps, capsys):
    (lamps / "plan").write_text("switch l0")
    assert regoal("validate", lamps / "domain.pddl", lamps / "p2.pddl", lamps / "plan") == 31
    (lamps / "domain.pddl").write_text(DOMAIN[:-30])
    assert regoal("validate", lamps / "domain.pddl", lamps / "p2.pddl", lamps / "plan") == 31
    assert "domain.pddl" in capsys.readouterr().err


# --- train, evaluate, plan


def test_train_leaves_a_run_and_goes_on_only_when_asked(run_folder, capsys):
    train = run_folder.parent / "train"
    words = [
        *("train", train / "domain.pddl", "--problems", train, "--out", run_folder, *TINY),
        *("--validation", run_folder.parent / "validation"),
    ]
    assert regoal(*words) == 36
    assert "--resume" in capsys.readouterr().err
    assert regoal(*words, "--resume") == 0
    said = capsys.readouterr().out
    assert "all episodes are done after 2 episodes" in said
    assert "best policy, on validation 1/1 solved, 1 with noise, 4 actions in all: " in said
    assert json.loads((run_folder / "config.json").read_text())["domain"] == "lamps"


def test_train_without_validation_problems_holds_the_largest_out(run_folder, tmp_path, capsys):
    train = run_folder.parent / "train"
    words = ["train", train / "domain.pddl", "--problems", train, "--out", tmp_path / "run", *TINY]
    assert regoal(*words) == 0
    said = capsys.readouterr().out
    assert "held out to choose the policy by, as the largest: p3" in said
    assert "best policy, on validation 1/1 solved" in said
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["training_problems"], config["validation_problems"]) == (2, 1)
    assert config["paths"]["validation"] is None
    assert regoal(*words, "--resume") == 0


def test_resume_keeps_the_number_of_threads(run_folder):
    command = cli.parse(["train", "d", "--problems", "a", "--validation", "b", "--out", "c"])
    assert command.threads == 0
    assert json.loads((run_folder / "config.json").read_text())["threads"] == 1


def test_plan_writes_a_valid_plan(run_folder, lamps, capsys):
    out = lamps / "sas_plan"
    code = regoal("plan", run_folder, lamps / "domain.pddl", lamps / "p3.pddl", "--out", out)
    said = capsys.readouterr().out
    assert code == 0
    assert "Plan length: 3 step(s).\nPlan cost: 3\n" in said
    assert "Found by: greedy\nEvaluated 3 state(s).\n" in said
    assert "Total time: " in said
    assert out.read_text().endswith("; cost = 3 (unit cost)\n")
    assert regoal("validate", lamps / "domain.pddl", lamps / "p3.pddl", out) == 0


@pytest.fixture
def wasteful(lamps, monkeypatch):
    """A problem of four lamps of which one is wanted, and a policy that turns it on last."""
    monkeypatch.setattr(StateInput, "rank", lambda self, _: iter(self.actions[::-1]))
    for path in lamps.glob("p*.pddl"):
        path.unlink()
    (lamps / "p4.pddl").write_text(problem(4, goal="(lit l0)"))
    return lamps


def test_plan_takes_out_what_is_not_needed(run_folder, wasteful, capsys):
    out = wasteful / "sas_plan"
    words = ["plan", run_folder, wasteful / "domain.pddl", wasteful / "p4.pddl", "--out", out]
    assert regoal(*words) == 0
    said = capsys.readouterr().out
    assert "Useless steps taken out: 3 of 4 in " in said
    assert "Plan length: 1 step(s).\nPlan cost: 1\n" in said
    assert out.read_text() == "(switch l0)\n; cost = 1 (unit cost)\n"
    assert regoal(*words, "--no-shorten") == 0
    said = capsys.readouterr().out
    assert "Plan length: 4 step(s)." in said
    assert "Useless" not in said
    assert out.read_text().count("switch") == 4


def test_evaluate_records_both_lengths(run_folder, wasteful, capsys):
    records, plans = wasteful / "results.jsonl", wasteful / "plans"
    words = ["evaluate", run_folder, "--problems", wasteful, "--out", records, "--plans", plans]
    assert regoal(*words) == 0
    [result] = read_results(records)
    assert (result.plan_length, result.plan_cost, result.steps) == (4, 4.0, 4)
    assert (result.short_length, result.short_cost) == (1, 1.0)
    assert (plans / "p4.plan").read_text() == "(switch l0)\n; cost = 1 (unit cost)\n"
    said = capsys.readouterr().out
    assert "p4: 4 steps, shortened to 1, " in said
    assert "Mean length of the shortened plans: 1.0" in said
    assert regoal(*words, "--no-shorten", "--resume") == 36  # results with other options
    assert regoal(*words, "--no-shorten") == 0
    [result] = read_results(records)
    assert (result.plan_length, result.short_length, result.short_cost) == (4, None, None)
    assert (plans / "p4.plan").read_text().count("switch") == 4


def test_a_plan_for_a_domain_with_other_names(run_folder, lamps, capsys):
    (lamps / "other.pddl").write_text(RENAMED)
    (lamps / "p.pddl").write_text(problem(2, lit="bright"))
    out = lamps / "plan"
    code = regoal("plan", run_folder, lamps / "other.pddl", lamps / "p.pddl", "--out", out)
    assert code == 0
    notes = capsys.readouterr().out.splitlines()[0]
    assert "lit = bright" in notes
    assert "switch = press" in notes
    assert "(press l0)" in out.read_text()


@pytest.mark.parametrize(
    ("goal", "options", "code", "told"),
    [
        (
            None,
            ["--max-steps", "1", "--no-search"],
            12,
            "No plan was found: after 1 step(s) the goal is not reached (step limit reached).",
        ),
        (
            "(dark l0) (lit l0)",
            ["--no-search"],
            12,
            "No plan was found: after 2 step(s) no action is applicable.",
        ),
        ("(dark l0) (lit l0)", [], 11, "There is no plan: the search has seen every state"),
        ("(lit l0) (broken l1)", [], 11, "There is no plan: the goal asks for (broken l1), which"),
    ],
)
def test_without_a_plan_there_is_no_file_and_a_reason(
    goal, options, code, told, run_folder, lamps, capsys
):
    (lamps / "p.pddl").write_text(problem(2, goal))
    out = lamps / "plan"
    out.write_text("(switch l0)\n")  # of an earlier call, for another problem
    words = ["plan", run_folder, lamps / "domain.pddl", lamps / "p.pddl", "--out", out]
    assert regoal(*words, *options) == code
    assert told in capsys.readouterr().out
    assert not out.exists()


def test_greedy_execution_that_has_seen_every_state_is_a_proof(run_folder, lamps, capsys):
    (lamps / "p.pddl").write_text(problem(1).replace("(:init (dark l0))", "(:init)"))
    words = ["plan", run_folder, lamps / "domain.pddl", lamps / "p.pddl", "--out", lamps / "plan"]
    assert regoal(*words, "--no-search") == 11
    told = "There is no plan: after 0 step(s) every state that can be reached has been visited."
    assert told in capsys.readouterr().out


def test_a_device_is_chosen_and_one_that_is_not_there_is_refused(
    run_folder, lamps, monkeypatch, capsys
):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    training = run_folder.parent / "train"
    files = ("--problems", training, "--validation", training)
    for words in (
        ["plan", run_folder, lamps / "domain.pddl", lamps / "p2.pddl", "--out", lamps / "plan"],
        ["evaluate", run_folder, "--problems", lamps],
        ["train", training / "domain.pddl", *files, "--out", lamps / "run", *TINY],
    ):
        assert regoal(*words, "--device", "cuda") == 36
        assert "Use --device cpu" in capsys.readouterr().err
        assert regoal(*words, "--device", "cpu") == 0
    config = json.loads((lamps / "run" / "config.json").read_text())
    assert config["environment"]["device"] == "cpu"


def test_plan_overwrites_no_input(run_folder, lamps):
    file = lamps / "p2.pddl"
    text = file.read_text()
    assert regoal("plan", run_folder, lamps / "domain.pddl", file, "--out", file) == 36
    assert regoal("plan", run_folder, lamps / "domain.pddl", file, "--out", lamps) == 36
    assert regoal("plan", run_folder, lamps / "domain.pddl", file, "--out", lamps / "x/y") == 36
    assert regoal("plan", run_folder, lamps / "domain.pddl", file, "--layers", "0") == 36
    assert file.read_text() == text
    policy = run_folder / "policy.safetensors"
    assert regoal("plan", run_folder, lamps / "domain.pddl", file, "--out", policy) == 36
    assert policy.exists()


def test_a_policy_for_another_domain_is_refused(run_folder, lamps, capsys):
    other = lamps / "other.pddl"
    other.write_text(DOMAIN.replace("(lit ?l) (not", "(lit ?l) (broken ?l) (not"))
    (lamps / "p.pddl").write_text(problem(2))
    other.write_text(other.read_text().replace("switch", "press"))
    words = ["plan", run_folder, other, lamps / "p.pddl", "--out", lamps / "plan"]
    assert regoal(*words) == 36
    said = capsys.readouterr().err
    assert "policy: lamps [" in said
    assert "domain: lamps [" in said


def test_the_limits_of_plan(run_folder, lamps):
    words = ["plan", run_folder, lamps / "domain.pddl", lamps / "p3.pddl"]
    out = ["--out", lamps / "plan"]
    slow = in_process_of_its_own(*words, *out, "--time-limit", "0.1s")
    assert (slow.returncode, slow.stdout) == (23, "")
    assert slow.stderr == "regoal: error: The time limit is reached.\n"
    assert not (lamps / "plan").exists()
    enough = in_process_of_its_own(*words, *out, "--time-limit", "1m", "--memory-limit", "2G")
    assert enough.returncode == 0, enough.stderr
    assert "Plan length: 3 step(s)." in enough.stdout


def test_limits_of_evaluate_end_one_problem_each(run_folder, lamps, capsys, monkeypatch):
    ran = process_pool.execute_side_by_side

    def take(run, tasks, **options):
        [task] = tasks
        if task.path.stem == "p3":
            bytearray(9000 * 2**20)
        if task.path.stem == "p10":
            time.sleep(60)
        return ran(run, tasks, **options)

    monkeypatch.setattr(process_pool, "execute_side_by_side", take)
    records, plans = lamps / "results.jsonl", lamps / "plans"
    words = ["evaluate", run_folder, "--problems", lamps, "--out", records, "--plans", plans]
    limits = ["--memory-limit", "8G", "--time-limit", "5s"]
    assert regoal(*words, *limits) == 0
    assert "Coverage: 1 of 3" in capsys.readouterr().out
    p2, p3, p10 = read_results(records)
    assert (p2.outcome.key, p2.plan_length) == ("solved", 2)
    assert (p3.outcome.key, p10.outcome.key) == ("memory_limit", "time_limit")
    assert 5 <= p10.seconds < 30
    assert [path.name for path in plans.iterdir()] == ["p2.plan"]

    monkeypatch.setattr(process_pool, "execute_side_by_side", None)  # nothing is run again
    assert regoal(*words, *limits, "--resume") == 0
    assert "3 of 3 problems have their results" in capsys.readouterr().out
    assert regoal(*words, "--memory-limit", "9G", "--time-limit", "5s", "--resume") == 36


def test_shortening_costs_no_plan_that_was_found_in_time(run_folder, wasteful, monkeypatch):
    def shorten(task, plan, seconds):
        time.sleep(seconds)
        return shortening.shorten(task, plan, 0)

    monkeypatch.setattr(evaluation, "shorten", shorten)
    records = wasteful / "results.jsonl"
    words = ["evaluate", run_folder, "--problems", wasteful, "--out", records]
    assert regoal(*words, "--memory-limit", "8G", "--time-limit", "8s") == 0
    [result] = read_results(records)
    assert (result.outcome.key, result.short_length) == ("solved", 4)


def test_a_limit_of_memory_leaves_errors_and_notes_to_the_user(run_folder, lamps, capsys):
    (lamps / "p3.pddl").write_text(problem(1, goal="(lit nowhere)"))
    words = ["evaluate", run_folder, "--problems", lamps, "--memory-limit", "8G"]
    assert regoal(*words, "--max-steps", "5") == 31
    said = capsys.readouterr()
    assert "p3.pddl" in said.err
    assert "Coverage: 1 of 3" in said.out
    assert regoal(*words, "--device", "cuda") == 36


def test_evaluate_records_every_problem(run_folder, lamps, capsys):
    records, plans = lamps / "made" / "results.jsonl", lamps / "plans"
    words = ["evaluate", run_folder, "--problems", lamps, "--out", records, "--plans", plans]
    assert regoal(*words, "--max-steps", "5") == 0
    said = capsys.readouterr().out
    assert "Coverage: 2 of 3" in said
    assert "p10: step limit reached" in said
    results = read_results(records)
    assert [(r.problem, r.plan_length, r.steps) for r in results] == [
        ("p2", 2, 2),
        ("p3", 3, 3),
        ("p10", None, 5),
    ]
    assert {r.method for r in results} == {"lifted"}
    assert sorted(path.name for path in plans.iterdir()) == ["p2.plan", "p3.plan"]
    domain = lamps / "domain.pddl"
    assert regoal("validate", domain, lamps / "p3.pddl", plans / "p3.plan") == 0
    assert regoal(*words, "--domain", domain) == 0
    assert [r.solved for r in read_results(records)] == [True] * 3


def test_plans_need_a_folder_before_anything_is_run(run_folder, lamps, capsys):
    words = ["--problems", lamps, "--plans", lamps / "p2.pddl"]
    for command in (["evaluate", run_folder], ["lama", lamps / "domain.pddl"]):
        assert regoal(*command, *words) == 36
        said = capsys.readouterr()
        assert f"{lamps / 'p2.pddl'} is no folder" in said.err
        assert not said.out


def test_evaluate_goes_on_where_it_was_stopped(run_folder, lamps, capsys):
    records, plans = lamps / "results.jsonl", lamps / "plans"
    words = ["evaluate", run_folder, "--problems", lamps, "--out", records, "--plans", plans]
    assert regoal(*words) == 0
    lines = {json.loads(x)["problem"]: x for x in records.read_bytes().splitlines(keepends=True)}
    p2, p3, p10 = (lines[name] for name in ("p2", "p3", "p10"))
    failed = p10.replace(b"solved", b"error").replace(b'length": 10', b'length": null')
    (plans / "p3.plan").unlink()
    for left, kept in ((b"", 0), (p2, 1), (p2 + failed, 1), (p2 + p3, 1), (p2 + p10[:-20], 1)):
        records.write_bytes(left)
        capsys.readouterr()
        assert regoal(*words, "--resume") == 0
        said = capsys.readouterr().out
        assert f"{kept} of 3 problems have their results in {records}" in said
        assert ("p2: 2 steps" in said) == (left == b"")
        assert "p3: 3 steps" in said
        assert "Coverage: 3 of 3" in said
        found = [json.loads(line)["problem"] for line in records.read_text().splitlines()]
        assert sorted(found) == ["p10", "p2", "p3"]
        assert (plans / "p3.plan").is_file()
        if left in (p2, p2 + failed):
            (plans / "p3.plan").unlink()  # solved, but its plan has gone
    assert regoal(*words, "--resume") == 0
    assert "steps" not in capsys.readouterr().out


def test_evaluate_goes_on_with_its_own_results_only(run_folder, lamps, capsys):
    records = lamps / "results.jsonl"
    words = ["evaluate", run_folder, "--problems", lamps, "--out", records, "--resume"]
    assert regoal(*words[:-3], "--resume") == 36
    assert "--resume needs --out" in capsys.readouterr().err
    assert regoal(*words) == 0
    known = records.read_bytes()
    assert regoal(*words, "--max-steps", "5") == 36  # p10 needs 10 steps
    (lamps / "p3.pddl").write_text(problem(4))
    assert regoal(*words) == 36
    assert "has a result for p3 by another policy, problem or limit" in capsys.readouterr().err
    (lamps / "p3.pddl").unlink()
    assert regoal(*words) == 36
    assert records.read_bytes() == known


def test_results_of_an_earlier_call_are_set_aside(run_folder, tmp_path, lamps, capsys):
    records = tmp_path / "results.jsonl"
    words = ["evaluate", run_folder, "--problems", lamps, "--out", records]
    assert regoal(*words) == 0
    earlier = records.read_bytes()
    assert "earlier" not in capsys.readouterr().out
    assert regoal(*words) == 0
    kept = tmp_path / "results.jsonl.before"
    assert f"{records} had results of an earlier call: they are in {kept} now" in (
        capsys.readouterr().out
    )
    assert kept.read_bytes() == earlier
    assert len(records.read_bytes().splitlines()) == 3


@pytest.mark.parametrize(("option", "value"), [("threads", -2), ("workers", -1)])
def test_numbers_of_threads_and_workers_may_be_0(tmp_path, lamps, capsys, option, value):
    words = ["train", lamps / "domain.pddl", "--problems", lamps, "--validation", lamps]
    assert regoal(*words, "--out", tmp_path / "run", f"--{option}", value) == 36
    told = capsys.readouterr().err
    assert f"--{option} is at least 1, or 0 for the usual number; got {value}." in told


def test_training_says_what_is_wrong_before_anything_else(tmp_path, lamps, capsys):
    (lamps / "p3.pddl").write_text("(define (problem")
    words = ["train", lamps / "domain.pddl", "--problems", lamps, "--validation", lamps]
    assert regoal(*words, "--out", tmp_path / "run", *TINY) == 31
    told = capsys.readouterr()
    assert told.out == ""
    assert "p3.pddl, line 1" in told.err


def test_a_report_is_written_though_nobody_reads_what_is_printed(run_folder, tmp_path, lamps):
    records = tmp_path / "results.jsonl"
    assert regoal("evaluate", run_folder, "--problems", lamps, "--out", records) == 0
    receiver, sender = os.pipe()
    os.close(receiver)
    command = [sys.executable, "-m", "regoal.cli", "report", str(records), "--out", "figures"]
    with os.fdopen(sender, "wb") as gone:
        done = subprocess.run(
            command, cwd=tmp_path, check=False, stdout=gone, stderr=subprocess.PIPE
        )
    assert (done.returncode, done.stderr) == (cli.EXIT_PIPE, b"")
    assert (tmp_path / "figures/coverage.md").is_file()


def test_a_report_needs_a_folder(run_folder, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert regoal("report", run_folder, "--out", tmp_path / "file") == 36
    assert "file is a file; give a folder" in capsys.readouterr().err


def test_a_script_ends_as_a_command(capsys):
    def main():
        raise UsageError("There is no domain 'x'.")

    with pytest.raises(SystemExit) as ended:
        cli.script(main)
    assert ended.value.code == 36
    assert capsys.readouterr().err == "regoal: error: There is no domain 'x'.\n"


def test_report_on_a_run(run_folder, tmp_path, lamps, capsys):
    assert regoal("report", run_folder, "--out", tmp_path / "figures") == 0
    figures = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"lamps-lifted-0.png", "lamps-lifted-0.svg"} <= figures
    records = tmp_path / "results.jsonl"
    regoal("evaluate", run_folder, "--problems", lamps, "--out", records)
    capsys.readouterr()
    assert regoal("report", records, "--out", tmp_path / "tables") == 0
    assert "Lamps" in capsys.readouterr().out
    assert (tmp_path / "tables" / "coverage.md").is_file()


@pytest.mark.planner
def test_a_problem_that_lama_cannot_read_is_a_failure(tmp_path):
    pytest.importorskip("up_fast_downward")
    folder = write_problems(tmp_path / "lamps", [1])
    assert regoal("lama", folder / "domain.pddl", "--problems", folder) == 0
    (folder / "p2.pddl").write_text(problem(1, goal="(lit nowhere)"))
    assert regoal("lama", folder / "domain.pddl", "--problems", folder) == 32


@pytest.mark.planner
def test_lama_makes_the_same_records(lamps, tmp_path, capsys):
    pytest.importorskip("up_fast_downward")
    records = tmp_path / "lama.jsonl"
    words = ["lama", lamps / "domain.pddl", "--problems", lamps, "--out", records]
    assert regoal(*words, "--time-limit", "30s", "--memory-limit", "2G", "--jobs", "2") == 0
    assert "Coverage: 3 of 3" in capsys.readouterr().out
    assert [r.plan_length for r in read_results(records)] == [2, 3, 10]


@pytest.mark.planner
def test_lama_goes_on(lamps, tmp_path, capsys, monkeypatch):
    pytest.importorskip("up_fast_downward")
    records = tmp_path / "lama.jsonl"
    words = ["lama", lamps / "domain.pddl", "--problems", lamps, "--time-limit", "30s"]
    assert regoal(*words, "--resume") == 36
    assert regoal(*words, "--out", records) == 0
    first, _, third = records.read_text().splitlines(keepends=True)
    records.write_text(first + third)
    capsys.readouterr()
    assert regoal(*words, "--out", records, "--resume") == 0
    assert "2 of 3 problems have their results" in capsys.readouterr().out
    assert records.read_text().startswith(first + third)
    assert sorted(r.plan_length for r in read_results(records)) == [2, 3, 10]
    assert regoal(*words, "--out", records, "--resume", "--memory-limit", "2G") == 36


def test_every_command_of_a_sweep_is_one_of_ours(tmp_path, capsys):
    file = tmp_path / "grid.toml"
    file.write_text(
        f'out = "{tmp_path}/out"\ndomains = ["blocks"]\nhindsight = ["lifted", "state"]\n'
        'seeds = [0]\npreset = "laptop"\nbudget_minutes = 2\n'
        '[overrides]\nlayers = 3\n"temperature.episodes" = 7\n'
    )
    assert regoal("sweep", file, "--print-commands") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == print_commands(read_sweep(file))
    steps = [step for line in lines for step in line.split(" && ") if step.startswith("regoal ")]
    parsed = [cli.parse(step.split()[1:]) for step in steps]
    training = [command for command in parsed if isinstance(command, Train)]
    assert len(parsed) == 3 + 2 * 2
    assert {command.config.hindsight for command in training} == {"lifted", "state"}
    assert {(c.config.layers, c.config.temperature.episodes) for c in training} == {(3, 7)}
    assert {command.budget for command in training} == {120}


def test_policies_lists_what_is_shipped(capsys):
    from regoal.networks.policy_file import shipped_policies

    assert regoal("policies") == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split(":")[0] for line in lines if not line.startswith(" ")]
    assert listed == list(shipped_policies())
    assert sum(line.startswith("    actions ") for line in lines) == len(listed)


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m regoal.cli train --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_an_unreadable_problem_is_told_and_the_others_go_on(run_folder, lamps, capsys):
    (lamps / "p4.pddl").write_text(problem(4)[:-9])
    (lamps / "p5.pddl").write_text(problem(2).replace("(:goal", "(:constraints (a)) (:goal"))
    records = lamps / "results.jsonl"
    assert regoal("evaluate", run_folder, "--problems", lamps, "--out", records) == 31
    said = capsys.readouterr()
    assert "Coverage: 3 of 5" in said.out
    assert said.err.count("regoal: error: ") == 2
    assert "p4.pddl, line 2: the file ends while" in said.err
    results = {r.problem: r.outcome.key for r in read_results(records)}
    assert (results["p4"], results["p5"], results["p10"]) == ("error", "error", "solved")


def test_no_run_is_credited_with_the_test_of_another_policy(run_folder, lamps, tmp_path, capsys):
    other = tmp_path / "other"
    shutil.copytree(run_folder, other)
    words = ["train", run_folder.parent / "train" / "domain.pddl", "--out", tmp_path / "mine"]
    words += ["--problems", run_folder.parent / "train", *TINY, "--seed", "7"]
    assert regoal(*words, "--validation", run_folder.parent / "validation") == 0
    mine = tmp_path / "mine" / "results.jsonl"
    assert regoal("evaluate", other, "--problems", lamps, "--out", mine) == 36
    assert "would credit the run in" in capsys.readouterr().err
    assert not mine.exists()
    assert regoal("evaluate", tmp_path / "mine", "--problems", lamps, "--out", mine) == 0
    assert {len(r.policy) for r in read_results(mine)} == {16}
    assert not load_run(tmp_path / "mine").of_another_policy
    shutil.copy(mine, other / "results.jsonl")
    assert load_run(other).of_another_policy
    capsys.readouterr()
    assert regoal("report", other, "--out", tmp_path / "tables") == 0
    notes = (tmp_path / "tables" / "coverage.md").read_text()
    assert "Tested with another policy than the run has now" in notes


def test_a_termination_while_the_command_line_is_read_is_one(monkeypatch):
    def terminated(*_, **__):
        raise SystemExit(143)

    monkeypatch.setattr(cli.tyro, "cli", terminated)
    with pytest.raises(SystemExit) as found:
        regoal("policies")
    assert found.value.code == 143


def test_a_plan_that_the_validator_rejects_is_an_error(run_folder, lamps, capsys, monkeypatch):
    # As if the engine that finds plans were wrong: another one, without the library, judges them.
    rejected = Verdict(False, "step 1, (switch l0): (dark l0) does not hold", 1, 0.0)
    monkeypatch.setattr(evaluation, "validate_plan", lambda task, actions: rejected)
    records = lamps / "results.jsonl"
    words = ["evaluate", run_folder, "--problems", lamps, "--out", records]
    assert regoal(*words) == EXIT_INTERNAL
    said = capsys.readouterr().err
    assert said.count("the plan that was found is not valid (step 1, (switch l0)") == 3
    assert {r.outcome for r in read_results(records)} == {Outcome.INVALID_PLAN}


def test_a_cost_without_a_value_is_told_by_evaluate_and_plan(run_folder, tmp_path, capsys):
    costly = DOMAIN.replace(
        "(:predicates", "(:functions (total-cost) (price ?l - lamp))(:predicates"
    )
    costly = costly.replace("(lit ?l) (not", "(lit ?l) (increase (total-cost) (price ?l)) (not")
    problems = tmp_path / "problems"
    write_problems(problems, [1], costly)
    priced = problem(2).replace("(:init", "(:init (= (price l0) 1)")[:-2] + (
        "(:metric minimize (total-cost)))"
    )
    (problems / "p2.pddl").write_text(priced)
    records = tmp_path / "records.jsonl"
    assert regoal("evaluate", run_folder, "--problems", problems, "--out", records) == 31
    told = capsys.readouterr().err
    assert "p2.pddl: :init gives the cost of (switch l1) no value; add it." in told
    assert {r.problem: r.outcome.key for r in read_results(records)} == {
        "p1": "solved",
        "p2": "error",
    }
    plan = tmp_path / "plan"
    domain = problems / "domain.pddl"
    assert regoal("plan", run_folder, domain, problems / "p2.pddl", "--out", plan) == 31
    assert not plan.exists()


def test_python_m_regoal_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "regoal", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("regoal ")


def test_the_time_limit_of_plan_counts_from_the_start_of_the_process():
    code = (
        "import time; time.sleep(1); from regoal.system.limits import process_age as a; print(a())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 1 <= float(done.stdout) < 30


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "Make room"), (errno.EFBIG, "ulimit -f"), (errno.EACCES, "Make the folder")],
)
def test_a_training_that_cannot_write_ends_with_36(tmp_path, number, remedy):
    with pytest.raises(UsageError, match=remedy) as error, explained_disk_errors(tmp_path):
        raise OSError(number, os.strerror(number))
    assert error.value.exit_code == 36


def test_records_that_cannot_be_written_leave_no_empty_file(tmp_path, monkeypatch):
    def full(path, record):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(terminal, "append_json_line", full)
    result = PlanResult(
        problem="p",
        domain="d",
        method="lifted",
        outcome=Outcome.DEAD_END,
        plan_length=None,
        plan_cost=None,
        seconds=0.0,
        steps=0,
    )
    with pytest.raises(OSError, match="No space"):
        terminal.follow(iter([result]), 1, tmp_path / "out", lambda text, keep: None)
    assert not (tmp_path / "out").exists()
