"""Results as Downward Lab reads them: a file `properties`, and the attributes in it.

Lab (https://lab.readthedocs.io) is a library for experiments with planners. Its reports read one
JSON object with an object for each run of an algorithm on a problem. Checked with version 8.10.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from regoal.errors import UsageError
from regoal.records.json_lines import JsonObject, write_json
from regoal.records.results import Outcome, PlanResult
from regoal.records.run_record import RunRecord
from regoal.reports.run_choice import NO_RESULTS

if TYPE_CHECKING:
    from lab.reports import Attribute

PROPERTIES = "properties"
ERRORS = {
    Outcome.SOLVED: "success",
    Outcome.STEP_LIMIT: "search-unsolved-incomplete",
    Outcome.DEAD_END: "search-unsolved-incomplete",
    Outcome.NO_PLAN: "search-unsolved-incomplete",
    Outcome.UNSOLVABLE: "search-unsolvable",
    Outcome.TIME_LIMIT: "search-out-of-time",
    Outcome.MEMORY_LIMIT: "search-out-of-memory",
    Outcome.INVALID_PLAN: "invalid-plan",
    Outcome.ERROR: "search-critical-error",
}
"""Lab's names of outcomes; `invalid-plan` is our own. All but the last two are explained."""


@dataclass(frozen=True)
class LabAttribute:
    """One number that Lab's reports show of each run."""

    name: str
    value: Callable[[PlanResult], float | None]
    """Returns the number, or None if the result has none, e.g. the plan length of a failure."""
    min_wins: bool
    """Whether smaller is better."""
    absolute: bool = False
    """Whether a sum is over all problems; else over those for which every algorithm has a value."""
    aggregate: Literal["sum", "geometric_mean"] = "sum"
    scale: Literal["linear", "log"] = "linear"
    digits: int = 0


def _read_cost(result: PlanResult) -> float | None:
    """Return the plan's cost, as a whole number if it is one: Lab shows fractions of others."""
    cost = result.plan_cost
    return int(cost) if cost is not None and cost == int(cost) else cost


ATTRIBUTES = (
    LabAttribute("coverage", lambda result: int(result.solved), min_wins=False, absolute=True),
    LabAttribute(
        "coverage_without_returns",
        lambda result: int(result.solved_without_return) if result.policy else None,
        min_wins=False,
        absolute=True,
    ),
    LabAttribute("cost", _read_cost, min_wins=True),
    LabAttribute("plan_length", lambda result: result.plan_length, min_wins=True),
    LabAttribute("steps", lambda result: result.steps, min_wins=True),
    LabAttribute(
        "returns", lambda result: result.returns if result.policy else None, min_wins=True
    ),
    LabAttribute(
        "planner_wall_clock_time",
        lambda result: result.seconds,
        min_wins=True,
        aggregate="geometric_mean",
        scale="log",
        digits=2,
    ),
)


def write_properties(runs: Iterable[RunRecord], folder: Path) -> Path:
    """Write the results of all runs for Lab's reports, and return the path of the file.

    `folder` is what a report gets as its `eval_dir`. Raises `UsageError` if no run has results, or
    two runs would be one algorithm on one domain.
    """
    properties: dict[str, JsonObject] = {}
    seen: dict[tuple[str, str], Path] = {}
    for run in runs:
        key = (name_algorithm(run), run.domain)
        if run.results and key in seen:
            raise UsageError(
                f"{seen[key]} and {run.folder} are both {key[0]} on {key[1]}. Leave one out."
            )
        for result in run.results:
            seen[key] = run.folder
            properties["-".join((*key, result.problem))] = describe_result(run, result)
    if not properties:
        raise UsageError(NO_RESULTS)
    path = folder / PROPERTIES
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, properties)
    return path


def name_algorithm(run: RunRecord) -> str:
    """Return what Lab calls the algorithm: `regoal-lifted-0` for a training with seed 0, `lama`."""
    return f"regoal-{run.method}-{run.seed}" if "seed" in run.config else run.method


def describe_result(run: RunRecord, result: PlanResult) -> JsonObject:
    """Return Lab's object for one result.

    It has an unexplained error only if the planner failed, or its plan was rejected. An attribute
    without a value is left out, as Lab wants it.
    """
    algorithm = name_algorithm(run)
    numbers = {a.name: a.value(result) for a in ATTRIBUTES}
    return {
        "id": [algorithm, run.domain, result.problem],
        "algorithm": algorithm,
        "domain": run.domain,
        "problem": result.problem,
        "run_dir": str(run.folder),
        "error": ERRORS[result.outcome],
        "unexplained_errors": [] if result.outcome.expected else [result.outcome.text],
        **{name: number for name, number in numbers.items() if number is not None},
        **_describe_algorithm(run),
    }


def _describe_algorithm(run: RunRecord) -> JsonObject:
    """Return what Lab's table of algorithms shows: the commit, and how the run was made."""
    environment = run.config.get("environment")
    commit = environment.get("commit") if isinstance(environment, dict) else None
    settings = ("preset", "layers", "embedding_size", "episodes", "time-limit", "memory-limit")
    options = [f"{name}={run.config[name]}" for name in settings if name in run.config]
    return {"local_revision": commit or "not recorded", "component_options": options}


def make_attributes(names: Sequence[str] = ()) -> "list[Attribute]":
    """Return Lab's own objects for the attributes of these names, or for all of them.

    They say which direction is better, how to aggregate, and which scale to plot on. Raises
    `UsageError` if Lab is not installed or a name is unknown.
    """
    try:
        from lab import reports
    except ImportError as error:
        raise UsageError("Lab is not installed: pip install 'regoal[lab]'.") from error

    functions = {"sum": sum, "geometric_mean": reports.geometric_mean}
    known = {attribute.name: attribute for attribute in ATTRIBUTES}
    if unknown := sorted(set(names) - set(known)):
        raise UsageError(f"There is no attribute {unknown[0]!r}. Choose from: {', '.join(known)}.")
    return [
        reports.Attribute(
            name,
            absolute=known[name].absolute,
            min_wins=known[name].min_wins,
            function=functions[known[name].aggregate],
            scale=known[name].scale,
            digits=known[name].digits,
        )
        for name in names or known
    ]
