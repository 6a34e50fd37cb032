"""Read the text of domain, problem and plan files, whatever encoding they are saved in."""

import unicodedata
from pathlib import Path

from regoal.errors import PddlError, UsageError
from regoal.system.files import read_bytes


def read_text(path: Path, kind: str = "PDDL") -> str:
    """Return the text of a file, with `\\n` line ends and composed letters (NFC).

    `kind` names the kind of file in messages. Bytes that are not UTF-8 become lone surrogates,
    which are harmless in comments. Raises `UsageError` if there is no readable file, `PddlError` if
    it is not a text file.
    """
    try:
        data = read_bytes(path)
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder; give a {kind} file.") from None
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file; check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read: {reason}.") from error
    if encoding := _find_wide_encoding(data):
        raise PddlError(
            f"{path} is not UTF-8 text but {encoding}, or no text at all; save it as UTF-8, "
            f"e.g. with `iconv -f {encoding} -t UTF-8`."
        )
    if (at := data.find(b"\0")) >= 0:
        raise PddlError(
            f"{path}, line {data.count(10, 0, at) + 1}: a NUL byte stands here; remove it, "
            "or give a text file."
        )
    text = data.decode("utf-8", errors="surrogateescape").removeprefix("\N{BYTE ORDER MARK}")
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_undecoded(character: str) -> bool:
    """Return whether `read_text` put a character in place of a byte that is not UTF-8."""
    return "\udc80" <= character <= "\udcff"


_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
"""Byte order marks at the beginning of a file and their encodings; longer marks come first."""


def _find_wide_encoding(data: bytes) -> str:
    """Return the name of a UTF-16 or UTF-32 encoding, or "" if the data is in neither.

    A byte order mark or many NUL bytes at the beginning reveal the encoding.
    """
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            return name
    start = data[:200]
    if 3 * start.count(0) <= len(start):
        return ""
    width = "32" if 3 * start.count(0) > 2 * len(start) else "16"
    return f"UTF-{width}{'BE' if data[0] == 0 else 'LE'}"
