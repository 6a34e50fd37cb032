"""How attempts at tasks end, in a form that a pipe can carry."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from regoal.errors import RegoalError
from regoal.planning.actions import GroundAction
from regoal.planning.task import Task
from regoal.records.results import Outcome


class Tried(Protocol):
    """An execution, or an attempt by several means, that has ended."""

    @property
    def task(self) -> Task:
        """The task that was tried."""

    @property
    def outcome(self) -> Outcome | None:
        """How it ended."""

    @property
    def actions(self) -> Sequence[GroundAction]:
        """The plan, or what was executed without reaching the goal."""

    @property
    def found_by(self) -> str:
        """The means that found the plan; empty without one."""

    @property
    def returns(self) -> int:
        """Actions into states that had been visited."""

    @property
    def steps(self) -> int:
        """Actions that were executed."""

    @property
    def evaluations(self) -> int:
        """States that the network has rated."""

    @property
    def expansions(self) -> int:
        """Successors that search has made."""

    @property
    def seconds(self) -> float:
        """Wall-clock seconds from its start to its end."""

    @property
    def fault(self) -> RegoalError | None:
        """The fault in the problem itself, if that ended it."""


class Ended(NamedTuple):
    """The end of one task."""

    outcome: Outcome
    actions: list[GroundAction]
    returns: int
    """Actions into states that had been visited."""
    seconds: float
    """Wall-clock seconds from its start to its end; tasks of one batch share them."""
    fault: RegoalError | None
    """The fault in the problem itself, if that ended it."""
    found_by: str
    """The means that found the plan; empty without one."""
    steps: int
    """Actions that were executed."""
    evaluations: int
    """States that the network has rated."""
    expansions: int
    """Successors that search has made."""


def describe_end(tried: Tried) -> Ended:
    """Return how a task ended, with actions that a pipe can carry."""
    return Ended(
        outcome=tried.outcome or Outcome.ERROR,
        actions=[GroundAction(action.name, action.objects) for action in tried.actions],
        returns=tried.returns,
        seconds=tried.seconds,
        fault=tried.fault,
        found_by=tried.found_by,
        steps=tried.steps,
        evaluations=tried.evaluations,
        expansions=tried.expansions,
    )
