"""A grid of domain, hindsight variant and seed, read from a TOML file and checked.

out = "runs/small"
domains = ["blocks", "gripper"]
hindsight = ["lifted", "propositional", "state"]
seeds = [0, 1, 2]
preset = "laptop"
budget_minutes = 20
instances_seed = 0    # optional
[for.gripper]         # optional: other `hindsight` or `budget_minutes` for one domain
budget_minutes = 5
[overrides]           # optional: further options of `regoal train`
layers = 20
temperature.episodes = 50
[variants.plain]      # optional: every run once with these further options, by a name
ladder = false
[test]                # optional: options of `regoal evaluate`; `test = false` only trains
time_limit = "30m"
[pddl.mydomain]       # optional: PDDL files of domains that regoal does not generate (`given.py`)
"""

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regoal.config import HINDSIGHTS, PRESETS, TrainConfig
from regoal.domains.splits import DOMAINS
from regoal.errors import UsageError
from regoal.sweeps.given import GivenDomain, find_given
from regoal.sweeps.options import Value, check_override, flatten, read_test
from regoal.system.files import read_bytes

MOST_MINUTES = 10**6
_KEYS: dict[str, tuple[type, ...]] = {
    "out": (str,),
    "domains": (list,),
    "hindsight": (list,),
    "seeds": (list,),
    "preset": (str,),
    "budget_minutes": (int, float),
    "instances_seed": (int, type(None)),
    "for": (dict, type(None)),
    "overrides": (dict, type(None)),
    "variants": (dict, type(None)),
    "test": (dict, bool, type(None)),
    "pddl": (dict, type(None)),
}
"""Keys of a sweep file and their types; those that may be none are optional."""


