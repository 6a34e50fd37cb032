"""A sweep of six small runs on Gripper, its problems included, and what makes two runs equal."""

import subprocess
import sys
from random import Random

from regoal.domains import gripper
from regoal.learning.checkpoint import read_checkpoint
from regoal.records.json_lines import read_jsonl
from regoal.sweeps.sweep_file import read_sweep

FILE = """
out = {out!r}
domains = ["gripper"]
hindsight = ["lifted", "propositional"]
seeds = [0, 1, 2]
preset = "laptop"
budget_minutes = 5
[overrides]
layers = 2
embedding_size = 16
episodes = {episodes}
updates = 4
batch_size = 8
horizon = 15
validate_every = 5
validation_steps = 10
patience = 0
threads = 1
"""
BALLS = {"train": (1, 2, 3), "validation": (4,), "test": (5, 6)}


def write_sweep(folder, episodes=20):
    """Write the sweep file and its problems; the path of the file."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, numbers in BALLS.items():
        problems = folder / "runs/instances/seed-0/gripper" / split
        problems.mkdir(parents=True)
        command = ["generate", "gripper", "--split", "validation", "--out"]
        subprocess.run(
            [sys.executable, "-m", "regoal.cli", *command, str(folder / split)],
            check=True, capture_output=True,
        )  # fmt: skip
        (folder / split / "domain.pddl").rename(problems / "domain.pddl")
        for balls in numbers:
            text = gripper.generate(Random(0), balls=balls).to_pddl()
            (problems / f"p{balls}.pddl").write_text(text)
    path = folder / "sweep.toml"
    path.write_text(FILE.format(out=str(folder / "runs"), episodes=episodes))
    return path


def result_of(run):
    """Read a run's policy, its last checkpoint, and its records without seconds."""
    checkpoint, _ = read_checkpoint(run / "checkpoint.safetensors")
    tensors = {name: tensor.numpy().tobytes() for name, tensor in checkpoint._tensors.items()}
    records = [
        {k: v for k, v in record.items() if not k.endswith(("seconds", "_s")) and k != "inputs"}
        for name in ("episodes.jsonl", "validation.jsonl", "results.jsonl")
        for record in sorted(read_jsonl(run / name), key=lambda r: str(r.get("problem", "")))
    ]
    return (run / "policy.safetensors").read_bytes(), tensors, records


def results_of(path):
    """The results of all runs of a sweep file, by their names."""
    sweep = read_sweep(path)
    return {setting.name: result_of(sweep.folder(setting)) for setting in sweep.settings}
