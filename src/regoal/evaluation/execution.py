"""Greedy execution of a policy on many problems at once (paper, "Testing")."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from regoal.evaluation.results import Outcome
from regoal.networks.encoding import Encoder
from regoal.networks.q_network import QNetwork
from regoal.planning.task import DUMMY_ACTION, GroundAction, State, Task


@dataclass
class Execution:
    """How far the policy has come on one problem."""

    task: Task
    avoid_visited: bool
    state: State = field(init=False)
    visited: set[State] = field(init=False)
    actions: list[GroundAction] = field(default_factory=list)
    outcome: Outcome | None = None
    """None while it goes on."""
    started: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0
    """Wall-clock seconds from its start to its end; problems of one batch share them."""

    def __post_init__(self) -> None:
        self.state = self.task.initial_state
        self.visited = {self.state}
        if self.state.satisfies(self.task.goal):
            self.end(Outcome.SOLVED)

    def elapsed(self) -> float:
        """Wall-clock seconds since its start."""
        return time.perf_counter() - self.started

    def end(self, outcome: Outcome) -> None:
        """Stop here."""
        self.outcome = outcome
        self.seconds = self.elapsed()

    def step(self, applicable: Sequence[GroundAction], q_values: Tensor, max_steps: int) -> None:
        """Take the action with the highest Q-value whose successor is new."""
        chosen = self._best(applicable, q_values)
        if chosen is None:
            self.end(Outcome.DEAD_END)
            return
        action, self.state = chosen
        self.actions.append(action)
        if self.state.satisfies(self.task.goal):
            self.end(Outcome.SOLVED)
        elif not self.avoid_visited and self.state in self.visited:
            self.end(Outcome.DEAD_END)
        elif len(self.actions) >= max_steps:
            self.end(Outcome.STEP_LIMIT)
        self.visited.add(self.state)

    def _best(
        self, applicable: Sequence[GroundAction], q_values: Tensor
    ) -> tuple[GroundAction, State] | None:
        # Equal values fall in the order of the actions, which is fixed: a stable sort.
        for i in np.argsort(-q_values.numpy(), kind="stable"):
            if applicable[i] is DUMMY_ACTION:
                continue
            successor = self.task.successor(self.state, applicable[i])
            if not self.avoid_visited or successor not in self.visited:
                return applicable[i], successor
        return None


def execute(  # noqa: PLR0913 - all but three by keyword
    network: QNetwork,
    encoder: Encoder,
    tasks: Sequence[Task],
    *,
    layers: int,
    max_steps: int = 1000,
    avoid_visited: bool = True,
    batch_nodes: int = 4000,
    time_limit_s: float = math.inf,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Execution]:
    """Run every task to its end; yields each as it ends, in the order of ending.

    The batch stays full: as many problems side by side as have `batch_nodes` nodes (objects and
    actions) in all, at least one, a finished one making room for the next. Without
    `avoid_visited` a problem ends at the first state seen before, as in the paper's figures.
    `time_limit_s` counts wall-clock seconds from the start of each problem to its end.
    `stop` is asked before every step; when true, what is unfinished is not yielded.
    """
    waiting = list(reversed(tasks))
    active: list[Execution] = []
    while waiting or active:
        while waiting and _fits(active, encoder, batch_nodes):
            execution = Execution(waiting.pop(), avoid_visited)
            if execution.outcome is not None:
                yield execution
            else:
                active.append(execution)
        if not active or stop():
            return
        batch = encoder.batch((x.state, x.task.goal) for x in active)
        for execution, q in zip(active, network.q_values(batch, layers), strict=True):
            execution.step(encoder.state(execution.state).actions, q, max_steps)
            if execution.outcome is None and execution.elapsed() > time_limit_s:
                execution.end(Outcome.TIME_LIMIT)
        yield from (x for x in active if x.outcome is not None)
        active = [x for x in active if x.outcome is None]


def _fits(active: Sequence[Execution], encoder: Encoder, batch_nodes: int) -> bool:
    return not active or sum(encoder.state(x.state).nodes for x in active) < batch_nodes
