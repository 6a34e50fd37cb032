"""Whole runs on a tiny domain: what they leave, how they end, and that a kill changes nothing."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import regoal
from regoal.config import LAPTOP, Decay
from regoal.errors import PddlError, RegoalError, UsageError
from regoal.learning.checkpoint import read_checkpoint
from regoal.learning.learner import Learner
from regoal.networks.policy_file import load_policy
from regoal.planning.task import Task
from regoal.records.json_lines import read_json, read_jsonl
from regoal.records.run_record import load_run
from regoal.records.validation import Validation
from regoal.runs import run_in_progress
from regoal.runs.news import Progress
from regoal.runs.settings import RunSettings
from regoal.runs.training_run import run_training
from regoal.runs.validation import Standing
from regoal.system import cancellation as stopping

DOMAIN = """(define (domain tower)
  (:requirements :strips :negative-preconditions)
  (:predicates (on ?x ?y) (table ?x) (clear ?x))
  (:action stack :parameters (?x ?y)
    :precondition (and (table ?x) (clear ?x) (clear ?y) (not (= ?x ?y)))
    :effect (and (on ?x ?y) (not (table ?x)) (not (clear ?y))))
  (:action unstack :parameters (?x ?y) :precondition (and (on ?x ?y) (clear ?x))
    :effect (and (table ?x) (clear ?y) (not (on ?x ?y)))))"""
CONFIG = replace(
    LAPTOP,
    layers=3,
    embedding_size=16,
    updates=4,
    batch_size=8,
    horizon=15,
    replay_capacity=80,
    episodes=8,
    validate_every=2,
    validation_steps=10,
    patience=0,
)
WHOLE = Decay(start=1.0, end=1.0, episodes=1)


def problem(goal, *, tower="", blocks="abcd"):
    """Blocks on the table but for those in `tower`, which stand on each other, top first."""
    init = [f"(on {x} {y})" for x, y in pairwise(tower)]
    init += [f"(table {x})" for x in blocks if x not in tower[:-1]]
    init += [f"(clear {x})" for x in blocks if x not in tower[1:]]
    return (
        f"(define (problem p) (:domain tower) (:objects {' '.join(blocks)}) "
        f"(:init {' '.join(init)}) (:goal (and {goal})))"
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pddl")
    problems = {
        "train/p1": problem("(on a b) (on b c)"),
        "train/p2": problem("(on c d) (on d a)", tower="abcd"),
        "train/p10": problem("(on b a)", tower="ab", blocks="abc"),
        "validation/v1": problem("(on d c) (on c b)", tower="dab"),
        "validation/v2": problem("(on a c) (on b d)", tower="cbda"),
    }
    (folder / "domain.pddl").write_text(DOMAIN)
    for name, text in problems.items():
        path = folder / f"{name}.pddl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def settings_of(files, out, **changes):
    config = replace(CONFIG, **changes.pop("config", {}))
    return replace(
        RunSettings(
            domain=files / "domain.pddl",
            problems=files / "train",
            validation=files / "validation",
            out=out,
            config=config,
            preset="laptop",
            name="tower",
        ),
        **changes,
    )


def run(files, out, tell=lambda _: None, **changes):
    return run_training(settings_of(files, out, **changes), tell)


def result(out):
    """The bytes of the policy, and what the last checkpoint holds, seconds aside."""
    checkpoint, notes = read_checkpoint(out / "checkpoint.safetensors")
    assert notes == ()
    tensors = {name: t.numpy().tobytes() for name, t in checkpoint._tensors.items()}
    facts = {k: v for k, v in checkpoint._facts.items() if k != "record"}
    record = checkpoint.record | {"elapsed_s": 0}
    return (out / "policy.safetensors").read_bytes(), tensors, facts, record


def records(path):
    return [
        {key: value for key, value in record.items() if not key.endswith(("seconds", "_s"))}
        for record in read_jsonl(path)
    ]


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    """A run that nobody disturbed."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    run(files, out)
    return out


# What a run does and leaves


