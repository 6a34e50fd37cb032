"""The software that a run works with: versions that may change its numbers."""

import importlib.metadata
import platform
import subprocess
from pathlib import Path

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
    return commit_of(Path(__file__).parent.parent)


def commit_of(source: Path) -> str | None:
    """The commit of the folder `src/regoal` of a checkout, with `-dirty` if files in it differ.

    Files elsewhere do not count: records that a run adds to `results/` change nothing in the next
    run. None if `source` is no such folder, or git is not there.
    """

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(source), *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=10)
        return done.stdout.strip()

    try:
        if git("rev-parse", "--show-prefix") != "src/regoal/":
            return None
        changed = git("status", "--porcelain", "--untracked-files=no", ".")
        return git("rev-parse", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None
