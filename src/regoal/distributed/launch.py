"""Starting the processes that train together, or joining those that torchrun has started."""

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
"""Seconds that a worker gets to end by itself."""

Work = Callable[[Workers], object]


@contextlib.contextmanager
def together(count: int, work: Work) -> Iterator[Workers]:
    """This process as one of `count` workers.

    Where torchrun has started it, it joins the others, which do the same. Else it is the first,
    and `count - 1` new processes do `work`, which must be picklable; they end with this one,
    however it ends. Raises `WorkerLostError` where some worker cannot start.
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
        address = f"tcp://{HOST}:{_free_port()}"
        with _started([Workers(rank, count) for rank in range(1, count)], work, address):
            first = Workers(0, count)
            with connected(first, address):
                yield first


@contextlib.contextmanager
def _started(others: list[Workers], work: Work, address: str) -> Iterator[None]:
    """New processes, which end when this context does."""
    context = multiprocessing.get_context("spawn")
    lines, processes = [], []
    try:
        for workers in others:
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_member, args=(workers, work, address, theirs), daemon=True
            )
            process.start()
            theirs.close()
            lines.append(ours)
            processes.append(process)
        for line in lines:
            _wait_for(line)
        yield
    finally:
        for line in lines:
            line.close()
        for process in processes:
            process.join(GRACE_S)
            process.kill()
            process.join()


def _wait_for(line: Connection) -> None:
    try:
        line.recv()
    except EOFError:
        raise WorkerLostError("A worker could not start; its own output may say why.") from None


def _member(workers: Workers, work: Work, address: str, line: Connection) -> None:
    """What a started process does. Signals are for the first worker, which tells the others."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(line,), daemon=True).start()
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


def _end_with(line: Connection) -> None:
    """End this process at once where the first one has ended, as nobody needs it any more."""
    with contextlib.suppress(EOFError, OSError):
        line.recv()
    os._exit(1)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])
