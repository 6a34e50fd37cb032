"""The whole way from training to plans, on Blocks: `make demo`, under 12 minutes on two cores.

Trains with lifted hindsight goals on the paper's training split (2 to 14 blocks). Then solves 20
unseen problems with 20 to 50 blocks, and checks every plan twice. All files are in `build/demo`.
"""

import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from regoal.records.run_record import RESULTS, read_results

OUT = Path("build/demo")
RUN, TEST, PLANS, REPORT = OUT / "run", OUT / "test", OUT / "plans", OUT / "report"
BUDGET = sys.argv[1] if sys.argv[1:] else "7m"
"""Time for training: the first argument, or 7 minutes."""
TESTED, SIZES = 20, 31
ENOUGH = 18
"""Problems that must be solved for the demonstration to count as a success."""


def main() -> int:
    """Run every step; returns 0 if enough problems are solved and every plan is valid."""
    started = time.monotonic()
    shutil.rmtree(OUT, ignore_errors=True)
    for split in ("train", "validation", "test"):
        regoal("generate", "blocks", "--split", split, "--out", OUT / split)
    keep_some_of(TEST)
    regoal(
        *("train", OUT / "train" / "domain.pddl", "--problems", OUT / "train"),
        *("--validation", OUT / "validation", "--hindsight", "lifted", "--preset", "laptop"),
        *("--budget", BUDGET, "--out", RUN),
    )
    regoal("evaluate", RUN, "--problems", TEST, "--out", RUN / RESULTS, "--plans", PLANS)
    domain = TEST / "domain.pddl"
    plans = sorted(PLANS.glob("*.plan"))
    for plan in plans:
        regoal("validate", domain, TEST / f"{plan.stem}.pddl", plan)
    accepted = [plan for plan in plans if is_accepted_elsewhere(domain, plan)]
    regoal("report", RUN, "--out", REPORT)

    results = read_results(RUN / RESULTS)
    lengths = {result.problem: result.plan_length for result in results if result.solved}
    print(f"\nCoverage: {len(lengths)} of {len(results)} problems with 20 to 50 blocks")
    print("Plan lengths:", ", ".join(f"{name} {length}" for name, length in lengths.items()))
    print(f"Valid by regoal validate: {len(plans)}; by unified-planning: {len(accepted)}")
    print(f"Plans: {PLANS}/  Plot: {', '.join(str(path) for path in sorted(REPORT.glob('*.png')))}")
    print(f"Time: {(time.monotonic() - started) / 60:.1f} minutes")
    return 0 if len(lengths) >= ENOUGH and len(accepted) == len(plans) == len(lengths) else 1


def regoal(*words: str | Path) -> None:
    """Print and run one command; ends the demonstration if the command fails."""
    command = [str(word) for word in words]
    print(f"\n$ regoal {shlex.join(command)}", flush=True)
    subprocess.run([sys.executable, "-m", "regoal.cli", *command], check=True)


def keep_some_of(folder: Path) -> None:
    """Keep 20 of the test problems, evenly spread: p001 to p031 have 20, 21, ... 50 blocks."""
    kept = {f"p{1 + round(i * (SIZES - 1) / (TESTED - 1)):03}" for i in range(TESTED)}
    for problem in folder.glob("p*.pddl"):
        if problem.stem not in kept:
            problem.unlink()


def is_accepted_elsewhere(domain: Path, plan: Path) -> bool:
    """Tell whether unified-planning's validator, which shares no code with ours, accepts a plan."""
    from unified_planning.engines import SequentialPlanValidator, ValidationResultStatus
    from unified_planning.io import PDDLReader

    reader = PDDLReader()
    problem = reader.parse_problem(str(domain), str(TEST / f"{plan.stem}.pddl"))
    steps = reader.parse_plan(problem, str(plan))
    with SequentialPlanValidator() as validator:
        return validator.validate(problem, steps).status is ValidationResultStatus.VALID


if __name__ == "__main__":
    sys.exit(main())