def test_a_policy_sees_relaxed_plans_if_it_is_told_to(files, tmp_path):
    for name, seen in (("plans", True), ("plain", False)):
        run(files, tmp_path / name, config={"episodes": 2, "relaxed_plans": seen})
        policy = load_policy(tmp_path / name / "policy.safetensors")
        assert any(r.kind == "helpful" for r in policy.network.relations) == seen


def test_a_run_leaves_config_records_policy_and_checkpoint(files, tmp_path):
    told = []
    summary = run(files, tmp_path / "new" / "run", told.append)
    out = tmp_path / "new" / "run"
    visible = sorted(p.name for p in out.iterdir() if not p.name.startswith("."))
    assert visible == [
        "checkpoint.previous.safetensors", "checkpoint.safetensors", "config.json",
        "episodes.jsonl", "kept", "policy.safetensors", "validation.jsonl",
    ]  # fmt: skip
    assert (summary.ended, summary.episode, summary.exit_code) == ("episodes", 8, 0)
    assert summary.policy == out / "policy.safetensors"
    record = load_run(out)
    assert (record.domain, record.method, record.seed) == ("tower", "lifted", 0)
    assert [r["episode"] for r in record.episodes] == list(range(1, 9))
    assert [r["episode"] for r in record.validation] == [2, 4, 6, 8]
    assert record.config["layers"] == 3
    assert record.config["environment"]["torch"] == torch.__version__
    progress = [x for x in told if isinstance(x, Progress)]
    assert [x.episode for x in progress] == list(range(1, 9))
    assert (progress[0].coverage, progress[-1].left_s) == (None, 0.0)
    assert 0 <= progress[-1].coverage <= progress[-1].best_coverage
    best = max(record.validation, key=lambda r: (r["solved"], -r["plan_length"]))
    assert (summary.best.solved, summary.best.plan_length) == (best["solved"], best["plan_length"])
    policy = load_policy(summary.policy)
    assert policy.facts["validation"]["solved"] == best["solved"]
    assert policy.facts["episode"] == summary.best.episode


def test_every_policy_that_was_the_best_is_kept(files, tmp_path):
    run(files, tmp_path / "run")
    kept = [r["episode"] for r in load_run(tmp_path / "run").validation if r["kept"]]
    names = sorted(path.name for path in (tmp_path / "run" / "kept").iterdir())
    assert names == [f"{episode:06}.safetensors" for episode in kept]
    newest = (tmp_path / "run" / "kept" / names[-1]).read_bytes()
    assert newest == (tmp_path / "run" / "policy.safetensors").read_bytes()
    # What a killed run kept after its last checkpoint will be found again by the resumed one.
    (tmp_path / "run" / "kept" / "000099.safetensors").touch()
    run(files, tmp_path / "run", resume=True)
    assert sorted(path.name for path in (tmp_path / "run" / "kept").iterdir()) == names


def test_the_last_episode_is_validated_whatever_the_interval(files, tmp_path):
    summary = run(files, tmp_path, config={"episodes": 3, "validate_every": 50})
    assert summary.best.episode == 3


def test_problems_whose_goal_holds_are_left_out_of_training(files, tmp_path):
    folder, told = tmp_path / "problems", []
    folder.mkdir()
    (folder / "p1.pddl").write_text(problem("(on a b)", tower="ab"))
    (folder / "p2.pddl").write_text(problem("(on b a)", tower="ab"))
    run(files, tmp_path / "run", told.append, problems=folder, config={"episodes": 1})
    assert any("left out" in x and "p1" in x for x in told if isinstance(x, str))
    (folder / "p2.pddl").unlink()
    with pytest.raises(UsageError, match="nothing to learn"):
        run(files, tmp_path / "other", problems=folder)
    assert not (tmp_path / "other").exists()


def test_bad_files_and_settings_leave_no_folder(files, tmp_path):
    (tmp_path / "bad.pddl").write_text("(define (problem")
    out = tmp_path / "run"
    with pytest.raises(PddlError, match=r"bad\.pddl"):
        run(files, out, problems=tmp_path / "bad.pddl")
    with pytest.raises(UsageError, match="nowhere"):
        run(files, out, validation=tmp_path / "nowhere")
    for changes in ({"budget_s": 0.0}, {"budget_s": float("nan")}, {"threads": 0}):
        with pytest.raises(UsageError):
            run(files, out, **changes)
    assert not out.exists()


