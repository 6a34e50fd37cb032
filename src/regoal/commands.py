"""Every command: a dataclass whose fields are its arguments, run by calling the layers below.

What needs torch, pymimir or matplotlib is imported by the command that needs it, so that help is
quick.
"""

import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from tyro.conf import FlagCreatePairsOff, Positional, arg
from tyro.constructors import PrimitiveConstructorSpec

from regoal import terminal
from regoal.config import LAPTOP, DeviceName, TrainConfig
from regoal.domains.splits import DEFAULT_MAX_STATES, DOMAINS, write_split
from regoal.errors import (
    EXIT_DONE,
    EXIT_INTERNAL,
    EXIT_INVALID_PLAN,
    EXIT_NO_PLAN,
    RegoalError,
    UsageError,
)
from regoal.planning.problem_files import problem_files, with_domains
from regoal.records.results import PlanResult, problem_names
from regoal.records.run_record import check_credit, kept_results, recorded_number
from regoal.system import units
from regoal.system.limits import process_age, supervised
from regoal.system.threads import free_threads, process_group

if TYPE_CHECKING:
    from regoal.evaluation.evaluate import TestSettings
    from regoal.networks.policy_file import Policy

STARTED = time.perf_counter() - process_age()
MOST_MIB = 10**9


def _quantity(
    metavar: str, read: Callable[[str], float], unit: str
) -> PrimitiveConstructorSpec[float]:
    """How tyro reads and shows a number with a unit."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: read(words[0]),
        is_instance=lambda value: isinstance(value, int | float),
        str_from_instance=lambda value: [
            units.NONE if math.isinf(value) else f"{units.number_text(float(value))}{unit}",
        ],
    )


Device = Annotated[
    DeviceName,
    arg(
        help="Where the network runs; auto takes a GPU that the fused kernels run on, else the CPU."
    ),
]
Duration = Annotated[float, _quantity("TIME", units.seconds, "s")]
Memory = Annotated[float, _quantity("SIZE", units.mebibytes, "M")]


class Command(Protocol):
    """A parsed command."""

    def run(self) -> int:
        """Do it; returns the exit code. Raises `RegoalError`."""


@dataclass(frozen=True, kw_only=True)
class Generate:
    """Write a built-in benchmark domain and the problems of one split."""

    domain: Annotated[Positional[str], arg(help=f"One of: {', '.join(DOMAINS)}.")]
    split: str = "train"
    """train, validation or test, with the paper's sizes; some domains have further test sets."""
    out: Path
    """An empty or new folder for domain.pddl and p001.pddl, p002.pddl, ..."""
    seed: int = 0
    """The same seed gives the same files."""
    max_states: int = DEFAULT_MAX_STATES
    """Of the training problems of a row with suffix -l, those with more reachable states than this
    are left out."""

    def run(self) -> int:
        """Write the files."""
        problems = write_split(
            self.domain, self.split, self.out, self.seed, max_states=self.max_states
        )
        name = self.domain.lower()
        print(f"{len(problems)} problems of {name} ({self.split}) are in {self.out}")
        return EXIT_DONE


