"""Writing files so that a kill, a crash or a full disk never leaves half of one; their order."""

import contextlib
import errno
import hashlib
import os
import re
from pathlib import Path


def write_bytes_atomically(path: Path, data: bytes) -> None:
    """Write `data` to a temporary name in the same folder, flush it to disk, rename it to `path`.

    A link stays, and what it points to is written; a device or pipe is written as it is. Raises
    `OSError` if the folder cannot be written; the old file, if any, then stays.
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
        with contextlib.suppress(OSError):  # e.g. a read-only file system, reported below
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # not the temporary name, or none at all
        raise


MOST_BYTES = 64 * 2**20
"""Most bytes of a text file that is read. The largest problems of the competitions have a tenth."""


def read_bytes(path: Path) -> bytes:
    """The bytes of a file that is to be read as text: a regular one, a pipe, a terminal.

    Raises `OSError` if it cannot be read, or has more than `MOST_BYTES`, as devices that never
    end have.
    """
    with path.open("rb") as stream:
        data = b""
        if os.fstat(stream.fileno()).st_size <= MOST_BYTES:
            data = stream.read(MOST_BYTES + 1)
            if len(data) <= MOST_BYTES:
                return data
    raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES // 2**20} MiB", str(path))


def short_digest(path: Path) -> str:
    """The first 16 digits of a file's SHA-256: enough to tell files apart. Raises `OSError`."""
    return hashlib.sha256(read_bytes(path)).hexdigest()[:16]


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
