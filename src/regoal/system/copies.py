"""A call in a copy of this process, with limits of time and memory that end only the copy."""

import faulthandler
import math
import multiprocessing
import signal
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TypeVar

from regoal.errors import RegoalError, lacks_memory
from regoal.system.cancellation import end_with_parent
from regoal.system.limits import MIB, limit_data

T = TypeVar("T")

OUT_OF_MEMORY = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGKILL)
"""Exit codes of a copy whose compiled code, or whose system, found no more memory."""


def call_with_limits(work: Callable[[], T], *, seconds: float, mib: float) -> T:
    """Return the result of `work`, called in a copy of this process.

    `seconds` count wall-clock time. Memory is what the copy may write to (`RLIMIT_DATA`), in MiB,
    with what it has from this process. The result must be one that a pipe can carry. Raises
    `TimeoutError` or `MemoryError` if a limit is reached, and the `RegoalError` that `work` raises.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(work, mib, sender), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads do not matter here
        child.start()
    sender.close()
    try:
        if not receiver.poll(None if math.isinf(seconds) else max(seconds, 0)):
            raise TimeoutError
        result, error = receiver.recv()
    except EOFError:
        child.join()
        if child.exitcode in OUT_OF_MEMORY:
            raise MemoryError from None
        raise RegoalError(f"a process was lost (exit code {child.exitcode}).") from None
    finally:
        child.kill()
        child.join()
        receiver.close()
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


def _work(work: Callable[[], object], mib: float, sender: Connection) -> None:
    """Send the pair of result and error, of which one is None."""
    end_with_parent()
    faulthandler.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all, and one acts on it
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if math.isfinite(mib):
        limit_data(int(mib * MIB))
    result: object = None
    error: Exception | None = None
    try:
        result = work()
    except RegoalError as raised:
        error = raised
    except Exception as raised:
        error = MemoryError() if lacks_memory(raised) else RuntimeError(traceback.format_exc())
    with suppress(BrokenPipeError):
        sender.send((result, error))
