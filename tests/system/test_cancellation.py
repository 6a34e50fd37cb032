"""Signals end a command even where compiled code does not return."""

import signal
import subprocess
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest

from regoal.system.cancellation import StoppedError, check, checked, stopping

BUSY = """
import itertools
from regoal.system.signals import interrupts
print("ready", flush=True)
with interrupts(lambda text: print(text, flush=True)) as found:
    print("on", flush=True)
    sum(itertools.repeat(1, 10**11))  # compiled code that looks at no signal for minutes
"""


def test_check_asks_every_question():
    check()
    answers = {"a": False, "b": False}
    with stopping(lambda: answers["a"]), stopping(lambda: answers["b"]):
        check()
        answers["a"] = True
        with pytest.raises(StoppedError):
            check()
    check()


def test_a_question_is_for_its_own_thread():
    with stopping(lambda: True), ThreadPoolExecutor(1) as other:
        other.submit(check).result()
        with pytest.raises(StoppedError):
            check()


def test_long_work_is_checked_now_and_then():
    done = []
    with pytest.raises(StoppedError), stopping(lambda: len(done) >= 1500):
        deque(map(done.append, checked(range(10_000))), maxlen=0)
    assert len(done) == 2000
    assert list(checked([])) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="by means of Linux")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_second_signal_ends_compiled_code(number):
    preamble = (
        "import signal\nfrom regoal import cli\n"
        f"signal.signal({number:d}, signal.default_int_handler)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", preamble + BUSY], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert process.stdout.readline() == "on\n"
        time.sleep(0.5)  # until it is in there
        process.send_signal(number)
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.5)
            process.send_signal(number)
            assert process.wait(10) == -number
        finally:
            process.kill()
