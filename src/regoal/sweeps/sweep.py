"""A grid of domain, hindsight variant and seed from a TOML file: one run each, as subprocesses.

What is finished is skipped, what was stopped goes on, and a run that fails stops no other.

    out = "runs/small"
    domains = ["blocks", "gripper"]
    hindsight = ["lifted", "propositional", "state"]
    seeds = [0, 1, 2]
    preset = "laptop"
    budget_minutes = 20
    instances_seed = 0    # optional
    [overrides]           # optional: further options of `regoal train`
    layers = 20
    temperature.episodes = 50
"""

import json
import os
import shlex
import shutil
import sys
import time
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from regoal.config import DEVICES, HINDSIGHTS, PRESETS, TrainConfig
from regoal.domains.splits import DOMAINS
from regoal.errors import UsageError
from regoal.records.json_lines import JsonObject, read_json, write_json
from regoal.records.run_record import CONFIG, DONE, RESULTS, load_run
from regoal.system.files import read_bytes
from regoal.system.processes import Processes
from regoal.system.threads import MOST_THREADS
from regoal.system.units import duration_text, number_text

MOST_MINUTES = 10**6
SPLITS = ("train", "validation", "test")
PROGRAM = (sys.executable, "-m", "regoal.cli")


@dataclass(frozen=True)
class RunSetting:
    """One cell of the grid."""

    domain: str
    hindsight: str
    seed: int
    preset: str
    budget_minutes: float
    overrides: dict[str, str | int | float | bool]
    """Further options of `regoal train`, by their name without the dashes."""

    @property
    def name(self) -> str:
        """Where the run lies below the sweep's folder."""
        return f"{self.domain}/{self.hindsight}/{self.seed}"


@dataclass(frozen=True)
class Sweep:
    """A whole grid, in the order in which its runs start.

    That is seed by seed, so that a sweep that is stopped early has seen every domain and variant.
    """

    out: Path
    settings: tuple[RunSetting, ...]
    instances_seed: int = 0

    def folder(self, setting: RunSetting) -> Path:
        """The run folder of one setting."""
        return self.out / setting.name

    def instances(self, domain: str, split: str) -> Path:
        """The folder of one domain's problems, shared by all runs with this seed of problems."""
        return self.out / "instances" / f"seed-{self.instances_seed}" / domain / split


@dataclass(frozen=True)
class Failure:
    """A step that did not end with exit code 0, and where its output is."""

    step: str
    exit_code: int
    log: Path

    def __str__(self) -> str:
        """One line for the user, with the last one of the output."""
        code = f"exit code {self.exit_code}{self._last_line()}"
        return f"{self.step} ended with {code}; its output is in {self.log}"

    def _last_line(self) -> str:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            return ""
        return f" ({lines[-1]})" if lines else ""


