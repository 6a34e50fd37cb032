"""Try in a copy of the process what could crash the PDDL library or fill the memory.

The library gets only text that is checked and in a form that it accepts (`pddl/library_text`). If
it crashes all the same, only the copy dies, and the user gets an error that names the file.
"""

import resource
import signal
from collections.abc import Callable

from regoal.system.copies import MIB, LostCopyError, call_in_copy

CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


def find_crash(make: Callable[[], object]) -> str:
    """Return the name of the signal by which `make` crashes, or "" if it does not crash.

    `make` runs in a copy of this process. What it returns or raises does not matter. If no process
    can be made, e.g. for lack of memory, `make` is not tried.
    """

    def try_it() -> None:
        make()

    try:
        call_in_copy(try_it)
    except LostCopyError as lost:
        if -lost.exit_code in CRASHES:
            return signal.Signals(-lost.exit_code).name
    except (OSError, MemoryError, RuntimeError):
        pass
    return ""


def count_in_copy(count: Callable[[], int], *, mib: int) -> int | None:
    """Run `count` in a copy of this process, with `mib` MiB more memory, and return its result.

    Returns None if the memory does not suffice or the copy crashes, and 0 if no process can be
    made. This process answers signals and calls `cancellation.check` while it waits.
    """
    try:
        return call_in_copy(count, mib=_read_data_mib() + mib)
    except (MemoryError, RuntimeError, LostCopyError):
        return None
    except OSError:
        return 0


def _read_data_mib() -> float:
    """Return the MiB of this process that `RLIMIT_DATA` counts."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[5]) * resource.getpagesize() / MIB
