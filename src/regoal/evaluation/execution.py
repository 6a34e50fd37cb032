"""Greedy execution of a policy on many problems at once (paper, "Testing")."""

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
from regoal.networks.encoder import Encoder, Input
from regoal.networks.q_network import QNetwork
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.symmetry import Representatives, Symmetry, is_plain
from regoal.planning.task import State, Task
from regoal.records.results import Outcome
from regoal.system.cancellation import StoppedError, stopping

BATCH_BYTES = 16 * 2**20
"""Memory for one forward pass, states aside. Larger batches were no faster on a CPU, and a problem
shares its wall-clock time with those beside it."""
BYTES_A_NUMBER = 20
"""Peak bytes of a forward pass a node or atom argument, an embedding's number: 16 in the plain
definition of the network (15.2 to 15.6 measured), less in the kernel, and the index lists."""

LEAST_DROPPED = 0.1
"""The share of objects that must be left out for a state to be looked at without them."""

log = logging.getLogger(__name__)


class Visited(enum.Enum):
    """What to do about states that were visited before."""

    ALLOWED = enum.auto()
    """Take the best action; the first state seen before ends the execution (paper, figures)."""
    EXCLUDED = enum.auto()
    """Take the best action into a new state; where there is none it ends (paper, testing)."""
    LAST = enum.auto()
    """The same, but where no state is new go on to the one that was visited least often, until no
    action from any visited state leads to a new one."""


@dataclass
class Execution:
    """How far the policy has come on one problem."""

    task: Task
    visited: Visited
    time_limit_s: float = math.inf
    noise: float = 0.0
    """Standard deviation of what is added to every Q-value, drawn anew in each step."""
    state: State = field(init=False)
    visits: Counter[State] = field(init=False)
    actions: list[GroundAction] = field(default_factory=list)
    closed: set[State] = field(init=False, default_factory=set)
    """Visited states that no action leads to a new one from."""
    outcome: Outcome | None = None
    """None while it goes on."""
    fault: RegoalError | None = None
    """What is wrong with the problem itself, where that ended it."""
    started: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0
    """Wall-clock seconds from its start to its end; problems of one batch share them."""
    _input: Input | None = field(default=None, init=False, repr=False, compare=False)
    """None until it is asked for."""
    _representatives: Representatives | None = field(
        default=None, init=False, repr=False, compare=False
    )
    """Those in the input; None where it has the whole state."""

    def __post_init__(self) -> None:
        self.state = self.task.initial_state
        self.visits = Counter([self.state])
        self._rng = np.random.default_rng(self.task.salt)  # the same for every order of the tasks
        if self.state.satisfies(self.task.goal):
            self.end(Outcome.SOLVED)

    @property
    def returns(self) -> int:
        """Actions into states that had been visited."""
        return len(self.actions) + 1 - len(self.visits)

    def elapsed(self) -> float:
        """Wall-clock seconds since its start."""
        return time.perf_counter() - self.started

    def end(self, outcome: Outcome) -> None:
        """Stop here."""
        self.outcome = outcome
        self._input = self._representatives = None
        self.seconds = self.elapsed()

    def prepare(self, encoder: Encoder, stop: Callable[[], bool]) -> None:
        """Make the input; ends where memory or time do not allow it. Cut short by `stop`."""
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
        """The state and goal for the network, once a state.

        Where many objects are interchangeable, only representatives and the actions over them are
        in it: as good as all, see `regoal.planning.symmetry`.
        """
        if self._input is None:
            self._representatives = found = self._found_representatives()
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

    def _found_representatives(self) -> Representatives | None:
        """Representatives if there are few enough of them to be worth the work."""
        least = max(1, LEAST_DROPPED * len(self.task.objects))
        if self._symmetry is None or self._symmetry.most_dropped < least:
            return None
        found = self._symmetry.representatives(self.state)
        return found if found.dropped >= least else None

    def step(self, applicable: Sequence[GroundAction], q_values: Tensor, max_steps: int) -> None:
        """Take the action with the highest Q-value among those that `visited` allows.

        `applicable` are those of the input. An action over representatives stands for all that
        equal it.
        """
        if self.noise:
            q_values = q_values + self.noise * torch.from_numpy(
                self._rng.normal(size=len(q_values))
            )
        chosen = self._best(applicable, q_values)
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

    def _best(
        self, applicable: Sequence[GroundAction], q_values: Tensor
    ) -> tuple[GroundAction, State] | None:
        seen: list[tuple[GroundAction, State]] = []
        for action in self._in_order(applicable, q_values):
            if action is DUMMY_ACTION:
                continue
            successor = self.task.successor(self.state, action)
            if self.visited is Visited.ALLOWED or successor not in self.visits:
                return action, successor
            seen.append((action, successor))
        self.closed.add(self.state)
        if self.visited is Visited.EXCLUDED or len(self.closed) == len(self.visits):
            return None  # in the latter case there is no plan: every state has been visited
        return min(seen, key=lambda way: self.visits[way[1]], default=None)

    def _in_order(
        self, applicable: Sequence[GroundAction], q_values: Tensor
    ) -> Iterator[GroundAction]:
        """All applicable actions, the best first; equal values fall in the order of the actions."""
        order = np.argsort(-q_values.numpy(), kind="stable")
        if self._representatives is None:
            yield from (applicable[i] for i in order)
            return
        for _, equal in groupby(order, q_values.numpy().__getitem__):
            yield from merge(*(self._representatives.equal_actions(applicable[i]) for i in equal))


