"""Commands run from several threads, all of which can be stopped at once."""

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from pathlib import Path

GRACE_S = 60
"""Seconds that a command gets to save and end before it is killed."""


class Processes:
    """Runs commands one a thread; `stop` ends those that run and lets no other begin."""

    def __init__(self, jobs: int) -> None:
        self._environment = dict(os.environ)
        if jobs > 1:
            # More threads than cores make small kernels several times slower.
            self._environment["OMP_NUM_THREADS"] = "1"
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, command: list[str], log: Path) -> int:
        """The exit code of a command whose output is appended to `log`."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stream:
            stream.write(f"$ {shlex.join(command)}\n".encode())
            stream.flush()
            process = self._start(command, stream.fileno())
        if process is None:
            return -signal.SIGTERM
        try:
            return process.wait()
        finally:
            with self._lock:
                self._running.discard(process)

    def stop(self) -> None:
        """Terminate what runs, wait for it to save, kill with its children what does not end."""
        with self._lock:
            self._stopped = True
            running = [process for process in self._running if process.poll() is None]
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

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
