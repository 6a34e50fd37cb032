"""Greedy execution of a policy on many problems in one batch (paper, "Testing")."""

import contextlib
import enum
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from regoal.errors import RegoalError, TooWideError, lacks_memory
from regoal.evaluation.batching import BATCH_BYTES, Memory, compute_q_values
from regoal.evaluation.inputs import Inputs, StateInput
from regoal.networks.batch import Input
from regoal.networks.encoder import Encoder
from regoal.networks.q_function import QValues, RatesActions
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.dead_ends import DeadEnds, find_first
from regoal.planning.goals import Goal
from regoal.planning.task import State, Task
from regoal.records.results import Outcome
from regoal.system.cancellation import StoppedError, stopping

CHECKED_FIRST = 200
"""Steps after which it is tested for the first time whether the state is a dead end. After each
test, twice as many are taken. A policy that needs fewer steps loses no time by tests."""


class Visited(enum.Enum):
    """How execution treats states that have been visited before."""

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
    goal: Goal | None = None
    """The goal to reach; None for the task's goal."""
    start: State | None = None
    """The first state; None for the task's initial state."""
    dead_ends: DeadEnds | None = None
    """The tests for dead ends of the task's goal; None to enter them and stay."""
    is_careful: bool = False
    """Whether dead ends are not entered. If not, the first one is left once it is noticed: the
    execution goes back to the last state that is not proven dead, and is careful from then on."""
    state: State = field(init=False)
    visits: Counter[State] = field(init=False)
    actions: list[GroundAction] = field(default_factory=list)
    evaluations: int = 0
    """States that the network has rated."""
    closed: set[State] = field(init=False, default_factory=set)
    """Visited states from which no action leads to a new state that may be entered."""
    outcome: Outcome | None = None
    """How it ended; None before its end."""
    fault: RegoalError | None = None
    """The fault in the problem itself, if that ended the execution."""
    taken_back: int = field(init=False, default=0)
    """Actions into a dead end that were taken back."""
    started: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0
    """Wall-clock seconds from its start to its end, which all problems of a batch share."""
    _input: StateInput | None = field(default=None, init=False, repr=False, compare=False)
    """The network's input for the present state; None until it is needed."""

    def __post_init__(self) -> None:
        self.state = self.task.initial_state if self.start is None else self.start
        self._goal = self.task.goal if self.goal is None else self.goal
        self._inputs = Inputs(self.task, self._goal)
        self.visits = Counter([self.state])
        self._path = [self.state]
        self._next_check = CHECKED_FIRST
        if self.state.satisfies(self._goal):
            self.end(Outcome.SOLVED)

    @cached_property
    def _rng(self) -> np.random.Generator:
        """The stream of the noise. It does not depend on the order of the tasks."""
        return np.random.default_rng(self.task.salt)

    @property
    def has_seen_all(self) -> bool:
        """Whether every state that may be entered was visited, so that there is no plan."""
        ended = self.outcome is Outcome.DEAD_END and self.visited is Visited.LAST
        return ended and len(self.closed) == len(self.visits)

    @property
    def found_by(self) -> str:
        """The name of this means in records if it has found a plan, else empty."""
        return "greedy" if self.outcome is Outcome.SOLVED else ""

    @property
    def steps(self) -> int:
        """Count the actions, also those that were taken back."""
        return len(self.actions) + self.taken_back

    @property
    def expansions(self) -> int:
        """Count the successors that a search has made: none."""
        return 0

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
        self._input = None
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
        """Encode the state and the goal for the network; done once for each state."""
        if self._input is None:
            self._input = self._inputs.of(self.state, encoder)
        return self._input.input

    def step(self, q_values: QValues, max_steps: int) -> None:
        """Take the action with the highest Q-value among those that `visited` allows.

        The values are those of the input's actions. An action over representatives stands for all
        actions that are equal to it.
        """
        self.evaluations += 1
        if self.noise:
            q_values = q_values + self.noise * self._rng.normal(size=len(q_values))
        chosen = self._choose(q_values)
        if chosen is None:
            if len(self.closed) == len(self.visits) or not self._leave_dead_end():
                self.end(Outcome.DEAD_END)
            return
        self.state.forget_atoms()  # a visited state is kept, and may have 10,000 atoms
        action, self.state = chosen
        self._input = None
        self.actions.append(action)
        self._path.append(self.state)
        self.visits[self.state] += 1
        if self.state.satisfies(self._goal):
            self.end(Outcome.SOLVED)
        elif self.visits[self.state] > 1 and self.visited is Visited.ALLOWED:
            self.end(Outcome.DEAD_END)
        elif self.steps >= max_steps:
            self.end(Outcome.STEP_LIMIT)
        elif self.steps >= self._next_check:
            self._next_check = 2 * self.steps
            self._leave_dead_end()

    def _leave_dead_end(self) -> bool:
        """Return whether the state was a dead end that had been entered and was left.

        If the first state is one, too, the execution ends: there is no plan.
        """
        if self.dead_ends is None or self.is_careful:
            return False
        dead = find_first(self._path, self.dead_ends.has)
        if dead is None:
            return False
        self.is_careful = True
        kept = max(1, dead)
        self.taken_back += len(self._path) - kept
        del self._path[kept:], self.actions[kept - 1 :]
        self.visits, self.state, self._input = Counter(self._path), self._path[-1], None
        self.closed = set() if dead else set(self._path)
        if not dead:
            self.end(Outcome.DEAD_END)
        return True

    def step_in_time(self, q_values: QValues, max_steps: int, stop: Callable[[], bool]) -> None:
        """Take a step as `step` does; the execution ends if the time is over then or meanwhile.

        If `stop` becomes true meanwhile, no step may have been taken.
        """
        with (
            contextlib.suppress(StoppedError),
            stopping(lambda: stop() or self.elapsed() > self.time_limit_s),
        ):
            self.step(q_values, max_steps)
        if self.outcome is None and self.elapsed() > self.time_limit_s:
            self.end(Outcome.TIME_LIMIT)

    def _choose(self, q_values: QValues) -> tuple[GroundAction, State] | None:
        """Choose an action and its successor; None if the execution must end."""
        seen: list[tuple[GroundAction, State]] = []
        assert self._input is not None
        for action in self._input.rank(q_values):
            if action is DUMMY_ACTION:
                continue
            successor = self.task.successor(self.state, action)
            if self.visited is not Visited.ALLOWED and successor in self.visits:
                seen.append((action, successor))
            elif not (self.is_careful and self.dead_ends and self.dead_ends.has(successor)):
                return action, successor
        self.closed.add(self.state)
        if self.visited is Visited.EXCLUDED or len(self.closed) == len(self.visits):
            # With `LAST`, every state that may be entered was visited: there is no plan.
            return None
        return min(seen, key=lambda way: self.visits[way[1]], default=None)


