"""Learn a policy from problems of Unified Planning."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from unified_planning.model import Problem

from regoal.config import LAPTOP, PRESETS, TrainConfig
from regoal.errors import UsageError
from regoal.runs.news import RunSummary, Tell
from regoal.up.translation import write_problems


def train(
    problems: Sequence[Problem],
    validation: Sequence[Problem] | None = None,
    *,
    out: str | Path,
    config: TrainConfig = LAPTOP,
    budget_s: float | None = None,
    resume: bool = False,
    tell: Tell = lambda news: None,
) -> RunSummary:
    """Learn from problems of one domain; returns how the training ended, and where the policy is.

    `out` is the run folder, and what `OneshotPlanner(name="regoal", params={"policy": out})` takes.
    `validation` are larger problems that choose the best policy; without them the largest of
    `problems` are held out. Training takes at most `budget_s` seconds, and goes on with an earlier
    call with `resume`. `tell` is called with what `regoal train` shows. Costs are not looked at.

    Raises `UsageError` if the problems are not of one domain, and else as `run_training` does.
    """
    # Planning with a policy needs no training code.
    from regoal.planning.load import load_domain
    from regoal.runs.settings import RunSettings
    from regoal.runs.training_run import run_training
    from regoal.system.threads import free_threads

    if not problems:
        raise UsageError("there is nothing to learn from: give at least one problem.")
    with tempfile.TemporaryDirectory(prefix="regoal-up-") as name:
        domain, files = write_problems([problems, validation or []], Path(name) / "pddl")
        return run_training(
            RunSettings(
                domain=domain,
                problems=files[0],
                validation=files[1] or None,
                out=Path(out),
                config=config,
                preset=next((name for name, of in PRESETS.items() if of == config), "own"),
                name=load_domain(domain).name,
                budget_s=budget_s,
                resume=resume,
                threads=free_threads(),
                device="auto",
            ),
            tell,
        )
