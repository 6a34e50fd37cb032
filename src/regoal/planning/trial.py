"""What the PDDL library cannot survive is found out in a process of its own.

The text it gets is checked and in a form that it is known to take (`pddl_text`). Should it crash
all the same, only a copy of this process dies, and the user gets an error that names the file.
"""

import faulthandler
import os
import resource
import signal
import warnings
from collections.abc import Callable

CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


def crash_of(make: Callable[[], object]) -> str:
    """The name of the signal by which `make` ends a process, empty where it ends none.

    `make` runs in a copy of this process; what it returns or raises is not seen. Where no process
    can be made, e.g. for lack of memory, nothing is tried.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads do not matter here
            child = os.fork()
    except OSError:
        return ""
    if child == 0:
        _try(make)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) not in CRASHES:
        return ""
    return signal.Signals(os.WTERMSIG(status)).name


def _try(make: Callable[[], object]) -> None:
    """Call `make` and end this process, without a word and without what runs at an exit."""
    try:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        make()
    finally:
        os._exit(0)
