"""A policy on problem files: load, execute greedily, validate, record (paper, "Testing")."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from regoal.errors import RegoalError, TooWideError, UsageError
from regoal.evaluation.execution import Execution, Visited, execute
from regoal.evaluation.process_pool import Ended, execute_side_by_side, most_processes
from regoal.networks.device import device_called
from regoal.networks.encoder import Encoder
from regoal.networks.kernels.cpu import kernel as native
from regoal.networks.policy_file import Policy, find_policy, load_policy, policy_encoder
from regoal.planning.actions import GroundAction
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.plans import format_plan, validate_plan
from regoal.planning.task import Task, load_domain, load_task
from regoal.records.results import Outcome, PlanResult, problem_names
from regoal.system.files import short_digest, write_text_atomically


@dataclass(frozen=True, kw_only=True)
class TestSettings:
    """How policies are tested."""

    __test__ = False  # no test case, whatever its name

    layers: int
    """Rounds of message passing; more than in training reach farther."""
    max_steps: int = 1000
    """Most actions for a problem."""
    time_limit_s: float = math.inf
    """Most wall-clock seconds for a problem, those of the problems beside it included."""
    plans: Path | None = None
    """The folder for `NAME.plan`, one a solved problem; None writes no plans."""
    known: frozenset[str] = frozenset()
    """Names of problems that are passed over."""
    alone: bool = False
    """Whether no other process may help, as where memory is limited."""

    def digest(self, policy: Policy, domain: Path, problem: Path) -> str:
        """The beginning of a SHA-256 of everything that a result depends on."""
        # What comes through a pipe cannot be read a second time.
        texts = [short_digest(path) if path.is_file() else "" for path in (domain, problem)]
        limits = (self.layers, self.max_steps, self.time_limit_s)
        return hashlib.sha256(repr((policy.digest, texts, limits)).encode()).hexdigest()[:16]

    def __post_init__(self) -> None:
        for name in ("layers", "max_steps"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, got {getattr(self, name)}.")


def load(name: str, *, threads: int, device: str) -> Policy:
    """The policy of this name or path, to be run with so many threads on `auto`, `cpu` or `cuda`.

    Raises `UsageError` as `find_policy`, `load_policy` and `device_called` do.
    """
    native.use_threads(threads)
    where = device_called(device)
    policy = load_policy(find_policy(name))
    policy.network.to(where)
    return policy


def evaluate(
    policy: Policy,
    problems: Sequence[tuple[Path, Path]],
    settings: TestSettings,
    tell: Callable[[str], None],
    unreadable: Callable[[RegoalError], None],
) -> Iterator[PlanResult]:
    """Run the policy on every (domain file, problem file); yields each result as it is there.

    A plan counts, and is written, only if the validator accepts it. `tell` gets what the user must
    know about how the policy reads a domain. A problem that cannot be read is an error of its own,
    which `unreadable` gets, and the others go on. Raises `UsageError` where the policy does not fit
    a domain, and as `load_domain` does, before anything is executed on that domain.
    """
    for path, named in _by_domain(problems, settings.known).items():
        domain = load_domain(path)
        encoder, notes = policy_encoder(policy, domain)
        for note in notes:
            tell(note)
        names: dict[Task, str] = {}
        inputs: dict[str, str] = {}
        for name, problem in named:
            try:
                names[load_task(domain, problem)] = name
                inputs[name] = settings.digest(policy, path, problem)
            except RegoalError as error:
                unreadable(error)
                yield _no_result(name, domain.name, policy)
        for note in unread_goals(encoder, list(names)):
            tell(note)
        found = execute_side_by_side(
            partial(_executions, policy, encoder, settings),
            list(names),
            processes=1 if settings.alone else most_processes(policy.network),
        )
        for task, ended in _telling(found, tell, unreadable):
            name = names[task]
            yield _result(task, ended, name, inputs[name], policy, settings.plans)


def _by_domain(
    problems: Sequence[tuple[Path, Path]], known: Collection[str]
) -> dict[Path, list[tuple[str, Path]]]:
    """The (name, problem file) of each domain file, without those that are known."""
    found: dict[Path, list[tuple[str, Path]]] = defaultdict(list)
    names = problem_names([problem for _, problem in problems])
    for (domain, problem), name in zip(problems, names, strict=True):
        if name not in known:
            found[domain].append((name, problem))
    return found


@dataclass(frozen=True)
class Attempt:
    """What one attempt at one task came to."""

    actions: Sequence[GroundAction] | None
    """The plan; None where there is none."""
    reason: str
    """Why there is none, for the user."""
    seconds: float
    """Wall-clock seconds of the execution."""
    returns: int = 0
    """Actions into states visited before."""


def solve(policy: Policy, encoder: Encoder, task: Task, settings: TestSettings) -> Attempt:
    """Run the policy on one task until it is solved or cannot go on; no plan is written.

    Raises `MemoryError` where the task does not fit into memory, `TooWideError` where a state has
    too many actions, and `PddlError` where the cost of an action is missing.
    """
    if impossible := impossible_goals(task):
        what = " ".join(impossible[:3]) + (" and others" if impossible[3:] else "")
        return Attempt(None, f"the goal asks for {what}, which no action brings about", 0.0)
    [execution] = _executions(policy, encoder, settings, [task], stop=lambda: False)
    if execution.fault is not None:
        raise execution.fault
    if execution.outcome is Outcome.MEMORY_LIMIT:
        raise MemoryError
    if execution.outcome is Outcome.SOLVED:
        return Attempt(execution.actions, "", execution.seconds, execution.returns)
    return Attempt(None, _why(execution), execution.seconds)


def unread_goals(encoder: Encoder, tasks: Sequence[Task]) -> list[str]:
    """What to tell where goals have literals that the policy has never met and does not see."""
    names = sorted(set().union(*(encoder.unread(task.goal) for task in tasks)))
    if not names:
        return []
    return [f"the policy was trained without goals on {', '.join(names)}, and does not see such"]


def _executions(
    policy: Policy,
    encoder: Encoder,
    settings: TestSettings,
    tasks: Sequence[Task],
    *,
    stop: Callable[[], bool],
) -> Iterator[Execution]:
    return execute(
        policy.network,
        encoder,
        tasks,
        layers=settings.layers,
        max_steps=settings.max_steps,
        visited=Visited.LAST,
        time_limit_s=settings.time_limit_s,
        stop=stop,
    )


def _telling(
    found: Iterator[tuple[Task, Ended]],
    tell: Callable[[str], None],
    unreadable: Callable[[RegoalError], None],
) -> Iterator[tuple[Task, Ended]]:
    """The same, each with what there is to tell about its end; faulty PDDL is an error."""
    for task, ended in found:
        if isinstance(ended.fault, TooWideError):
            tell(str(ended.fault))
        elif ended.fault is not None:
            unreadable(ended.fault)
        yield task, ended


def _why(execution: Execution) -> str:
    steps = f"after {len(execution.actions)} step(s)"
    if execution.outcome is Outcome.STEP_LIMIT:
        return f"{steps}, as many as allowed, the goal is not reached"
    if execution.task.is_dead_end(execution.state):
        return f"{steps} no action is applicable"
    return f"{steps} every state that can be reached has been visited"


def impossible_goals(task: Task) -> list[str]:
    """Goal literals that are false and that no action changes: no plan reaches them."""
    changed = {s.name for s in schema_of(task.domain).changed_symbols if s.kind == "predicate"}
    state = task.initial_state
    return [
        str(atom) if positive else f"(not {atom})"
        for atom, positive in task.goal.literals()
        if state.holds(atom) != positive and atom.predicate not in changed
    ]


def method_of(policy: Policy) -> str:
    """The hindsight variant that the policy was learnt with, for records; else `policy`."""
    method = policy.facts.get("hindsight")
    return method if isinstance(method, str) else "policy"


def _no_result(name: str, domain: str, policy: Policy) -> PlanResult:
    """The record of a problem that could not be read."""
    return PlanResult(
        problem=name,
        domain=domain,
        method=method_of(policy),
        outcome=Outcome.ERROR,
        plan_length=None,
        plan_cost=None,
        seconds=0.0,
        steps=0,
        policy=policy.digest,
    )


def _result(
    task: Task, ended: Ended, name: str, inputs: str, policy: Policy, plans: Path | None
) -> PlanResult:
    actions, outcome, cost = ended.actions, ended.outcome, None
    if outcome is Outcome.SOLVED:
        verdict = validate_plan(task, actions)
        outcome = Outcome.SOLVED if verdict.valid else Outcome.INVALID_PLAN
        cost = verdict.cost
        if verdict.valid and plans is not None:
            path = plans / f"{name}.plan"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text_atomically(path, format_plan(actions, verdict.cost, verdict.unit_cost))
    solved = outcome is Outcome.SOLVED
    return PlanResult(
        problem=name,
        domain=task.domain.name,
        method=method_of(policy),
        outcome=outcome,
        plan_length=len(actions) if solved else None,
        plan_cost=cost if solved else None,
        seconds=ended.seconds,
        steps=len(actions),
        returns=ended.returns,
        policy=policy.digest,
        inputs=inputs,
    )
