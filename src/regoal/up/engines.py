"""regoal's policies and its validator as engines of Unified Planning."""

import math
import re
import tempfile
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from unified_planning.engines import (
    Engine,
    LogLevel,
    LogMessage,
    OptimalityGuarantee,
    PlanGenerationResult,
    ValidationResult,
)
from unified_planning.engines import PlanGenerationResultStatus as Status
from unified_planning.engines import ValidationResultStatus as Judgement
from unified_planning.engines.mixins import OneshotPlannerMixin, PlanValidatorMixin
from unified_planning.engines.results import FailedValidationReason
from unified_planning.model import Problem, ProblemKind
from unified_planning.plans import Plan, PlanKind, SequentialPlan

from regoal.errors import (
    EXIT_BAD_PDDL,
    EXIT_INTERNAL,
    EXIT_MEMORY,
    EXIT_UNSUPPORTED_PDDL,
    EXIT_USAGE,
    RegoalError,
    UsageError,
    lacks_memory,
)
from regoal.evaluation.evaluate import TestSettings, load, solve, unread_goals
from regoal.networks.encoder import Encoder
from regoal.networks.policy_encoder import policy_encoder
from regoal.networks.policy_file import Policy, describe_policy, shipped_policies
from regoal.planning.domain import Domain
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.plans import Verdict, check_plan_text, parse_plan
from regoal.planning.shortening.shorten import shorten, time_to_shorten
from regoal.planning.task import Task
from regoal.records.results import Outcome
from regoal.system.threads import free_threads
from regoal.up.translation import (
    Translation,
    has_one_type,
    supported_kind,
    write_problem,
    write_texts,
)

Log = Callable[[LogLevel, str], None]


class _Engine(Engine):  # type: ignore[misc]
    """The part that both engines share: the problems that they read."""

    @staticmethod
    def supported_kind() -> ProblemKind:
        """Return the kind of the problems that the engine reads."""
        return supported_kind()

    @staticmethod
    def supports(problem_kind: ProblemKind) -> bool:
        """Return whether the engine reads problems of a kind. It may have no policy for them."""
        return bool(problem_kind <= supported_kind())


class Planner(_Engine, OneshotPlannerMixin):  # type: ignore[misc]
    """Plans with a policy."""

    def __init__(self, policy: str | Path | None = None) -> None:
        """Plan with a policy file, a run folder, or a shipped policy's name.

        Without one, each problem gets the shipped policy whose domain has the same structure.
        """
        Engine.__init__(self)
        OneshotPlannerMixin.__init__(self)
        self._policy = policy

    @property
    def name(self) -> str:
        """The name in results."""
        return "regoal"

    @staticmethod
    def satisfies(optimality_guarantee: OptimalityGuarantee) -> bool:
        """Return whether plans have this quality; they are never proven to be optimal."""
        return bool(optimality_guarantee == OptimalityGuarantee.SATISFICING)

    def _solve_with_params(
        self,
        problem: Problem,
        heuristic: object = None,
        timeout: float | None = None,
        output_stream: IO[str] | None = None,
        warm_start_plan: Plan | None = None,
        policy: str | Path | None = None,
    ) -> PlanGenerationResult:
        """Solve a problem, with `policy` in place of the one that the engine was made with.

        `timeout` limits the wall-clock seconds of the whole call; writing and reading the problem
        is not interrupted. Raises `UsageError` if there is no such policy.
        """
        started = time.perf_counter()
        if heuristic is not None or warm_start_plan is not None:
            warnings.warn("regoal uses no heuristic and no other plan", stacklevel=3)
        messages: list[LogMessage] = []

        def log(level: LogLevel, text: str) -> None:
            messages.append(LogMessage(level, text))
            if output_stream is not None:
                output_stream.write(f"{text}\n")

        chosen = self._policy if policy is None else policy
        loaded = None if chosen is None else _load(chosen)
        deadline = started + (math.inf if timeout is None else timeout)
        with tempfile.TemporaryDirectory(prefix="regoal-up-") as folder:
            status, plan = _solve(problem, Path(folder), loaded, deadline, log)
        metrics = {"engine_internal_time": str(time.perf_counter() - started)}
        if plan is not None:
            metrics["plan_length"] = str(len(plan.actions))
        return PlanGenerationResult(status, plan, self.name, metrics, messages)

    def _solve(
        self,
        problem: Problem,
        heuristic: object = None,
        timeout: float | None = None,
        output_stream: IO[str] | None = None,
    ) -> PlanGenerationResult:
        """Solve a problem, for older versions of Unified Planning."""
        return self._solve_with_params(problem, heuristic, timeout, output_stream)


STATUSES = {
    EXIT_MEMORY: Status.MEMOUT,
    EXIT_BAD_PDDL: Status.UNSUPPORTED_PROBLEM,
    EXIT_UNSUPPORTED_PDDL: Status.UNSUPPORTED_PROBLEM,
    EXIT_USAGE: Status.UNSUPPORTED_PROBLEM,
    EXIT_INTERNAL: Status.INTERNAL_ERROR,
}
"""The status for an error, by exit code; a policy that does not fit is a usage error."""


WITHOUT_PLAN = {
    Outcome.TIME_LIMIT: Status.TIMEOUT,
    Outcome.MEMORY_LIMIT: Status.MEMOUT,
    Outcome.UNSOLVABLE: Status.UNSOLVABLE_PROVEN,
}
"""How attempts without a plan end; all others prove nothing."""


