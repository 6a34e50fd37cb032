"""Files PREFIX.1, PREFIX.2, ... of a program that finds better and better results."""

from collections.abc import Sequence
from pathlib import Path

from regoal.errors import UsageError
from regoal.system.files import write_bytes_atomically


def numbered_files(prefix: Path) -> list[Path]:
    """Return the files with this prefix and a number, in the order of the numbers."""
    start = f"{prefix.name}."
    found = [
        path
        for path in prefix.parent.glob("*")
        if path.name.startswith(start) and path.name.removeprefix(start).isdecimal()
    ]
    return sorted(found, key=_number)


def remove_numbered_files(prefix: Path, inputs: Sequence[Path]) -> None:
    """Remove the files of an earlier call, the last of which would count as the best.

    Raises `UsageError` if the folder is missing, or if one of them is an input.
    """
    if not prefix.parent.is_dir():
        raise UsageError(f"{prefix}.1 cannot be written: there is no folder {prefix.parent}.")
    found = numbered_files(prefix)
    for path in found:
        if any(file.exists() and path.samefile(file) for file in inputs):
            raise UsageError(f"{path} is an input; give the results another prefix than {prefix}.")
    for path in found:
        path.unlink()


def write_next(prefix: Path, data: bytes) -> Path:
    """Write the next file, completely or not at all; returns its path.

    Temporary names begin with a dot, so that no pattern that begins with the prefix finds them.
    """
    known = numbered_files(prefix)
    last = _number(known[-1]) if known else 0
    path = prefix.with_name(f"{prefix.name}.{last + 1}")
    write_bytes_atomically(path, data)
    return path


def _number(path: Path) -> int:
    return int(path.suffix.removeprefix("."))
