"""LAMA's first plan, found by Fast Downward in a separate process with limits of time and memory.

The package `up-fast-downward` contains Fast Downward, which is called directly. No other planning
library is used, and neither torch nor pymimir is loaded.
"""

import ast
import contextlib
import hashlib
import importlib.util
import logging
import math
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from regoal.errors import UsageError
from regoal.records.results import Outcome, PlanResult, problem_names
from regoal.system.files import short_digest, write_text_atomically
from regoal.system.processes import kill_group, start_command

LAMA = "lama"
POLL_S = 0.1
SHORTEST_S = 2
OUTCOMES = {
    **dict.fromkeys((10, 11, 12, 13), Outcome.NO_PLAN),
    **dict.fromkeys((20, 22), Outcome.MEMORY_LIMIT),
    **dict.fromkeys((21, 23, 24, 256 - signal.SIGXCPU), Outcome.TIME_LIMIT),
}
"""Fast Downward's exit codes if there is no plan; any other is an error.

A translator that runs out of time is killed by signal n. The driver then exits with 256 - n.
"""

PlanCheck = Callable[[Path, Path, Path], str]
"""A check of a plan, from the paths of domain, problem and plan: the fault found, or empty."""

_LAST_LINE = re.compile(r"^; cost = (\d+) \((?:unit|general) cost\)$")
_DOMAIN_NAME = re.compile(r"\(\s*domain\s+([^\s()]+)\s*\)", re.IGNORECASE)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """Limits for one call of the planner.

    Time is in CPU seconds of the translator and the search together, as Fast Downward counts it. A
    call is also killed after twice that plus ten seconds by the wall clock. Memory is in MiB, for
    each of the two.

    Raises `UsageError` for less than two seconds or less than one MiB. The driver rounds the rest
    of the time down to whole seconds, so one second would leave nothing for the search.
    """

    time_s: float
    memory_mib: int

    def __post_init__(self) -> None:
        if not SHORTEST_S <= self.time_s < math.inf:
            raise UsageError(
                f"LAMA's time limit must be at least {SHORTEST_S} seconds, got {self.time_s}."
            )
        if self.memory_mib < 1:
            raise UsageError(f"LAMA's memory limit must be at least 1 MiB, got {self.memory_mib}.")

    @property
    def wall_clock_s(self) -> float:
        """Wall-clock seconds after which a call is killed in any case."""
        return 2 * self.time_s + 10

    def digest(self, domain: Path, problem: Path) -> str:
        """Return the first digits of the SHA-256 of everything that a result depends on."""
        texts = [short_digest(path) if path.is_file() else "" for path in (domain, problem)]
        inputs = (LAMA, texts, self.time_s, self.memory_mib)
        return hashlib.sha256(repr(inputs).encode()).hexdigest()[:16]


def run_lama(
    domain: Path, problem: Path, *, time_limit_s: float, memory_limit_mib: int, plan_path: Path
) -> PlanResult:
    """Find LAMA's first plan for one problem; `Limits` says how the limits count.

    A plan is written to `plan_path`. If there is none, no file is left there. If this call is
    interrupted, the planner is killed with all its children. Raises `UsageError` if Fast Downward
    is not installed or a file is missing.
    """
    limits = Limits(time_limit_s, memory_limit_mib)
    return _find_first_plan(domain, problem, limits, plan_path, threading.Event())


def lama_folder(
    problems: Sequence[tuple[Path, Path]],
    *,
    jobs: int,
    limits: Limits,
    plans: Path,
    fault_of: PlanCheck | None = None,
    known: Collection[str] = (),
) -> Iterator[PlanResult]:
    """Find LAMA's first plan for each (domain, problem), `jobs` at a time.

    Problems whose names are `known` are skipped. Results are yielded in the order given, each as
    soon as it and all before it are known. Plans
    are written to `plans/NAME.plan`. If `fault_of` finds a fault in a plan, its outcome is
    `INVALID_PLAN`. The plan is then kept as `NAME.plan.invalid`, and a warning says why. If the
    caller stops early, running planners are killed. Raises as `run_lama` does.
    """
    fast_downward()
    names = problem_names([problem for _, problem in problems])
    named = [(*x, name) for x, name in zip(problems, names, strict=True) if name not in known]
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=max(jobs, 1)) as pool:
        try:
            futures = [
                pool.submit(_find_first_plan, domain, problem, limits, plans / f"{name}.plan", stop)
                for domain, problem, name in named
            ]
            for future, (domain, problem, name) in zip(futures, named, strict=True):
                inputs = limits.digest(domain, problem)
                result = replace(future.result(), problem=name, inputs=inputs)
                plan = plans / f"{name}.plan"
                fault = fault_of(domain, problem, plan) if result.solved and fault_of else ""
                yield _refuse(result, plan, fault) if fault else result
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _refuse(result: PlanResult, plan: Path, fault: str) -> PlanResult:
    """Change the result for a plan with a fault, on which LAMA and the validator disagree."""
    kept = plan.with_name(f"{plan.name}.invalid")
    plan.replace(kept)
    _log.warning("LAMA's plan for %s is refused and kept as %s: %s", result.problem, kept, fault)
    return replace(result, outcome=Outcome.INVALID_PLAN, plan_length=None, plan_cost=None)


