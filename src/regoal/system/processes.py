"""Commands run from several threads, all of which can be stopped at once."""

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from regoal.system.claims import RENEW_S

GRACE_S = 60
"""Seconds that a command gets to save and end before it is killed."""


class Processes:
    """Runs commands one a thread; `stop` ends those that run and lets no other begin."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        """Add `variables` to the environment of each command."""
        self._environment = {**os.environ, **variables}
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, command: list[str], log: Path, renew: Callable[[], bool]) -> int:
        """The exit code of a command whose output is appended to `log`.

        Now and then `renew` is called. If it returns False, the command is ended.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stream:
            stream.write(f"$ {shlex.join(command)}\n".encode())
            stream.flush()
            process = self._start(command, stream.fileno())
        if process is None:
            return -signal.SIGTERM
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(RENEW_S)
                if not renew():
                    _end([process])
        finally:
            with self._lock:
                self._running.discard(process)

    def stop(self) -> None:
        """Terminate what runs, wait for it to save, kill with its children what does not end."""
        with self._lock:
            self._stopped = True
            running = [process for process in self._running if process.poll() is None]
        _end(running)

    def _start(self, command: list[str], output: int) -> "subprocess.Popen[bytes] | None":
        with self._lock:
            if self._stopped:
                return None
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,  # a terminal's interrupt reaches it through `stop` alone
            )
            self._running.add(process)
            return process


def _end(processes: list["subprocess.Popen[bytes]"]) -> None:
    """Terminate processes, wait for them to save, kill with its children what does not end."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
