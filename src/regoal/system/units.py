"""Numbers as text: durations and memory sizes (90s, 10m, 2h; 800M, 8G), costs."""

import math
import re
from decimal import Decimal

from regoal.errors import UsageError

NONE = "none"
"""How "no limit" is written."""
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_MEBIBYTES = {"": 1, "m": 1, "g": 1024}


def seconds(text: str) -> float:
    """Seconds in a duration; a bare number counts seconds, `none` is infinite.

    Raises `UsageError` if `text` is no duration or not above 0.

    >>> seconds("90s"), seconds("10m"), seconds("1.5h"), seconds("none")
    (90.0, 600.0, 5400.0, inf)
    """
    return _quantity(text, _SECONDS, "a duration such as 90s, 10m or 2h")


def mebibytes(text: str) -> float:
    """MiB in a memory size; a bare number counts MiB, `none` is infinite. Raises as `seconds`.

    >>> mebibytes("800M"), mebibytes("8G")
    (800.0, 8192.0)
    """
    return _quantity(text, _MEBIBYTES, "a memory size such as 800M or 8G")


def duration_text(value: float) -> str:
    """Seconds as a clock shows them.

    >>> duration_text(75.4), duration_text(3700), duration_text(math.inf)
    ('1:15', '1:01:40', 'none')
    """
    if math.isinf(value):
        return NONE
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def number_text(value: float) -> str:
    """A number whole, for people and programs to read: every digit, and no exponent.

    >>> number_text(1234567.0), number_text(2.5), number_text(1e-7)
    ('1234567', '2.5', '0.0000001')
    """
    return str(int(value)) if value.is_integer() else format(Decimal(repr(value)), "f")


def _quantity(text: str, units: dict[str, int], what: str) -> float:
    if text == NONE:
        return math.inf
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]?)", text.strip().lower())
    if found is None or found[2] not in units or float(found[1]) <= 0:
        raise UsageError(f"{text!r} is not {what}.")
    return float(found[1]) * units[found[2]]
