"""Ending a run on a signal: the first one politely, the second one at once."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Interrupt:
    """Whether a signal has come, and which."""

    signum: int | None = None

    def __bool__(self) -> bool:
        return self.signum is not None


@contextlib.contextmanager
def interrupts(tell: Callable[[str], None]) -> Iterator[Interrupt]:
    """Note the first Ctrl-C or SIGTERM inside this context and say so; a second acts as usual.

    Outside the main thread Python takes no signals, and nothing is noted.
    """
    found = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    usual = {number: signal.getsignal(number) for number in SIGNALS}

    def restore() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        found.signum = number
        restore()
        with contextlib.suppress(RuntimeError):  # in the midst of other output
            tell("Stopping; once more stops at once.")

    for number in SIGNALS:
        signal.signal(number, note)
    try:
        yield found
    finally:
        restore()
