"""Ground actions, and the one that stands for "nothing is applicable"."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, order=True)
class GroundAction:
    """An action schema applied to objects; ordered and equal by schema name and objects."""

    name: str
    objects: tuple[str, ...]
    library_action: Any = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """The action as a plan file writes it, e.g. `(stack a b)`."""
        return f"({' '.join((self.name, *self.objects))})"


DUMMY_ACTION = GroundAction("<dummy>", ())
"""Stands for "nothing is applicable" and leaves the state unchanged (paper, "Goal-Conditioned RL").

Its name cannot be written in PDDL, so it never meets an action of a domain.
"""

MOST_APPLICABLE = 1_000_000
"""Most applicable actions of a state. A million take 10 s and 0.8 GB to list."""
