"""PDDL files that a sweep file names, for domains that regoal does not generate.

[pddl."%-2023"]    # of the domains ferry-2023, miconic-2023, ...; % is ferry, miconic, ...
domain = "$IPC2023/%/domain.pddl"
training = "$IPC2023/%/training[:70]"           # the first 70 problems of this folder
validation = "$IPC2023/%/training[71::2]"       # every second one of the others; optional
test.easy = "$IPC2023/%/testing/easy"           # optional, with parts or without
test.hard = ["$IPC2023/%/testing/hard", "more/%/p*.pddl"]
"""

import glob
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from regoal.errors import UsageError
from regoal.planning.problem_files import is_problem_file, problem_files
from regoal.system.files import natural_key

KEYS = {"domain": True, "training": True, "validation": False, "test": False}
"""Keys of a table, and whether each is needed."""
SPLITS = {"train": "training", "validation": "validation", "test": "test"}
"""The key with the problems of each split."""
STEM = "%"
_SLICE = re.compile(r"(.+)\[(-?\d*):(-?\d*)(?::([1-9]\d*)?)?\]")

Places = tuple[tuple[str, str], ...]
"""Places of problems: pairs of the part that they make up, which may be empty, and a path."""


@dataclass(frozen=True)
class GivenDomain:
    """The places of the files of one domain, as the sweep file spells them."""

    domain: str
    splits: Mapping[str, Places]
    """The places by split: train and, if they are given, validation and test."""

    @property
    def digest(self) -> str:
        """Return the first digits of the SHA-256 of all places."""
        return hashlib.sha256(repr((self.domain, self.splits)).encode()).hexdigest()[:8]


def find_given(table: Mapping[str, object], name: str) -> GivenDomain | None:
    """Find the files of a domain in the table `pddl`; None if it says nothing of this domain.

    The domain's own entry comes before patterns with `%`, the first of which counts. Raises
    `UsageError` if an entry is not as the module's docstring shows.
    """
    for pattern in sorted(table, key=lambda pattern: pattern != name):
        before, _, after = pattern.partition(STEM)
        found = re.fullmatch(f"{re.escape(before)}(.+){re.escape(after)}", name)
        if pattern == name:
            return _read_entry(pattern, table[pattern], name)
        if STEM in pattern and found:
            return _read_entry(pattern, table[pattern], found[1])
    return None


def _read_entry(pattern: str, entry: object, stem: str) -> GivenDomain:
    if not isinstance(entry, dict):
        raise UsageError(f"pddl.{pattern} must be a table with the keys {', '.join(KEYS)}.")
    if unknown := sorted(set(entry) - KEYS.keys()):
        raise UsageError(f"pddl.{pattern} has unknown keys: {', '.join(unknown)}.")
    if lacking := [key for key, needed in KEYS.items() if needed and key not in entry]:
        raise UsageError(f"pddl.{pattern} lacks the key {lacking[0]!r}.")
    domain = entry["domain"]
    if not isinstance(domain, str):
        raise UsageError(f"pddl.{pattern}: domain must be the path of a file.")
    splits = {
        split: tuple(_places(f"pddl.{pattern}: {key}", entry[key], stem))
        for split, key in SPLITS.items()
        if key in entry
    }
    return GivenDomain(domain.replace(STEM, stem), splits)


def _places(where: str, value: object, stem: str, part: str = "") -> Iterator[tuple[str, str]]:
    """Yield the places in a text, a list of texts, or a table of either by part."""
    if isinstance(value, dict) and not part:
        for name, inner in value.items():
            if not re.fullmatch("[a-z0-9]+", name) or "domain" in name:
                raise UsageError(f"{where}.{name}: a part needs a name of lower-case letters.")
            yield from _places(where, inner, stem, name)
        return
    texts: list[object] = value if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str):
            raise UsageError(f"{where} must be a folder or a pattern of files, or a list of these.")
        yield part, text.replace(STEM, stem)


def copy_problems(given: GivenDomain, split: str, folder: Path) -> None:
    """Copy the domain file and the problems of a split into a new folder.

    A problem of a part is named `PART-NAME.pddl`. Raises `UsageError` if files are missing or two
    problems have one name.
    """
    domain = Path(_expand(given.domain))
    if not domain.is_file():
        raise UsageError(f"{domain} is not a file; the sweep file names it as a domain file.")
    files: dict[str, Path] = {}
    for part, place in given.splits[split]:
        for path in find_problems(place):
            name = f"{part}-{path.name}" if part else path.name
            if name in files:
                raise UsageError(f"{files[name]} and {path} have one name. Rename one of them.")
            files[name] = path
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(domain, folder / "domain.pddl")
    for name, path in files.items():
        shutil.copyfile(path, folder / name)


def find_problems(place: str) -> list[Path]:
    """Find the problems of a place in natural order.

    A place is a folder, a file, or a pattern with `*`, `?` and `[...]`. Environment variables and
    `~` are replaced. A slice of Python at its end, such as `[:70]`, takes a part of the problems.
    Raises `UsageError` if there is no problem.
    """
    path, numbers = place, slice(None)
    if found := _SLICE.fullmatch(place):
        path = found[1]
        numbers = slice(*(int(number) if number else None for number in found.groups()[1:]))
    text = _expand(path)
    files = problem_files(Path(text)) if os.path.exists(text) else _list_matches(text)
    if not files[numbers]:
        why = (
            f"its {len(files)} problems have none with these numbers"
            if files
            else "there is no such folder or file, and as a pattern it matches none"
        )
        raise UsageError(f"{place} names no problems: {why}.")
    return files[numbers]


def _list_matches(pattern: str) -> list[Path]:
    found = [path for path in map(Path, glob.glob(pattern)) if is_problem_file(path)]
    return sorted(found, key=lambda path: natural_key(str(path)))


def _expand(text: str) -> str:
    """Replace environment variables and `~`. Raises `UsageError` if a variable is not set."""
    path = os.path.expanduser(os.path.expandvars(text))
    if unset := re.search(r"\$\{?(\w+)", path):
        raise UsageError(
            f"{text} needs the environment variable {unset[1]}, which is not set. Set it to the "
            f"folder of the files."
        )
    return path
