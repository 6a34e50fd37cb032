"""Training as an iterator: it can be left at any time, and gives the run that the command gives."""

import pytest

import regoal
from regoal.config import TrainConfig
from regoal.errors import UsageError
from regoal.networks.policy_file import load_policy
from regoal.records.json_lines import read_jsonl
from regoal.runs.news import Progress
from regoal.runs.settings import RunSettings
from regoal.runs.training_run import run_training

TINY = TrainConfig(
    episodes=6,
    layers=2,
    embedding_size=4,
    updates=2,
    horizon=10,
    validate_every=2,
    validation_steps=20,
    patience=0,
)


@pytest.fixture
def problems(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return regoal.generate("gripper", tmp_path / "problems")[:3]


def train(problems, out, **more):
    return regoal.train(problems[0].with_name("domain.pddl"), problems, out=out, **more)


def test_it_is_the_run_of_the_command(problems, tmp_path):
    yielded = list(train(problems, tmp_path / "iterated", config=TINY))
    told = []
    settings = RunSettings(
        domain=problems[0].with_name("domain.pddl"),
        problems=problems,
        validation=None,
        out=tmp_path / "ran",
        config=TINY,
        preset="own",
        name="gripper-strips",
    )
    run_training(settings, told.append)
    assert [p.loss for p in yielded] == [p.loss for p in told if isinstance(p, Progress)]
    policies = [load_policy(tmp_path / name / "policy.safetensors") for name in ("iterated", "ran")]
    assert policies[0].digest == policies[1].digest


def test_progress_has_the_validation_of_its_episode(problems, tmp_path):
    yielded = list(train(problems, tmp_path / "run", config=TINY))
    assert [p.episode for p in yielded] == [1, 2, 3, 4, 5, 6]
    validations = {v["episode"]: v for v in read_jsonl(tmp_path / "run" / "validation.jsonl")}
    assert sorted(validations) == [2, 4, 6]
    assert yielded[0].coverage is None
    for progress in yielded[1:]:
        last = validations[progress.episode // 2 * 2]
        assert progress.coverage == last["solved"] / last["problems"]


def test_a_training_that_was_left_keeps_the_best_policy_and_goes_on(problems, tmp_path):
    whole = list(train(problems, tmp_path / "whole", config=TINY))
    training = train(problems, tmp_path / "left", config=TINY)
    first = []
    for progress in training:
        first.append(progress)
        if progress.episode == 3:
            break
    training.close()
    assert regoal.load_policy(tmp_path / "left").policy.facts["episode"] == 2
    rest = list(train(problems, tmp_path / "left", config=TINY, resume=True))
    assert [p.loss for p in (*first, *rest)] == [p.loss for p in whole]
    digests = {regoal.load_policy(tmp_path / name).policy.digest for name in ("whole", "left")}
    assert len(digests) == 1


def test_the_folder_is_free_after_the_loop(problems, tmp_path):
    for _ in train(problems, tmp_path / "run", config=TINY):
        break
    assert len(list(train(problems, tmp_path / "run", config=TINY, resume=True))) == 5


def test_faults_are_raised_by_the_call(problems, tmp_path):
    with pytest.raises(UsageError, match="nor a folder"):
        regoal.train(problems[0].with_name("domain.pddl"), tmp_path / "none", out=tmp_path / "run")
    list(train(problems, tmp_path / "run", config=TINY))
    with pytest.raises(UsageError, match="holds a run"):
        train(problems, tmp_path / "run", config=TINY)


def test_messages_are_text(problems, tmp_path):
    told = []
    list(train(problems, tmp_path / "run", config=TINY, tell=told.append))
    assert all(isinstance(text, str) for text in told)
    assert any("validation after episode 6" in text for text in told)
