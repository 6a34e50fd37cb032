"""Several processes, called workers, that train one network together on one or more machines.

Every worker holds the same learner, replay buffer and random streams, and makes the same decisions.
Only work is split: an optimisation step by transitions, exploration by trajectories, validation by
problems. Each worker's results are then given to all, so that all workers stay equal. A single
worker trains as usual, and nothing in this module has an effect.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn, TypeVar

import torch
from torch import Tensor, distributed

from regoal.errors import RegoalError

T = TypeVar("T")
PATIENCE = timedelta(hours=6)
"""How long to wait for another worker, which may be busy with a large validation problem. A worker
that has ended is noticed at once."""


class WorkerLostError(RegoalError):
    """This worker cannot go on, because another one has ended or cannot be reached."""


@dataclass(frozen=True)
class Workers:
    """This worker's number, counted from 0, and how many there are."""

    rank: int = 0
    count: int = 1

    def share(self, items: int) -> slice:
        """Return this worker's part of so many items; the parts of all workers are about equal."""
        return slice(items * self.rank // self.count, items * (self.rank + 1) // self.count)

    def sum(self, *tensors: Tensor) -> list[Tensor]:
        """Sum each tensor over the workers; all workers get the same bits.

        Shapes and types must agree. Raises `WorkerLostError`.
        """
        if self.count == 1:
            return list(tensors)
        joined = torch.cat([tensor.detach().flatten() for tensor in tensors])
        with _detect_lost_worker():
            distributed.all_reduce(joined)
        parts = torch.split(joined, [tensor.numel() for tensor in tensors])
        return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]

    def gather(self, value: T) -> list[T]:
        """Return the values of all workers, in their order. Raises `WorkerLostError`."""
        if self.count == 1:
            return [value]
        values: list[T] = [value] * self.count
        with _detect_lost_worker():
            distributed.all_gather_object(values, value)
        return values


ALONE = Workers()

was_connected = False
"""Whether this process has ever been connected with other workers."""


def leave(code: int) -> NoReturn:
    """End this process without shutting down the interpreter; for processes that were connected.

    A thread of gloo may still free its last tensor. It would abort the process if the interpreter
    were shutting down (github.com/pytorch/pytorch/pull/179291). If printed text cannot be flushed,
    the exit code is 120, as in Python itself.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    os._exit(code)


@contextlib.contextmanager
def connected(workers: Workers, address: str) -> Iterator[None]:
    """Connect this worker with the others, and disconnect it at the end.

    `address` is `tcp://HOST:PORT`, or `env://` for the address that torchrun sets. Raises
    `WorkerLostError` if some worker cannot be reached.
    """
    global was_connected  # noqa: PLW0603 - it belongs to the process
    was_connected = True
    with _detect_lost_worker():
        distributed.init_process_group(
            "gloo",
            init_method=address,
            rank=workers.rank,
            world_size=workers.count,
            timeout=PATIENCE,
        )
    try:
        yield
    finally:
        distributed.destroy_process_group()


@contextlib.contextmanager
def _detect_lost_worker() -> Iterator[None]:
    """Raise `WorkerLostError` instead of what gloo raises."""
    try:
        yield
    except RuntimeError as error:  # gloo raises it for every fault
        raise WorkerLostError(
            "Another worker of this training has ended or cannot be reached; its own output may "
            "say why. The last checkpoint is kept: go on with --resume."
        ) from error
