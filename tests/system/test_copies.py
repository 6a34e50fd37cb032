import os
import signal
import time

import pytest

from regoal.errors import UsageError
from regoal.system.copies import call_with_limits

MIB = 2**20
NO_LIMIT = float("inf")


def test_the_result_comes_back():
    assert (
        call_with_limits(lambda: {"pid": os.getpid()}, seconds=60, mib=4096)["pid"] != os.getpid()
    )


def test_a_limit_of_time_ends_the_call():
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        call_with_limits(lambda: time.sleep(60), seconds=0.2, mib=NO_LIMIT)
    assert 0.2 <= time.monotonic() - started < 30


def test_a_limit_of_memory_ends_the_call():
    enough, too_much = 100 * MIB, 5000 * MIB

    def allocate(size):
        return lambda: len(bytearray(size))

    assert call_with_limits(allocate(enough), seconds=60, mib=4096) == enough
    with pytest.raises(MemoryError):
        call_with_limits(allocate(too_much), seconds=60, mib=4096)


def test_compiled_code_without_memory_is_out_of_memory():
    for number in (signal.SIGABRT, signal.SIGSEGV, signal.SIGKILL):
        with pytest.raises(MemoryError):
            call_with_limits(lambda n=number: os.kill(os.getpid(), n), seconds=60, mib=NO_LIMIT)


def test_errors_come_back():
    def work():
        raise UsageError("no such thing.")

    with pytest.raises(UsageError, match=r"^no such thing\.$"):
        call_with_limits(work, seconds=60, mib=NO_LIMIT)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        call_with_limits(lambda: 1 / 0, seconds=60, mib=NO_LIMIT)


def test_limits_may_be_larger_than_the_system_counts():
    assert call_with_limits(lambda: 3, seconds=1e15, mib=1e20) == 3
