"""Claims: work in a shared folder that only one of many machines does, without file locks.

Locks are missing on some shared file systems and local to a machine on others. All of them create a
file exclusively, so that is all that is used. A claim is a file `NAME.claim.N`; the one with the
largest N counts. Its holder renews its time of change, and gives it up by setting that to zero. A
claim that was not renewed for long may be taken over: whoever creates N + 1 has it. Nothing is ever
deleted or renamed, hence two cannot take over at once.
"""

import contextlib
import json
import os
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

RENEW_S = 15.0
"""Seconds between two renewals."""
STALE_S = 180.0
"""Seconds without a renewal after which a claim may be taken over. File systems may show a time
of change a minute late."""


JOB = ("SLURM_CLUSTER_NAME", "SLURM_JOB_ID")
"""Variables that name a cluster job, also after it was requeued."""


@dataclass(frozen=True)
class Claim:
    """A piece of work that this process has taken."""

    path: Path

    def renew(self) -> bool:
        """Say that the holder is still at work; False if another has taken over."""
        own = int(self.path.suffix[1:])
        if any(number > own for number in _numbers(self.path.with_suffix(""))):
            return False
        with contextlib.suppress(OSError):  # a file system that is away for a moment
            os.utime(self.path)
        return True

    def release(self) -> None:
        """Give it up, so that the next one need not wait."""
        os.utime(self.path, (0, 0))


def take(work: Path) -> Claim | None:
    """Take a piece of work, or return None if it is taken.

    `work` is a path, next to which the claim is written. What a process of this machine has held is
    free once that has ended, and what this cluster job has held is free once it was requeued.
    Raises `OSError` if the folder cannot be written.
    """
    work.parent.mkdir(parents=True, exist_ok=True)
    base = work.with_name(f".{work.name}.claim")
    number = (_numbers(base) or [0])[-1]
    if number and not _is_free(base.with_name(f"{base.name}.{number}")):
        return None
    path = base.with_name(f"{base.name}.{number + 1}")
    try:
        with path.open("x", encoding="utf-8") as stream:
            json.dump(_holder(), stream)
    except FileExistsError:
        return None
    return Claim(path)


def holder_of(work: Path) -> str:
    """The name of the machine that took a piece of work last, empty if nobody has."""
    base = work.with_name(f".{work.name}.claim")
    numbers = _numbers(base)
    return _read(base.with_name(f"{base.name}.{numbers[-1]}"))["host"] if numbers else ""


def _is_free(path: Path) -> bool:
    holder, own = _read(path), _holder()
    if holder["job"] and holder["job"] == own["job"] and holder["life"] != own["life"]:
        return True
    if (
        holder["machine"]
        and holder["machine"] == own["machine"]
        and not Path("/proc", holder["process"]).exists()
    ):
        return True
    renewed = path.stat().st_mtime
    return renewed == 0 or _now(path) - renewed > STALE_S


def _now(path: Path) -> float:
    """The time by the clock of the file system, which may be another machine's."""
    with tempfile.TemporaryFile(dir=path.parent) as probe:
        return os.fstat(probe.fileno()).st_mtime


def _read(path: Path) -> dict[str, str]:
    """The holder in a claim; one that is just being written has no names yet."""
    names: dict[str, str] = dict.fromkeys(("host", "machine", "process", "job", "life"), "")
    with contextlib.suppress(ValueError):
        names |= json.loads(path.read_text(encoding="utf-8"))
    return names


def _holder() -> dict[str, str]:
    """Who this process is: its machine, its number there, and the cluster job it is part of."""
    machine = ""
    with contextlib.suppress(OSError):
        # Processes get new numbers after each start of a machine, and in each container.
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        machine = f"{boot} {os.readlink('/proc/self/ns/pid')}"
    names = os.environ
    return {
        "host": socket.gethostname(),
        "machine": machine,
        "process": str(os.getpid()),
        "job": " ".join(names[name] for name in JOB if name in names),
        "life": names.get("SLURM_RESTART_COUNT", "0"),
    }


def _numbers(base: Path) -> list[int]:
    """The numbers of the claims of a piece of work, in ascending order."""
    ends = (path.suffix[1:] for path in base.parent.glob(f"{base.name}.*"))
    return sorted(int(end) for end in ends if end.isdecimal())