def test_the_budget_ends_a_run_with_a_policy_and_counts_all_sittings(files, tmp_path):
    long = {"episodes": 100_000, "validate_every": 100_000}
    summary = run(files, tmp_path, budget_s=0.5, config=long)
    assert summary.ended == "budget"
    assert 0 < summary.episode == summary.best.episode < 100_000
    assert summary.elapsed_s >= 0.5
    again = run(files, tmp_path, budget_s=0.5, config=long, resume=True)
    assert (again.ended, again.episode) == ("budget", summary.episode)
    more = run(files, tmp_path, budget_s=summary.elapsed_s + 0.3, config=long, resume=True)
    assert more.episode > summary.episode
    assert read_json(tmp_path / "config.json")["budget_s"] > 0.5


def test_patience_ends_a_run_that_solves_everything(files, tmp_path, monkeypatch):
    lengths = iter([9, 8, 8, 8, 7, 9, 9, 9])

    def perfect(episode, *_):
        return Validation(episode, 2, 2, next(lengths), 2)

    monkeypatch.setattr(run_in_progress, "validate", perfect)
    config = {"episodes": 50, "validate_every": 1, "patience": 2, "curriculum": WHOLE}
    summary = run(files, tmp_path, config=config)
    assert (summary.ended, summary.episode) == ("patience", 4)
    more = config | {"patience": 3}
    again = run(files, tmp_path, config=more, resume=True)
    assert (again.episode, again.best.plan_length) == (8, 7)


def test_patience_waits_until_all_problems_are_drawn_from(files, tmp_path, monkeypatch):
    def perfect(episode, *_):
        return Validation(episode, 2, 2, 8, 2)

    monkeypatch.setattr(run_in_progress, "validate", perfect)
    growing = {"curriculum": Decay(start=0.5, end=1.0, episodes=7)}
    config = {"episodes": 50, "validate_every": 1, "patience": 2, **growing}
    summary = run(files, tmp_path, config=config)
    assert (summary.ended, summary.episode) == ("patience", 7)


def test_complete_validations_lower_the_learning_rate_also_after_a_resume(
    files, tmp_path, monkeypatch
):
    solved = iter([2, 1, 2, 2, 2])
    monkeypatch.setattr(
        run_in_progress,
        "validate",
        lambda episode, *_: Validation(episode, next(solved), 2, 9, 2),
    )
    config = {"validate_every": 1, "settle": 0.5}
    run(files, tmp_path, config=config | {"episodes": 3})
    run(files, tmp_path, config=config | {"episodes": 5}, resume=True)
    rates = [record["learning_rate"] for record in read_jsonl(tmp_path / "episodes.jsonl")]
    schedule = [CONFIG.learning_rate(episode) for episode in range(5)]
    assert rates == pytest.approx(np.multiply(schedule, [1, 0.5, 0.5, 0.25, 0.125]))


def test_of_equal_policies_each_is_kept_equally_often():
    rng, kept = np.random.default_rng(0), [0, 0, 0]
    for _ in range(3000):
        standing = Standing()
        for episode in range(3):
            standing.judge(Validation(episode, 1, 2, 5, 2), rng)
        kept[standing.best.episode] += 1
    assert all(900 < count < 1100 for count in kept)


def test_the_best_policy_solves_most_then_has_the_shortest_plans():
    rng, standing = np.random.default_rng(0), Standing()
    results = [(1, 9, True), (1, 10, False), (2, 30, True), (1, 3, False), (2, 29, True)]
    for episode, (solved, length, kept) in enumerate(results, start=1):
        assert standing.judge(Validation(episode, solved, 3, length, 3), rng) is kept
    assert standing.best == Validation(5, 2, 3, 29, 3)
    assert Standing.from_json(json.loads(json.dumps(standing.to_json()))) == standing
    with pytest.raises(UsageError, match="another version"):
        Standing.from_json({"best": None})


