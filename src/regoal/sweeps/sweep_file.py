"""A grid of domain, hindsight variant and seed, read from a TOML file and checked.

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

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from regoal.config import DEVICES, HINDSIGHTS, PRESETS, TrainConfig
from regoal.domains.splits import DOMAINS
from regoal.errors import UsageError
from regoal.system.files import read_bytes
from regoal.system.threads import MOST_THREADS

MOST_MINUTES = 10**6
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
    """Raise `UsageError` if a run's folder cannot be, e.g. as a name is too long."""
    for setting in sweep.settings:
        try:
            sweep.folder(setting).is_dir()
        except OSError as error:
            raise UsageError(f"{path}: a run cannot have its folder: {error.strerror}.") from error


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