def read_sweep(path: Path) -> Sweep:
    """Read a sweep file. Raises `UsageError` with the key that is missing, unknown or wrong."""
    values = _toml(path)
    for key, kinds in _KEYS.items():
        _check(path, key, values.get(key), kinds)
    if unknown := sorted(set(values) - set(_KEYS)):
        raise UsageError(f"{path} has unknown keys: {', '.join(unknown)}.")
    values["domains"] = [str(name).lower() for name in values["domains"]]
    values["overrides"] = dict(_flat(values.get("overrides", {})))
    for key, kind in (("domains", str), ("hindsight", str), ("seeds", int)):
        _check_items(path, key, values[key], kind)
    _check_values(path, values)
    settings = tuple(
        RunSetting(
            domain,
            hindsight,
            seed,
            values["preset"],
            values["budget_minutes"],
            values["overrides"],
        )
        for seed in values["seeds"]
        for domain in values["domains"]
        for hindsight in values["hindsight"]
    )
    sweep = Sweep(Path(values["out"]), settings, values.get("instances_seed", 0))
    _check_folders(path, sweep)
    return sweep


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Options by name, also those that TOML has in a table, as `temperature.episodes = 50`."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{part}", inner) for part, inner in value.items())
        else:
            yield name, value


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_bytes(path).decode("utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except RecursionError:
        raise UsageError(f"{path} is not TOML: it is nested too deeply.") from None
    except ValueError as error:  # bytes that are no text among them
        raise UsageError(f"{path} is not TOML: {error}.") from error


def _check_values(path: Path, values: Mapping[str, Any]) -> None:
    for key, choices in _CHOICES.items():
        items = values[key] if isinstance(values[key], list) else [values[key]]
        if unknown := [item for item in items if item not in choices]:
            known = ", ".join(choices)
            raise UsageError(f"{path}: {key} has {unknown[0]!r}. Choose from: {known}.")
    try:
        for seed in values["seeds"]:
            TrainConfig(seed=seed)
    except ValueError as error:
        raise UsageError(f"{path}: {error}.") from error
    for name, value in values["overrides"].items():
        _check_override(path, PRESETS[values["preset"]], name, value)
    minutes = values["budget_minutes"]
    if not 0 < minutes <= MOST_MINUTES:
        raise UsageError(f"{path}: budget_minutes lies above 0, at most at {MOST_MINUTES}.")


def _check_override(path: Path, config: TrainConfig, name: str, value: object) -> None:
    if not isinstance(value, str | int | float):
        raise UsageError(f"{path}: the override {name} = {value!r} has the wrong type.")
    option, _, part = name.replace("-", "_").partition(".")
    if option in _SET_BY_SWEEP:
        raise UsageError(f"{path}: the sweep sets {name!r} itself; take it out of the overrides.")
    if option not in _OPTIONS:
        raise UsageError(f"{path}: `regoal train` has no option {name!r} to override.")
    if option in _NOT_LEARNING:
        if value not in _NOT_LEARNING[option] or isinstance(value, bool | float):
            raise UsageError(f"{path}: the override {name} = {value!r} is none that it can have.")
        return
    whole: Any = getattr(config, option)
    known = getattr(whole, part, None) if part else whole
    if type(value) is not type(known) and (type(value), type(known)) != (int, float):
        raise UsageError(f"{path}: the override {name} = {value!r} has the wrong type.")
    try:
        changed: Any = replace(whole, **{part: value}) if part else value
        replace(config, **{option: changed})
    except ValueError as error:
        raise UsageError(f"{path}: the override {name}: {error}.") from error


def _check_folders(path: Path, sweep: Sweep) -> None:
    """Raise `UsageError` where a run's folder cannot be, e.g. as a name is too long."""
    for setting in sweep.settings:
        try:
            sweep.folder(setting).is_dir()
        except OSError as error:
            raise UsageError(f"{path}: a run cannot have its folder: {error.strerror}.") from error


def finished(sweep: Sweep, setting: RunSetting) -> bool:
    """Whether a run has been trained and tested, with the policy that it has now.

    Raises `UsageError` where its folder holds a finished run with other settings.
    """
    marker = sweep.folder(setting) / DONE
    if not marker.is_file():
        return False
    done = read_json(marker)
    if done != _done(sweep, setting):
        raise UsageError(
            f"{marker.parent} holds a run with other settings than the sweep file gives. "
            f"Choose another `out` or move that folder away."
        )
    return not _outdated(marker.parent)


def _outdated(folder: Path) -> bool:
    """Whether a run went on after its test, and found a better policy."""
    return (folder / CONFIG).is_file() and load_run(folder).of_another_policy


def run_sweep(
    sweep: Sweep,
    *,
    jobs: int = 1,
    tell: Callable[[str], None] = print,
    program: Sequence[str] = PROGRAM,
) -> list[Failure]:
    """Run what is not finished, `jobs` at a time, and return what failed.

    Each run's output goes to a log beside its folder. On an interrupt every running process is
    terminated, so that it can save, and killed after a minute.
    """
    waiting = [setting for setting in sweep.settings if not finished(sweep, setting)]
    tell(f"{len(sweep.settings)} runs, {len(sweep.settings) - len(waiting)} of them finished")
    processes = Processes(jobs)
    failures: list[Failure] = []
    started = time.monotonic()
    with ThreadPoolExecutor(max_workers=max(jobs, 1)) as pool:
        try:
            for domain in dict.fromkeys(setting.domain for setting in waiting):
                if failure := _generate(sweep, domain, processes, program):
                    failures.append(failure)
                    waiting = [setting for setting in waiting if setting.domain != domain]
                    tell(str(failure))
            futures = {pool.submit(_run, sweep, s, processes, program, tell): s for s in waiting}
            for number, future in enumerate(as_completed(futures), start=1):
                failure = future.result()
                failures += [failure] if failure else []
                outcome = failure or f"{futures[future].name} finished"
                left = _left(number, len(waiting), time.monotonic() - started)
                tell(f"{number}/{len(waiting)} {outcome}{left}")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.stop()
    return failures


def _left(ended: int, runs: int, seconds: float) -> str:
    """About how long the other runs take if they are like those that have ended."""
    if ended == runs:
        return ""
    return f", about {duration_text(seconds / ended * (runs - ended))} left"


def print_commands(sweep: Sweep, *, program: Sequence[str] = ("regoal",)) -> list[str]:
    """Shell lines for a cluster: comments, the generation of instances, then one line a run.

    The lines of one part do not depend on each other. Finished runs are left out.
    """
    waiting = [setting for setting in sweep.settings if not finished(sweep, setting)]
    domains = dict.fromkeys(setting.domain for setting in waiting)
    lines = ["# first, once:"]
    for domain in domains:
        for split in SPLITS:
            folder = sweep.instances(domain, split)
            if not folder.is_dir():
                unfinished = folder.with_name(f".{split}.tmp")
                making = _generate_arguments(sweep, domain, split, unfinished)
                moving = ("mv", str(unfinished), str(folder))
                lines.append(f"{_shell(program, making)} && {shlex.join(moving)}")
    lines.append("# then, in any order:")
    for setting in waiting:
        steps = [_shell(program, step(sweep, setting)) for step in STEPS]
        done = shlex.quote(json.dumps(_done(sweep, setting)))
        mark = f"printf '%s\\n' {done} > {shlex.quote(str(sweep.folder(setting) / DONE))}"
        lines.append(" && ".join([*steps, mark]))
    return lines


_KEYS: dict[str, tuple[type, ...]] = {
    "out": (str,),
    "domains": (list,),
    "hindsight": (list,),
    "seeds": (list,),
    "preset": (str,),
    "budget_minutes": (int, float),
    "instances_seed": (int, type(None)),
    "overrides": (dict, type(None)),
}
"""Keys of a sweep file and their types; those that may be none are optional."""


_SET_BY_SWEEP = frozenset(("seed", "hindsight", "preset", "budget", "name", "out", "resume"))
_NOT_LEARNING: dict[str, Collection[object]] = {
    "threads": range(MOST_THREADS + 1),
    "workers": range(MOST_THREADS + 1),
    "device": DEVICES,
}
_OPTIONS = frozenset(field.name for field in fields(TrainConfig)) | _NOT_LEARNING.keys()
"""What may be overridden, less what the sweep sets itself."""
_CHOICES: dict[str, Collection[str]] = {
    "domains": DOMAINS,
    "hindsight": HINDSIGHTS,
    "preset": PRESETS,
}


def _check(path: Path, key: str, value: object, kinds: tuple[type, ...]) -> None:
    if value is None and type(None) not in kinds:
        raise UsageError(f"{path} lacks the key {key!r}.")
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise UsageError(f"{path}: {key} = {value!r} has the wrong type.")


def _check_items(path: Path, key: str, items: list[object], kind: type) -> None:
    for item in items:
        _check(path, f"an item of {key}", item, (kind,))
    if not items or len(set(items)) < len(items):
        raise UsageError(f"{path}: {key} must be a list without repetition, and not empty.")


def _generate_arguments(sweep: Sweep, domain: str, split: str, folder: Path) -> list[str]:
    seed = str(sweep.instances_seed)
    return ["generate", domain, "--split", split, "--out", str(folder), "--seed", seed]


def _training(sweep: Sweep, setting: RunSetting) -> list[str]:
    """Arguments of the command that trains one run, or goes on with it."""
    train, validation, _ = (str(sweep.instances(setting.domain, split)) for split in SPLITS)
    words = ["train", f"{train}/domain.pddl", "--problems", train, "--validation", validation]
    words += ["--hindsight", setting.hindsight, "--seed", str(setting.seed)]
    words += ["--name", setting.domain, "--preset", setting.preset]
    words += ["--budget", f"{number_text(float(setting.budget_minutes))}m"]
    words += [word for item in sorted(setting.overrides.items()) for word in _option(*item)]
    return [*words, "--out", str(sweep.folder(setting)), "--resume"]


def _testing(sweep: Sweep, setting: RunSetting) -> list[str]:
    """Arguments of the command that tests it; the test of an earlier policy is begun anew."""
    folder, test = sweep.folder(setting), str(sweep.instances(setting.domain, "test"))
    words = ["evaluate", str(folder), "--problems", test, "--out", str(folder / RESULTS)]
    return words if _outdated(folder) else [*words, "--resume"]


STEPS = (_training, _testing)
"""What makes one run, each step after the one before, whose policy it may depend on."""


def _option(name: str, value: str | int | float | bool) -> list[str]:
    name = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", str(value)]


def _shell(program: Iterable[str], arguments: Iterable[str]) -> str:
    return shlex.join([*program, *arguments])


def _done(sweep: Sweep, setting: RunSetting) -> JsonObject:
    return {"finished": True, **asdict(setting), "instances_seed": sweep.instances_seed}


def _generate(
    sweep: Sweep, domain: str, processes: Processes, program: Sequence[str]
) -> Failure | None:
    for split in SPLITS:
        folder = sweep.instances(domain, split)
        if folder.is_dir():
            continue
        # Only a whole set gets the final name: half of one would be taken for all of it.
        unfinished = folder.with_name(f".{split}.{os.getpid()}.tmp")
        arguments = _generate_arguments(sweep, domain, split, unfinished)
        log = folder.with_name(f"{split}.log")
        if code := processes.run([*program, *arguments], log):
            return Failure(f"generate {domain} --split {split}", code, log)
        try:
            unfinished.replace(folder)
        except OSError:
            if not folder.is_dir():
                raise
            shutil.rmtree(unfinished)  # another sweep was quicker, with the same set
    return None


def _run(
    sweep: Sweep,
    setting: RunSetting,
    processes: Processes,
    program: Sequence[str],
    tell: Callable[[str], None],
) -> Failure | None:
    folder = sweep.folder(setting)
    log = folder.with_name(f"{folder.name}.log")
    tell(f"{setting.name} begins; its output goes to {log}")
    for step in STEPS:
        arguments = step(sweep, setting)
        if code := processes.run([*program, *arguments], log):
            return Failure(f"{setting.name} {arguments[0]}", code, log)
    write_json(folder / DONE, _done(sweep, setting))
    return None
