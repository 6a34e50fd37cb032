"""The command line of the scripts in this folder."""

import argparse
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def words(kind: Callable[[str], T], name: str, about: str | None, least: str = "+") -> list[T]:
    """Parse the arguments, all of one kind; ends the program if there are too few.

    `least` is `+` if at least one is needed, and `*` if there may be none.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(name, nargs=least, type=kind)
    found: list[T] = getattr(parser.parse_args(), name)
    return found