_FOR_ONE_DOMAIN = ("hindsight", "budget_minutes")
"""Keys that a sweep file may give for one domain alone."""
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
INSTANCES = "instances"
SPLITS = ("train", "validation", "test")
_CHOICES: dict[str, Collection[str]] = {
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
    overrides: dict[str, Value]
    """Further options of `regoal train`, by their name without the dashes."""
    variant: str = ""
    """The name of those overrides that not all runs of the sweep have; may be empty."""

    @property
    def name(self) -> str:
        """The path of the run below the sweep's folder."""
        variant = f"{self.variant}/" if self.variant else ""
        return f"{variant}{self.domain}/{self.hindsight}/{self.seed}"


@dataclass(frozen=True)
class Sweep:
    """A whole grid, in the order in which its runs start.

    That is seed by seed, so that a sweep that is stopped early has seen every domain and variant.
    """

    out: Path
    settings: tuple[RunSetting, ...]
    instances_seed: int = 0
    test: Mapping[str, Value] | None = field(default_factory=dict)
    """Options of `regoal evaluate`; None if the sweep only trains."""
    given: Mapping[str, GivenDomain] = field(default_factory=dict)
    """The domains whose PDDL files the sweep file names."""

    def folder(self, setting: RunSetting) -> Path:
        """The run folder of one setting."""
        return self.out / setting.name

    def instances(self, domain: str, split: str) -> Path:
        """The folder of one domain's problems, shared by all runs with the same problems."""
        given = self.given.get(domain)
        kind = f"pddl-{given.digest}" if given else f"seed-{self.instances_seed}"
        return self.out / INSTANCES / kind / domain / split

    def splits(self, domain: str) -> list[str]:
        """The splits of a domain's problems that the sweep needs."""
        has = self.given[domain].splits if domain in self.given else SPLITS
        return [s for s in SPLITS if s in has and (s != "test" or self.test is not None)]


def read_sweep(path: Path) -> Sweep:
    """Read a sweep file. Raises `UsageError` with the key that is missing, unknown or wrong."""
    values = _toml(path)
    for key, kinds in _KEYS.items():
        _check(path, key, values.get(key), kinds)
    if unknown := sorted(set(values) - set(_KEYS)):
        raise UsageError(f"{path} has unknown keys: {', '.join(unknown)}.")
    values["domains"] = [str(name).lower() for name in values["domains"]]
    for key, kind in (("domains", str), ("hindsight", str), ("seeds", int)):
        _check_items(path, key, values[key], kind)
    given = _read_given(path, values["domains"], values.get("pddl", {}))
    _check_values(path, values)
    of_domain = _read_for(path, values)
    variants = _read_variants(path, values)
    settings = tuple(
        RunSetting(
            domain,
            hindsight,
            seed,
            values["preset"],
            of_domain[domain]["budget_minutes"],
            overrides,
            variant,
        )
        for seed in values["seeds"]
        for variant, overrides in variants.items()
        for domain in values["domains"]
        for hindsight in of_domain[domain]["hindsight"]
    )
    test = read_test(path, values.get("test", {}))
    sweep = Sweep(Path(values["out"]), settings, values.get("instances_seed", 0), test, given)
    _check_folders(path, sweep)
    return sweep


def _read_given(
    path: Path, domains: Collection[str], table: Mapping[str, object]
) -> dict[str, GivenDomain]:
    """The domains with PDDL files of their own. Raises `UsageError` for one that nobody knows."""
    given: dict[str, GivenDomain] = {}
    for name in domains:
        try:
            found = find_given(table, name)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from error
        if found is not None:
            _check_name(path, name)
            given[name] = found
        elif name not in DOMAINS:
            known = ", ".join(DOMAINS)
            raise UsageError(
                f"{path}: domains has {name!r}. Choose from: {known}; or name its files in [pddl]."
            )
    return given


def _read_for(path: Path, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the values for each domain: those of all, and in their place those of `[for.DOMAIN]`.

    Raises `UsageError` for a domain that the sweep does not have, and for a key or value that will
    not do.
    """
    of_domain = {name: dict(values) for name in values["domains"]}
    for given_name, table in values.get("for", {}).items():
        name = given_name.lower()
        if name not in of_domain:
            raise UsageError(f"{path}: for.{given_name} is for none of the domains.")
        _check(path, f"for.{given_name}", table, (dict,))
        if unknown := sorted(set(table) - set(_FOR_ONE_DOMAIN)):
            raise UsageError(f"{path}: for.{given_name} has unknown keys: {', '.join(unknown)}.")
        for key, value in table.items():
            _check(path, f"for.{given_name}.{key}", value, _KEYS[key])
        of_domain[name] |= table
        _check_items(path, f"for.{given_name}.hindsight", of_domain[name]["hindsight"], str)
        _check_values(path, of_domain[name])
    return of_domain


def _read_variants(path: Path, values: Mapping[str, Any]) -> dict[str, dict[str, Value]]:
    """The overrides of each variant, with those of all runs; one without a name if none is given.

    Raises `UsageError` for an override that will not do.
    """
    common = dict(flatten(values.get("overrides", {})))
    variants: dict[str, dict[str, Value]] = {}
    for name, table in (values.get("variants") or {"": {}}).items():
        if name:
            _check_name(path, name)
        if not isinstance(table, dict):
            raise UsageError(f"{path}: variants.{name} must be a table of options.")
        variants[name] = common | dict(flatten(table))
        for option, value in variants[name].items():
            check_override(path, PRESETS[values["preset"]], option, value)
    return variants


def _check_name(path: Path, name: str) -> None:
    """Raise `UsageError` for a name that cannot be a folder, or that has another meaning."""
    if not _NAME.fullmatch(name) or name == INSTANCES:
        raise UsageError(
            f"{path}: {name!r} cannot be a name here. Take lower-case letters, digits and single "
            f"dashes between them, and not {INSTANCES!r}."
        )


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
    minutes = values["budget_minutes"]
    if not 0 < minutes <= MOST_MINUTES:
        raise UsageError(f"{path}: budget_minutes lies above 0, at most at {MOST_MINUTES}.")


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
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise UsageError(f"{path}: {key} = {value!r} has the wrong type.")


def _check_items(path: Path, key: str, items: list[object], kind: type) -> None:
    for item in items:
        _check(path, f"an item of {key}", item, (kind,))
    if not items or len(set(items)) < len(items):
        raise UsageError(f"{path}: {key} must be a list without repetition, and not empty.")
