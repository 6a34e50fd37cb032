"""What the PDDL library cannot survive is found out in a process of its own.

The text it gets is checked and in a form that it is known to take (`pddl_text`). Should it crash
all the same, only a copy of this process dies, and the user gets an error that names the file.
"""

import contextlib
import faulthandler
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable

from regoal.system import cancellation as stopping
from regoal.system.limits import MIB, limit_data

POLL_S = 0.005
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


def crash_of(make: Callable[[], object]) -> str:
    """The name of the signal by which `make` ends a process, empty where it ends none.

    `make` runs in a copy of this process; what it returns or raises is not seen. Where no process
    can be made, e.g. for lack of memory, nothing is tried.
    """
    child = _fork()
    if child is None:
        return ""
    if child == 0:
        _try(make)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) not in CRASHES:
        return ""
    return signal.Signals(os.WTERMSIG(status)).name


def count_of(count: Callable[[], int], *, mib: int) -> int | None:
    """What `count` returns in a copy of this process that gets `mib` MiB more than this one has.

    None where that does not suffice, or a crash ends it. Meanwhile `stopping.check` is called, and
    signals are answered; the copy ends with this call. Where no process can be made, 0 is returned.
    """
    reading, writing = os.pipe()
    child = _fork()
    if child == 0:
        _try(lambda: _count(count, writing, mib))
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        if child is None:
            return 0
        try:
            while not os.waitpid(child, os.WNOHANG)[0]:
                stopping.check()
                time.sleep(POLL_S)
        except BaseException:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            raise
        told = stream.read()
    return int(told) if told else None


def _count(count: Callable[[], int], writing: int, mib: int) -> None:
    stopping.end_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    limit_data(_data_bytes() + mib * MIB)
    os.write(writing, str(count()).encode())


def _data_bytes() -> int:
    """What `RLIMIT_DATA` counts of this process."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[5]) * resource.getpagesize()


def _fork() -> int | None:
    """As `os.fork`, but None where no process can be made."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads do not matter here
            return os.fork()
    except OSError:
        return None


def _try(make: Callable[[], object]) -> None:
    """Call `make` and end this process, without a word and without what runs at an exit."""
    try:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        make()
    finally:
        os._exit(0)
