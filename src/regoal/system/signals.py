"""Ending a run on a signal: the first one politely, the second one at once."""

import contextlib
import ctypes
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Interrupt:
    """Whether a signal has come, and which."""

    signum: int | None = None

    def __bool__(self) -> bool:
        return self.signum is not None


@contextlib.contextmanager
def interrupts(tell: Callable[[str], None]) -> Iterator[Interrupt]:
    """Note the first Ctrl-C, SIGTERM or SIGHUP inside this context and say so.

    A second one acts as usual, and ends the process even if compiled code does not return. What
    the process was started to ignore (`nohup`) stays ignored. Outside the main thread Python takes
    no signals, and nothing is noted.
    """
    found = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    usual = {number: of for number, of in handlers.items() if of != signal.SIG_IGN}

    def restore() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)
            end_at_second(number)

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        found.signum = number
        restore()
        with contextlib.suppress(RuntimeError):  # in the midst of other output
            tell("Stopping; once more stops at once.")

    for number in usual:
        signal.signal(number, note)
        end_at_second(number)
    try:
        yield found
    finally:
        restore()


class _SigAction(ctypes.Structure):
    """`struct sigaction` of Linux's C libraries."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


SA_RESETHAND = -0x80000000


def end_at_second(number: int) -> None:
    """Let signal `number` end the process if it comes again before Python could handle the first.

    Python handles signals between its own steps, and compiled code may take long to return. So the
    kernel is asked to go back to the default, which is to end, when the signal is delivered. To be
    called after `signal.signal`, which is also how a handler takes the default back. Nothing is
    done for signals without a handler of Python's, and outside Linux.
    """
    if not sys.platform.startswith("linux") or not callable(signal.getsignal(number)):
        return
    libc, action = ctypes.CDLL(None), _SigAction()
    if libc.sigaction(number, None, ctypes.byref(action)) == 0:
        action.flags |= SA_RESETHAND
        libc.sigaction(number, ctypes.byref(action), None)
