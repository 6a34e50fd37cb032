"""Run policies from Python: load one, plan, ask for Q-values, evaluate. PyTorch is not loaded."""

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from regoal.api.arguments import Problems, as_paths
from regoal.evaluation import evaluate as evaluation
from regoal.evaluation.evaluate import Solution, TestSettings
from regoal.networks.encoder import Encoder
from regoal.networks.policy_encoder import policy_encoder
from regoal.networks.policy_file import Policy
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.goals import Goal
from regoal.planning.load import load_domain
from regoal.planning.load import load_task as read_task
from regoal.planning.plans import validate_plan
from regoal.planning.problem_files import problem_files, with_domains
from regoal.planning.shortening.shorten import SECONDS, shorten
from regoal.planning.task import State, Task
from regoal.records.results import PlanResult
from regoal.system.threads import free_threads

log = logging.getLogger(__name__)


class RunnablePolicy:
    """A policy for all problems of a domain, made by `load_policy`."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        """The content of the policy's file: its network, domain structure and training facts."""
        self._encoder: tuple[Task, Encoder] | None = None

    def __repr__(self) -> str:
        return f"RunnablePolicy({self.policy.schema})"

    def plan(
        self,
        task: Task,
        *,
        max_steps: int = 1000,
        search: bool = True,
        time_limit_s: float = math.inf,
    ) -> Solution:
        """Find a plan. It has been validated, and useless steps have been taken out of it.

        In the result, `actions` is the plan, or None; then `reason` says why there is none. Greedy
        execution of at most `max_steps` actions comes first. If it fails and `search` is true,
        commitment and best-first search follow. All together take at most `time_limit_s` seconds.

        Raises `UsageError` if the policy is for another domain, `TooWideError` if a state has too
        many actions, `PddlError` if a cost is missing, and `RegoalError` if the plan is not valid.

        Examples:
            >>> import regoal, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     problem, *others = regoal.generate("gripper", folder, split="train")
            ...     task = regoal.load_task(f"{folder}/domain.pddl", problem)
            >>> found = regoal.load_policy("gripper").plan(task)
            >>> [str(action) for action in found.actions][-1]
            '(drop ball1 roomb left)'
        """
        settings = TestSettings(
            layers=self.policy.layers,
            max_steps=max_steps,
            search=search,
            time_limit_s=time_limit_s,
        )
        found = evaluation.solve(self.policy, self._encode(task), task, settings)
        if found.actions is None:
            return found
        if not validate_plan(task, found.actions).valid:
            raise evaluation.make_rejection(task, found.actions)
        seconds = min(SECONDS, time_limit_s - found.ended.seconds if found.ended else SECONDS)
        return replace(found, actions=shorten(task, found.actions, seconds).actions)

    def q_values(self, state: State, goal: Goal) -> dict[GroundAction, float]:
        """Return the Q-value of each applicable action of a state, in the order of actions.

        The highest value is best, and is about minus the discounted number of steps to the goal.
        The result is empty if no action is applicable. `goal` may be any goal over the task's
        atoms, e.g. `task.goal`. Raises `UsageError` and `TooWideError` as `plan` does.

        Examples:
            >>> import regoal, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     problem, *others = regoal.generate("gripper", folder, split="train")
            ...     task = regoal.load_task(f"{folder}/domain.pddl", problem)
            >>> policy = regoal.load_policy("gripper")
            >>> rated = policy.q_values(task.initial_state, task.goal)
            >>> str(max(rated, key=rated.get))
            '(pick ball1 rooma left)'
        """
        encoder = self._encode(state.task)
        encoded = encoder.state(state)
        if encoded.actions == (DUMMY_ACTION,):
            return {}
        batch = encoder.batch([(state, goal)])
        [values] = self.policy.network.q_values(batch, self.policy.layers)
        return dict(zip(encoded.actions, np.asarray(values).tolist(), strict=True))

    def _encode(self, task: Task) -> Encoder:
        """Return the encoder for a task; the one of the last task is kept."""
        if self._encoder is None or self._encoder[0] is not task:
            encoder, notes = policy_encoder(self.policy, task.domain)
            for note in (*notes, *evaluation.unread_goals(encoder, [task])):
                log.info("%s: %s", task.path, note)
            self._encoder = task, encoder
        return self._encoder[1]


def load_task(domain: str | Path, problem: str | Path) -> Task:
    """Read a domain file and a problem file.

    The task has the initial state and the goal. It also gives the applicable actions of a state,
    and their successors. Raises `UsageError` if a file cannot be read, and `PddlError` or
    `UnsupportedPddlError`, with the line, if its content is wrong.

    Examples:
        >>> import regoal, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     problem, *others = regoal.generate("gripper", folder, split="train")
        ...     task = regoal.load_task(f"{folder}/domain.pddl", problem)
        >>> str(task.goal)
        '(and (at ball1 roomb))'
        >>> state = task.initial_state
        >>> [str(action) for action in task.applicable_actions(state)][:2]
        ['(move rooma roomb)', '(pick ball1 rooma left)']
    """
    return read_task(load_domain(Path(domain)), Path(problem))


def load_policy(policy: str | Path, *, device: str = "cpu") -> RunnablePolicy:
    """Load a policy file, the best policy of a run folder, or a policy that comes with regoal.

    No problem is needed: a policy is matched with a task's domain when it is used. It runs with as
    many threads as `OMP_NUM_THREADS` says, or the cores of this machine, at most 8. `device` is
    `cpu` or `cuda`; only the latter loads PyTorch. Raises `UsageError` if there is no such policy
    or its file is damaged.

    Examples:
        >>> import regoal
        >>> policy = regoal.load_policy("gripper")
        >>> policy.policy.layers
        30
    """
    return RunnablePolicy(evaluation.load(str(policy), threads=free_threads(), device=device))


def evaluate(
    policy: RunnablePolicy,
    problems: Problems,
    *,
    domain: str | Path | None = None,
    max_steps: int = 1000,
    search: bool = False,
    time_limit_s: float = math.inf,
    plans: str | Path | None = None,
    tell: Callable[[str], None] = lambda note: None,
) -> Iterator[PlanResult]:
    """Run a policy on a folder or list of problems; yield the result of each problem as it ends.

    Without `domain`, the domain file is found next to each problem or above it. Limits are those of
    one problem, as in `RunnablePolicy.plan`; without `search` the policy is executed greedily. The
    folder `plans` gets a file for each plan. `tell` is called with notes and with the errors of
    problems that cannot be read, whose outcome is `ERROR`; the others go on.

    Raises `UsageError` if there is no problem or domain, or if the policy is for another domain.

    Examples:
        >>> import regoal, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     problem, *others = regoal.generate("gripper", folder, split="train")
        ...     results = list(regoal.evaluate(regoal.load_policy("gripper"), problem))
        >>> [(result.problem, result.outcome.key, result.plan_length) for result in results]
        [('p001', 'solved', 3)]
    """
    files = with_domains(
        problem_files(as_paths(problems)), None if domain is None else Path(domain)
    )
    settings = TestSettings(
        layers=policy.policy.layers,
        max_steps=max_steps,
        search=search,
        time_limit_s=time_limit_s,
        plans=None if plans is None else Path(plans),
    )
    return evaluation.evaluate(policy.policy, files, settings, tell, lambda error: tell(str(error)))
