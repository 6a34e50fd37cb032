"""Independent random streams from one seed."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

StreamStates = Mapping[str, Mapping[str, Any]]
"""The state of each stream's bit generator by the stream's name, as JSON values."""


@dataclass(frozen=True)
class Streams:
    """Independent random streams: one more draw in one shifts no other."""

    problems: np.random.Generator
    exploration: np.random.Generator
    hindsight: np.random.Generator
    replay: np.random.Generator
    depth: np.random.Generator
    ties: np.random.Generator
    others: np.random.Generator

    @classmethod
    def from_seed(cls, seed: int) -> "Streams":
        """All streams from one seed."""
        return cls(*(np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(7)))

    def state(self) -> StreamStates:
        """Return the position of each stream."""
        return {f.name: getattr(self, f.name).bit_generator.state for f in fields(self)}

    def restore(self, state: StreamStates) -> None:
        """Go back to what `state` returned. Raises `LookupError`, `TypeError` or `ValueError`."""
        for name, stand in state.items():
            getattr(self, name).bit_generator.state = stand
