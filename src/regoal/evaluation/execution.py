"""Greedy execution of a policy on many problems in one batch (paper, "Testing")."""

import enum
import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import merge
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from regoal.errors import RegoalError, TooWideError, lacks_memory
from regoal.networks.batch import Input
from regoal.networks.encoder import Encoder
from regoal.networks.q_network import QNetwork
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.symmetry import Representatives, Symmetry, is_plain
from regoal.planning.task import State, Task
from regoal.records.results import Outcome
from regoal.system.cancellation import StoppedError, stopping

BATCH_BYTES = 16 * 2**20
"""Memory for one forward pass, without the states. Larger batches were no faster on a CPU, and a
problem shares its wall-clock time with the others in its batch."""
BYTES_A_NUMBER = 20
"""Peak bytes of a forward pass for each number of each node's or argument's embedding.

The network's plain definition needs 16 (15.2 to 15.6 were measured), and the kernel less. The rest
is for the index lists."""

LEAST_DROPPED = 0.1
"""Objects are left out of the input only if they are at least this share of all objects."""

log = logging.getLogger(__name__)


class Visited(enum.Enum):
    """What to do about states that have been visited before."""

    ALLOWED = enum.auto()
    """Take the best action. The execution ends at the first repeated state (paper, figures)."""
    EXCLUDED = enum.auto()
    """Take the best action into a new state. It ends if there is none (paper, testing)."""
    LAST = enum.auto()
    """Take the best action into a new state. If there is none, go to the least visited state. The
    execution ends when no action from any visited state leads to a new one."""


