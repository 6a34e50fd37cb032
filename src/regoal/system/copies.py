"""Copies of this process, and calls in a copy under limits of time and memory."""

import ctypes
import faulthandler
import math
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import NoReturn, TypeVar

from regoal.errors import RegoalError, lacks_memory
from regoal.system.cancellation import check

T = TypeVar("T")

MIB = 1024 * 1024
POLL_S = 0.02
"""Seconds between two questions whether to stop, while a call in a copy lasts."""
OUT_OF_MEMORY = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGKILL)
"""Exit codes of a copy whose compiled code, or whose system, found no more memory."""


class LostCopyError(RegoalError):
    """A copy that ended before it answered; `exit_code` is -n if signal n ended it."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"a process was lost (exit code {exit_code}).")
        self.exit_code = exit_code


@dataclass(frozen=True)
class Copy:
    """A copy of this process at work, and the end of the pipe from which its answers come."""

    pid: int
    receiver: Connection

    def wait(self) -> int:
        """Wait until the copy has ended by itself; return its exit code, -n after signal n."""
        _, status = os.waitpid(self.pid, 0)
        self.receiver.close()
        return os.waitstatus_to_exitcode(status)

    def end(self) -> None:
        """Kill the copy if it is still at work, and wait until it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.wait()


def start_copy(work: Callable[[Connection], object]) -> Copy:
    """Call `work` in a copy of this process, with the end of the pipe for its answers.

    The copy ends after the call, without exit handlers, and if this process ends. A terminal's
    Ctrl-C does not reach it; SIGTERM and SIGHUP end it. `wait` or `end` of the result must be
    called. Raises `OSError` if no process can be made.
    """
    receiver, sender = Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads do not matter here
            pid = os.fork()
    except OSError:
        receiver.close()
        sender.close()
        raise
    if pid == 0:
        receiver.close()
        _work_and_exit(work, sender)
    sender.close()
    return Copy(pid, receiver)


def _work_and_exit(work: Callable[[Connection], object], sender: Connection) -> NoReturn:
    code = 1
    try:
        _end_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent answers it
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        work(sender)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Let this process be killed when the one that made it ends; only on Linux."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def limit_data(limit: int) -> None:
    """Let this process write to at most so many bytes of memory, or to as many as it may anyway."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = min(limit, sys.maxsize)  # the system takes no larger number
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def call_in_copy(work: Callable[[], T], *, seconds: float = math.inf, mib: float = math.inf) -> T:
    """Return the result of `work`, called in a copy of this process.

    `seconds` count wall-clock time. Memory is what the copy may write to (`RLIMIT_DATA`), in MiB,
    with what it has from this process. The result must be one that a pipe can carry. Raises
    `TimeoutError` if the time is over, `MemoryError` or `LostCopyError` if memory runs out, and
    the `RegoalError` that `work` raises. Other errors of `work` become `RuntimeError`. Raises
    `StoppedError` if `regoal.system.cancellation` ends the wait, and `OSError` if no process can
    be made.
    """
    deadline = time.monotonic() + seconds
    copy = start_copy(lambda sender: _answer(work, mib, sender))
    try:
        while not copy.receiver.poll(max(0.0, min(POLL_S, deadline - time.monotonic()))):
            check()
            if time.monotonic() >= deadline:
                raise TimeoutError
        result, error = copy.receiver.recv()
    except EOFError:
        raise LostCopyError(copy.wait()) from None
    except BaseException:
        copy.end()
        raise
    copy.end()
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


def call_with_limits(work: Callable[[], T], *, seconds: float, mib: float) -> T:
    """Return the result of `work` as `call_in_copy` does, under limits.

    Raises `MemoryError` also if a lack of memory ends the copy.
    """
    try:
        return call_in_copy(work, seconds=seconds, mib=mib)
    except LostCopyError as lost:
        if lost.exit_code in OUT_OF_MEMORY:
            raise MemoryError from None
        raise


def _answer(work: Callable[[], object], mib: float, sender: Connection) -> None:
    """Send the pair of result and error, of which one is None."""
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
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
