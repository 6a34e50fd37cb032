"""Q-values of many inputs, in batches that fit into memory."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from regoal.errors import lacks_memory
from regoal.networks.batch import Input
from regoal.networks.encoder import Encoder
from regoal.networks.q_function import QValues, RatesActions

BATCH_BYTES = 16 * 2**20
"""Memory for one forward pass, without the states. Larger batches were no faster on a CPU, and a
problem shares its wall-clock time with the others in its batch."""
BYTES_A_NUMBER = 20
"""Peak bytes of a forward pass for each number of each node's or argument's embedding.

The network's plain definition needs 16 (15.2 to 15.6 were measured), and the kernel less. The rest
is for the index lists."""

log = logging.getLogger(__name__)


class Rated(Protocol):
    """Has an input that the network rates."""

    def input(self, encoder: Encoder) -> Input:
        """Return the input, made at the first call."""


@dataclass
class Memory:
    """The limit of a batch's memory, and estimates of what states need."""

    encoder: Encoder
    embedding_size: int
    limit: int
    """The most bytes in a batch."""
    warned: bool = False

    def estimate(self, execution: Rated) -> int:
        """Estimate the bytes that a state adds to a batch."""
        x, goal = execution.input(self.encoder)
        arguments = sum(map(len, (x.fixed.args, x.changing.args, goal.args)))
        return BYTES_A_NUMBER * self.embedding_size * (x.nodes + arguments)

    def estimate_batch(self, active: Sequence[Rated]) -> int:
        """Estimate the bytes of a batch."""
        return sum(map(self.estimate, active))

    def split(self, active: Sequence[Rated]) -> Iterator[Sequence[Rated]]:
        """Split into runs that fit, each of at least one, as states grow and shrink."""
        start, used = 0, 0
        for i, x in enumerate(active):
            needed = self.estimate(x)
            if i > start and used + needed > self.limit:
                yield active[start:i]
                start, used = i, 0
            used += needed
        yield active[start:]

    def halve(self, part: Sequence[Rated]) -> None:
        """Limit batches to half the size of this one, which did not fit; warns the first time."""
        self.limit = min(self.limit, self.estimate_batch(part)) // 2
        if not self.warned:
            log.warning("memory ran out: going on with smaller batches, which takes longer")
            self.warned = True


def compute_q_values(
    network: RatesActions, active: Sequence[Rated], layers: int, memory: Memory
) -> list[QValues | None]:
    """Compute Q-values of each input's actions; None for an input that does not fit alone."""
    found: list[QValues | None] = []
    parts = list(reversed(list(memory.split(active))))
    while parts:
        part = parts.pop()
        try:
            batch = memory.encoder.join([x.input(memory.encoder) for x in part])
            found += map(np.asarray, network.q_values(batch, layers))
            continue
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
        # Outside the except block, the error has freed the memory that it kept alive.
        if len(part) == 1:
            found.append(None)
        else:
            memory.halve(part)
            parts += reversed(list(memory.split(part)))
    return found
