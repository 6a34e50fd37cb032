"""Greedy execution on several cores: a process for each, which takes its part of the tasks.

Half of a greedy step is Python, which threads cannot share. A forked process has tasks, encoder and
network as they are in memory, and sends back what became of its tasks.
"""

import multiprocessing
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple, Protocol

from regoal.errors import RegoalError
from regoal.evaluation.execution import Execution
from regoal.evaluation.results import Outcome
from regoal.networks import native
from regoal.networks.q_network import QNetwork
from regoal.planning.task import GroundAction, Task
from regoal.stopping import end_with_parent

POLL_S = 0.05
"""Seconds between two questions whether to stop, while nothing ends."""


class Run(Protocol):
    """`execute` with everything said but the tasks and when to stop."""

    def __call__(self, tasks: Sequence[Task], *, stop: Callable[[], bool]) -> Iterator[Execution]:
        """Each task as it ends."""


class Ended(NamedTuple):
    """What became of one task."""

    outcome: Outcome
    actions: list[GroundAction]
    returns: int
    """Actions into states that had been visited."""
    seconds: float
    """Wall-clock seconds from its start to its end; those beside it share them."""
    fault: RegoalError | None
    """What is wrong with the problem itself, where that ended it."""


def most_processes(network: QNetwork) -> int:
    """As many as the kernel has threads, where a process can be copied."""
    threads = native.threads()
    if threads > 1 and sys.platform.startswith("linux") and network.weights.device.type == "cpu":
        return threads
    return 1


def execute_side_by_side(
    run: Run, tasks: Sequence[Task], *, processes: int, stop: Callable[[], bool] = lambda: False
) -> Iterator[tuple[Task, Ended]]:
    """What `run` makes of every task, in up to so many processes of one thread each.

    Tasks are dealt out by size, the same ones to each process every time. `stop` is asked in this
    process; when true, what is unfinished is not yielded. Raises what `run` raises, and
    `RegoalError` where a process is lost.
    """
    children = _begun(run, tasks, min(processes, len(tasks)))
    if not children:
        yield from _executed(run, tasks, stop)
        return
    try:
        yield from _collected(children, tasks, stop)
    finally:
        _end(children)


def _begun(run: Run, tasks: Sequence[Task], count: int) -> dict[Connection, BaseProcess]:
    """Processes at work, by what they send; none where one would do, or where none can be made."""
    if count <= 1:
        return {}
    by_size = sorted(range(len(tasks)), key=lambda i: -len(tasks[i].objects))
    context = multiprocessing.get_context("fork")
    children: dict[Connection, BaseProcess] = {}
    for first in range(count):
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(
            target=_work, args=(run, tasks, by_size[first::count], sender), daemon=True
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # the kernel's threads are idle
                child.start()
        except OSError:
            _end(children)
            return {}
        sender.close()
        children[receiver] = child
    return children


def _end(children: dict[Connection, BaseProcess]) -> None:
    for receiver, child in children.items():
        child.kill()
        child.join()
        receiver.close()


def _collected(
    children: dict[Connection, BaseProcess], tasks: Sequence[Task], stop: Callable[[], bool]
) -> Iterator[tuple[Task, Ended]]:
    left = set(children)
    while left and not stop():
        for receiver in wait(list(left), timeout=POLL_S):
            assert isinstance(receiver, Connection)
            try:
                found = receiver.recv()
            except EOFError:
                children[receiver].join()
                raise RegoalError(
                    f"a process that executes problems was lost (exit code "
                    f"{children[receiver].exitcode}), perhaps for lack of memory. With "
                    f"OMP_NUM_THREADS=1 there is one only."
                ) from None
            if found is None:
                left.remove(receiver)
            elif isinstance(found, Exception):
                raise found
            else:
                number, ended = found
                yield tasks[number], ended


def _work(run: Run, tasks: Sequence[Task], mine: Sequence[int], sender: Connection) -> None:
    """What a process does: its tasks, then None or what went wrong."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all, and one acts on it
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    native.use_threads(1)
    numbers = {tasks[i]: i for i in mine}
    problem: Exception | None = None
    try:
        for task, ended in _executed(run, [tasks[i] for i in mine], lambda: False):
            sender.send((numbers[task], ended))
    except (RegoalError, MemoryError) as error:
        problem = error
    except Exception:  # raised again where it can be shown
        problem = RuntimeError(traceback.format_exc())
    sender.send(problem)


def _executed(
    run: Run, tasks: Sequence[Task], stop: Callable[[], bool]
) -> Iterator[tuple[Task, Ended]]:
    """What `run` makes of every task, in this process.

    What a task has met is let go when it has ended: a Hiking problem with 26 couples meets 400,000
    actions in ten steps, which take half a gigabyte.
    """
    for execution in run(tasks, stop=stop):
        yield execution.task, _ended(execution)
        execution.task.forget_states()


def _ended(execution: Execution) -> Ended:
    """The same, with actions that a pipe can carry."""
    return Ended(
        execution.outcome or Outcome.ERROR,
        [GroundAction(action.name, action.objects) for action in execution.actions],
        execution.returns,
        execution.seconds,
        execution.fault,
    )
