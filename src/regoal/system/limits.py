"""Limits on wall-clock time and memory, kept even if compiled code does not return."""

import contextlib
import math
import os
import resource
import signal
import sys
import time

from regoal.errors import EXIT_MEMORY, EXIT_TIME, UsageError
from regoal.system.copies import MIB, limit_data
from regoal.system.units import number_text

LEAST_MIB = 512
"""A small problem takes about a tenth of this, and PyTorch alone about half."""
POLL_S = 0.02
INTERRUPT_S = 0.5
"""Seconds until an interrupt is passed on: a terminal sends it to both processes itself."""


def process_age() -> float:
    """Wall-clock seconds since this process began; 0 if the system does not tell (no Linux)."""
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as stream:
            ticks = int(stream.read().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, LookupError, ValueError):
        return 0.0


def supervised(*, seconds: float, mib: float) -> int | None:
    """Split this process in two: one goes on under the limits, the other watches it.

    Returns None in the one that goes on, and in the other, after the end of the first, the exit
    code: 23 if the time was over (the first is then killed), 22 if a lack of memory killed
    it. If both limits are infinite, nothing is split. `seconds` count wall-clock time from now;
    memory is what the process writes to (`RLIMIT_DATA`), not the libraries that it maps. Raises
    `UsageError` for too small a memory limit. To be called before there are threads.
    """
    check_memory_limit(mib)
    if math.isinf(seconds) and math.isinf(mib):
        return None
    sys.stdout.flush()
    child = os.fork()
    if child:
        return _watch(child, time.monotonic() + max(seconds, 0), memory_is_limited=mib < math.inf)
    if mib < math.inf:
        limit_data(int(mib * MIB))
    return None


def check_memory_limit(mib: float) -> None:
    """Raise `UsageError` if a memory limit is too small for regoal itself."""
    if mib < LEAST_MIB:
        raise UsageError(
            f"The memory limit must be at least {LEAST_MIB} MiB, got {number_text(mib)}."
        )


SPARE_SHARE = 0.1
"""Memory is short if less than this share of the limit is left."""


def memory_is_short() -> bool:
    """Return whether this process has nearly used up its limit; false if there is none (no Linux).

    Compiled code may end the process if memory runs out, so long work asks before.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if limit == resource.RLIM_INFINITY:
        return False
    with contextlib.suppress(OSError, ValueError), open("/proc/self/status", "rb") as stream:
        for line in stream:
            if line.startswith(b"VmData:"):
                return int(line.split()[1]) * 1024 > (1 - SPARE_SHARE) * limit
    return False


def _watch(child: int, deadline: float, *, memory_is_limited: bool) -> int:
    interrupted: list[float] = []
    signal.signal(signal.SIGINT, lambda number, frame: interrupted.append(time.monotonic()))
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: os.kill(child, number))
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code in (-signal.SIGABRT, -signal.SIGSEGV) and memory_is_limited:
                print("regoal: error: Out of memory.", file=sys.stderr)
                return EXIT_MEMORY
            return code if code >= 0 else 128 - code
        if interrupted and time.monotonic() > interrupted[0] + INTERRUPT_S:
            os.kill(child, signal.SIGINT)
            interrupted.clear()
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            print("regoal: error: The time limit is reached.", file=sys.stderr)
            return EXIT_TIME
        time.sleep(POLL_S)
