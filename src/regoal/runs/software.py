"""The software that a run works with: versions that may change its numbers."""

import importlib.metadata
import platform
import subprocess
from pathlib import Path

import regoal
from regoal.records.json_lines import JsonObject

PACKAGES = ("regoal", "torch", "pymimir", "numpy")


def environment() -> JsonObject:
    """Versions that may change the numbers of a run."""
    versions: JsonObject = {name: package_version(name) for name in PACKAGES}
    versions |= {"python": platform.python_version(), "machine": platform.machine()}
    return versions | {"commit": _commit()}


def software_changes(before: object, now: object) -> tuple[str, ...]:
    """A note for the user if a run goes on with other versions than it had before."""
    old = before if isinstance(before, dict) else {}
    new = now if isinstance(now, dict) else {}
    changed = [f"{k} {old.get(k)} -> {v}" for k, v in new.items() if old.get(k) != v]
    if not changed:
        return ()
    listed = ", ".join(changed)
    return (f"the run goes on with other software ({listed}): numbers may differ a little",)


def package_version(package: str = "regoal") -> str | None:
    """The installed version of a package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit that this package runs from, None if it is no checkout."""
    source = Path(regoal.__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(source), *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=10)
        return done.stdout.strip()

    try:
        if git("rev-parse", "--show-prefix") != "src/regoal/":
            return None
        return git("describe", "--match=", "--always", "--dirty", "--abbrev=40")
    except (OSError, subprocess.SubprocessError):
        return None
