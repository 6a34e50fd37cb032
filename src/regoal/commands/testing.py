"""Commands that run a policy, or the planner LAMA, on all problems of a folder."""

import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tyro.conf import FlagCreatePairsOff, Positional

from regoal.commands.arguments import Duration, Layers, Memory, RunDevice
from regoal.errors import (
    EXIT_DONE,
    EXIT_INTERNAL,
    RegoalError,
    UsageError,
)
from regoal.planning.problem_files import problem_files, with_domains
from regoal.records.results import PlanResult, problem_names
from regoal.records.run_record import check_credit, kept_results
from regoal.system.limits import check_memory_limit
from regoal.system.threads import free_threads

MOST_MIB = 10**9


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Run a policy on every problem of a folder: coverage and plan lengths.

    Greedy execution takes the best action that leads to a new state; if there is none, it goes to
    the state visited least often. To compare with the paper, leave out --search.
    """

    policy: Positional[str]
    """A policy file, a run folder, or the name of a shipped policy."""
    problems: Path
    """The folder with the problems."""
    domain: Path | None = None
    """The domain file; without it, the one found next to each problem or above it."""
    layers: Layers = None
    """Layers of the network; as many as in training unless given."""
    max_steps: int = 1000
    """Most actions for a problem."""
    search: FlagCreatePairsOff[bool] = False
    """Leave dead ends, and go on with commitment and search if greedy execution finds no plan, as
    `plan` does."""
    time_limit: Duration = math.inf
    """Most wall-clock time for a problem, e.g. 30s. The time to read it counts only if
    --memory-limit is given."""
    memory_limit: Memory = math.inf
    """Most memory for data of a problem, e.g. 8G. With it the problems run one after another, each
    in a process of one thread. Without it they run side by side, in a process for each core or in
    as many as OMP_NUM_THREADS says."""
    out: Path | None = None
    """A file for the records: one line of JSON for each problem when it ends. The largest problems
    are started first."""
    resume: FlagCreatePairsOff[bool] = False
    """Go on after an earlier call with the same options was stopped: problems with a result in
    --out are not run again."""
    plans: Path | None = None
    """A folder for the plans: NAME.plan for each solved problem."""
    shorten: bool = True
    """Take loops and useless actions out of the plans. Records have both lengths."""
    device: RunDevice = "cpu"

    def run(self) -> int:
        """Evaluate; unsolved problems are no failure, unreadable ones and invalid plans are."""
        from regoal import terminal
        from regoal.evaluation.evaluate import TestSettings, evaluate, load

        check_memory_limit(self.memory_limit)
        _check_folder(self.plans)
        if self.device == "cuda" and math.isfinite(self.memory_limit):
            raise UsageError("--memory-limit is for the CPU only: leave out --device cuda.")
        policy = load(self.policy, threads=free_threads(), device=self.device)
        problems = with_domains(problem_files(self.problems), self.domain)
        if self.out is not None:
            check_credit(self.out, policy.digest)
        settings = TestSettings(
            layers=policy.layers if self.layers is None else self.layers,
            max_steps=self.max_steps,
            search=self.search,
            time_limit_s=self.time_limit,
            plans=self.plans,
            shorten=self.shorten,
            memory_limit_mib=self.memory_limit,
        )
        digest = partial(settings.digest, policy)
        known = _find_known(self.out, self.plans, problems, digest) if self.resume else []
        settings = replace(settings, known=frozenset(result.problem for result in known))
        errors: list[RegoalError] = []
        with terminal.live_line() as show:
            found = evaluate(
                policy, problems, settings, lambda note: show(note, True), errors.append
            )
            results = terminal.follow(found, len(problems), self.out, show, known)
        terminal.print_coverage(results)
        for error in errors:
            print(f"regoal: error: {error}", file=sys.stderr)
        return errors[0].exit_code if errors else EXIT_DONE


@dataclass(frozen=True, kw_only=True)
class Lama:
    """Run the planner LAMA on every problem of a folder, for comparison: its first plans."""

    domain: Positional[Path]
    """The domain file."""
    problems: Path
    """The folder with the problems."""
    time_limit: Duration = 1800.0
    """CPU time for a problem, e.g. 5m."""
    memory_limit: Memory = 8192.0
    """Memory for a problem, e.g. 4G."""
    jobs: int = 1
    """How many problems at a time."""
    out: Path | None = None
    """A file for the records: one line of JSON for each problem."""
    resume: FlagCreatePairsOff[bool] = False
    """Go on after an earlier call with the same options was stopped: problems with a result in
    --out are not run again."""
    plans: Path | None = None
    """A folder for the plans: NAME.plan for each solved problem."""

    def run(self) -> int:
        """Run it; problems that stay unsolved are no failure, those that LAMA fails on are."""
        from regoal import terminal
        from regoal.evaluation.lama import Limits, lama_folder
        from regoal.planning.plans import check_plan_file

        def fault_of(*files: Path) -> str:
            verdict = check_plan_file(*files)
            return "" if verdict.valid else verdict.reason

        _check_folder(self.plans)
        problems = with_domains(problem_files(self.problems), self.domain)
        limits = Limits(self.time_limit, int(min(self.memory_limit, MOST_MIB)))
        known = _find_known(self.out, self.plans, problems, limits.digest) if self.resume else []
        with tempfile.TemporaryDirectory(prefix="regoal-") as unkept, terminal.live_line() as show:
            found = lama_folder(
                problems,
                jobs=self.jobs,
                limits=limits,
                plans=self.plans or Path(unkept),
                fault_of=fault_of,
                known=[result.problem for result in known],
            )
            results = terminal.follow(found, len(problems), self.out, show, known)
        terminal.print_coverage(results)
        return EXIT_DONE if all(r.outcome.expected for r in results) else EXIT_INTERNAL


def _check_folder(plans: Path | None) -> None:
    """Raise `UsageError` if plans cannot be written, before hours of work show it."""
    if plans is not None and plans.exists() and not plans.is_dir():
        raise UsageError(f"{plans} is no folder; give one for the plans by --plans.")


def _find_known(
    out: Path | None,
    plans: Path | None,
    problems: Sequence[tuple[Path, Path]],
    digest: Callable[[Path, Path], str],
) -> list[PlanResult]:
    """Return the results of a stopped call, without those whose plan file is missing.

    `digest` identifies a test by its domain file and problem file. Raises `UsageError` if a record
    is of another test, or if there is no file of records.
    """
    if out is None:
        raise UsageError("--resume needs --out, the file of records to go on with.")
    names = problem_names([problem for _, problem in problems])
    digests = [digest(*files) for files in problems]
    known = kept_results(out, dict(zip(names, digests, strict=True)))
    if plans is not None:
        known = [r for r in known if not r.solved or (plans / f"{r.problem}.plan").is_file()]
    print(f"{len(known)} of {len(problems)} problems have their results in {out}")
    return known