def test_of_policies_that_solve_equally_many_the_robust_one_is_kept():
    # Tenths of 20 problems: 17 and 16 with noise are equally robust, 18 is more, 15 is less.
    rng, standing = np.random.default_rng(0), Standing()
    results = [(16, 90, True), (17, 95, False), (18, 99, True), (15, 50, False), (19, 98, True)]
    for episode, (robust, length, kept) in enumerate(results, start=1):
        validation = Validation(episode, 20, 20, length, 20, robust)
        assert standing.judge(validation, rng) is kept


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_diverging_run_stops_and_keeps_its_policy(files, tmp_path, monkeypatch, loss):
    updates, real = [], Learner.update

    def update(self, sample, depth, **options):
        updates.append(1)
        found, errors = real(self, sample, depth)
        return (found, errors) if len(updates) <= 10 else (loss, errors * loss)

    monkeypatch.setattr(Learner, "update", update)
    with pytest.raises(RegoalError, match=r"diverged in episode 3.*policy\.safetensors"):
        run(files, tmp_path)
    assert load_policy(tmp_path / "policy.safetensors").facts["episode"] == 2
    assert read_checkpoint(tmp_path / "checkpoint.safetensors")[0].record["episode"] == 2


def test_a_full_disk_is_told_in_one_sentence(files, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", str(tmp_path / "policy.safetensors"))

    monkeypatch.setattr(run_in_progress, "save_policy", full)
    with pytest.raises(RegoalError, match=r"policy\.safetensors.*No space left"):
        run(files, tmp_path)


# Folders


def test_a_folder_with_other_things_is_left_alone(files, tmp_path):
    (tmp_path / "thesis.tex").write_text("all of it")
    for resume in (False, True):
        with pytest.raises(UsageError, match=r"no run and not empty \(thesis\.tex"):
            run(files, tmp_path, resume=resume)
    with pytest.raises(UsageError, match="is a file"):
        run(files, tmp_path / "thesis.tex")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_run_is_not_overwritten_but_resumed(files, finished):
    before = result(finished)
    with pytest.raises(UsageError, match="--resume"):
        run(files, finished)
    assert run(files, finished, resume=True).ended == "episodes"
    assert result(finished) == before


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"config": {"batch_size": 9}}, r"batch_size = 8, now it is 9"),
        ({"config": {"seed": 1}}, "seed = 0"),
        ({"config": {"hindsight": "state"}}, "hindsight = 'lifted'"),
        ({"threads": 2}, "threads = 1"),
        ({"preset": "paper"}, "preset = 'laptop'"),
        ({"problems": "validation"}, "problems"),
    ],
    ids=str,
)
def test_other_settings_are_refused_by_name(files, finished, changes, match):
    before = (finished / "config.json").read_bytes()
    if "problems" in changes:
        changes = {"problems": files / changes["problems"]}
    with pytest.raises(UsageError, match=match):
        run(files, finished, resume=True, **changes)
    assert (finished / "config.json").read_bytes() == before


def test_more_episodes_give_what_a_longer_run_would_have_given(files, tmp_path, finished):
    run(files, tmp_path / "short", config={"episodes": 4})
    run(files, tmp_path / "short", resume=True)
    assert result(tmp_path / "short") == result(finished)
    assert records(tmp_path / "short/episodes.jsonl") == records(finished / "episodes.jsonl")


def test_other_software_is_noted(files, tmp_path):
    run(files, tmp_path, config={"episodes": 1})
    config, told = read_json(tmp_path / "config.json"), []
    config["environment"]["torch"] = "1.0"
    (tmp_path / "config.json").write_text(json.dumps(config))
    run(files, tmp_path, told.append, resume=True, config={"episodes": 2})
    assert any("torch 1.0 ->" in x for x in told if isinstance(x, str))
    run(files, tmp_path, resume=True, config={"episodes": 3})
    later = read_json(tmp_path / "config.json")
    assert later["environment"]["torch"] == torch.__version__
    assert later["earlier_environments"] == [config["environment"]]


