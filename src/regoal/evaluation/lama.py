"""LAMA's first plan, from Fast Downward as a process of its own with time and memory limits.

The Fast Downward that the package `up-fast-downward` brings is called directly; no other planner
library is involved, and neither torch nor pymimir.
"""

import ast
import contextlib
import importlib.util
import logging
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from regoal.errors import UsageError
from regoal.records.results import Outcome, PlanResult, problem_names
from regoal.system.files import write_text_atomically

LAMA = "lama"
POLL_S = 0.1
SHORTEST_S = 2
OUTCOMES = {
    **dict.fromkeys((10, 11, 12, 13), Outcome.NO_PLAN),
    **dict.fromkeys((20, 22), Outcome.MEMORY_LIMIT),
    **dict.fromkeys((21, 23, 24, 256 - signal.SIGXCPU), Outcome.TIME_LIMIT),
}
"""Fast Downward's exit codes where there is no plan; any other is an error.

A translator that runs out of time dies by a signal, which the driver's exit code shows as 256 - n.
"""

PlanCheck = Callable[[Path, Path, Path], str]
"""What is wrong with a plan file, from the domain's, the problem's and its own path; else empty."""

_LAST_LINE = re.compile(r"^; cost = (\d+) \((?:unit|general) cost\)$")
_DOMAIN_NAME = re.compile(r"\(\s*domain\s+([^\s()]+)\s*\)", re.IGNORECASE)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """What one call of the planner may use.

    Time is in CPU seconds of the translator and the search together, as Fast Downward counts it;
    the wall clock ends a call after twice that and ten seconds more. Memory is in MiB for each of
    the two. Raises `UsageError` for less than two seconds (the driver rounds what is left down to
    whole seconds, so that one would leave none) or less than one MiB.
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
        """Wall-clock seconds after which a call is killed, whatever it does."""
        return 2 * self.time_s + 10


def run_lama(
    domain: Path, problem: Path, *, time_limit_s: float, memory_limit_mib: int, plan_path: Path
) -> PlanResult:
    """The first plan LAMA finds for one problem; `Limits` says how the limits count.

    A plan is written to `plan_path`; without one no file is left there. The planner is killed with
    all its children when this call is interrupted. Raises `UsageError` where Fast Downward is not
    installed or a file is missing.
    """
    limits = Limits(time_limit_s, memory_limit_mib)
    return _first_plan(domain, problem, limits, plan_path, threading.Event())


def lama_folder(
    problems: Sequence[tuple[Path, Path]],
    *,
    jobs: int,
    limits: Limits,
    plans: Path,
    fault_of: PlanCheck | None = None,
) -> Iterator[PlanResult]:
    """LAMA's first plan for each (domain, problem), `jobs` at a time, in the order given.

    A result comes as soon as it and all before it are there. Plans are written to
    `plans/NAME.plan`; one that `fault_of` finds a fault in is kept as `NAME.plan.invalid`, a
    warning says why, and its outcome is `INVALID_PLAN`. When the caller stops early, what still
    runs is killed. Raises as `run_lama`.
    """
    fast_downward()
    names = problem_names([problem for _, problem in problems])
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=max(jobs, 1)) as pool:
        try:
            futures = [
                pool.submit(_first_plan, domain, problem, limits, plans / f"{name}.plan", stop)
                for (domain, problem), name in zip(problems, names, strict=True)
            ]
            for future, (domain, problem), name in zip(futures, problems, names, strict=True):
                result = replace(future.result(), problem=name)
                plan = plans / f"{name}.plan"
                fault = fault_of(domain, problem, plan) if result.solved and fault_of else ""
                yield _refused(result, plan, fault) if fault else result
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _refused(result: PlanResult, plan: Path, fault: str) -> PlanResult:
    """The result where the plan has a fault: LAMA and the validator disagree, and one is wrong."""
    kept = plan.with_name(f"{plan.name}.invalid")
    plan.replace(kept)
    _log.warning("LAMA's plan for %s is refused, and kept as %s: %s", result.problem, kept, fault)
    return replace(result, outcome=Outcome.INVALID_PLAN, plan_length=None, plan_cost=None)


def fast_downward() -> Path:
    """Fast Downward's driver script. Raises `UsageError` where it is not installed."""
    package = importlib.util.find_spec("up_fast_downward")  # finds the package, does not import it
    for folder in (package and package.submodule_search_locations) or ():
        driver = Path(folder) / "downward" / "fast-downward.py"
        if driver.is_file():
            return driver
    raise UsageError(
        "LAMA needs Fast Downward, which is not installed. Run `pip install 'regoal[baselines]'`."
    )


