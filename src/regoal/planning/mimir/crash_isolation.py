"""Try in a copy of the process what could crash the PDDL library or fill the memory.

The library gets only text that is checked and in a form that it accepts (`pddl/library_text`). If
it crashes all the same, only the copy dies, and the user gets an error that names the file.
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


def find_crash(make: Callable[[], object]) -> str:
    """Return the name of the signal by which `make` crashes, or "" if it does not crash.

    `make` runs in a copy of this process. What it returns or raises does not matter. If no process
    can be made, e.g. for lack of memory, `make` is not tried.
    """
    child = _try_fork()
    if child is None:
        return ""
    if child == 0:
        _run_and_exit(make)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) not in CRASHES:
        return ""
    return signal.Signals(os.WTERMSIG(status)).name


def count_in_copy(count: Callable[[], int], *, mib: int) -> int | None:
    """Run `count` in a copy of this process, with `mib` MiB more memory, and return its result.

    Returns None if the memory does not suffice or the copy crashes, and 0 if no process can be
    made. This process answers signals and calls `stopping.check` while it waits. The copy ends
    with this call at the latest.
    """
    reading, writing = os.pipe()
    child = _try_fork()
    if child == 0:
        _run_and_exit(lambda: _write_count(count, writing, mib))
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
        answer = stream.read()
    return int(answer) if answer else None


def _write_count(count: Callable[[], int], writing: int, mib: int) -> None:
    stopping.end_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    limit_data(_read_data_bytes() + mib * MIB)
    os.write(writing, str(count()).encode())


def _read_data_bytes() -> int:
    """Return the bytes of this process that `RLIMIT_DATA` counts."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[5]) * resource.getpagesize()


def _try_fork() -> int | None:
    """Call `os.fork`; return None if no process can be made."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads do not matter here
            return os.fork()
    except OSError:
        return None


def _run_and_exit(make: Callable[[], object]) -> None:
    """Call `make` and end this process silently, without exit handlers."""
    try:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        make()
    finally:
        os._exit(0)
