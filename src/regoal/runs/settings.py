"""The settings of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regoal.config import TrainConfig
from regoal.errors import UsageError
from regoal.system.threads import MOST_THREADS


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings of a run: its inputs, configuration, budget and folder."""

    domain: Path
    problems: Path | Sequence[Path]
    """A folder of training problems, or one, or a list of files."""
    validation: Path | Sequence[Path] | None
    """The validation problems, given likewise; None holds out the largest of the others."""
    out: Path
    """The run folder."""
    config: TrainConfig
    preset: str
    """The preset that `config` started from."""
    name: str
    """The domain's name in tables: the benchmark's, or the one in the PDDL file."""
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
        """Summarise the settings in a line for the user."""
        workers = f"{self.workers} workers, each with " if self.workers > 1 else ""
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"{self.config.hindsight} hindsight, {self.preset} preset, {workers}{threads}"

    def check(self) -> None:
        """Raise `UsageError` for a number that will not do."""
        if self.budget_s is not None and not self.budget_s > 0:
            raise UsageError(f"the budget must be above 0 seconds, got {self.budget_s}.")
        if not 1 <= self.threads <= MOST_THREADS:
            raise UsageError(
                f"--threads lies in 1 to {MOST_THREADS}, or is 0 for the usual number; "
                f"got {self.threads}."
            )
        if not 1 <= self.workers <= self.config.batch_size:
            raise UsageError(
                f"--workers lies in 1 to the batch size {self.config.batch_size}, "
                f"got {self.workers}."
            )
        if self.workers > 1 and self.device == "cuda":
            raise UsageError("Several workers share a CPU's cores; on a GPU take one, --workers 1.")
