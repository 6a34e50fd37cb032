"""Two processes that train together give the same bytes, whatever interrupts them."""

import contextlib
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import regoal
from regoal.config import LAPTOP
from regoal.distributed.collectives import WorkerLostError
from regoal.errors import UsageError
from regoal.learning.checkpoint import read_checkpoint
from regoal.networks.policy_file import load_policy
from regoal.records.json_lines import read_json, read_jsonl
from regoal.runs.news import Progress
from regoal.runs.settings import RunSettings
from regoal.runs.training_run import run_training
from regoal.system.threads import free_threads, process_group

CONFIG = replace(
    LAPTOP,
    layers=3,
    embedding_size=16,
    updates=4,
    batch_size=8,
    horizon=15,
    replay_capacity=80,
    episodes=6,
    validate_every=2,
    validation_steps=10,
    patience=0,
)


def run(tasks, out, tell=lambda _: None, **changes):
    blocks = tasks["blocks"]
    settings = RunSettings(
        domain=blocks["tower"].domain.path,
        problems=blocks["tower"].path,
        validation=blocks["three"].path,
        out=out,
        config=CONFIG,
        preset="laptop",
        name="blocks",
        workers=2,
        resume=True,
    )
    return run_training(replace(settings, **changes), tell)


def result(out):
    """Read the policy's bytes, the last checkpoint, and the records without seconds."""
    checkpoint, _ = read_checkpoint(out / "checkpoint.safetensors")
    tensors = {name: tensor.numpy().tobytes() for name, tensor in checkpoint._tensors.items()}
    records = [
        {key: value for key, value in record.items() if not key.endswith(("seconds", "_s"))}
        for name in ("episodes.jsonl", "validation.jsonl")
        for record in read_jsonl(out / name)
    ]
    return (out / "policy.safetensors").read_bytes(), tensors, records


@pytest.fixture(scope="module")
def finished_folder(tasks, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "finished"
    assert run(tasks, out).ended == "episodes"
    return out


@pytest.fixture(scope="module")
def finished(finished_folder):
    return result(finished_folder)


def arguments(tasks, out):
    """Return the arguments of a command that does the run of `run`."""
    blocks = tasks["blocks"]
    words = ["train", blocks["tower"].domain.path, "--problems", blocks["tower"].path]
    words += ["--validation", blocks["three"].path, "--out", out, "--name", "blocks", "--resume"]
    for name in ("layers", "embedding_size", "updates", "batch_size", "horizon", "episodes"):
        words += [f"--{name.replace('_', '-')}", getattr(CONFIG, name)]
    words += ["--replay-capacity", 80, "--validate-every", 2, "--validation-steps", 10]
    return [str(word) for word in [*words, "--patience", 0, "--threads", 1]]


def start(words, **environment):
    source = str(Path(regoal.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-m", "regoal.cli", *words],
        env=os.environ | {"PYTHONPATH": source, "PYTHONHASHSEED": "random"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_run_goes_on_with_its_number_of_workers_only(tasks, finished_folder):
    assert read_json(finished_folder / "config.json")["workers"] == 2
    assert load_policy(finished_folder / "policy.safetensors").facts["workers"] == 2
    with pytest.raises(UsageError, match="started with workers = 2, now it is 1"):
        run(tasks, finished_folder, workers=1)


def test_workers_that_torchrun_would_start_give_the_same_bytes(tasks, tmp_path, finished):
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    words = arguments(tasks, tmp_path / "run")
    processes = [start(words, RANK=str(rank), **group) for rank in (1, 0)]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert outputs[0] == ""  # only the first worker prints
    assert "2 workers, each with 1 thread\n" in outputs[1]
    assert result(tmp_path / "run") == finished


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_an_interrupt_ends_all_after_the_same_episode(tasks, tmp_path, finished):
    def tell(news):
        if isinstance(news, Progress) and news.episode == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    summary = run(tasks, tmp_path, tell)
    assert (summary.ended, summary.episode) == ("interrupted", 3)
    assert multiprocessing.active_children() == []
    assert run(tasks, tmp_path).ended == "episodes"
    assert result(tmp_path) == finished


def test_a_killed_run_takes_its_workers_along_and_goes_on(tasks, tmp_path, finished):
    with start([*arguments(tasks, tmp_path / "run"), "--workers", "2"]) as process:
        records = tmp_path / "run" / "validation.jsonl"
        while not (records.is_file() and records.read_text()):
            time.sleep(0.01)
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        children = listed.read_text().split() if listed.exists() else []
        process.kill()
    deadline = time.monotonic() + 20
    for (
        child
    ) in children:  # the worker, and the process that tracks the resources of multiprocessing
        while Path(f"/proc/{child}").exists() and not ended(child):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    run(tasks, tmp_path / "run")
    assert result(tmp_path / "run") == finished


def ended(pid):
    """Tell whether a process is dead, even if its exit status has not been read yet."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def test_a_lost_worker_ends_the_run_with_a_clear_error(tasks, tmp_path, finished):
    def tell(news):
        if isinstance(news, Progress) and news.episode == 3:
            for child in multiprocessing.active_children():
                child.kill()

    with pytest.raises(WorkerLostError, match=r"Another worker .* has ended .* --resume"):
        run(tasks, tmp_path, tell)
    run(tasks, tmp_path)
    assert result(tmp_path) == finished


def test_settings_that_are_refused(tasks, tmp_path, monkeypatch):
    for changes, message in [
        ({"workers": 0}, "--workers lies in 1 to the batch size 8, got 0"),
        ({"workers": 9}, "--workers lies in 1 to the batch size 8, got 9"),
        ({"device": "cuda"}, "on a GPU take one"),
    ]:
        with pytest.raises(UsageError, match=message):
            run(tasks, tmp_path, **changes)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(UsageError, match="3 workers were started, but --workers is 2"):
        run(tasks, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_group_that_the_environment_describes(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert process_group() == (0, 1, 1)
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert process_group() == (0, 1, 1)
    monkeypatch.setenv("RANK", "3")
    assert process_group() == (3, 4, 4)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert process_group() == (3, 4, 2)
    for rank in ("4", "-1", "x"):
        monkeypatch.setenv("RANK", rank)
        with pytest.raises(UsageError, match=f"RANK={rank} and WORLD_SIZE=4 make no sense"):
            process_group()


def test_processes_share_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert [free_threads(n) for n in (1, 2, 4, 7)] == [6, 3, 1, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert free_threads(4) == 2