def _first_plan(
    domain: Path, problem: Path, limits: Limits, plan_path: Path, stop: threading.Event
) -> PlanResult:
    for path in (domain, problem):
        if not path.is_file():
            raise UsageError(f"{path} is not a file.")
    plan_path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="regoal-lama-") as folder:
        command = _command(domain.resolve(), problem.resolve(), limits)
        start = time.monotonic()
        outcome = _run(command, Path(folder), start + limits.wall_clock_s, stop)
        seconds = time.monotonic() - start
        plan = _read_plan(Path(folder) / "plan")
        if outcome is Outcome.ERROR and b"MemoryError" in (Path(folder) / "log").read_bytes():
            outcome = Outcome.MEMORY_LIMIT  # in Python, before the translator can report it
        if outcome is Outcome.ERROR and plan is None:
            _log.warning("LAMA failed on %s: %s", problem, _last_words(Path(folder) / "log"))
    if plan is not None:
        plan_path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(plan_path, plan[0])
    _, length, cost = plan or (None, None, None)
    return PlanResult(
        problem=problem.stem,
        domain=_domain_name(domain),
        method=LAMA,
        outcome=outcome if plan is None else Outcome.SOLVED,
        plan_length=length,
        plan_cost=cost,
        seconds=seconds,
        steps=length or 0,
    )


def _command(domain: Path, problem: Path, limits: Limits) -> list[str]:
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
    """Run in `folder` until the end, the deadline or `stop`; the outcome if there is no plan."""
    if stop.is_set():
        return Outcome.ERROR
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a group of its own, so that the search can be killed with it
            # The order in which the translator walks its sets must not change from run to run.
            env=os.environ | {"PYTHONHASHSEED": "0"},
        )
        try:
            while not stop.is_set() and time.monotonic() < deadline:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return OUTCOMES.get(process.wait(POLL_S), Outcome.ERROR)
            return Outcome.TIME_LIMIT
        finally:
            _kill_group(process)


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read_plan(path: Path) -> tuple[str, int, int] | None:
    """Text, length and cost of a plan file; none where it is missing or was cut while written."""
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    last = _LAST_LINE.match(lines[-1]) if lines else None
    if last is None:
        return None
    return text, sum(line.startswith("(") for line in lines), int(last[1])


_NO_REASON = re.compile(r"INFO |Driver aborting|\w+ exit code:|\s*->|Parsing\.\.\.$")


def _last_words(log: Path) -> str:
    """The last two lines that may say why, on one."""
    text = "\n".join(map(_decoded, log.read_text(encoding="utf-8", errors="replace").splitlines()))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reasons = [line for line in lines if not _NO_REASON.match(line)]
    return " ".join(reasons[-2:])[:300] or "it said nothing"


def _decoded(line: str) -> str:
    """The lines behind `b'...'`: the driver prints what its translator says as Python's bytes."""
    if line.startswith(("b'", 'b"')):
        with contextlib.suppress(ValueError, SyntaxError):
            return str(ast.literal_eval(line).decode(errors="replace"))
    return line


def _domain_name(domain: Path) -> str:
    text = re.sub(r";[^\n]*", "", domain.read_text(encoding="utf-8", errors="replace"))
    name = _DOMAIN_NAME.search(text)
    return name[1].lower() if name else domain.stem
