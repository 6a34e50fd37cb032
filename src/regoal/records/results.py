"""Records of one attempt at one problem, in one form for policies and for LAMA.

No torch and no planner here: reports read these records.
"""

import enum
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path


class Outcome(enum.Enum):
    """How an attempt ended: what to tell the user, and whether that is a normal ending.

    In JSON an outcome is its name in lower case, e.g. `"step_limit"`.
    """

    SOLVED = ("solved", True)
    STEP_LIMIT = ("step limit reached", True)
    DEAD_END = ("no action leads on", True)
    NO_PLAN = ("search ended without a plan", True)
    UNSOLVABLE = ("proven to have no plan", True)
    TIME_LIMIT = ("time limit reached", True)
    MEMORY_LIMIT = ("memory limit reached", True)
    INVALID_PLAN = ("validator rejected the plan", False)
    ERROR = ("ended with an error", False)

    def __init__(self, text: str, expected: bool) -> None:
        self.text = text
        self.expected = expected

    @property
    def key(self) -> str:
        """The outcome's name in JSON."""
        return self.name.lower()


LARGEST = 10**15
"""Whole numbers in records are smaller, so that they can be counted with others."""

OUTCOMES = {outcome.key: outcome for outcome in Outcome}


@dataclass(frozen=True, kw_only=True)
class PlanResult:
    """One attempt at one problem.

    Raises `ValueError` if the plan's length is missing although the problem is solved, or
    given although it is not.
    """

    problem: str
    """The problem file's name without its ending."""
    domain: str
    method: str
    """`lifted`, `propositional`, `state`, `lama`, or whatever else found the plan."""
    outcome: Outcome
    plan_length: int | None
    """Actions of a valid plan as it was found, not shortened; none unless solved."""
    plan_cost: float | None
    """Sum of the actions' costs, the plan's length if actions have none; none unless solved."""
    seconds: float
    """Wall-clock seconds: of the execution for policies, without reading the files and shortening
    the plan; all of the planner's for LAMA."""
    steps: int
    """Actions executed, also those of an attempt that failed."""
    short_length: int | None = None
    """Actions of the plan without useless ones; none if it was not shortened."""
    short_cost: float | None = None
    """Sum of these actions' costs."""
    returns: int = 0
    """Of these, those into states visited before; the paper's testing ends if one is needed."""
    found_by: str = ""
    """How the plan came: `greedy`, `commitment` or `search`; empty if unknown or without a plan."""
    evaluations: int = 0
    """States that the network has rated, each as often as it was; 0 in older records."""
    expansions: int = 0
    """Successors that search has made, one for each open action that it took."""
    policy: str = ""
    """The beginning of the policy file's SHA-256; empty if no policy was run."""
    inputs: str = ""
    """The beginning of a SHA-256 of all it depends on: policy or planner, files, limits. Empty in
    old records of LAMA."""

    def __post_init__(self) -> None:
        if self.solved != (self.plan_length is not None):
            raise ValueError(
                f"plan_length must be given exactly if the outcome is solved, got "
                f"{self.plan_length} with {self.outcome.key} for problem {self.problem!r}"
            )

    @property
    def solved(self) -> bool:
        """Whether a valid plan was found."""
        return self.outcome is Outcome.SOLVED

    @property
    def solved_without_return(self) -> bool:
        """Whether a valid plan was found that enters no state twice, the paper's rule."""
        return self.solved and self.returns == 0

    def to_json(self) -> dict[str, object]:
        """The record as plain JSON values, one key a field."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"outcome": self.outcome.key}

    @classmethod
    def from_json(cls, record: Mapping[str, object]) -> "PlanResult":
        """The record that `to_json` wrote; unknown keys are ignored, so that files may grow.

        Raises `ValueError` if a key is missing or a value has the wrong type.
        """
        outcome = record.get("outcome")
        if not isinstance(outcome, str) or outcome not in OUTCOMES:
            raise ValueError(f"outcome must be one of {sorted(OUTCOMES)}, got {outcome!r}")
        cost = record.get("plan_cost")
        length = record.get("plan_length")
        short_length, short_cost = record.get("short_length"), record.get("short_cost")
        return cls(
            problem=_text(record, "problem"),
            domain=_text(record, "domain"),
            method=_text(record, "method"),
            outcome=OUTCOMES[outcome],
            plan_length=None if length is None else _count(record, "plan_length"),
            plan_cost=None if cost is None else _number(record, "plan_cost"),
            seconds=_number(record, "seconds"),
            steps=_count(record, "steps"),
            short_length=None if short_length is None else _count(record, "short_length"),
            short_cost=None if short_cost is None else _number(record, "short_cost"),
            returns=_count(record, "returns") if "returns" in record else 0,
            found_by=_text(record, "found_by") if "found_by" in record else "",
            evaluations=_count(record, "evaluations") if "evaluations" in record else 0,
            expansions=_count(record, "expansions") if "expansions" in record else 0,
            policy=_text(record, "policy") if "policy" in record else "",
            inputs=_text(record, "inputs") if "inputs" in record else "",
        )


def problem_names(problems: Sequence[Path]) -> list[str]:
    """One name for each problem file, the same for policies and LAMA: its stem.

    Where two files have one stem, every name is the path from their common folder.

    >>> problem_names([Path("a/p01.pddl"), Path("a/p02.pddl")])
    ['p01', 'p02']
    >>> problem_names([Path("a/easy/p01.pddl"), Path("a/hard/p01.pddl")])
    ['easy/p01', 'hard/p01']
    """
    stems = [path.stem for path in problems]
    if len(set(stems)) == len(stems):
        return stems
    folder = os.path.commonpath([path.absolute().parent for path in problems])
    return [path.absolute().relative_to(folder).with_suffix("").as_posix() for path in problems]


def _text(record: Mapping[str, object], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} must be a text, got {value!r}")
    return value


def _count(record: Mapping[str, object], key: str) -> int:
    value = _number(record, key)
    if not math.isfinite(value):
        raise ValueError(f"{key} must be a whole number, got {value}")
    return int(value)


def _number(record: Mapping[str, object], key: str) -> float:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key} must be a number, got {value!r}")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError(f"{key} must be at most {LARGEST:.0e}, got more")
    return value
