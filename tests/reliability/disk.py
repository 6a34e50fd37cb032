"""A disk that fails, or a kill, at the n-th write call below a folder.

A write call is an opening for writing, a write, an fsync, a renaming or the making of a folder, at
the level of Python, through which all of regoal's files go. A write that fails leaves half of what
it was to write, as disks that run full do.
"""

import builtins
import contextlib
import errno
import io
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KILL = -signal.SIGKILL


@dataclass
class Disk:
    """Counts the write calls below `folder`; the one numbered `at` (from 1) fails, or kills.

    `error` is the errno, or `KILL`. With `stays` all later calls fail too.
    """

    folder: Path
    at: int = 0
    error: int = errno.ENOSPC
    stays: bool = False
    calls: int = 0

    def call(self, path: object, half: object = None) -> None:
        """Note one call; `half` is called first where this one fails."""
        if not str(path).startswith(str(self.folder)):
            return
        self.calls += 1
        if self.calls == self.at or (self.stays and self.calls > self.at > 0):
            if callable(half):
                half()
            if self.error == KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            name = None if half else str(path)  # the library names no file where a write fails
            raise OSError(self.error, os.strerror(self.error), name)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Take the place of the library's functions inside this context."""
        real = (io.open, os.fsync, os.replace, os.mkdir)

        def open_(file, mode="r", *rest, **named):
            if isinstance(file, int) or not set(mode) & set("wax+"):
                return real[0](file, mode, *rest, **named)
            self.call(file)
            return _File(real[0](file, mode, *rest, **named), self, os.fspath(file))

        def fsync(number):
            self.call(os.readlink(f"/proc/self/fd/{number}"), lambda: None)
            real[1](number)

        def replace(source, target, **named):
            self.call(target)
            real[2](source, target, **named)

        def mkdir(path, *rest, **named):
            if not Path(path).is_dir():
                self.call(path)
            real[3](path, *rest, **named)

        io.open = builtins.open = open_
        os.fsync, os.replace, os.mkdir = fsync, replace, mkdir
        try:
            yield
        finally:
            io.open = builtins.open = real[0]
            os.fsync, os.replace, os.mkdir = real[1:]


class _File:
    """An open file whose writes are calls of the disk."""

    def __init__(self, stream, disk: Disk, path: str) -> None:
        self._stream, self._disk, self._path = stream, disk, path

    def write(self, data) -> int:
        def half() -> None:
            self._stream.write(data[: len(data) // 2])
            self._stream.flush()

        self._disk.call(self._path, half)
        return self._stream.write(data)

    def __enter__(self):
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()

    def __getattr__(self, name: str):
        return getattr(self._stream, name)
