"""Greedy execution that commits itself to one goal literal after another.

A goal-conditioned policy can be given another goal than the task's. Here it is the goal literals
that hold already and one more: the literal whose best action the network rates highest, so the one
that seems nearest. It is kept until it is reached; then the next one is chosen. A policy that
wavers between the parts of a large goal is steadied so, without any search.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from regoal.errors import RegoalError, TooWideError, lacks_memory
from regoal.evaluation.execution import (
    BATCH_BYTES,
    Execution,
    Memory,
    Visited,
    compute_q_values,
)
from regoal.evaluation.inputs import Inputs, Situation
from regoal.networks.encoder import Encoder
from regoal.networks.q_function import RatesActions
from regoal.planning.actions import GroundAction
from regoal.planning.goals import Goal
from regoal.planning.task import State, Task
from regoal.records.results import Outcome
from regoal.system.cancellation import StoppedError, stopping

RATED = 10
"""Literals that are rated for each choice after the first, which rates all."""


@dataclass
class Commitment:
    """One attempt at one task by commitment to one goal literal after another."""

    network: RatesActions
    encoder: Encoder
    task: Task
    layers: int
    actions: list[GroundAction] = field(default_factory=list)
    """The actions taken so far; the plan if the attempt succeeds."""
    states: set[State] = field(default_factory=set)
    """The states visited so far."""
    kept: int = 0
    """How many of the actions lead to the last literal that was reached."""
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
        state = self.task.initial_state
        self.states.add(state)
        while not state.satisfies(self.task.goal):
            if len(self.actions) >= max_steps:
                return Outcome.STEP_LIMIT
            goal = self._choose(state)
            if goal is None:
                return Outcome.MEMORY_LIMIT
            execution = Execution(self.task, Visited.LAST, goal=goal, start=state)
            self._execute(execution, max_steps - len(self.actions), is_over)
            self.actions += execution.actions
            self.states.update(execution.visits)
            if execution.outcome is not Outcome.SOLVED:
                return execution.outcome or Outcome.ERROR
            state, self.kept = execution.state, len(self.actions)
        return Outcome.SOLVED

    def _choose(self, state: State) -> Goal | None:
        """Return what holds of the goal and its nearest literal; None if memory does not allow it.

        The first call rates every literal that does not hold. Later ones rate the nearest again, by
        what was known of them. Of equally near literals, the first one in order is taken.
        """
        holding = [x for x in self._nearness if state.holds(x[0]) == x[1]]
        missing = [x for x in self._nearness if state.holds(x[0]) != x[1]]
        missing.sort(key=self._nearness.__getitem__, reverse=True)
        # All are infinitely near at first.
        tried = [x for i, x in enumerate(missing) if i < RATED or self._nearness[x] == math.inf]
        if len(tried) > 1:
            goals = [Goal.of_literals([*holding, x]) for x in tried]
            situations = [Situation(Inputs(self.task, goal), state) for goal in goals]
            rated = compute_q_values(self.network, situations, self.layers, self._memory)
            self.evaluations += len(situations)
            for literal, q in zip(tried, rated, strict=True):
                if q is None:
                    return None
                self._nearness[literal] = float(q.max())
        return Goal.of_literals([*holding, max(tried, key=self._nearness.__getitem__)])

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
