"""Ending long work from outside: a deadline or a signal, asked between its small parts."""

import contextlib
import ctypes
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

CHECK_EVERY = 1000
"""Parts of a long work between two questions whether it is to end."""

T = TypeVar("T")


class _Questions(threading.local):
    """The questions of one thread; no thread's work is ended by another's."""

    def __init__(self) -> None:
        self.open: list[Callable[[], bool]] = []


_questions = _Questions()


class StoppedError(Exception):
    """Work that was ended by a question of `stopping`; whoever asked it catches this."""


@contextlib.contextmanager
def stopping(asked: Callable[[], bool]) -> Iterator[None]:
    """Let `check` raise `StoppedError` inside this context once `asked` is true."""
    _questions.open.append(asked)
    try:
        yield
    finally:
        _questions.open.remove(asked)


def check() -> None:
    """Raise `StoppedError` if some question of `stopping` is answered by yes."""
    if any(asked() for asked in _questions.open):
        raise StoppedError


def checked(items: Sequence[T]) -> Iterator[T]:
    """The items, with a `check` every so many of them."""
    for start in range(0, len(items), CHECK_EVERY):
        if start:
            check()
        yield from items[start : start + CHECK_EVERY]


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


PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Let this process be killed when the one that made it ends; only on Linux."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