@dataclass(frozen=True, kw_only=True)
class Train:
    """Learn a policy for a domain from small problems. The defaults are those of the preset."""

    domain: Positional[Path]
    """The domain file."""
    problems: Path
    """The folder with the training problems, small ones among them."""
    out: Path
    """The run folder: configuration, records, the best policy, the checkpoint."""
    validation: Path | None = None
    """The folder with the validation problems, larger than those for training: they choose the
    best policy. Without it the largest of --problems are held out for that."""
    preset: Literal["laptop", "paper"] = "laptop"
    """laptop: minutes on two CPU cores; paper: the paper's numbers."""
    budget: Duration = math.inf
    """End after this much wall-clock time, e.g. 90s, 10m, 2h."""
    resume: FlagCreatePairsOff[bool] = False
    """Go on where an earlier call with the same --out has stopped; begins where there is none."""
    name: str = ""
    """What tables call the domain; the name in the domain file unless given."""
    threads: int = 0
    """CPU threads of each worker; 0 takes as many as OMP_NUM_THREADS says, or the worker's share of
    the cores, at most 8. The weights depend on the number, slightly; --resume keeps it."""
    workers: int = 0
    """Processes on this machine that train together; 0 takes one, or those that torchrun started.
    Exploration depends on whether there are several, the weights on how many; --resume keeps it."""
    device: Device = "auto"
    config: Annotated[TrainConfig, arg(name="")] = LAPTOP

    def run(self) -> int:
        """Train, showing how it goes."""
        from regoal.planning.task import load_domain
        from regoal.runs.settings import RunSettings
        from regoal.runs.training_run import run_training

        for name in ("threads", "workers"):
            if getattr(self, name) < 0:
                raise UsageError(
                    f"--{name} is at least 1, or 0 for the usual number; got {getattr(self, name)}."
                )
        group = process_group()
        workers, threads = self.workers or (group.size if group.size > 1 else 0), self.threads
        if self.resume:
            workers = workers or recorded_number(self.out, "workers")
            threads = threads or recorded_number(self.out, "threads")
        workers = workers or 1
        settings = RunSettings(
            domain=self.domain,
            problems=self.problems,
            validation=self.validation,
            out=self.out,
            config=self.config,
            preset=self.preset,
            name=self.name or load_domain(self.domain).name,
            budget_s=None if math.isinf(self.budget) else self.budget,
            resume=self.resume,
            threads=threads or free_threads(group.here if group.size > 1 else workers),
            workers=workers,
            device=self.device,
        )
        if group.rank > 0:
            return run_training(settings, lambda news: None).exit_code
        with terminal.live_line() as show:
            summary = run_training(settings, lambda news: terminal.show_news(news, show))
        print("\n".join(terminal.summary_lines(summary)))
        return summary.exit_code


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Run a policy on every problem of a folder: coverage and plan lengths.

    It takes the best action into a new state; where there is none, into the one visited least.
    """

    policy: Positional[str]
    """A policy file, a run folder, or the name of a shipped policy."""
    problems: Path
    """The folder with the problems."""
    domain: Path | None = None
    """The domain file; without it, the one found beside or above each problem."""
    layers: int | None = None
    """Rounds of message passing; as many as in training unless given."""
    max_steps: int = 1000
    """Most actions for a problem."""
    time_limit: Duration = math.inf
    """Most wall-clock time for a problem once it has been read, e.g. 30s."""
    memory_limit: Memory = math.inf
    """Most memory for data of the whole command, e.g. 4G. With it one process runs all problems,
    else there is one for each core or as many as OMP_NUM_THREADS says."""
    out: Path | None = None
    """A file for the records, one line of JSON a problem as it ends; large ones
    begin."""
    resume: FlagCreatePairsOff[bool] = False
    """Go on where an earlier call with the same options has stopped: problems that --out has
    results of are not run again."""
    plans: Path | None = None
    """A folder for the plans, one NAME.plan a solved problem."""
    device: Device = "auto"

    def run(self) -> int:
        """Evaluate; problems that stay unsolved are no failure, unreadable ones are."""
        code = supervised(seconds=math.inf, mib=self.memory_limit)
        return self._evaluate() if code is None else code

    def _evaluate(self) -> int:
        from regoal.evaluation.evaluate import TestSettings, evaluate, load

        policy = load(self.policy, threads=free_threads(), device=self.device)
        problems = with_domains(problem_files(self.problems), self.domain)
        if self.out is not None:
            check_credit(self.out, policy.digest)
        settings = TestSettings(
            layers=policy.layers if self.layers is None else self.layers,
            max_steps=self.max_steps,
            time_limit_s=self.time_limit,
            plans=self.plans,
            alone=math.isfinite(self.memory_limit),
        )
        known = self._known(policy, problems, settings) if self.resume else []
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

    def _known(
        self, policy: "Policy", problems: Sequence[tuple[Path, Path]], settings: "TestSettings"
    ) -> list[PlanResult]:
        """What a call that was stopped has found; a plan that is to be written must be there."""
        if self.out is None:
            raise UsageError("--resume needs --out, the file of records to go on with.")
        names = problem_names([problem for _, problem in problems])
        digests = [settings.digest(policy, *files) for files in problems]
        known = kept_results(self.out, dict(zip(names, digests, strict=True)))
        if self.plans is not None:
            plans = self.plans
            known = [r for r in known if not r.solved or (plans / f"{r.problem}.plan").is_file()]
        print(f"{len(known)} of {len(problems)} problems have their results in {self.out}")
        return known


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Find a plan with a policy. It is validated before it is written; without one no file is.

    It takes the best action into a new state; where there is none, into the one visited least.
    """

    policy: Positional[str]
    """A policy file, a run folder, or the name of a shipped policy (see `regoal policies`)."""
    domain: Positional[Path]
    """The domain file."""
    problem: Positional[Path]
    """The problem file."""
    out: Path = Path("sas_plan")
    """The plan file."""
    layers: int | None = None
    """Rounds of message passing; as many as in training unless given."""
    max_steps: int = 1000
    """Most actions."""
    time_limit: Duration = math.inf
    """Most wall-clock time of the whole command, from the start of its process, e.g. 30s, 5m."""
    memory_limit: Memory = math.inf
    """Most memory for data, e.g. 1G."""
    device: Device = "auto"

    def run(self) -> int:
        """Plan."""
        left = self.time_limit - (time.perf_counter() - STARTED)
        code = supervised(seconds=left, mib=self.memory_limit)
        return self._plan() if code is None else code

    def _plan(self) -> int:
        from regoal.evaluation.evaluate import TestSettings, load, solve, unread_goals
        from regoal.networks.policy_file import policy_encoder
        from regoal.planning.plans import cost_text, prepare_plan_file, write_plan
        from regoal.planning.task import load_domain, load_task

        prepare_plan_file(self.out, (self.domain, self.problem))
        policy = load(self.policy, threads=free_threads(), device=self.device)
        domain = load_domain(self.domain)
        encoder, notes = policy_encoder(policy, domain)
        task = load_task(domain, self.problem)
        for note in (*notes, *unread_goals(encoder, [task])):
            print(note)
        layers = policy.layers if self.layers is None else self.layers
        settings = TestSettings(layers=layers, max_steps=self.max_steps)
        found = solve(policy, encoder, task, settings)
        if found.actions is None:
            print(f"No plan: {found.reason}.")
            return EXIT_NO_PLAN
        verdict = write_plan(self.out, task, found.actions)
        print(f"Plan length: {len(found.actions)} step(s).")
        print(f"Plan cost: {cost_text(verdict.cost)}")
        if found.returns:
            print(f"Steps into states visited before: {found.returns}")
        print(f"Search time: {found.seconds:.2f}s")
        print(f"Total time: {time.perf_counter() - STARTED:.2f}s")
        print(f"The plan is valid and written to {self.out}")
        return EXIT_DONE


