"""Greedy execution on several cores: a process for each, which takes its part of the tasks.

Half of a greedy step is Python, which threads cannot share. A forked process has tasks, encoder and
network as they are in memory, and sends back what became of its tasks. This process takes a part
too, as every copy costs some ten milliseconds; it does so in a thread, in the same way as the
others, so that here signals and questions are answered.
"""

import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Protocol

from regoal.errors import RegoalError
from regoal.evaluation.ending import Ended, Tried, describe_end
from regoal.networks.kernels.cpu import kernel as cpu_kernel
from regoal.networks.q_function import RatesActions
from regoal.planning.task import Task
from regoal.system.copies import Copy, start_copy

POLL_S = 0.05
"""Seconds between two questions whether to stop, while nothing ends."""


Part = dict[Task, int]
"""The tasks of one process, the largest first, each with its number among all."""


class Run(Protocol):
    """`execute` or `Means.attempt` with everything said but the tasks and when to stop."""

    def __call__(self, tasks: Sequence[Task], *, stop: Callable[[], bool]) -> Iterator[Tried]:
        """Each task as it ends."""


def most_processes(network: RatesActions) -> int:
    """As many as the kernel has threads, if a process can be copied."""
    threads = cpu_kernel.threads()
    if threads > 1 and sys.platform.startswith("linux") and network.on_cpu:
        return threads
    return 1


def execute_side_by_side(
    run: Run, tasks: Sequence[Task], *, processes: int, stop: Callable[[], bool] = lambda: False
) -> Iterator[tuple[Task, Ended]]:
    """Run every task in up to `processes` processes of one thread each, this one included.

    Yields each task and how it ended. Tasks are dealt out by size, the same ones to each process
    every time. `stop` is asked in this process; once it is true, unfinished tasks are not yielded.
    Raises what `run` raises, and `RegoalError` if a process is lost.
    """
    by_size = sorted(range(len(tasks)), key=lambda i: -len(tasks[i].objects))
    count = min(processes, len(tasks))
    firsts = range(count) if count > 1 else ()
    parts = [{tasks[i]: i for i in by_size[first::count]} for first in firsts]
    children = _start_children(run, parts[:-1])
    if not children:
        yield from _forget_after_use(_execute(run, tasks, stop))
        return
    try:
        with _in_a_thread(run, parts[-1]) as here:
            yield from _forget_after_use(_collect(here, children, tasks, stop))
    finally:
        _end(children)


def _start_children(run: Run, parts: Sequence[Part]) -> dict[Connection, Copy]:
    """Start a process for each part, listed by what it sends; none if not all can be made."""
    children: dict[Connection, Copy] = {}
    for part in parts:
        try:
            child = start_copy(partial(_work, run, part))
        except OSError:
            _end(children)
            return {}
        children[child.receiver] = child
    return children


def _end(children: dict[Connection, Copy]) -> None:
    for child in children.values():
        child.end()


@contextmanager
def _in_a_thread(run: Run, part: Part) -> Iterator[Connection]:
    """Part of the tasks at work in this process; what it sends, as the others do.

    A task that it has sent is no longer its own: whoever reads of it may use it and let it go.
    """
    receiver, sender = Pipe(duplex=False)
    unwanted, before = threading.Event(), cpu_kernel.threads()
    found = _execute(run, list(part), unwanted.is_set)
    thread = threading.Thread(target=_send, args=(found, part, sender))
    cpu_kernel.use_threads(1)
    thread.start()
    try:
        yield receiver
    finally:
        unwanted.set()
        receiver.close()  # or it might wait for somebody to read
        thread.join()
        cpu_kernel.use_threads(before)


def _collect(
    here: Connection,
    children: dict[Connection, Copy],
    tasks: Sequence[Task],
    stop: Callable[[], bool],
) -> Iterator[tuple[Task, Ended]]:
    """Yield results of the thread and the processes, and reap processes that are done."""
    left = {here, *children}
    while left and not stop():
        for receiver in wait(list(left), timeout=POLL_S):
            assert isinstance(receiver, Connection)
            try:
                found = receiver.recv()
            except EOFError:
                code = children.pop(receiver).wait()
                raise RegoalError(
                    f"a process that executes problems was lost (exit code {code}), perhaps for "
                    f"lack of memory. With OMP_NUM_THREADS=1 there is one only."
                ) from None
            if found is None:
                left.remove(receiver)
            elif isinstance(found, Exception):
                raise found
            else:
                number, ended = found
                yield tasks[number], ended


def _work(run: Run, part: Part, sender: Connection) -> None:
    """Run one process's tasks and send what comes of them."""
    cpu_kernel.use_threads(1)
    _send(_forget_after_use(_execute(run, list(part), lambda: False)), part, sender)


def _send(found: Iterator[tuple[Task, Ended]], part: Part, sender: Connection) -> None:
    """The number and the end of each task, then None or what went wrong."""
    problem: Exception | None = None
    try:
        for task, ended in found:
            sender.send((part[task], ended))
    except (RegoalError, MemoryError) as error:
        problem = error
    except BrokenPipeError:  # nobody wants to know
        return
    except Exception:  # raised again if it can be shown
        problem = RuntimeError(traceback.format_exc())
    with suppress(BrokenPipeError):
        sender.send(problem)
    sender.close()


def _execute(
    run: Run, tasks: Sequence[Task], stop: Callable[[], bool]
) -> Iterator[tuple[Task, Ended]]:
    """Run every task in this process, and yield each result."""
    for tried in run(tasks, stop=stop):
        yield tried.task, describe_end(tried)


def _forget_after_use(found: Iterator[tuple[Task, Ended]]) -> Iterator[tuple[Task, Ended]]:
    """Yield each execution, then forget what its task has met.

    A Hiking problem with 26 couples meets 400,000 actions in ten steps, which take half a gigabyte.
    """
    for task, ended in found:
        yield task, ended
        task.forget_states()