def _solve(
    problem: Problem, folder: Path, policy: Policy | None, deadline: float, log: Log
) -> tuple[Status, SequentialPlan | None]:
    """Find a plan; `log` is called with what the user should know."""
    try:
        reading = _find_reading(problem, folder, policy)
        seconds = deadline - time.perf_counter()
        if seconds <= 0:
            return Status.TIMEOUT, None
        return _run(reading, seconds, log)
    except RegoalError as error:
        # The user has not seen these files, and they are gone when the message is read.
        log(LogLevel.ERROR, re.sub(rf"{re.escape(str(folder))}/[^/]*/", "", str(error)))
        return STATUSES[error.exit_code], None
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        log(LogLevel.ERROR, "out of memory")
        return Status.MEMOUT, None


class _Reading(NamedTuple):
    """A problem as a policy reads it."""

    policy: Policy
    encoder: Encoder
    task: Task
    translation: Translation
    notes: tuple[str, ...]


def _run(reading: _Reading, seconds: float, log: Log) -> tuple[Status, SequentialPlan | None]:
    """Run the policy for at most so many seconds."""
    policy, encoder, task, translation, notes = reading
    for note in (*notes, *unread_goals(encoder, [task])):
        log(LogLevel.INFO, note)
    deadline = time.perf_counter() + seconds
    settings = TestSettings(layers=policy.layers, time_limit_s=seconds, search=True)
    found = solve(policy, encoder, task, settings)
    if found.actions is None:
        log(LogLevel.INFO, found.refusal)
        return WITHOUT_PLAN.get(found.outcome, Status.UNSOLVABLE_INCOMPLETELY), None
    left = deadline - time.perf_counter()
    plan, verdict, _ = shorten(task, found.actions, time_to_shorten(left))
    if not verdict.valid:
        log(LogLevel.ERROR, f"the plan that was found is not valid: {verdict.reason}")
        return Status.INTERNAL_ERROR, None
    return Status.SOLVED_SATISFICING, translation.plan_of(plan)


def _find_reading(problem: Problem, folder: Path, policy: Policy | None) -> _Reading:
    """Find how a policy, or some shipped one, reads the problem; without its only type if need be.

    Raises `UsageError` if none does.
    """
    refusals: list[str] = []
    for untyped in (False, True) if has_one_type(problem) else (False,):
        translation = write_problem(problem, folder / f"untyped-{untyped}", untyped=untyped)
        domain = load_domain(translation.domain)
        task = load_task(domain, translation.path)
        found = []
        for candidate in _find_shipped(domain) if policy is None else [policy]:
            try:
                encoder, notes = policy_encoder(candidate, domain)
                found.append(_Reading(candidate, encoder, task, translation, notes))
            except UsageError as error:
                refusals.append(str(error))
        if found:
            return min(found, key=_compare_readings)
    if refusals:
        raise UsageError(refusals[0])
    raise UsageError(
        f"no shipped policy is for a domain of this structure: {schema_of(domain)}. Train one with "
        f"regoal.up.train, and give it as `policy`."
    )


def _compare_readings(reading: _Reading) -> tuple[int, int]:
    """Return a sorting key: first the policies that read all goals, and that know most relations.

    Policies of one domain may be trained on special cases of it.
    """
    return len(reading.encoder.unread(reading.task.goal)), -len(reading.policy.network.relations)


def _find_shipped(domain: Domain) -> list[Policy]:
    """Return the shipped policies whose domains have the structure of this one, by name."""
    wanted = schema_of(domain).fingerprint()
    return [_load(name) for name, known in _shipped_fingerprints().items() if known == wanted]


@cache
def _shipped_fingerprints() -> dict[str, str]:
    return {
        name: describe_policy(path)[0].fingerprint() for name, path in shipped_policies().items()
    }


def _load(policy: str | Path) -> Policy:
    return load(str(policy), threads=free_threads(), device="cpu")


class Validator(_Engine, PlanValidatorMixin):  # type: ignore[misc]
    """Checks sequential plans with regoal's plain evaluator."""

    @property
    def name(self) -> str:
        """The name in results."""
        return "regoal-validator"

    @staticmethod
    def supports_plan(plan_kind: PlanKind) -> bool:
        """Return whether plans of this kind can be checked: sequential ones."""
        return bool(plan_kind == PlanKind.SEQUENTIAL_PLAN)

    def _validate(self, problem: Problem, plan: SequentialPlan) -> ValidationResult:
        """Execute the plan step by step, with the costs that the problem asks for."""
        started = time.perf_counter()
        try:
            domain, text, writer = write_texts(problem)
            verdict = check_plan_text(domain, text, parse_plan(writer.get_plan(plan)))
        except RegoalError as error:
            messages = [LogMessage(LogLevel.ERROR, str(error))]
            return ValidationResult(Judgement.UNKNOWN, self.name, messages)
        return ValidationResult(
            Judgement.VALID if verdict.valid else Judgement.INVALID,
            self.name,
            [LogMessage(LogLevel.INFO, verdict.reason)],
            metrics={"engine_internal_time": str(time.perf_counter() - started)},
            **_explain_verdict(verdict, problem, plan),
        )


def _explain_verdict(verdict: Verdict, problem: Problem, plan: SequentialPlan) -> dict[str, Any]:
    """Return the cost of a valid plan, or what is wrong with another, as a result's fields."""
    if verdict.valid:
        cost = Fraction(str(verdict.cost))
        value = int(cost) if cost.denominator == 1 else cost
        return {"metric_evaluations": dict.fromkeys(problem.quality_metrics, value) or None}
    if verdict.step is None:
        return {"reason": FailedValidationReason.UNSATISFIED_GOALS}
    return {
        "reason": FailedValidationReason.INAPPLICABLE_ACTION,
        "inapplicable_action": plan.actions[verdict.step - 1],
    }
