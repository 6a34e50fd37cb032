"""Commands that make problems and learn from them."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import FlagCreatePairsOff, Positional, arg

from regoal.commands.arguments import Device, Duration
from regoal.config import LAPTOP, TrainConfig
from regoal.domains.splits import DEFAULT_MAX_STATES, DOMAINS, write_split
from regoal.errors import (
    EXIT_DONE,
    UsageError,
)
from regoal.records.run_record import recorded_number
from regoal.system.threads import free_threads, process_group


@dataclass(frozen=True, kw_only=True)
class Generate:
    """Write a built-in benchmark domain and the problems of one split."""

    domain: Annotated[Positional[str], arg(help=f"One of: {', '.join(DOMAINS)}.")]
    split: str = "train"
    """train, validation or test, with the paper's sizes; some domains have further test sets."""
    out: Path
    """An empty or new folder for domain.pddl and p001.pddl, p002.pddl, ..."""
    seed: int = 0
    """Equal seeds give equal files."""
    max_states: int = DEFAULT_MAX_STATES
    """For domains with suffix -l: training problems with more reachable states are left out."""

    def run(self) -> int:
        """Write the files."""
        problems = write_split(
            self.domain, self.split, self.out, self.seed, max_states=self.max_states
        )
        name = self.domain.lower()
        print(f"{len(problems)} problems of {name} ({self.split}) are in {self.out}")
        return EXIT_DONE


@dataclass(frozen=True, kw_only=True)
class Train:
    """Learn a policy for a domain from small problems. A preset gives the default values."""

    domain: Positional[Path]
    """The domain file."""
    problems: Path
    """The folder with the training problems; some of them must be very small."""
    out: Path
    """The run folder: configuration, records, the best policy, the checkpoint."""
    validation: Path | None = None
    """The folder with the validation problems, larger than those for training: they choose the
    best policy. Without it, the largest of --problems are held out for that."""
    preset: Literal["laptop", "paper"] = "laptop"
    """laptop: minutes on two CPU cores; paper: the paper's numbers."""
    budget: Duration = math.inf
    """End after this much wall-clock time, e.g. 90s, 10m, 2h."""
    resume: FlagCreatePairsOff[bool] = False
    """Go on after an earlier call with the same --out was stopped; begin if there was none."""
    name: str = ""
    """The domain's name in tables. Without it, the name in the domain file."""
    threads: int = 0
    """CPU threads of each worker. 0 takes as many as OMP_NUM_THREADS says, or the worker's share of
    the cores, at most 8. The number changes the weights slightly; --resume keeps it."""
    workers: int = 0
    """Processes on this machine that train together. 0 takes one, or those that torchrun started.
    The number changes the policy; --resume keeps it."""
    device: Device = "auto"
    config: Annotated[TrainConfig, arg(name="")] = LAPTOP

    def run(self) -> int:
        """Train, showing how it goes."""
        from regoal import terminal
        from regoal.planning.load import load_domain
        from regoal.runs.settings import RunSettings
        from regoal.runs.training_run import run_training

        for name in ("threads", "workers"):
            if getattr(self, name) < 0:
                raise UsageError(
                    f"--{name} is at least 1, or 0 for the usual number; got {getattr(self, name)}."
                )
        group = process_group()
        workers, threads = self.workers or (group.size if group.size > 1 else 0), self.threads
        if self.resume:
            workers = workers or recorded_number(self.out, "workers")
            threads = threads or recorded_number(self.out, "threads")
        workers = workers or 1
        settings = RunSettings(
            domain=self.domain,
            problems=self.problems,
            validation=self.validation,
            out=self.out,
            config=self.config,
            preset=self.preset,
            name=self.name or load_domain(self.domain).name,
            budget_s=None if math.isinf(self.budget) else self.budget,
            resume=self.resume,
            threads=threads or free_threads(group.here if group.size > 1 else workers),
            workers=workers,
            device=self.device,
        )
        if group.rank > 0:
            return run_training(settings, lambda news: None).exit_code
        with terminal.live_line() as show:
            summary = run_training(settings, lambda news: terminal.show_news(news, show))
        print("\n".join(terminal.summary_lines(summary)))
        return summary.exit_code