@dataclass
class Execution:
    """The progress of a policy on one problem."""

    task: Task
    visited: Visited
    time_limit_s: float = math.inf
    noise: float = 0.0
    """Standard deviation of noise added to every Q-value; it is drawn in each step."""
    state: State = field(init=False)
    visits: Counter[State] = field(init=False)
    actions: list[GroundAction] = field(default_factory=list)
    closed: set[State] = field(init=False, default_factory=set)
    """Visited states from which no action leads to a new state."""
    outcome: Outcome | None = None
    """How it ended; None before its end."""
    fault: RegoalError | None = None
    """The fault in the problem itself, if that ended the execution."""
    started: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0
    """Wall-clock seconds from its start to its end, which all problems of a batch share."""
    _input: Input | None = field(default=None, init=False, repr=False, compare=False)
    """The network's input for the present state; None until it is needed."""
    _representatives: Representatives | None = field(
        default=None, init=False, repr=False, compare=False
    )
    """The representatives in the input; None if the input has the whole state."""

    def __post_init__(self) -> None:
        self.state = self.task.initial_state
        self.visits = Counter([self.state])
        self._rng = np.random.default_rng(
            self.task.salt
        )  # it does not depend on the order of the tasks
        if self.state.satisfies(self.task.goal):
            self.end(Outcome.SOLVED)

    @property
    def returns(self) -> int:
        """Count the actions into states that had been visited before."""
        return len(self.actions) + 1 - len(self.visits)

    def elapsed(self) -> float:
        """Return the wall-clock seconds since its start."""
        return time.perf_counter() - self.started

    def end(self, outcome: Outcome) -> None:
        """End the execution with this outcome, and drop what only further steps need."""
        self.outcome = outcome
        self._input = self._representatives = None
        self.seconds = self.elapsed()

    def prepare(self, encoder: Encoder, stop: Callable[[], bool]) -> None:
        """Make the input. The execution ends if memory or time do not allow it.

        If `stop` becomes true meanwhile, return without an input.
        """
        try:
            with stopping(lambda: stop() or self.elapsed() > self.time_limit_s):
                self.input(encoder)
        except StoppedError:
            if not stop():
                self.end(Outcome.TIME_LIMIT)
        except RegoalError as error:
            self.fault = error
            self.end(Outcome.MEMORY_LIMIT if isinstance(error, TooWideError) else Outcome.ERROR)
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
            self.end(Outcome.MEMORY_LIMIT)

    def input(self, encoder: Encoder) -> Input:
        """Encode the state and the goal for the network; done once for each state.

        If many objects are interchangeable, the input has only representatives of them and the
        actions over these. Nothing is lost by this, see `regoal.planning.symmetry`.
        """
        if self._input is None:
            self._representatives = found = self._find_representatives()
            goal = self.task.goal
            self._input = (
                encoder.input(self.state, goal)
                if found is None
                else encoder.input_over(found, goal)
            )
        return self._input

    @cached_property
    def _symmetry(self) -> Symmetry | None:
        if not is_plain(self.task.domain.text.content):
            return None
        return Symmetry(self.task, self.task.goal)

    def _find_representatives(self) -> Representatives | None:
        """Find representatives; None if they leave out too few objects to be worth the work."""
        least = max(1, LEAST_DROPPED * len(self.task.objects))
        if self._symmetry is None or self._symmetry.most_dropped < least:
            return None
        found = self._symmetry.representatives(self.state)
        return found if found.dropped >= least else None

    def step(self, applicable: Sequence[GroundAction], q_values: Tensor, max_steps: int) -> None:
        """Take the action with the highest Q-value among those that `visited` allows.

        `applicable` are the input's actions. An action over representatives stands for all actions
        that are equal to it.
        """
        if self.noise:
            q_values = q_values + self.noise * torch.from_numpy(
                self._rng.normal(size=len(q_values))
            )
        chosen = self._choose(applicable, q_values)
        if chosen is None:
            self.end(Outcome.DEAD_END)
            return
        action, self.state = chosen
        self._input = None
        self.actions.append(action)
        self.visits[self.state] += 1
        if self.state.satisfies(self.task.goal):
            self.end(Outcome.SOLVED)
        elif self.visits[self.state] > 1 and self.visited is Visited.ALLOWED:
            self.end(Outcome.DEAD_END)
        elif len(self.actions) >= max_steps:
            self.end(Outcome.STEP_LIMIT)

    def _choose(
        self, applicable: Sequence[GroundAction], q_values: Tensor
    ) -> tuple[GroundAction, State] | None:
        """Choose an action and its successor; None if the execution must end."""
        seen: list[tuple[GroundAction, State]] = []
        for action in self._rank(applicable, q_values):
            if action is DUMMY_ACTION:
                continue
            successor = self.task.successor(self.state, action)
            if self.visited is Visited.ALLOWED or successor not in self.visits:
                return action, successor
            seen.append((action, successor))
        self.closed.add(self.state)
        if self.visited is Visited.EXCLUDED or len(self.closed) == len(self.visits):
            return None  # with `LAST`, every reachable state has been visited: there is no plan
        return min(seen, key=lambda way: self.visits[way[1]], default=None)

    def _rank(self, applicable: Sequence[GroundAction], q_values: Tensor) -> Iterator[GroundAction]:
        """Yield all applicable actions, best first; for equal values, in the order of actions."""
        order = np.argsort(-q_values.numpy(), kind="stable")
        if self._representatives is None:
            yield from (applicable[i] for i in order)
            return
        for _, equal in groupby(order, q_values.numpy().__getitem__):
            yield from merge(*(self._representatives.equal_actions(applicable[i]) for i in equal))


@dataclass
class _Memory:
    """The limit of a batch's memory, and estimates of what states need."""

    encoder: Encoder
    embedding_size: int
    limit: int
    """The most bytes in a batch."""
    warned: bool = False

    def estimate(self, execution: Execution) -> int:
        """Estimate the bytes that a state adds to a batch."""
        x, goal = execution.input(self.encoder)
        arguments = sum(map(len, (x.fixed.args, x.changing.args, goal.args)))
        return BYTES_A_NUMBER * self.embedding_size * (x.nodes + arguments)

    def estimate_batch(self, active: Sequence[Execution]) -> int:
        """Estimate the bytes of a batch."""
        return sum(map(self.estimate, active))

    def split(self, active: Sequence[Execution]) -> Iterator[Sequence[Execution]]:
        """Split into runs that fit, each of at least one, as states grow and shrink."""
        start, used = 0, 0
        for i, x in enumerate(active):
            needed = self.estimate(x)
            if i > start and used + needed > self.limit:
                yield active[start:i]
                start, used = i, 0
            used += needed
        yield active[start:]

    def halve(self, part: Sequence[Execution]) -> None:
        """Limit batches to half the size of this one, which did not fit; warns the first time."""
        self.limit = min(self.limit, self.estimate_batch(part)) // 2
        if not self.warned:
            log.warning("memory ran out: going on with smaller batches, which takes longer")
            self.warned = True


