"""How many CPU threads to use unless the user says."""

import os

MOST = 8
"""More shards of a batch than this are too small to gain from."""


def free_threads() -> int:
    """`OMP_NUM_THREADS` where it is set, else the cores this process may run on, at most 8."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(cores, MOST)
