"""Commands run as processes, with their output in a log, and how they are ended."""

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO

from regoal.system.claims import RENEW_S

GRACE_S = 60
"""Seconds that a command gets to save and end before it is killed."""

Process = subprocess.Popen[bytes]


def start_command(
    command: list[str], output: IO[bytes], variables: Mapping[str, str], folder: Path | None = None
) -> Process:
    """Start a command in a process group of its own, which a terminal's Ctrl-C does not reach.

    Both its outputs go to `output`. `variables` are added to its environment. It runs in `folder`,
    or in that of this process.
    """
    return subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env={**os.environ, **variables},
        start_new_session=True,
    )


def kill_group(process: Process) -> None:
    """Kill a command that is still running, and its children, and wait until it has ended."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def terminate_with_grace(processes: Iterable[Process]) -> None:
    """Terminate commands, wait up to `GRACE_S` for each to save, and kill what does not end."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    for process in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        kill_group(process)


class Processes:
    """Runs commands one a thread; `stop` ends those that run and lets no other begin."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        """Add `variables` to the environment of each command."""
        self._variables = variables
        self._running: set[Process] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, command: list[str], log: Path, renew: Callable[[], bool]) -> int:
        """Run a command whose output is appended to `log`; return its exit code.

        Now and then `renew` is called. If it returns False, the command is ended.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stream:
            stream.write(f"$ {shlex.join(command)}\n".encode())
            stream.flush()
            with self._lock:
                if self._stopped:
                    return -signal.SIGTERM
                process = start_command(command, stream, self._variables)
                self._running.add(process)
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(RENEW_S)
                if not renew():
                    terminate_with_grace([process])
        finally:
            with self._lock:
                self._running.discard(process)

    def stop(self) -> None:
        """Terminate what runs, wait for it to save, kill with its children what does not end."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        terminate_with_grace(running)
