"""Sweeps as jobs: in this process, in others, and on a real SLURM of one machine."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import submitit

from regoal import cli
from regoal.errors import UsageError
from regoal.sweeps.commands import finished
from regoal.sweeps.run_sweep import PROGRAM, run_sweep
from regoal.sweeps.submit import CellJob, submit_sweep
from regoal.sweeps.sweep_file import read_sweep
from regoal.system import processes
from reproduction.slurm_node import SlurmError, slurm_node
from sweeps.small_sweep import result_of, results_of, write_sweep

# submitit leaves the logs of its jobs open.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

FILE = """
out = {out!r}
domains = ["gripper"]
hindsight = ["lifted"]
seeds = [0, 1]
preset = "laptop"
budget_minutes = 1
"""
SCRIPT = """
import os, pathlib, signal, sys, time
command, *rest = sys.argv[1:]
options = dict(zip(rest, rest[1:]))
out = pathlib.Path(options["--out"])
def save(*_):
    (out / "saved").touch()
    sys.exit(143)
if command == "generate":
    out.mkdir(parents=True)
elif command == "train":
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "starts", "a") as starts:
        print(os.environ.get("OMP_NUM_THREADS"), file=starts)
    (out / "config.json").write_text('{"domain": "gripper", "hindsight": "lifted", "seed": 0}')
"""
WAITING = """
    signal.signal(signal.SIGTERM, save)
    if not (out / "saved").exists():
        (out / "waits.tmp").write_text(str(os.getppid()))
        (out / "waits.tmp").rename(out / "waits")
        time.sleep(60)
