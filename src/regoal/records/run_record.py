"""The files of a run: their names and plain JSON records. No torch, no planner.

A run folder holds `config.json`, records in JSON lines (`episodes.jsonl`, `validation.jsonl`,
`results.jsonl`), the best policy and the checkpoint. The records are the interface between
training and reports: writers append whole lines, readers never need more than this file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from regoal.errors import UsageError
from regoal.records.json_lines import JsonObject, as_float, read_json, read_jsonl, write_json_lines
from regoal.records.results import Outcome, PlanResult
from regoal.system.files import natural_key, short_digest

CONFIG = "config.json"
EPISODES = "episodes.jsonl"
VALIDATION = "validation.jsonl"
RESULTS = "results.jsonl"
POLICY = "policy.safetensors"
CHECKPOINT = "checkpoint.safetensors"
DONE = "done.json"
KEPT = "kept"
"""A folder: every policy that was the best at its time, under `kept_name`."""
TEST_CURVE = "test_curve.jsonl"
"""How these do on the test problems if visited states are allowed; `reproduction/curve.py`."""


def kept_name(episode: int) -> str:
    """The file of the policy that was kept after `episode`; names sort as episodes do.

    >>> kept_name(105)
    '000105.safetensors'
    """
    return f"{episode:06}.safetensors"


@dataclass(frozen=True)
class RunRecord:
    """One run as plain values, read once; a report needs nothing else."""

    folder: Path
    config: JsonObject
    episodes: list[JsonObject] = field(default_factory=list, repr=False)
    validation: list[JsonObject] = field(default_factory=list, repr=False)
    results: list[PlanResult] = field(default_factory=list, repr=False)
    test_curve: list[JsonObject] = field(default_factory=list, repr=False)
    of_another_policy: bool = False
    """Whether some results are of another policy than the one that now lies in the folder."""

    @property
    def domain(self) -> str:
        """The benchmark domain, spelt as in the paper's tables but lower case: `childsnack-af`.

        Not the name in the PDDL file, which two rows of a table may share.
        """
        return self._setting("domain").lower().replace("_", "-")

    @property
    def method(self) -> str:
        """The hindsight variant, or `method` if nothing was learnt, e.g. `lama`."""
        return self._setting("hindsight" if "hindsight" in self.config else "method")

    @property
    def seed(self) -> int:
        """The seed, 0 if the method has none."""
        seed = self.config.get("seed", 0)
        return seed if isinstance(seed, int) else 0

    def _setting(self, key: str) -> str:
        value = self.config.get(key)
        if not isinstance(value, str):
            raise UsageError(f"{self.folder / CONFIG} must say its {key!r}, found {value!r}.")
        return value


def load_run(folder: Path) -> RunRecord:
    """Read a run folder, also while the run is still going.

    A file of results alone (`*.jsonl`, as `regoal lama` writes it) counts as a run without
    training. Raises `UsageError` if `folder` is neither.
    """
    if folder.is_file() and folder.suffix == ".jsonl":
        return _bare_results(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; give the folder that `regoal train` wrote.")
    if not (folder / CONFIG).is_file():
        raise UsageError(
            f"{folder} is not a run: it has no {CONFIG}. Give the folder that `regoal train` wrote."
        )
    config = read_json(folder / CONFIG)
    if (folder / DONE).is_file():
        # A sweep knows which benchmark it ran; a training sees only the name in the PDDL file.
        known = ("domain", "instances_seed")
        config |= {k: v for k, v in read_json(folder / DONE).items() if k in known}
    return RunRecord(
        folder,
        config,
        read_jsonl(folder / EPISODES),
        read_jsonl(folder / VALIDATION),
        results := read_results(folder / RESULTS),
        read_jsonl(folder / TEST_CURVE),
        _of_another_policy(folder, results),
    )


def _of_another_policy(folder: Path, results: Iterable[PlanResult]) -> bool:
    policies = {result.policy for result in results if result.policy}
    own = folder / POLICY
    return bool(policies) and own.is_file() and policies != {short_digest(own)}


def read_results(path: Path) -> list[PlanResult]:
    """The results in a file, one a problem: the last one counts if a problem occurs twice."""
    results: dict[str, PlanResult] = {}
    for number, record in enumerate(read_jsonl(path), start=1):
        try:
            result = PlanResult.from_json(record)
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: {error}.") from error
        results[result.problem] = result
    return sorted(results.values(), key=lambda result: natural_key(result.problem))


def kept_results(path: Path, inputs: Mapping[str, str]) -> list[PlanResult]:
    """Return the results that a stopped test has left in its file of records, without errors.

    `inputs` has, by the problem's name, what a result of this very test would depend on. Raises
    `UsageError` if a record is of another test, and as `read_results`.
    """
    results = read_results(path)
    for result in results:
        if result.inputs != inputs.get(result.problem) and result.outcome is not Outcome.ERROR:
            raise UsageError(
                f"{path} has a result for {result.problem} by another policy, problem or limit. "
                f"Give another file by --out, or leave --resume out to begin the file again."
            )
    return [result for result in results if result.outcome is not Outcome.ERROR]


def check_credit(records: Path, policy: str) -> None:
    """Keep the test of a policy out of the folder of a run that made another one.

    `policy` is the beginning of its file's SHA-256. Raises `UsageError`.
    """
    own = records.parent / POLICY
    if records.name != RESULTS or not (own.is_file() and (records.parent / CONFIG).is_file()):
        return
    if short_digest(own) != policy:
        raise UsageError(
            f"{records} would credit the run in {records.parent} with the test of another policy; "
            f"give another file by --out."
        )


def recorded_number(folder: Path, key: str) -> int:
    """`threads` or `workers` as the run in `folder` was started with, 0 if there is no run."""
    config = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    number = config.get(key)
    return number if isinstance(number, int) else 0


def keep_episodes_before(path: Path, episode: int) -> None:
    """Drop the records of `episode` and later ones, all or nothing.

    A run that goes on from a checkpoint repeats what came after it; without this its records
    would stand there twice.
    """
    if path.is_file():
        records = [r for r in read_jsonl(path) if as_float(r.get("episode")) < episode]
        write_json_lines(path, records)


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """Every run at or below the given paths, in natural order.

    Raises `UsageError` if a path holds no run at all.
    """
    found: set[Path] = set()
    for path in paths:
        if path.is_file():
            found.add(path)
            continue
        below = {config.parent for config in path.rglob(CONFIG)}
        if not below:
            raise UsageError(f"{path} holds no run: no {CONFIG} in it or below it.")
        found |= below
    return sorted(found, key=lambda path: natural_key(str(path)))


def _bare_results(path: Path) -> RunRecord:
    results = read_results(path)
    if not results:
        raise UsageError(f"{path} holds no results yet.")
    config: JsonObject = {"domain": results[0].domain, "method": results[0].method}
    return RunRecord(path, config, results=results)