@dataclass
class _Memory:
    """What one batch may take, and what states take."""

    encoder: Encoder
    embedding_size: int
    limit: int
    """Bytes."""
    told: bool = False

    def needed(self, execution: Execution) -> int:
        """Bytes that a state adds to a batch, estimated."""
        x, goal = execution.input(self.encoder)
        arguments = sum(map(len, (x.fixed.args, x.changing.args, goal.args)))
        return BYTES_A_NUMBER * self.embedding_size * (x.nodes + arguments)

    def used(self, active: Sequence[Execution]) -> int:
        """Bytes of a batch."""
        return sum(map(self.needed, active))

    def parts(self, active: Sequence[Execution]) -> Iterator[Sequence[Execution]]:
        """Runs that fit, each of at least one: states grow and shrink while they are executed."""
        start, used = 0, 0
        for i, x in enumerate(active):
            needed = self.needed(x)
            if i > start and used + needed > self.limit:
                yield active[start:i]
                start, used = i, 0
            used += needed
        yield active[start:]

    def halve(self, part: Sequence[Execution]) -> None:
        """Let no batch be larger than half of this one, which did not fit; say so once."""
        self.limit = min(self.limit, self.used(part)) // 2
        if not self.told:
            log.warning("memory ran out: going on with smaller batches, which takes longer")
            self.told = True


def execute(  # noqa: PLR0913 - all but three by keyword
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
    """Run every task to its end; yields each as it ends, in the order of ending.

    The batch stays full: as many problems side by side as fit into `batch_bytes`, at least one, a
    finished one making room for the next. Those with most objects begin, so that no long plan is
    left to the end, where nothing fills the batch, and what does not fit shows at once. Where
    memory runs out nevertheless, halves of the batch are tried; a problem that does not fit alone
    ends, and the others go on. `time_limit_s` counts wall-clock seconds from the start of each
    problem to its end. `noise` is the standard deviation of what is added to every Q-value; it
    shows how much error a policy's choices survive. `stop` is asked before every step and while a
    state with many actions is prepared; when true, what is unfinished is not yielded.
    """
    largest = sorted(tasks, key=lambda task: -len(task.objects))
    waiting = deque(Execution(task, visited, time_limit_s, noise) for task in largest)
    memory = _Memory(encoder, network.layout.size, batch_bytes)
    active: list[Execution] = []
    while waiting or active:
        yield from _forgotten(_begin(waiting, active, memory, stop), encoder)
        if not active or stop():
            return
        for execution, q in zip(active, _q_values(network, active, layers, memory), strict=True):
            if q is None:
                execution.end(Outcome.MEMORY_LIMIT)
                continue
            execution.step(execution.input(encoder)[0].actions, q, max_steps)
            if execution.outcome is None and execution.elapsed() > time_limit_s:
                execution.end(Outcome.TIME_LIMIT)
            if execution.outcome is None:
                execution.prepare(encoder, stop)
        yield from _forgotten((x for x in active if x.outcome is not None), encoder)
        active = [x for x in active if x.outcome is None]


def _forgotten(ended: Iterable[Execution], encoder: Encoder) -> Iterator[Execution]:
    """The same; what the encoder remembers of each is dropped, which may be gigabytes in all."""
    for execution in ended:
        yield execution
        encoder.forget(execution.task)


def _begin(
    waiting: deque[Execution],
    active: list[Execution],
    memory: _Memory,
    stop: Callable[[], bool],
) -> Iterator[Execution]:
    """Fill up what is active; yields what has ended before its first step."""
    if stop():
        return
    used = memory.used(active) if waiting else 0
    while waiting:
        execution = waiting[0]
        if execution.outcome is None:
            execution.started = time.perf_counter()
            execution.prepare(memory.encoder, stop)
        if execution.outcome is None:
            if stop():
                return
            needed = memory.needed(execution)
            if active and used + needed > memory.limit:
                return
            active.append(execution)
            used += needed
        waiting.popleft()
        if execution.outcome is not None:
            yield execution


def _q_values(
    network: QNetwork, active: Sequence[Execution], layers: int, memory: _Memory
) -> list[Tensor | None]:
    """Q-values of each problem's applicable actions; None where it does not fit alone."""
    found: list[Tensor | None] = []
    parts = list(reversed(list(memory.parts(active))))
    while parts:
        part = parts.pop()
        try:
            batch = memory.encoder.join([x.input(memory.encoder) for x in part])
            found += network.q_values(batch, layers)
            continue
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
        # Out here the error and what it keeps alive are gone.
        if len(part) == 1:
            found.append(None)
        else:
            memory.halve(part)
            parts += reversed(list(memory.parts(part)))
    return found