def test_a_run_that_was_killed_before_its_first_checkpoint_starts_anew(files, tmp_path, finished):
    run(files, tmp_path, config={"episodes": 3})
    for path in tmp_path.glob("*.safetensors"):
        path.unlink()
    run(files, tmp_path, resume=True)
    assert result(tmp_path) == result(finished)
    assert records(tmp_path / "episodes.jsonl") == records(finished / "episodes.jsonl")
    assert records(tmp_path / "validation.jsonl") == records(finished / "validation.jsonl")


def test_a_lost_policy_is_written_again(files, tmp_path):
    run(files, tmp_path)
    before = result(tmp_path)
    (tmp_path / "policy.safetensors").unlink()
    run(files, tmp_path, resume=True)
    assert result(tmp_path) == before


def test_a_damaged_checkpoint_is_told_and_costs_one_interval(files, tmp_path, finished):
    run(files, tmp_path)
    path, told = tmp_path / "checkpoint.safetensors", []
    path.write_bytes(path.read_bytes()[:-100])
    run(files, tmp_path, told.append, resume=True)
    assert any("is damaged" in x for x in told if isinstance(x, str))
    assert [x.episode for x in told if isinstance(x, Progress)] == [7, 8]
    assert result(tmp_path) == result(finished)
    assert records(tmp_path / "episodes.jsonl") == records(finished / "episodes.jsonl")


# Signals


def interrupted(files, out, number, at):
    """A run that sends itself a signal after some episode."""
    told = []

    def tell(x):
        told.append(x)
        if isinstance(x, Progress) and x.episode == at:
            os.kill(os.getpid(), number)

    return run(files, out, tell), told


@pytest.fixture
def _not_under_nohup():
    """The tests may run where a hangup is ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("_not_under_nohup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("at", [1, 4])
def test_the_first_signal_saves_and_ends_the_run(files, tmp_path, finished, number, at):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    summary, told = interrupted(files, tmp_path, number, at)
    assert (summary.ended, summary.episode) == ("interrupted", at)
    assert summary.exit_code == 128 + number
    assert any("Stopping; once more" in x for x in told if isinstance(x, str))
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    run(files, tmp_path, resume=True)
    assert result(tmp_path) == result(finished)
    assert records(tmp_path / "validation.jsonl") == records(finished / "validation.jsonl")


@pytest.mark.parametrize("at", [3, 20, 50])
def test_a_signal_while_actions_are_listed_undoes_the_episode(
    files, tmp_path, finished, monkeypatch, at
):
    real, lists = Task.applicable_actions, []

    def applicable_actions(self, state):
        lists.append(1)
        if len(lists) == at:
            os.kill(os.getpid(), signal.SIGTERM)
            stopping.check()
        return real(self, state)

    monkeypatch.setattr(Task, "applicable_actions", applicable_actions)
    summary = run(files, tmp_path)
    assert (summary.ended, len(lists) >= at) == ("interrupted", True)
    monkeypatch.undo()
    run(files, tmp_path, resume=True)
    assert result(tmp_path) == result(finished)


@pytest.mark.parametrize("at", [2, 7, 15])
def test_a_signal_within_an_episode_undoes_it(files, tmp_path, finished, monkeypatch, at):
    real, updates = Learner.update, []

    def update(self, *sample, **options):
        updates.append(1)
        if len(updates) == at:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self, *sample, **options)

    monkeypatch.setattr(Learner, "update", update)
    summary = run(files, tmp_path)
    assert (summary.ended, summary.episode, len(updates)) == ("interrupted", (at - 1) // 4, at)
    assert len(records(tmp_path / "episodes.jsonl")) == summary.episode
    monkeypatch.undo()
    run(files, tmp_path, resume=True)
    assert result(tmp_path) == result(finished)
    for name in ("episodes.jsonl", "validation.jsonl"):
        assert records(tmp_path / name) == records(finished / name)


def test_the_budget_ends_a_long_episode_and_undoes_it(files, tmp_path, finished, monkeypatch):
    real, updates = Learner.update, []

    def update(self, *sample, **options):
        updates.append(1)
        return real(self, *sample, **options)

    monkeypatch.setattr(Learner, "update", update)
    monkeypatch.setattr(run_in_progress.Run, "budget_is_spent", lambda self: len(updates) >= 19)
    summary = run(files, tmp_path)
    assert (summary.ended, summary.episode, len(updates)) == ("budget", 4, 19)
    monkeypatch.undo()
    run(files, tmp_path, resume=True)
    assert result(tmp_path) == result(finished)


def test_a_signal_during_validation_puts_it_off(files, tmp_path, finished, monkeypatch):
    real = run_in_progress.validate

    def validate(episode, *arguments):
        if episode == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(episode, *arguments)

    monkeypatch.setattr(run_in_progress, "validate", validate)
    summary = run(files, tmp_path)
    assert (summary.ended, summary.episode, summary.best.episode <= 2) == ("interrupted", 4, True)
    monkeypatch.undo()
    run(files, tmp_path, resume=True)
    assert result(tmp_path) == result(finished)


def test_a_second_signal_ends_at_once(files, tmp_path):
    def tell(x):
        if isinstance(x, Progress) and x.episode == 1:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(files, tmp_path, tell)


# Other processes

SCRIPT = """
import sys
from pathlib import Path
from regoal.config import TrainConfig, Decay
from regoal.runs.training_run import run_training
from regoal.runs.news import Progress
from regoal.runs.settings import RunSettings
files, out, config = Path(sys.argv[1]), Path(sys.argv[2]), eval(sys.argv[3])
def tell(x):
    print(x.episode if isinstance(x, Progress) else x, flush=True)
