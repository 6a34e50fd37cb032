"""Time until a policy solves the whole validation split: `python -m benchmarks.learning`.

Trains once for each seed with `regoal train`, the LAPTOP preset, lifted goals and the paper's
splits. It uses all cores; the machine should be idle otherwise. From the run's records it prints
the time and the episodes up to the first complete validation; the time includes validations. Other
options go to `regoal train`; write those with a value as `--name=value`.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import machine
from regoal.cli import script
from regoal.domains.splits import write_split
from regoal.records.json_lines import JsonObject, as_float, read_jsonl
from regoal.records.run_record import VALIDATION


def first_complete(validation: list[JsonObject]) -> JsonObject | None:
    """Return the record of the first validation that solved every problem, if there is one."""
    complete = (record for record in validation if record["solved"] == record["problems"])
    return next(complete, None)


def train_once(domain: str, seed: int, options: list[str], folder: Path) -> JsonObject | None:
    """Train one seed; return the record of its first complete validation, if there is one."""
    out = folder / f"run-{seed}"
    command = [sys.executable, "-m", "regoal.cli", "train", str(folder / "train" / "domain.pddl")]
    paths = ["--problems", str(folder / "train"), "--validation", str(folder / "validation")]
    settings = ["--preset", "laptop", "--seed", str(seed), "--threads", str(machine.cores())]
    words = [*command, *paths, *settings, *options, "--out", str(out)]
    if code := subprocess.run(words, check=False, stdout=subprocess.DEVNULL).returncode:
        sys.exit(code)  # the command has printed what was wrong
    return first_complete(read_jsonl(out / VALIDATION))


def main() -> None:
    """Print a line for each seed, and the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None, allow_abbrev=False
    )
    parser.add_argument("domains", nargs="*", default=["blocks", "gripper"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", default="3m", help="most time for each seed")
    arguments, options = parser.parse_known_args()
    if arguments.seeds < 1:
        parser.error("--seeds must be at least 1")
    for domain in arguments.domains:
        with tempfile.TemporaryDirectory() as name:
            folder, seconds = Path(name), []
            for split in ("train", "validation"):
                write_split(domain, split, folder / split)
            for seed in range(arguments.seeds):
                record = train_once(domain, seed, ["--budget", arguments.budget, *options], folder)
                seconds.append(as_float(record["elapsed_s"]) if record else float("inf"))
                episode = record["episode"] if record else "-"
                print(f"{domain} seed {seed}: {seconds[-1]:.1f} s, episode {episode}", flush=True)
            print(f"{domain}: median {statistics.median(seconds):.1f} s", flush=True)


if __name__ == "__main__":
    script(main)
