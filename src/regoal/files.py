"""Writing files so that a kill, a crash or a full disk never leaves half of one; their order."""

import hashlib
import os
import re
from pathlib import Path


def write_bytes_atomically(path: Path, data: bytes) -> None:
    """Write `data` to a temporary name in the same folder, flush it to disk, rename it to `path`.

    A link stays, and what it points to is written; a device or pipe is written as it is. Raises
    `OSError` where the folder cannot be written; the old file, if any, then stays.
    """
    path = path.resolve() if path.is_symlink() else path
    if is_special(path):
        path.write_bytes(data)
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # not the temporary name, or none at all
        raise


def short_digest(path: Path) -> str:
    """The first 16 digits of a file's SHA-256: enough to tell files apart. Raises `OSError`."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def is_special(path: Path) -> bool:
    """Whether `path` is there and is no regular file: a device, a pipe, a folder."""
    return path.exists() and not path.is_file()


def write_text_atomically(path: Path, text: str) -> None:
    """Write `text` as UTF-8 with `\\n` line ends, all of it or nothing."""
    write_bytes_atomically(path, text.encode("utf-8"))


def natural_key(text: str) -> list[tuple[int, int, str]]:
    """A sorting key that puts `p2` before `p10`.

    >>> sorted(["p10", "p2", "p1-b"], key=natural_key)
    ['p1-b', 'p2', 'p10']
    """
    parts = re.findall(r"\d+|\D+", text)
    return [(0, int(p), p) if p.isdecimal() else (1, 0, p) for p in parts]
