"""How a policy did on the validation problems, as a record. No torch here."""

from dataclasses import dataclass

TENTHS = 10
"""Policies are equally robust if they solve the same tenths of the problems with noise."""


@dataclass(frozen=True)
class Validation:
    """How a policy did on the validation problems."""

    episode: int
    solved: int
    problems: int
    plan_length: int
    """Actions of all plans together."""
    tried: int
    """Problems that were run: fewer than all if the policy cannot become the best one."""
    robust: int = 0
    """Problems that were solved with noise on the Q-values; 0 if that was not tried."""

    @property
    def coverage(self) -> float:
        """Share of the problems that were solved, in [0, 1]."""
        return self.solved / self.problems

    @property
    def complete(self) -> bool:
        """Whether every problem was solved."""
        return self.solved == self.problems

    @property
    def merit(self) -> tuple[int, int, int]:
        """More is better."""
        return self.solved, self.robust * TENTHS // self.problems, -self.plan_length

    def __str__(self) -> str:
        if self.tried < self.problems:
            return f"{self.solved} of the {self.tried} smallest solved, the others not tried"
        noisy = f", {self.robust} with noise" if self.robust else ""
        return f"{self.solved}/{self.problems} solved{noisy}, {self.plan_length} actions in all"
