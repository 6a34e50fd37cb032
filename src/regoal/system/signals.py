"""Ending a run on a signal: the first one politely, the second one at once."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

from regoal.system.cancellation import end_at_second

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