def execute(  # noqa: PLR0913 - all but three are keywords
    network: RatesActions,
    encoder: Encoder,
    tasks: Sequence[Task],
    *,
    layers: int,
    max_steps: int = 1000,
    visited: Visited = Visited.EXCLUDED,
    batch_bytes: int = BATCH_BYTES,
    time_limit_s: float = math.inf,
    noise: float = 0.0,
    dead_ends: Mapping[Task, DeadEnds] = MappingProxyType({}),
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Execution]:
    """Run the policy on every task, and yield each execution as it ends.

    The batch has as many problems as fit into `batch_bytes`, at least one. A finished problem makes
    room for the next. Problems with most objects come first: a long plan at the end would leave the
    batch nearly empty, and a problem that does not fit is found at once. If memory runs out all the
    same, the batch is halved. A problem that does not fit alone ends, and the others go on.

    `time_limit_s` limits the wall-clock seconds of each problem, from its start to its end. `noise`
    is the standard deviation of noise added to every Q-value; it shows how much error a policy's
    choices survive. `dead_ends` has tests for the tasks whose dead ends are to be left. `stop` is
    called before every step, and while a state with many actions is prepared or tested. Once it
    returns true, unfinished problems are not yielded.
    """
    largest = sorted(tasks, key=lambda task: -len(task.objects))
    waiting = deque(
        Execution(task, visited, time_limit_s, noise, dead_ends=dead_ends.get(task))
        for task in largest
    )
    memory = Memory(encoder, network.layout.size, batch_bytes)
    active: list[Execution] = []
    while waiting or active:
        yield from _yield_and_forget(_start_waiting(waiting, active, memory, stop), encoder)
        if not active or stop():
            return
        for execution, q in zip(
            active, compute_q_values(network, active, layers, memory), strict=True
        ):
            if q is None:
                execution.end(Outcome.MEMORY_LIMIT)
                continue
            execution.step_in_time(q, max_steps, stop)
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
    memory: Memory,
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
