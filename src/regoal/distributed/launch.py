"""Starts the processes that train together, or joins those that torchrun has started."""

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

from regoal.distributed.collectives import ALONE, WorkerLostError, Workers, connected, leave
from regoal.errors import RegoalError, UsageError
from regoal.system.threads import process_group

HOST = "127.0.0.1"
GRACE_S = 5.0
"""Seconds that a worker has to end by itself before it is killed."""

Work = Callable[[Workers], object]


@contextlib.contextmanager
def together(count: int, work: Work) -> Iterator[Workers]:
    """Make this process one of `count` workers.

    If torchrun has started it, it joins the others, which do the same. Else it is the first worker,
    and `count - 1` new processes run `work`, which must be picklable. They end with this process,
    however it ends. Raises `WorkerLostError` if some worker cannot start, and `UsageError` if
    torchrun has started another number of workers.
    """
    group = process_group()
    if group.size > 1:
        if group.size != count:
            raise UsageError(f"{group.size} workers were started, but --workers is {count}.")
        workers = Workers(group.rank, count)
        with connected(workers, "env://"):
            yield workers
    elif count == 1:
        yield ALONE
    else:
        address = f"tcp://{HOST}:{_find_free_port()}"
        with _start_processes([Workers(rank, count) for rank in range(1, count)], work, address):
            first = Workers(0, count)
            with connected(first, address):
                yield first


@contextlib.contextmanager
def _start_processes(others: list[Workers], work: Work, address: str) -> Iterator[None]:
    """Start a process for each other worker; all of them end when this context ends."""
    context = multiprocessing.get_context("spawn")
    lines, processes = [], []
    try:
        for workers in others:
            # The worker ends when this process closes its end of the pipe, or dies.
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_run_worker, args=(workers, work, address, theirs), daemon=True
            )
            process.start()
            theirs.close()
            lines.append(ours)
            processes.append(process)
        for line in lines:
            _wait_until_started(line)
        yield
    finally:
        for line in lines:
            line.close()
        for process in processes:
            process.join(GRACE_S)
            process.kill()
            process.join()


def _wait_until_started(line: Connection) -> None:
    try:
        line.recv()
    except EOFError:
        raise WorkerLostError("A worker could not start; its own output may say why.") from None


def _run_worker(workers: Workers, work: Work, address: str, line: Connection) -> None:
    """Run `work` in a started process, which leaves signals to the first worker."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_first, args=(line,), daemon=True).start()
    line.send(None)
    code = 0
    try:
        with connected(workers, address):
            work(workers)
    except WorkerLostError:
        code = 1
    except RegoalError as error:
        print(f"regoal: worker {workers.rank}: {error}", file=sys.stderr)
        code = error.exit_code
    leave(code)


def _end_with_first(line: Connection) -> None:
    """Wait until the first worker has ended, and then end this process at once."""
    with contextlib.suppress(EOFError, OSError):
        line.recv()
    os._exit(1)


def _find_free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])
