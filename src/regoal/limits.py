"""Limits on this process: wall-clock time and memory."""

import contextlib
import math
import resource
import signal
from collections.abc import Iterator
from types import FrameType

from regoal.errors import TimeLimitError

MIB = 1024 * 1024


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimitError` in the main thread when the block takes longer; infinite never does.

    A single call into compiled code is not interrupted: the error comes when it returns.
    """
    if math.isinf(seconds):
        yield
        return

    def end(signum: int, frame: FrameType | None) -> None:
        raise TimeLimitError(f"The time limit of {seconds:g} s is reached.")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def limit_memory(mib: float) -> None:
    """Let allocations of this process fail once its data exceeds `mib` MiB; infinite is no limit.

    Counted is what the process writes to (`RLIMIT_DATA`), not the libraries that it maps.
    """
    if math.isinf(mib):
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = int(mib * MIB)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