def execute(  # noqa: PLR0913 - all but three are keywords
    network: QNetwork,
    encoder: Encoder,
    tasks: Sequence[Task],
    *,
    layers: int,
    max_steps: int = 1000,
    visited: Visited = Visited.EXCLUDED,
    batch_bytes: int = BATCH_BYTES,
    time_limit_s: float = math.inf,
    noise: float = 0.0,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Execution]:
    """Run the policy on every task, and yield each execution as it ends.

    The batch has as many problems as fit into `batch_bytes`, at least one. A finished problem makes
    room for the next. Problems with most objects come first: a long plan at the end would leave the
    batch nearly empty, and a problem that does not fit is found at once. If memory runs out all the
    same, the batch is halved. A problem that does not fit alone ends, and the others go on.

    `time_limit_s` limits the wall-clock seconds of each problem, from its start to its end. `noise`
    is the standard deviation of noise added to every Q-value; it shows how much error a policy's
    choices survive. `stop` is called before every step, and while a state with many actions is
    prepared. Once it returns true, unfinished problems are not yielded.
    """
    largest = sorted(tasks, key=lambda task: -len(task.objects))
    waiting = deque(Execution(task, visited, time_limit_s, noise) for task in largest)
    memory = _Memory(encoder, network.layout.size, batch_bytes)
    active: list[Execution] = []
    while waiting or active:
        yield from _yield_and_forget(_start_waiting(waiting, active, memory, stop), encoder)
        if not active or stop():
            return
        for execution, q in zip(
            active, _compute_q_values(network, active, layers, memory), strict=True
        ):
            if q is None:
                execution.end(Outcome.MEMORY_LIMIT)
                continue
            execution.step(execution.input(encoder)[0].actions, q, max_steps)
            if execution.outcome is None and execution.elapsed() > time_limit_s:
                execution.end(Outcome.TIME_LIMIT)
            if execution.outcome is None:
                execution.prepare(encoder, stop)
        yield from _yield_and_forget((x for x in active if x.outcome is not None), encoder)
        active = [x for x in active if x.outcome is None]


def _yield_and_forget(ended: Iterable[Execution], encoder: Encoder) -> Iterator[Execution]:
    """Yield each execution; then forget its encoded states, which may be gigabytes in all."""
    for execution in ended:
        yield execution
        encoder.forget(execution.task)


def _start_waiting(
    waiting: deque[Execution],
    active: list[Execution],
    memory: _Memory,
    stop: Callable[[], bool],
) -> Iterator[Execution]:
    """Move tasks from waiting to active while they fit; yield those that end without a step."""
    if stop():
        return
    used = memory.estimate_batch(active) if waiting else 0
    while waiting:
        execution = waiting[0]
        if execution.outcome is None:
            execution.started = time.perf_counter()
            execution.prepare(memory.encoder, stop)
        if execution.outcome is None:
            if stop():
                return
            needed = memory.estimate(execution)
            if active and used + needed > memory.limit:
                return
            active.append(execution)
            used += needed
        waiting.popleft()
        if execution.outcome is not None:
            yield execution


def _compute_q_values(
    network: QNetwork, active: Sequence[Execution], layers: int, memory: _Memory
) -> list[Tensor | None]:
    """Compute Q-values of each problem's actions; None for a problem that does not fit alone."""
    found: list[Tensor | None] = []
    parts = list(reversed(list(memory.split(active))))
    while parts:
        part = parts.pop()
        try:
            batch = memory.encoder.join([x.input(memory.encoder) for x in part])
            found += network.q_values(batch, layers)
            continue
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
        # Outside the except block, the error has freed the memory that it kept alive.
        if len(part) == 1:
            found.append(None)
        else:
            memory.halve(part)
            parts += reversed(list(memory.split(part)))
    return found
