"""Opening a run's folder: one process at a time, and only to go on with the run that is there."""

import contextlib
import errno
import fcntl
from collections.abc import Iterator, Mapping
from pathlib import Path

from regoal.errors import UsageError
from regoal.records.json_lines import read_json, write_json
from regoal.records.run_record import (
    CONFIG,
    EPISODES,
    KEPT,
    VALIDATION,
    keep_episodes_before,
    kept_name,
)
from regoal.runs.software import software_changes

LOCK = ".lock"
EARLIER = "earlier_environments"
"""In `config.json`: the software under which a run was at work before it went on with another."""
MAY_CHANGE = frozenset(
    {"budget_s", "patience", "episodes", "environment", "paths", "fingerprint", EARLIER}
)
"""Settings that may differ when a run goes on; any other makes it another run."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create `folder` if need be and keep other processes from training in it.

    The lock ends with the process, however that ends. Raises `UsageError` if it is taken.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; give a folder for the run.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = (folder / LOCK).open("ab")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}.") from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{folder} is in use: another process trains in it.") from None
        except OSError:
            pass  # some network file systems have no locks
        yield


def check_folder(folder: Path, *, resume: bool) -> None:
    """Raise `UsageError` if `folder` holds something else than a run, or one not to resume."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    visible = [name for name in names if not name.startswith(".")]
    if CONFIG in visible:
        if not resume:
            raise UsageError(
                f"{folder} holds a run: go on with it by --resume, or give another folder."
            )
    elif visible:
        raise UsageError(
            f"{folder} is no run and not empty ({visible[0]} is in it): give another folder."
        )


def write_config(folder: Path, config: Mapping[str, object]) -> tuple[str, ...]:
    """Write `config.json`, or compare it with the one of the run that goes on; notes for the user.

    Raises `UsageError`, naming the first difference, if that run is another one.
    """
    notes: tuple[str, ...] = ()
    if (folder / CONFIG).is_file():
        before = {"workers": 1} | read_json(folder / CONFIG)  # older runs do not say
        for key in [*config, *(key for key in before if key not in config)]:
            if key not in MAY_CHANGE and before.get(key) != config.get(key):
                difference = f"{key} = {before.get(key)!r}, now it is {config.get(key)!r}"
                raise UsageError(
                    f"{folder} cannot go on: it was started with {difference}. "
                    f"Use the same settings, or another folder."
                )
        notes = software_changes(before.get("environment"), config.get("environment"))
        earlier = before.get(EARLIER)
        seen = [*(earlier if isinstance(earlier, list) else ())]
        seen += [before.get("environment")] if notes else []
        config = {**config, **({EARLIER: seen} if seen else {})}
    write_json(folder / CONFIG, config)
    return notes


def tidy(folder: Path, episode: int, validated: int) -> None:
    """Drop what a kill left: unfinished files, and records of what a resumed run will repeat."""
    for path in folder.glob(".*.tmp"):
        path.unlink()
    keep_episodes_before(folder / EPISODES, episode + 1)
    keep_episodes_before(folder / VALIDATION, validated + 1)
    for path in (folder / KEPT).glob("*"):
        if path.name > kept_name(validated):
            path.unlink()


REMEDIES = {
    errno.ENOSPC: "Make room",
    errno.EDQUOT: "Make room",
    errno.EFBIG: "Allow larger files (ulimit -f)",
}


@contextlib.contextmanager
def explained_disk_errors(folder: Path) -> Iterator[None]:
    """Turn an `OSError` into a `UsageError` that says how to go on."""
    try:
        yield
    except OSError as error:
        remedy = REMEDIES.get(error.errno or 0, "Make the folder writable")
        raise UsageError(
            f"{error.filename or folder} cannot be written: {error.strerror}. "
            f"{remedy}, then go on with --resume."
        ) from error
