"""Files PREFIX.1, PREFIX.2, ... of a program that finds better and better results."""

from pathlib import Path

from regoal.errors import UsageError
from regoal.system.files import write_bytes_atomically


def numbered_files(prefix: Path) -> list[Path]:
    """Return the files with this prefix and a number, in the order of the numbers."""
    start = f"{prefix.name}."
    numbers = sorted(
        int(path.name.removeprefix(start))
        for path in prefix.parent.glob("*")
        if path.name.startswith(start) and path.name.removeprefix(start).isdecimal()
    )
    return [prefix.with_name(f"{start}{number}") for number in numbers]


def remove_numbered_files(prefix: Path) -> None:
    """Remove the files of an earlier call, the last of which would count as the best.

    Raises `UsageError` if the folder is missing.
    """
    if not prefix.parent.is_dir():
        raise UsageError(f"{prefix}.1 cannot be written: there is no folder {prefix.parent}.")
    for path in numbered_files(prefix):
        path.unlink()


def write_next(prefix: Path, data: bytes) -> Path:
    """Write the next file, completely or not at all; returns its path.

    Temporary names begin with a dot, so that no pattern that begins with the prefix finds them.
    """
    known = numbered_files(prefix)
    last = int(known[-1].name.rpartition(".")[2]) if known else 0
    path = prefix.with_name(f"{prefix.name}.{last + 1}")
    write_bytes_atomically(path, data)
    return path