def train():
    run_training(RunSettings(domain=files / "domain.pddl", problems=files / "train",
        validation=files / "validation", out=out, config=config, preset="laptop", name="tower",
        resume=True), tell)
"""


def start(files, out, *, hash_seed=0, config=CONFIG, then="train()"):
    environment = os.environ | {
        "PYTHONPATH": str(Path(regoal.__file__).parents[1]),
        "PYTHONHASHSEED": str(hash_seed),
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT + then, str(files), str(out), repr(config)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_one_seed_gives_one_policy_under_any_hash_seed(files, tmp_path, finished):
    processes = [start(files, tmp_path / str(seed), hash_seed=seed) for seed in (1, 2)]
    for process in processes:
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0, output
    assert result(tmp_path / "1") == result(tmp_path / "2") == result(finished)


FORKING = """
import os
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        train()
        os._exit(0)
    print("child", child, flush=True)
    print("status", os.waitpid(child, 0)[1], flush=True)
"""


def test_a_run_that_is_killed_again_and_again_ends_as_if_never_killed(files, tmp_path, finished):
    seed = time.time_ns()
    rng, killed = random.Random(seed), 0
    with start(files, tmp_path, hash_seed=3, then=FORKING) as process:
        for attempt in range(9):
            process.stdin.write("go\n")
            process.stdin.flush()
            child, line = 0, process.stdout.readline()
            while not line.startswith("status"):
                child = int(line.split()[1]) if line.startswith("child") else child
                if child and attempt < 8 and rng.random() < 0.3:
                    time.sleep(rng.uniform(0.0, 0.1))
                    with contextlib.suppress(ProcessLookupError):  # it has just ended
                        os.kill(child, signal.SIGKILL)
                    child = 0
                line = process.stdout.readline()
            killed += int(line.split()[1]) == signal.SIGKILL
        process.stdin.close()
    assert line == "status 0\n"
    assert killed > 0, f"seed {seed}"
    assert result(tmp_path) == result(finished), f"seed {seed}"
    for name in ("episodes.jsonl", "validation.jsonl"):
        assert records(tmp_path / name) == records(finished / name), f"seed {seed}"
    assert not list(tmp_path.glob(".*.tmp"))


def test_two_processes_do_not_share_a_folder(files, tmp_path):
    endless = replace(CONFIG, episodes=100_000)
    with start(files, tmp_path, config=endless) as process:
        try:
            process.stdout.readline()
            with pytest.raises(UsageError, match="in use"):
                run(files, tmp_path, resume=True, config={"episodes": 100_000})
        finally:
            process.kill()
    run(files, tmp_path, resume=True, config={"episodes": 1})  # the lock has gone with it
