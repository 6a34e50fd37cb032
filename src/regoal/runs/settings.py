"""What a run is asked to do, and what it tells about its course and its end."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regoal.config import TrainConfig
from regoal.records.run_record import POLICY
from regoal.runs.validation import Validation

Ended = Literal["episodes", "budget", "patience", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What a run is asked to do."""

    domain: Path
    problems: Path
    """A folder of training problems, or one."""
    validation: Path | None
    """A folder of validation problems, or one; None holds out the largest of the others."""
    out: Path
    """The run folder."""
    config: TrainConfig
    preset: str
    """The preset that `config` started from."""
    name: str
    """What tables call the domain: the benchmark's name, or the name in the PDDL file."""
    budget_s: float | None = None
    """Wall-clock seconds of training and validation, of all sittings together; None for no end."""
    resume: bool = False
    """Go on with the run in `out` if there is one."""
    threads: int = 1
    """Threads of every computation; the numbers depend on it."""
    device: str = "cpu"
    """auto, cpu or cuda."""
    workers: int = 1
    """Processes that train together; the numbers depend on it."""

    def __str__(self) -> str:
        """What a training begins with, for the user."""
        workers = f"{self.workers} workers, each with " if self.workers > 1 else ""
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"{self.config.hindsight} hindsight, {self.preset} preset, {workers}{threads}"


@dataclass(frozen=True)
class Progress:
    """Where a run stands after an episode."""

    episode: int
    episodes: int
    coverage: float | None
    """Share of validation problems solved last, in [0, 1]; None before the first validation."""
    best_coverage: float | None
    goal_size: float
    """Mean literals of this episode's hindsight goals."""
    trajectory_length: float
    """Mean steps of this episode's relabelled parts."""
    loss: float
    elapsed_s: float
    left_s: float
    """Seconds until the last episode or the end of the budget, whichever is sooner; estimated."""


@dataclass(frozen=True)
class RunSummary:
    """How a run ended."""

    folder: Path
    ended: Ended
    episode: int
    """Episodes done."""
    best: Validation | None
    """Of the policy that was kept; None if the run was interrupted before any validation."""
    elapsed_s: float
    signal: int | None = None
    """What interrupted it."""

    @property
    def policy(self) -> Path | None:
        """The best policy's file, None where there is none yet."""
        return self.folder / POLICY if self.best else None

    @property
    def exit_code(self) -> int:
        """0, or 128 plus the signal's number as shells have it."""
        return 0 if self.signal is None else 128 + self.signal


Tell = Callable[[str | Progress], None]
