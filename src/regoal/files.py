"""Writing files so that a kill, a crash or a full disk never leaves half of one."""

import os
from pathlib import Path


def write_bytes_atomically(path: Path, data: bytes) -> None:
    """Write `data` to a temporary name in the same folder, flush it to disk, rename it to `path`.

    Raises `OSError` where the folder cannot be written; the old file, if any, then stays.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text_atomically(path: Path, text: str) -> None:
    """Write `text` as UTF-8 with `\\n` line ends, all of it or nothing."""
    write_bytes_atomically(path, text.encode("utf-8"))
