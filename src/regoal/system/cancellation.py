"""Ending long work from outside: a deadline or a signal, asked between its small parts."""

import contextlib
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
