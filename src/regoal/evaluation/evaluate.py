"""Test a policy on problem files: load, execute greedily, validate, record (paper, "Testing")."""

import hashlib
import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from regoal.errors import RegoalError, TooWideError, UsageError
from regoal.evaluation.attempts import Attempt, Means
from regoal.evaluation.ending import Ended, describe_end
from regoal.evaluation.execution import Execution, Visited, execute
from regoal.evaluation.search import MOST_EXPANSIONS
from regoal.networks.encoder import Encoder
from regoal.networks.kernels.cpu import kernel as cpu_kernel
from regoal.networks.policy_encoder import policy_encoder
from regoal.networks.policy_file import Policy, find_policy, load_policy
from regoal.planning.actions import GroundAction
from regoal.planning.domain import Domain
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.plans import format_plan, validate_plan
from regoal.planning.shortening.shorten import SECONDS, shorten, time_to_shorten
from regoal.planning.task import Task
from regoal.records.results import Outcome, PlanResult, problem_names
from regoal.system.copies import call_with_limits
from regoal.system.files import short_digest, write_text_atomically


@dataclass(frozen=True, kw_only=True)
class TestSettings:
    """How policies are tested."""

    __test__ = False  # pytest must not take it for a test case

    layers: int
    """Layers of the network. More than in training let messages reach farther."""
    max_steps: int = 1000
    """The most actions for a problem."""
    time_limit_s: float = math.inf
    """The most wall-clock seconds for a problem, shared with the other problems of its batch."""
    search: bool = False
    """Whether execution leaves dead ends, and commitment and search follow if it finds no plan; one
    problem at a time then. Commitment may take more than `max_steps`, see `attempts`."""
    max_expansions: int = MOST_EXPANSIONS
    """The most successors that search makes for a problem."""
    plans: Path | None = None
    """The folder for a file `NAME.plan` for each solved problem; None writes no plans."""
    shorten: bool = True
    """Whether useless actions are taken out of the plans that are written."""
    known: frozenset[str] = frozenset()
    """Names of problems to skip."""
    memory_limit_mib: float = math.inf
    """The most MiB for a problem. If it is finite, each problem has its own process, with one
    thread, and `time_limit_s` also counts the reading of the problem."""

    def digest(self, policy: Policy, domain: Path, problem: Path) -> str:
        """Return the first digits of the SHA-256 of everything that a result depends on."""
        # A pipe cannot be read a second time.
        texts = [short_digest(path) if path.is_file() else "" for path in (domain, problem)]
        limits: list[float | str] = [self.layers, self.max_steps, self.time_limit_s]
        limits += [self.max_expansions] if self.search else []
        limits += ["short"] if self.shorten else []
        limits += [self.memory_limit_mib] if math.isfinite(self.memory_limit_mib) else []
        return hashlib.sha256(repr((policy.digest, texts, tuple(limits))).encode()).hexdigest()[:16]

    def __post_init__(self) -> None:
        for name in ("layers", "max_steps"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, got {getattr(self, name)}.")


def load(name: str, *, threads: int, device: str) -> Policy:
    """Load the policy of this name or path, to run with so many threads on a device.

    `device` is `cpu` or `cuda`; only the latter loads PyTorch. Raises `UsageError` as
    `find_policy`, `load_policy` and `move_to_gpu` do.
    """
    cpu_kernel.use_threads(threads)
    policy = load_policy(find_policy(name))
    if device == "cpu":
        return policy
    from regoal.networks.on_gpu import move_to_gpu

    return replace(policy, network=move_to_gpu(policy.network))


def evaluate(
    policy: Policy,
    problems: Sequence[tuple[Path, Path]],
    settings: TestSettings,
    tell: Callable[[str], None],
    report: Callable[[RegoalError], None],
) -> Iterator[PlanResult]:
    """Run the policy on every (domain file, problem file), and yield each result as it ends.

    A plan counts, and is written, only if the validator accepts it. `tell` is called with each note
    for the user, for instance on how the policy reads a domain. `report` is called with the error
    of a problem that cannot be read, or whose plan the validator rejects; the other problems go on.

    Raises `UsageError` if the policy does not fit a domain, and as `load_domain` does. Both happen
    before anything is executed on that domain.
    """
    for path, named in _group_by_domain(problems, settings.known).items():
        domain = load_domain(path)
        encoder, notes = policy_encoder(policy, domain)
        for note in notes:
            tell(note)
        run = partial(_evaluate_problems, policy, encoder, domain, settings)
        if math.isinf(settings.memory_limit_mib):
            yield from run(named, tell, report)
        else:
            for one in named:
                yield _evaluate_alone(run, one, policy, domain, settings, tell, report)


def _evaluate_problems(
    policy: Policy,
    encoder: Encoder,
    domain: Domain,
    settings: TestSettings,
    named: Sequence[tuple[str, Path]],
    tell: Callable[[str], None],
    report: Callable[[RegoalError], None],
) -> Iterator[PlanResult]:
    """Run the policy on problems of one domain, given as (name, problem file)."""
    from regoal.evaluation.process_pool import execute_side_by_side, most_processes

    started = time.perf_counter()
    names: dict[Task, str] = {}
    inputs: dict[str, str] = {}
    for name, problem in named:
        try:
            names[load_task(domain, problem)] = name
            inputs[name] = settings.digest(policy, domain.path, problem)
        except RegoalError as error:
            report(error)
            yield _make_planless_result(name, domain, policy, Outcome.ERROR)
    for note in unread_goals(encoder, list(names)):
        tell(note)
    found = execute_side_by_side(
        partial(_try_all, policy, encoder, settings),
        list(names),
        processes=most_processes(policy.network),
    )
    for task, ended in _report_faults(found, tell, report):
        name = names[task]
        seconds = _time_to_shorten(settings, started)
        result = _make_result(task, ended, name, inputs[name], policy, settings, seconds)
        if result.outcome is Outcome.INVALID_PLAN:
            report(make_rejection(task, ended.actions))
        yield result


def _evaluate_alone(
    run: Callable[..., Iterator[PlanResult]],
    named: tuple[str, Path],
    policy: Policy,
    domain: Domain,
    settings: TestSettings,
    tell: Callable[[str], None],
    report: Callable[[RegoalError], None],
) -> PlanResult:
    """Run the policy on one problem in a copy of this process, under the limits."""

    def work() -> tuple[PlanResult, list[str], list[RegoalError]]:
        cpu_kernel.use_threads(1)
        notes: list[str] = []
        errors: list[RegoalError] = []
        [result] = run([named], notes.append, errors.append)
        return result, notes, errors

    (name, problem), started = named, time.monotonic()
    seconds, mib = settings.time_limit_s, settings.memory_limit_mib
    try:
        result, notes, errors = call_with_limits(work, seconds=seconds, mib=mib)
    except (TimeoutError, MemoryError) as limit:
        late = isinstance(limit, TimeoutError)
        outcome = Outcome.TIME_LIMIT if late else Outcome.MEMORY_LIMIT
        result = _make_planless_result(name, domain, policy, outcome)
        inputs = settings.digest(policy, domain.path, problem)
        return replace(result, seconds=time.monotonic() - started, inputs=inputs)
    for note in notes:
        tell(note)
    for error in errors:
        report(error)
    return result


@dataclass(frozen=True)
class Solution:
    """The result of one attempt at one task."""

    outcome: Outcome
    actions: Sequence[GroundAction] | None
    """The plan; None if none was found."""
    reason: str
    """Why no plan was found, for the user; else empty."""
    ended: Ended | None = None
    """How the attempt went; None if no action was needed to see that there is no plan."""

    @property
    def refusal(self) -> str:
        """Say in one sentence why there is no plan; a proof reads otherwise than a failure."""
        proven = self.outcome is Outcome.UNSOLVABLE
        return f"{'There is no plan' if proven else 'No plan was found'}: {self.reason}."


def _group_by_domain(
    problems: Sequence[tuple[Path, Path]], known: Collection[str]
) -> dict[Path, list[tuple[str, Path]]]:
    """Group (name, problem file) by domain file, without the problems that are known."""
    found: dict[Path, list[tuple[str, Path]]] = defaultdict(list)
    names = problem_names([problem for _, problem in problems])
    for (domain, problem), name in zip(problems, names, strict=True):
        if name not in known:
            found[domain].append((name, problem))
    return found


def solve(policy: Policy, encoder: Encoder, task: Task, settings: TestSettings) -> Solution:
    """Run the policy on one task until it is solved or cannot go on; no plan is written.

    Raises `TooWideError` if a state has too many actions, and `PddlError` if the cost of an action
    is missing.
    """
    if impossible := impossible_goals(task):
        what = " ".join(impossible[:3]) + (" and others" if impossible[3:] else "")
        return Solution(
            Outcome.UNSOLVABLE, None, f"the goal asks for {what}, which no action brings about"
        )
    [tried] = _try_all(policy, encoder, settings, [task], stop=lambda: False)
    ended = describe_end(tried)
    if ended.fault is not None:
        raise ended.fault
    solved = ended.outcome is Outcome.SOLVED
    proven = isinstance(tried, Execution) and tried.has_seen_all
    return Solution(
        Outcome.UNSOLVABLE if proven else ended.outcome,
        ended.actions if solved else None,
        "" if solved else _explain_failure(tried),
        ended,
    )


def unread_goals(encoder: Encoder, tasks: Sequence[Task]) -> list[str]:
    """Note for the user which predicates of the goals the policy does not know, if any."""
    names = sorted(set().union(*(encoder.unread(task.goal) for task in tasks)))
    if not names:
        return []
    return [f"the policy was trained without goals on {', '.join(names)}, and ignores them"]


def _try_all(
    policy: Policy,
    encoder: Encoder,
    settings: TestSettings,
    tasks: Sequence[Task],
    *,
    stop: Callable[[], bool],
) -> Iterator[Execution | Attempt]:
    """Try every task, greedily or by all means, and yield each as it ends."""
    if settings.search:
        means = Means(
            network=policy.network,
            encoder=encoder,
            layers=settings.layers,
            max_steps=settings.max_steps,
            max_expansions=settings.max_expansions,
            time_limit_s=settings.time_limit_s,
        )
        yield from means.attempt(tasks, stop=stop)
        return
    yield from execute(
        policy.network,
        encoder,
        tasks,
        layers=settings.layers,
        max_steps=settings.max_steps,
        visited=Visited.LAST,
        time_limit_s=settings.time_limit_s,
        stop=stop,
    )


def _report_faults(
    found: Iterator[tuple[Task, Ended]],
    tell: Callable[[str], None],
    report: Callable[[RegoalError], None],
) -> Iterator[tuple[Task, Ended]]:
    """Yield each task and how it ended, after a note or an error about a fault, if it had one."""
    for task, ended in found:
        if isinstance(ended.fault, TooWideError):
            tell(str(ended.fault))
        elif ended.fault is not None:
            report(ended.fault)
        yield task, ended


def _explain_failure(tried: Execution | Attempt) -> str:
    """Say why an attempt found no plan."""
    if isinstance(tried, Attempt):
        return tried.explain()
    steps = f"after {tried.steps} step(s)"
    if tried.has_seen_all:
        return f"{steps} every state that can be reached has been visited"
    if tried.outcome is Outcome.DEAD_END:
        return f"{steps} no action is applicable"
    return f"{steps} the goal is not reached ({tried.outcome.text if tried.outcome else 'stopped'})"


def impossible_goals(task: Task) -> list[str]:
    """List the goal literals that are false and that no action changes: no plan reaches them."""
    changed = {s.name for s in schema_of(task.domain).changed_symbols if s.kind == "predicate"}
    state = task.initial_state
    return [
        str(atom) if positive else f"(not {atom})"
        for atom, positive in task.goal.literals()
        if state.holds(atom) != positive and atom.predicate not in changed
    ]


def method_of(policy: Policy) -> str:
    """Return the hindsight variant that the policy was trained with; `policy` if it is unknown."""
    method = policy.facts.get("hindsight")
    return method if isinstance(method, str) else "policy"


def _make_planless_result(
    name: str, domain: Domain, policy: Policy, outcome: Outcome
) -> PlanResult:
    """Make the record of a problem that could not be read, or that ran into a limit."""
    return PlanResult(
        problem=name,
        domain=domain.name,
        method=method_of(policy),
        outcome=outcome,
        plan_length=None,
        plan_cost=None,
        seconds=0.0,
        steps=0,
        policy=policy.digest,
    )


def make_rejection(task: Task, actions: Sequence[GroundAction]) -> RegoalError:
    """Say why a plan that the policy found is not valid, which is a fault of regoal."""
    reason = validate_plan(task, actions).reason
    return RegoalError(
        f"{task.path}: the plan that was found is not valid ({reason}). This is a fault of regoal: "
        f"please report it with the domain and the problem."
    )


def _time_to_shorten(settings: TestSettings, started: float) -> float:
    """Return the seconds for shortening a plan of problems that were begun at `started`.

    A problem with a process of its own ends at the time limit, though its plan was found before.
    """
    if math.isinf(settings.memory_limit_mib):
        return SECONDS
    return time_to_shorten(settings.time_limit_s - (time.perf_counter() - started))


def _make_result(
    task: Task,
    ended: Ended,
    name: str,
    inputs: str,
    policy: Policy,
    settings: TestSettings,
    seconds: float,
) -> PlanResult:
    """Validate the plan, shorten and write it if it is valid, and make the problem's record.

    Shortening takes at most so many seconds.
    """
    result = PlanResult(
        problem=name,
        domain=task.domain.name,
        method=method_of(policy),
        outcome=Outcome.INVALID_PLAN if ended.outcome is Outcome.SOLVED else ended.outcome,
        plan_length=None,
        plan_cost=None,
        seconds=ended.seconds,
        steps=ended.steps,
        returns=ended.returns,
        evaluations=ended.evaluations,
        expansions=ended.expansions,
        policy=policy.digest,
        inputs=inputs,
    )
    if ended.outcome is not Outcome.SOLVED:
        return result
    plan: Sequence[GroundAction] = ended.actions
    verdict = validate_plan(task, plan)
    if not verdict.valid:
        return result
    result = replace(
        result,
        outcome=Outcome.SOLVED,
        plan_length=len(plan),
        plan_cost=verdict.cost,
        found_by=ended.found_by,
    )
    if settings.shorten:
        plan, verdict, _ = shorten(task, plan, seconds)
        result = replace(result, short_length=len(plan), short_cost=verdict.cost)
    if settings.plans is not None:
        path = settings.plans / f"{name}.plan"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(path, format_plan(plan, verdict.cost, verdict.unit_cost))
    return result