@dataclass(frozen=True)
class Validate:
    """Check a plan step by step; says which step fails and why. Exit code 0: valid, 1: not."""

    domain: Positional[Path]
    """The domain file."""
    problem: Positional[Path]
    """The problem file."""
    plan: Positional[Path]
    """The plan file."""

    def run(self) -> int:
        """Validate."""
        from regoal.planning.plans import check_plan_file

        verdict = check_plan_file(self.domain, self.problem, self.plan)
        print(f"{self.plan}: {'valid' if verdict.valid else 'INVALID'}, {verdict.reason}")
        return EXIT_DONE if verdict.valid else EXIT_INVALID_PLAN


@dataclass(frozen=True)
class Policies:
    """List the policies that come with regoal."""

    def run(self) -> int:
        """List them."""
        from regoal.networks.policy_file import load_policy, shipped_policies

        for name, path in shipped_policies().items():
            policy = load_policy(path)
            print(f"{name}: {policy.layers} layers, {path}")
            print("    " + str(policy.schema).replace("; ", "\n    "))
        return EXIT_DONE


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
    """A file for the records, one line of JSON a problem."""
    plans: Path | None = None
    """A folder for the plans, one NAME.plan a solved problem."""

    def run(self) -> int:
        """Run it; problems that stay unsolved are no failure, those that LAMA fails on are."""
        from regoal.evaluation.lama import Limits, lama_folder
        from regoal.planning.plans import check_plan_file

        def fault_of(*files: Path) -> str:
            verdict = check_plan_file(*files)
            return "" if verdict.valid else verdict.reason

        problems = with_domains(problem_files(self.problems), self.domain)
        limits = Limits(self.time_limit, int(min(self.memory_limit, MOST_MIB)))
        with tempfile.TemporaryDirectory(prefix="regoal-") as unkept, terminal.live_line() as show:
            found = lama_folder(
                problems,
                jobs=self.jobs,
                limits=limits,
                plans=self.plans or Path(unkept),
                fault_of=fault_of,
            )
            results = terminal.follow(found, len(problems), self.out, show)
        terminal.print_coverage(results)
        return EXIT_DONE if all(r.outcome.expected for r in results) else EXIT_INTERNAL


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Train and test a grid of domains, hindsight variants and seeds; skips what is finished."""

    file: Positional[Path]
    """A TOML file with the grid, as in reproduction/."""
    jobs: int = 1
    """How many runs at a time."""
    print_commands: FlagCreatePairsOff[bool] = False
    """Only print the commands, one line a run, for a cluster."""

    def run(self) -> int:
        """Run the grid to its end, whatever fails in between."""
        from regoal.sweeps import sweep

        grid = sweep.read_sweep(self.file)
        if self.print_commands:
            print("\n".join(sweep.print_commands(grid)))
            return EXIT_DONE
        try:
            failures = sweep.run_sweep(grid, jobs=self.jobs, tell=lambda x: print(x, flush=True))
        except (KeyboardInterrupt, SystemExit):
            print("interrupted; the same command goes on", flush=True)
            raise
        for failure in failures:
            print(f"regoal: error: {failure}", file=sys.stderr)
        return failures[0].exit_code if failures else EXIT_DONE


@dataclass(frozen=True, kw_only=True)
class Report:
    """Make tables and figures from run folders."""

    runs: Positional[tuple[Path, ...]]
    """Run folders, folders with runs somewhere below, or files of results."""
    out: Path | None = None
    """A folder for the tables (Markdown, CSV, LaTeX) and figures (PNG, SVG)."""

    def run(self) -> int:
        """Write everything where a folder is given, then print the tables."""
        from regoal.records.run_record import find_runs, load_run

        if not self.runs:
            raise UsageError("Give at least one run folder or file of results.")
        runs = [load_run(folder) for folder in find_runs(self.runs)]
        written: list[Path] = []
        if self.out is not None:
            from regoal.reports.report import write_report

            written = write_report(runs, self.out)
        if self.out is None or any(run.results for run in runs):
            terminal.print_tables(runs)
        for path in written:
            print(path)
        return EXIT_DONE


COMMANDS: dict[str, type[Command]] = {
    "generate": Generate,
    "train": Train,
    "evaluate": Evaluate,
    "plan": Plan,
    "validate": Validate,
    "policies": Policies,
    "lama": Lama,
    "sweep": Sweep,
    "report": Report,
}
