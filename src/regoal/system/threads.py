"""How many CPU threads to use unless the user says, and which processes work together."""

import os
from typing import NamedTuple

from regoal.errors import UsageError

MOST = 8
"""More shards of a batch than this are too small to gain from."""
MOST_THREADS = 256
"""Threads or workers that can be asked for."""


class ProcessGroup(NamedTuple):
    """A group of processes that torchrun has started, as the environment describes it."""

    rank: int
    """This process, counted from 0."""
    size: int
    here: int
    """How many of them are on this machine."""


def process_group() -> ProcessGroup:
    """The group of this process, which is alone if the environment describes none.

    Raises `UsageError` if the description makes no sense.
    """
    values = {name: os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE")}
    if not all(values.values()):
        return ProcessGroup(0, 1, 1)
    try:
        rank, size = (int(text) for text in values.values())
        here = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    except ValueError:
        rank, size, here = 0, 0, 0
    if not (0 <= rank < size and 0 < here <= size):
        raise UsageError(
            f"RANK={values['RANK']} and WORLD_SIZE={values['WORLD_SIZE']} make no sense."
        )
    return ProcessGroup(rank, size, here)


def free_threads(processes: int = 1) -> int:
    """`OMP_NUM_THREADS` if it is set, else the cores this process may run on, at most 8.

    Several processes of one kind that run at once share the cores.
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(max(cores // processes, 1), MOST)
