"""Options of `regoal train` and `regoal evaluate` that a sweep file sets, and their checks."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from regoal.config import DEVICES, TrainConfig
from regoal.errors import UsageError
from regoal.system.limits import check_memory_limit
from regoal.system.threads import MOST_THREADS
from regoal.system.units import mebibytes, seconds

Value = str | int | float | bool
_SET_BY_SWEEP = frozenset(("seed", "hindsight", "preset", "budget", "name", "out", "resume"))
_NOT_LEARNING: dict[str, Collection[object]] = {
    "threads": range(MOST_THREADS + 1),
    "workers": range(MOST_THREADS + 1),
    "device": DEVICES,
}
_OPTIONS = frozenset(field.name for field in fields(TrainConfig)) | _NOT_LEARNING.keys()
"""The options that a sweep may override; the sweep sets the others itself."""


def _memory_limit(text: str) -> float:
    """MiB of a memory size that regoal can run in. Raises `UsageError` for another."""
    check_memory_limit(mib := mebibytes(text))
    return mib


TEST_OPTIONS: dict[str, tuple[type, Callable[[Any], float]]] = {
    "layers": (int, int),
    "max_steps": (int, int),
    "time_limit": (str, seconds),
    "memory_limit": (str, _memory_limit),
}
"""Options of a test: their type, and a function that raises `UsageError` for a bad value."""


def flatten(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield options by name, also those that TOML has in a table (`temperature.episodes = 50`)."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{part}", inner) for part, inner in value.items())
        else:
            yield name, value


def check_override(path: Path, config: TrainConfig, name: str, value: object) -> None:
    """Raise `UsageError`, naming the sweep file `path`, for an option that `config` cannot have."""
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


def read_test(path: Path, options: bool | dict[str, Value]) -> dict[str, Value] | None:
    """The options of the tests, None for `false`. Raises `UsageError` for others."""
    if options is False:
        return None
    if options is True:
        return {}
    for name, value in options.items():
        if name not in TEST_OPTIONS:
            known = ", ".join(TEST_OPTIONS)
            raise UsageError(f"{path}: test has the option {name!r}. Choose from: {known}.")
        kind, check = TEST_OPTIONS[name]
        if type(value) is not kind:
            raise UsageError(f"{path}: test: {name} = {value!r} has the wrong type.")
        try:
            enough = check(value) > 0
        except UsageError as error:
            raise UsageError(f"{path}: test: {name}: {error}") from error
        if not enough:
            raise UsageError(f"{path}: test: {name} must be above 0.")
    return options
