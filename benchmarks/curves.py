"""Does training with the CPU kernel learn as well as with the network's definition?

Run `python -m benchmarks.curves [--seeds 3] [--out build/curves.json]`. It does a small training of
Gripper twice for each seed, with the kernel and with `REGOAL_KERNEL=0`, in one thread. The two
round differently, so they take different courses after some steps. They must learn equally well.
Prints, side by side, the share of validation problems solved by episode, the episode of the first
complete validation, and the mean loss.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

import torch

from benchmarks import machine
from benchmarks.learning import first_complete
from regoal.cli import script
from regoal.config import LAPTOP
from regoal.domains import gripper
from regoal.domains.splits import domain_pddl
from regoal.records.json_lines import as_float, read_jsonl
from regoal.records.run_record import EPISODES, VALIDATION
from regoal.runs.settings import RunSettings
from regoal.runs.training_run import run_training
from regoal.system.files import write_text_atomically

WAYS = {"kernel": "1", "definition": "0"}
"""The value of `REGOAL_KERNEL` for each way to compute."""
TRAIN = range(1, 6)
"""Numbers of balls in the training problems."""
VALIDATE = range(6, 11)
"""Numbers of balls in the validation problems."""
CONFIG = replace(
    LAPTOP, layers=6, horizon=30, episodes=30, validate_every=3, validation_steps=100, patience=0
)


def write_problems(folder: Path, balls: Sequence[int]) -> None:
    """Write the domain, and a problem for each number of balls."""
    folder.mkdir()
    write_text_atomically(folder / "domain.pddl", domain_pddl("gripper"))
    for n in balls:
        problem = gripper.generate(Random(0), balls=n).to_pddl()
        write_text_atomically(folder / f"p{n:02}.pddl", problem)


def train_once(folder: Path, way: str, seed: int) -> dict[str, Any]:
    """Train once; return coverage by episode, losses, and processor seconds."""
    os.environ["REGOAL_KERNEL"] = WAYS[way]
    out = folder / f"{way}-{seed}"
    settings = RunSettings(
        domain=folder / "train" / "domain.pddl",
        problems=folder / "train",
        validation=folder / "validation",
        out=out,
        config=replace(CONFIG, seed=seed),
        preset="laptop",
        name="gripper",
    )
    start = time.process_time()
    summary = run_training(settings, lambda news: None)
    if summary.signal is not None:
        sys.exit(summary.exit_code)
    seconds = time.process_time() - start
    validations = read_jsonl(out / VALIDATION)
    complete = first_complete(validations)
    losses = [as_float(record["loss"]) for record in read_jsonl(out / EPISODES)]
    return {
        "way": way,
        "seed": seed,
        "coverage": {
            str(v["episode"]): round(as_float(v["solved"]) / as_float(v["problems"]), 3)
            for v in validations
        },
        "first_complete": complete and complete["episode"],
        "mean_loss": round(fmean(losses), 5),
        "losses": [round(loss, 5) for loss in losses],
        "processor_seconds": round(seconds, 1),
    }


def table(runs: Sequence[dict[str, Any]]) -> str:
    """Make a table with a column for each run: coverage by episode, and a summary below it."""
    rows = [["episode"] + [f"{run['way']} {run['seed']}" for run in runs]]
    for episode in runs[0]["coverage"]:
        rows.append([episode, *(f"{100 * run['coverage'][episode]:.0f} %" for run in runs)])
    for key in ("first_complete", "mean_loss", "processor_seconds"):
        rows.append([key.replace("_", " "), *(str(run[key] or "-") for run in runs)])
    return "\n".join(f"{row[0]:18}" + "".join(f"{cell:>14}" for cell in row[1:]) for row in rows)


def summary(runs: Sequence[dict[str, Any]], way: str) -> dict[str, float]:
    """Take medians over the seeds of one way; a run without a complete validation is infinite."""
    of = [run for run in runs if run["way"] == way]
    return {
        "first_complete": median(run["first_complete"] or float("inf") for run in of),
        "mean_loss": median(run["mean_loss"] for run in of),
        "processor_seconds": median(run["processor_seconds"] for run in of),
    }


def main() -> None:
    """Train all, print the table, and write the JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("build/curves.json"))
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    record: dict[str, Any] = machine.description()
    runs = []
    with tempfile.TemporaryDirectory() as name:
        write_problems(Path(name) / "train", TRAIN)
        write_problems(Path(name) / "validation", VALIDATE)
        for seed in range(arguments.seeds):
            for way in WAYS:
                runs.append(train_once(Path(name), way, seed))
                print(f"{way} {seed}: {runs[-1]['processor_seconds']} s", flush=True)
    print(table(sorted(runs, key=lambda run: (list(WAYS).index(run["way"]), run["seed"]))))
    record |= {"medians": {way: summary(runs, way) for way in WAYS}, "runs": runs}
    print(json.dumps(record["medians"], indent=1))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(arguments.out, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    script(main)