"""


@pytest.fixture
def sweep(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(FILE.format(out=str(tmp_path / "out")))
    return read_sweep(path)


@pytest.fixture
def program(tmp_path):
    """A script that stands for the command line."""

    def write(extra=""):
        script = tmp_path / "program.py"
        script.write_text(SCRIPT + extra)
        return [sys.executable, str(script)]

    return write


def wait_for(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_jobs_in_this_process_do_what_is_not_finished(sweep, program, tmp_path):
    told = []
    options = {"cluster": "debug"}
    assert submit_sweep(sweep, options=options, tell=told.append, program=program()) == []
    assert told[0] == "2 runs, 0 of them finished"
    assert told[-1] == "2/2 gripper/lifted/1 finished"
    assert all(finished(sweep, setting) for setting in sweep.settings)
    assert (tmp_path / "out/gripper/lifted/0/starts").read_text() == "1\n"
    assert submit_sweep(sweep, options=options, tell=told.append, program=["never"]) == []
    assert told[-1] == "2 runs, 2 of them finished"


def test_a_failure_of_a_job_is_reported_with_its_log(sweep, program):
    extra = '    sys.exit("no such luck" if "lifted/1" in str(out) else 0)'
    options = {"cluster": "debug"}
    [failure] = submit_sweep(sweep, options=options, tell=lambda _: None, program=program(extra))
    assert str(failure).startswith("gripper/lifted/1 train ended with exit code 1 (no such luck)")


def test_a_job_that_is_to_stop_lets_its_run_save_and_goes_on(sweep, program, tmp_path):
    folder = sweep.folder(sweep.settings[0])
    for split in ("train", "validation", "test"):
        sweep.instances("gripper", split).mkdir(parents=True)
    executor = submitit.LocalExecutor(tmp_path / "jobs")
    executor.update_parameters(timeout_min=5)
    job = executor.submit(CellJob(sweep, sweep.settings[0], program(WAITING)))
    wait_for((folder / "waits").exists)
    os.kill(int((folder / "waits").read_text()), signal.SIGUSR2)  # as a cluster does
    assert job.result() == "gripper/lifted/0 finished"
    assert (folder / "saved").exists()
    assert (folder / "starts").read_text() == "1\n1\n"
    assert finished(sweep, sweep.settings[0])


def test_local_jobs_are_submitted_by_the_command(tmp_path, sweep, program, monkeypatch, capsys):
    monkeypatch.setitem(submit_sweep.__kwdefaults__, "program", program())
    words = ["sweep", str(tmp_path / "sweep.toml"), "--executor", "submitit"]
    assert cli.run([*words, "--submitit", "cluster=local", "timeout_min=5"]) == 0
    assert "submitted to local as job" in capsys.readouterr().out
    assert all(finished(sweep, setting) for setting in sweep.settings)


def test_of_two_sweeps_in_one_folder_each_run_is_made_by_one(sweep, program, tmp_path):
    told = []
    slowly = program("    time.sleep(0.5)")

    def run():
        assert run_sweep(sweep, tell=told.append, program=slowly) == []

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for setting in sweep.settings:
        assert (sweep.folder(setting) / "starts").read_text().count("\n") == 1
        assert finished(sweep, setting)
    logs = list((tmp_path / "out/instances").rglob("*.log"))
    assert [log.read_text().count("$") for log in logs] == [1, 1, 1]
    lines = [line for line in told if " finished" in line and "/lifted/" in line]
    assert len([line for line in lines if "by another" not in line]) == 2
    assert any("is left to" in line or "by another process" in line for line in told)


def test_a_run_that_another_has_taken_over_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "RENEW_S", 0.1)
    running = processes.Processes({})
    asked = iter([True, False])
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert running.run(command, tmp_path / "log", lambda: next(asked)) == -signal.SIGTERM


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cluster": "moon"}, "submitit: AutoExecutor doesn't know any executor named moon"),
        ({"cluster": "local", "timeout_min": "long"}, 'submitit: Parameter "timeout_min" expected'),
        ({"cluster": "local", "speed": "3"}, "submitit: .*'speed' need to be prefixed"),
    ],
)
def test_options_that_submitit_does_not_know_are_refused(sweep, options, message):
    with pytest.raises(UsageError, match=message):
        submit_sweep(sweep, options=options, tell=lambda _: None, program=["never"])


@pytest.mark.parametrize(
    "words", [["--submitit", "x=1"], ["--executor", "submitit", "--submitit", "x"]]
)
def test_options_without_a_value_or_an_executor_are_refused(tmp_path, sweep, words, capsys):
    assert cli.run(["sweep", str(tmp_path / "sweep.toml"), *words]) == 36
    assert "--submitit" in capsys.readouterr().err


def test_a_negative_number_of_jobs_is_refused(tmp_path, sweep, capsys):
    assert cli.run(["sweep", str(tmp_path / "sweep.toml"), "--jobs", "-3"]) == 36
    assert "--jobs must be 0 or more, got -3." in capsys.readouterr().err


@pytest.fixture
def slurm(tmp_path):
    """The environment of a new SLURM of two nodes on this machine."""
    try:
        with slurm_node(tmp_path / "slurm", nodes=2, cpus=1) as environment:
            yield environment | {"OMP_NUM_THREADS": "1"}
    except SlurmError as error:
        pytest.skip(f"SLURM cannot start: {error}")


def episodes(run: Path):
    path = run / "episodes.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


@pytest.mark.slow
def test_six_runs_on_slurm_are_the_same_bytes_though_one_is_stopped(slurm, tmp_path):
    ours, theirs = (write_sweep(tmp_path / name, episodes=24) for name in ("ours", "theirs"))
    command = [*PROGRAM, "sweep", str(ours), "--executor", "submitit"]
    runs = tmp_path / "ours/runs/gripper"
    with subprocess.Popen(command, env=slurm, stdout=subprocess.PIPE, text=True) as process:
        wait_for(lambda: episodes(runs / "lifted/0") >= 3)
        # As at a time limit. It ends with an error, as it tries again until the job is requeued.
        subprocess.run(["scancel", "--signal=USR2", "1_0"], env=slurm, check=False)
        said, _ = process.communicate(timeout=900)
    assert process.returncode == 0, said
    assert said.count(" finished\n") == 7, said
    assert "going on after episode" in (runs / "lifted/0.log").read_text()

    subprocess.run([*PROGRAM, "sweep", str(theirs)], env=slurm, check=True, capture_output=True)
    assert results_of(ours) == results_of(theirs)


@pytest.mark.slow
def test_torchrun_on_two_nodes_of_slurm_trains_the_same_bytes_as_workers(slurm, tmp_path):
    problems = write_sweep(tmp_path / "sweep").parent / "runs/instances/seed-0/gripper"
    words = ["train", str(problems / "train/domain.pddl"), "--problems", str(problems / "train")]
    words += ["--validation", str(problems / "validation"), "--layers", "2", "--episodes", "6"]
    words += ["--updates", "4", "--batch-size", "8", "--validation-steps", "10", "--threads", "1"]
    workers = [*PROGRAM, *words, "--workers", "2", "--out", str(tmp_path / "workers")]
    subprocess.run(workers, env=slurm, check=True, capture_output=True)

    start = ["srun", "--nodes=2", "--ntasks-per-node=1", sys.executable, "-m"]
    start += ["torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d"]
    start += ["--rdzv-endpoint=127.0.0.1:29417", "--rdzv-id=1", "-m", "regoal.cli", *words]
    command = [*start, "--out", str(tmp_path / "torchrun")]
    done = subprocess.run(
        command, env=slurm, check=False, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert result_of(tmp_path / "torchrun") == result_of(tmp_path / "workers")
