"""The words after a script's name."""

import argparse
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def words(kind: Callable[[str], T], name: str, about: str | None, least: str = "+") -> list[T]:
    """Words of one kind; one at least, unless `least` is `*`, or the program ends."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(name, nargs=least, type=kind)
    found: list[T] = getattr(parser.parse_args(), name)
    return found
