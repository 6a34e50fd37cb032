"""Further plans of a policy: what it does if its Q-values are a little wrong."""

from collections.abc import Iterator, Sequence

from regoal.evaluation.evaluate import TestSettings
from regoal.evaluation.execution import Visited, execute
from regoal.networks.encoder import Encoder
from regoal.networks.policy_file import Policy
from regoal.planning.actions import GroundAction
from regoal.planning.task import Task
from regoal.records.results import Outcome

NOISES = (0.25, 0.5, 1.0, 2.0, 0.35, 0.7, 1.4, 2.8)
"""Standard deviations of the noise, in steps."""


def vary(
    policy: Policy, encoder: Encoder, task: Task, settings: TestSettings, most_steps: int
) -> Iterator[Sequence[GroundAction]]:
    """Yield plans that the policy finds with noise on its Q-values, of at most `most_steps`.

    There is one attempt for each of `NOISES`. Raises `MemoryError` if memory runs out.
    """
    for noise in NOISES:
        [execution] = execute(
            policy.network,
            encoder,
            [task],
            layers=settings.layers,
            max_steps=most_steps,
            visited=Visited.LAST,
            noise=noise,
        )
        if execution.outcome is Outcome.MEMORY_LIMIT:
            raise MemoryError
        if execution.outcome is Outcome.SOLVED and execution.actions:
            yield execution.actions