def fast_downward() -> Path:
    """Find Fast Downward's driver script. Raises `UsageError` if it is not installed."""
    package = importlib.util.find_spec(
        "up_fast_downward"
    )  # this finds the package without importing it
    for folder in (package and package.submodule_search_locations) or ():
        driver = Path(folder) / "downward" / "fast-downward.py"
        if driver.is_file():
            return driver
    raise UsageError(
        "LAMA needs Fast Downward, which is not installed. Run `pip install 'regoal[baselines]'`."
    )


def _find_first_plan(
    domain: Path, problem: Path, limits: Limits, plan_path: Path, stop: threading.Event
) -> PlanResult:
    for path in (domain, problem):
        if not path.is_file():
            raise UsageError(f"{path} is not a file.")
    plan_path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="regoal-lama-") as folder:
        command = _build_command(domain.resolve(), problem.resolve(), limits)
        start = time.monotonic()
        outcome = _run(command, Path(folder), start + limits.wall_clock_s, stop)
        seconds = time.monotonic() - start
        plan = _read_plan(Path(folder) / "plan")
        if outcome is Outcome.ERROR and b"MemoryError" in (Path(folder) / "log").read_bytes():
            outcome = Outcome.MEMORY_LIMIT  # Python ran out before the translator could report it
        if outcome is Outcome.ERROR and plan is None:
            _log.warning("LAMA failed on %s: %s", problem, _find_reason(Path(folder) / "log"))
    if plan is not None:
        plan_path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(plan_path, plan[0])
    _, length, cost = plan or (None, None, None)
    return PlanResult(
        problem=problem.stem,
        domain=_read_domain_name(domain),
        method=LAMA,
        outcome=outcome if plan is None else Outcome.SOLVED,
        plan_length=length,
        plan_cost=cost,
        seconds=seconds,
        steps=length or 0,
    )


def _build_command(domain: Path, problem: Path, limits: Limits) -> list[str]:
    return [
        sys.executable,
        str(fast_downward()),
        *("--alias", "lama-first"),
        *("--plan-file", "plan"),
        *("--overall-time-limit", f"{math.ceil(limits.time_s)}s"),
        *("--overall-memory-limit", f"{limits.memory_mib}M"),
        str(domain),
        str(problem),
    ]


def _run(command: list[str], folder: Path, deadline: float, stop: threading.Event) -> Outcome:
    """Run in `folder` until the end, the deadline or `stop`; returns the outcome without a plan."""
    if stop.is_set():
        return Outcome.ERROR
    with (folder / "log").open("wb") as log:
        # The translator's order of its sets must not change from run to run.
        process = start_command(command, log, {"PYTHONHASHSEED": "0"}, folder)
        try:
            while not stop.is_set() and time.monotonic() < deadline:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return OUTCOMES.get(process.wait(POLL_S), Outcome.ERROR)
            return Outcome.TIME_LIMIT
        finally:
            kill_group(process)


def _read_plan(path: Path) -> tuple[str, int, int] | None:
    """Read text, length and cost of a plan file; None if it is missing or was cut short."""
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    last = _LAST_LINE.match(lines[-1]) if lines else None
    if last is None:
        return None
    return text, sum(line.startswith("(") for line in lines), int(last[1])


_NO_REASON = re.compile(r"INFO |Driver aborting|\w+ exit code:|\s*->|Parsing\.\.\.$")


def _find_reason(log: Path) -> str:
    """Find the last two lines of the log that may say why LAMA failed, as one line."""
    text = "\n".join(map(_decode, log.read_text(encoding="utf-8", errors="replace").splitlines()))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reasons = [line for line in lines if not _NO_REASON.match(line)]
    return " ".join(reasons[-2:])[:300] or "it printed no reason"


def _decode(line: str) -> str:
    """Decode a line `b'...'`: the driver prints its translator's output as Python's bytes."""
    if line.startswith(("b'", 'b"')):
        with contextlib.suppress(ValueError, SyntaxError):
            return str(ast.literal_eval(line).decode(errors="replace"))
    return line


def _read_domain_name(domain: Path) -> str:
    text = re.sub(r";[^\n]*", "", domain.read_text(encoding="utf-8", errors="replace"))
    name = _DOMAIN_NAME.search(text)
    return name[1].lower() if name else domain.stem
