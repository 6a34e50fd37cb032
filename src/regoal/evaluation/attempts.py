"""An attempt at a task by three means: greedy execution, then commitment, then search.

Each begins if the one before has found no plan. Greedy execution leaves the first dead end that it
has entered once it notices it, and enters no other; commitment and search enter none. With a time
limit, greedy execution has a share of it, commitment has a share of what is left, and search has
the rest.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from regoal.errors import RegoalError
from regoal.evaluation.commitment import Commitment
from regoal.evaluation.execution import Execution, Visited, execute
from regoal.evaluation.search import MOST_EXPANSIONS, Search
from regoal.networks.encoder import Encoder
from regoal.networks.q_function import RatesActions
from regoal.planning.actions import GroundAction
from regoal.planning.dead_ends import DeadEnds
from regoal.planning.task import Task
from regoal.records.results import Outcome

GREEDY_SHARE = 1 / 3
"""Greedy execution's share of the time limit."""
COMMITMENT_SHARE = 1 / 3
"""Commitment's share of the time that greedy execution leaves."""
COMMITMENT_STEPS = 4
"""How many times the steps of greedy execution commitment may take, as it takes many back."""

FINAL = (Outcome.SOLVED, Outcome.UNSOLVABLE, Outcome.MEMORY_LIMIT, Outcome.ERROR)
"""How a means ends if there is no use in trying the next one."""


@dataclass
class Attempt:
    """One attempt at one task, with all that a record says of it."""

    task: Task
    outcome: Outcome = Outcome.NO_PLAN
    actions: Sequence[GroundAction] = ()
    """The plan; empty if none was found."""
    found_by: str = ""
    """`greedy`, `commitment` or `search`; empty without a plan."""
    returns: int = 0
    """Actions of the plan into states that it had visited before."""
    steps: int = 0
    """Actions that greedy execution and commitment have taken."""
    evaluations: int = 0
    """States that the network has rated, each as often as it was."""
    expansions: int = 0
    """Successors that search has made."""
    reached: int = 0
    """The most goal literals that hold together in a state that search has met."""
    fault: RegoalError | None = None
    """The fault in the problem itself, if that ended the attempt."""
    seconds: float = 0.0
    """Wall-clock seconds from its start to its end."""
    started: float = field(default_factory=time.perf_counter)

    @property
    def is_final(self) -> bool:
        """Whether there is no use in trying another means."""
        return self.outcome in FINAL

    def explain(self) -> str:
        """Say in a few words why no plan was found, and what was reached."""
        if self.outcome is Outcome.UNSOLVABLE:
            return "the search has seen every state from which the goal might be reached"
        parts = [f"{self.outcome.text} after {self.steps} step(s)"]
        if self.expansions:
            parts.append(
                f"then {self.expansions} successors of search, in which at best {self.reached} "
                f"of {len(self.task.goal)} goal literals hold together"
            )
        return ", ".join(parts)

    def elapsed(self) -> float:
        """Return the wall-clock seconds since its start."""
        return time.perf_counter() - self.started


@dataclass(frozen=True, kw_only=True)
class Means:
    """A policy and the limits within which it is to find plans."""

    network: RatesActions
    encoder: Encoder
    layers: int
    max_steps: int = 1000
    """The most actions of greedy execution; commitment may take `COMMITMENT_STEPS` as many."""
    max_expansions: int = MOST_EXPANSIONS
    time_limit_s: float = math.inf
    """The most wall-clock seconds for a task, for all means together."""

    def attempt(
        self, tasks: Sequence[Task], *, stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Attempt]:
        """Try every task, one after another, and yield each attempt as it ends.

        Once `stop` returns true, unfinished attempts are not yielded.
        """
        for task in tasks:
            attempt, dead_ends = Attempt(task), DeadEnds(task)
            self._execute(attempt, dead_ends, stop)
            begin: list[GroundAction] = []
            if not (attempt.is_final or stop()):
                begin = self._commit(attempt, dead_ends, stop)
            if not (attempt.is_final or stop()):
                self._search(attempt, begin, dead_ends, stop)
            if stop():
                return
            attempt.seconds = attempt.elapsed()
            yield attempt
            self.encoder.forget(task)

    def _execute(self, attempt: Attempt, dead_ends: DeadEnds, stop: Callable[[], bool]) -> None:
        """Execute the policy greedily."""
        for execution in execute(
            self.network,
            self.encoder,
            [attempt.task],
            layers=self.layers,
            max_steps=self.max_steps,
            visited=Visited.LAST,
            time_limit_s=GREEDY_SHARE * self.time_limit_s,
            dead_ends={attempt.task: dead_ends},
            stop=stop,
        ):
            self._note(attempt, execution, execution.outcome or Outcome.ERROR, "greedy")
            if execution.has_seen_all:
                attempt.outcome = Outcome.UNSOLVABLE

    def _commit(
        self, attempt: Attempt, dead_ends: DeadEnds, stop: Callable[[], bool]
    ) -> list[GroundAction]:
        """Commit to one literal after another; return the actions up to the last one reached."""
        commitment = Commitment(self.network, self.encoder, attempt.task, self.layers, dead_ends)
        left = self.time_limit_s - attempt.elapsed()
        outcome = commitment.run(
            max_steps=COMMITMENT_STEPS * self.max_steps,
            time_limit_s=COMMITMENT_SHARE * left,
            stop=stop,
        )
        self._note(attempt, commitment, outcome, "commitment")
        return commitment.actions

    def _note(
        self, attempt: Attempt, of: Execution | Commitment, outcome: Outcome, name: str
    ) -> None:
        """Add what an execution has come to."""
        attempt.outcome, attempt.fault = outcome, of.fault
        attempt.steps += of.steps
        attempt.evaluations += of.evaluations
        if outcome is Outcome.SOLVED:
            attempt.actions, attempt.found_by, attempt.returns = of.actions, name, of.returns

    def _search(
        self,
        attempt: Attempt,
        begin: Sequence[GroundAction],
        dead_ends: DeadEnds,
        stop: Callable[[], bool],
    ) -> None:
        """Search from the initial state and from the state after these actions."""
        search = Search(
            self.network, self.encoder, attempt.task, layers=self.layers, dead_ends=dead_ends
        )
        attempt.outcome = search.run(
            begin,
            time_limit_s=self.time_limit_s - attempt.elapsed(),
            max_expansions=self.max_expansions,
            stop=stop,
        )
        attempt.fault = search.fault
        attempt.evaluations += search.evaluations
        attempt.expansions, attempt.reached = search.expansions, search.reached
        if search.plan is not None:
            attempt.actions, attempt.found_by = search.plan, "search"
