"""Greedy execution that commits itself to one goal literal after another.

A goal-conditioned policy can be given another goal than the task's. Here it is the goal literals
that hold already and one more: the literal whose best action the network rates highest, so the one
that seems nearest. It is kept until it is reached; then the next one is chosen. A policy that
wavers between the parts of a large goal is steadied so.

A literal that takes much longer than the network expected is given up: the steps towards it are
taken back, and another one is tried. If all are given up, all get twice the steps. It ends if none
of them lacked steps, i.e. no action leads on.
"""

import math
import time
from collections.abc import Callable, Set
from dataclasses import dataclass, field

from regoal.errors import RegoalError, TooWideError, lacks_memory
from regoal.evaluation.batching import BATCH_BYTES, Memory, compute_q_values
from regoal.evaluation.execution import Execution, Visited
from regoal.evaluation.inputs import Inputs, Situation
from regoal.networks.encoder import Encoder
from regoal.networks.q_function import RatesActions
from regoal.planning.actions import GroundAction
from regoal.planning.dead_ends import DeadEnds
from regoal.planning.goals import Atom, Goal
from regoal.planning.task import State, Task
from regoal.records.results import Outcome
from regoal.system.cancellation import StoppedError, stopping

FACTOR = 3
SPARE_STEPS = 10
"""A literal is given up after so many times the steps that the network expected, and some more."""
Literal = tuple[Atom, bool]
RATED = 10
"""Literals that are rated for each choice after the first, which rates all."""


@dataclass
class Commitment:
    """One attempt at one task by commitment to one goal literal after another."""

    network: RatesActions
    encoder: Encoder
    task: Task
    layers: int
    dead_ends: DeadEnds | None = None
    """The tests for dead ends of the task's goal, which are not entered; None to enter them."""
    actions: list[GroundAction] = field(default_factory=list)
    """The actions up to the last literal that was reached; the plan if the attempt succeeds."""
    states: set[State] = field(default_factory=set)
    """The states on that way."""
    steps: int = 0
    """The actions taken, also those that were taken back."""
    evaluations: int = 0
    """States that the network has rated, each as often as it was."""
    fault: RegoalError | None = None
    """A fault in the problem itself, if that ended it."""

    def __post_init__(self) -> None:
        self._memory = Memory(self.encoder, self.network.layout.size, BATCH_BYTES)
        self._nearness = dict.fromkeys(self.task.goal.literals(), math.inf)

    @property
    def returns(self) -> int:
        """Count the actions into states that had been visited before."""
        return len(self.actions) + 1 - len(self.states)

    def run(
        self,
        *,
        max_steps: int,
        time_limit_s: float = math.inf,
        stop: Callable[[], bool] = lambda: False,
    ) -> Outcome:
        """Go on from literal to literal until the goal is reached or a limit is; runs once.

        The outcomes are those of greedy execution.
        """
        deadline = time.perf_counter() + time_limit_s

        def is_over() -> bool:
            return stop() or time.perf_counter() > deadline

        try:
            with stopping(is_over):
                return self._run(max_steps, is_over)
        except StoppedError:
            return Outcome.TIME_LIMIT
        except RegoalError as error:
            self.fault = error
            return Outcome.MEMORY_LIMIT if isinstance(error, TooWideError) else Outcome.ERROR
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
            return Outcome.MEMORY_LIMIT

    def _run(self, max_steps: int, is_over: Callable[[], bool]) -> Outcome:
        state, given_up, patience = self.task.initial_state, set[Literal](), 1
        lacked_steps = False
        self.states.add(state)
        while not state.satisfies(self.task.goal):
            if self.steps >= max_steps:
                return Outcome.STEP_LIMIT
            chosen = self._choose(state, given_up)
            if chosen is None:
                return Outcome.MEMORY_LIMIT
            goal, literal = chosen
            execution = Execution(
                self.task,
                Visited.LAST,
                goal=goal,
                start=state,
                dead_ends=self.dead_ends,
                is_careful=True,
            )
            enough = patience * math.ceil(SPARE_STEPS + FACTOR * -self._nearness[literal])
            self._execute(execution, min(enough, max_steps - self.steps), is_over)
            self.steps += len(execution.actions)
            if execution.outcome is Outcome.SOLVED:
                self.actions += execution.actions
                self.states.update(execution.visits)
                state, given_up, patience = execution.state, set(), 1
                lacked_steps = False
                continue
            if execution.outcome not in (Outcome.STEP_LIMIT, Outcome.DEAD_END):
                return execution.outcome or Outcome.ERROR
            given_up.add(literal)
            lacked_steps |= execution.outcome is Outcome.STEP_LIMIT
            if all(x in given_up for x in self._nearness if state.holds(x[0]) != x[1]):
                if not lacked_steps:
                    return Outcome.DEAD_END
                given_up, patience, lacked_steps = set(), 2 * patience, False
        return Outcome.SOLVED

    def _choose(self, state: State, given_up: Set[Literal]) -> tuple[Goal, Literal] | None:
        """Return what holds of the goal and its nearest literal; None if memory does not allow it.

        The first call rates every literal that does not hold. Later ones rate the nearest again, by
        what was known of them. Of equally near literals, the first one in order is taken.
        """
        holding = [x for x in self._nearness if state.holds(x[0]) == x[1]]
        missing = [x for x in self._nearness if state.holds(x[0]) != x[1] and x not in given_up]
        missing.sort(key=self._nearness.__getitem__, reverse=True)
        # All are infinitely near at first.
        tried = [x for i, x in enumerate(missing) if i < RATED or self._nearness[x] == math.inf]
        if len(tried) > 1 or self._nearness[tried[0]] == math.inf:
            goals = [Goal.of_literals([*holding, x]) for x in tried]
            situations = [Situation(Inputs(self.task, goal), state) for goal in goals]
            rated = compute_q_values(self.network, situations, self.layers, self._memory)
            self.evaluations += len(situations)
            for literal, q in zip(tried, rated, strict=True):
                if q is None:
                    return None
                self._nearness[literal] = float(q.max())
        nearest = max(tried, key=self._nearness.__getitem__)
        return Goal.of_literals([*holding, nearest]), nearest

    def _execute(self, execution: Execution, max_steps: int, is_over: Callable[[], bool]) -> None:
        """Run the execution to its end."""
        while execution.outcome is None:
            if is_over():
                raise StoppedError
            execution.input(self.encoder)
            [q] = compute_q_values(self.network, [execution], self.layers, self._memory)
            self.evaluations += 1
            if q is None:
                execution.end(Outcome.MEMORY_LIMIT)
            else:
                execution.step(q, max_steps)
