"""LAMA on the test sets, for the paper's Table 2: `python -m reproduction.lama DOMAINS...`.

When all records of a domain are complete, they are copied to `results/DOMAIN/lama/0/`. There,
`python -m reproduction.paper` and `regoal report results` find them. The limits for each problem
are 5 minutes of processor time and 4 GiB.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from regoal.cli import script
from regoal.domains.splits import write_split
from regoal.records.json_lines import write_json
from regoal.records.run_record import CONFIG, RESULTS
from reproduction.cells import RESULTS_FOLDER
from reproduction.words import words

LIMITS = {"time-limit": "5m", "memory-limit": "4G"}
BUILD = Path(__file__).parent.parent / "build"
PROBLEMS = BUILD / "problems"


def main() -> None:
    """Run every domain named on the command line, one after the other."""
    for domain in words(str, "domains", __doc__):
        run(domain, test_problems(domain, 0))


def test_problems(domain: str, seed: int) -> Path:
    """Write a domain's test problems and return their folder."""
    folder = PROBLEMS / f"seed-{seed}" / domain / "test"
    write_split(domain, "test", folder, seed)
    return folder


def run(domain: str, folder: Path) -> None:
    """Find LAMA's first plans for the problems of a folder, one at a time."""
    out = RESULTS_FOLDER / domain / "lama" / "0"
    unfinished = BUILD / "lama" / f"{domain}.jsonl"
    limits = [word for name, value in LIMITS.items() for word in (f"--{name}", value)]
    command = [sys.executable, "-m", "regoal.cli", "lama", str(folder / "domain.pddl")]
    paths = ["--problems", str(folder), "--out", str(unfinished)]
    if code := subprocess.run([*command, *paths, *limits], check=False).returncode:
        sys.exit(code)  # the command has printed what was wrong
    out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(unfinished, out / RESULTS)
    write_json(out / CONFIG, {"domain": domain, "method": "lama", **LIMITS})


if __name__ == "__main__":
    script(main)
