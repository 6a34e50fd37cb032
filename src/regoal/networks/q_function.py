"""A Q-network that is run and not trained; it needs no PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from regoal.networks.batch import Batch
from regoal.networks.inference import Floats, embed, read_q_values
from regoal.networks.parameters import Layout
from regoal.networks.relations import Relation

QValues = npt.NDArray[np.floating[Any]]
"""[actions] the Q-values of one input's actions."""


class RatesActions(Protocol):
    """A network that rates actions: a `QFunction`, or a `QNetwork` during its training."""

    @property
    def layout(self) -> Layout:
        """The places of its weights."""

    @property
    def on_cpu(self) -> bool:
        """Whether it runs on the CPU, so that copies of this process can run it too."""

    def q_values(self, batch: Batch, layers: int) -> Sequence[npt.ArrayLike]:
        """Compute Q-values [actions] of each instance of the batch, after so many rounds."""


@dataclass(frozen=True)
class QFunction:
    """The relations, weights and readout of a network."""

    relations: tuple[Relation, ...]
    embedding_size: int
    weights: Floats
    """[layout.length]"""

    @cached_property
    def layout(self) -> Layout:
        """The place of each weight in the vector."""
        return Layout(tuple(r.arity for r in self.relations), self.embedding_size)

    @property
    def on_cpu(self) -> bool:
        """Whether it runs on the CPU."""
        return True

    def q_values(self, batch: Batch, layers: int) -> Sequence[Floats]:
        """Compute Q-values [actions] of each instance of the batch, after so many rounds.

        Raises `ValueError` if there are fewer than one, and `MemoryError`.
        """
        x = embed(self.weights, self.layout, batch, layers)
        values = read_q_values(self.weights, self.layout, batch, x)
        ends = list(accumulate(batch.action_counts))
        return np.split(values, ends[:-1])

    def without_silent_relations(self) -> "QFunction":
        """Copy it without the relations whose messages' weights are all zero."""
        # A relation's last bias stands for all its weights.
        parts = self.layout.parts(self.weights)
        numbers = range(len(self.relations))
        silent = {i for i in numbers if not parts[f"message.{i}.bias_out"].any()}
        dropped = {f"message.{i}" for i in silent}
        kept = [
            part.ravel() for name, part in parts.items() if name.rpartition(".")[0] not in dropped
        ]
        relations = tuple(r for i, r in enumerate(self.relations) if i not in silent)
        return QFunction(relations, self.embedding_size, np.concatenate(kept))
