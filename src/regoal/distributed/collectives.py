"""Several processes that train one network together, on one machine or more.

Every worker holds the same learner, replay buffer and random streams and takes every decision with
the others. Only work is split: an optimisation step by transitions, exploration by trajectories,
validation by problems. What each found is then given to all, so that all stay the same. One worker
alone is the plain training, and nothing here does anything.
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
"""How long to wait for another worker, which may be busy with a large validation problem; one that
has ended is noticed at once."""


class WorkerLostError(RegoalError):
    """Another worker has ended, or cannot be reached, so that this one cannot go on."""


@dataclass(frozen=True)
class Workers:
    """This worker's number, counted from 0, and how many there are."""

    rank: int = 0
    count: int = 1

    def share(self, items: int) -> slice:
        """This worker's part of so many items: without gaps, of about equal size for all."""
        return slice(items * self.rank // self.count, items * (self.rank + 1) // self.count)

    def sum(self, *tensors: Tensor) -> list[Tensor]:
        """The sums of each tensor over the workers, the same bits for all of them.

        Shapes and types must agree. Raises `WorkerLostError`.
        """
        if self.count == 1:
            return list(tensors)
        joined = torch.cat([tensor.detach().flatten() for tensor in tensors])
        with _told():
            distributed.all_reduce(joined)
        parts = torch.split(joined, [tensor.numel() for tensor in tensors])
        return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]

    def gather(self, value: T) -> list[T]:
        """What each worker has, in their order. Raises `WorkerLostError`."""
        if self.count == 1:
            return [value]
        values: list[T] = [value] * self.count
        with _told():
            distributed.all_gather_object(values, value)
        return values


ALONE = Workers()

was_connected = False
"""Whether this process has been one of several."""


def leave(code: int) -> NoReturn:
    """End this process, which has been connected, without taking the interpreter down.

    One of gloo's threads may still let go of its last tensor, and would abort the process if it
    met an interpreter that ends (github.com/pytorch/pytorch/pull/179291). Where what was printed
    cannot be written, the code is 120, as Python's own.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    os._exit(code)


@contextlib.contextmanager
def connected(workers: Workers, address: str) -> Iterator[None]:
    """Connect this worker with the others, and part at the end.

    `address` is `tcp://HOST:PORT`, or `env://` for what torchrun describes. Raises
    `WorkerLostError` where they do not come together.
    """
    global was_connected  # noqa: PLW0603 - a fact of the process
    was_connected = True
    with _told():
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
def _told() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # what gloo raises, whatever is wrong
        raise WorkerLostError(
            "Another worker of this training has ended or cannot be reached; its own output may "
            "say why. What was saved stays: go on with --resume."
        ) from error
