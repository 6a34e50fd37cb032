"""The reports of a run while it goes on, and of its end."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regoal.records.run_record import POLICY
from regoal.records.validation import Validation

Ending = Literal["episodes", "budget", "patience", "interrupted"]
"""Why a run is over."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run after an episode."""

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
    ended: Ending
    episode: int
    """Episodes done."""
    best: Validation | None
    """Of the policy that was kept; None if the run was interrupted before any validation."""
    elapsed_s: float
    signal: int | None = None
    """The signal that interrupted it."""

    @property
    def policy(self) -> Path | None:
        """The best policy's file, None if there is none yet."""
        return self.folder / POLICY if self.best else None

    @property
    def exit_code(self) -> int:
        """0, or 128 plus the signal's number as shells have it."""
        return 0 if self.signal is None else 128 + self.signal


Tell = Callable[[str | Progress], None]
