"""What begins a relaxed plan, in C (relaxed_plans.h), called through ctypes."""

import ctypes
from typing import Self

import numpy as np

from regoal.networks.kernels.cpu.build import load_kernel
from regoal.networks.kernels.cpu.kernel import is_wanted, point_to
from regoal.networks.plan_tables import MOST_NAMES, Ints, PlanTables


class _Plans(ctypes.Structure):
    """The tables, and memory to work in, as relaxed_plans.h describes them."""

    _fields_ = tuple(
        (name, kind)
        for kind, names in (
            (ctypes.c_int64, ("facts", "actions", "names", "most_needs", "most_makes")),
            (ctypes.c_void_p, ("needs", "makes", "needers", "needers_begin", "makers")),
            (ctypes.c_void_p, ("makers_begin", "sizes", "name_of", "free")),
            (ctypes.c_int64, ("free_count",)),
            (ctypes.c_void_p, ("fact_round", "queue", "action_round", "lacking", "chosen")),
            (ctypes.c_void_p, ("fact_leads", "action_leads", "wanted", "taken")),
        )
        for name in names
    )


class PlanKernel:
    """Finds in C what `find_in_numpy` finds. It has memory to work in, so one thread may use it."""

    def __init__(self, library: ctypes.CDLL, tables: PlanTables) -> None:
        self._library = library
        facts, actions = len(tables.needers.offsets) - 1, len(tables.needs)
        free = np.flatnonzero(tables.sizes == 0).astype(np.int32)
        lists = (*tables.needers, *tables.makers)
        given = (tables.needs, tables.makes, *lists, tables.sizes, tables.name_of, free)
        self._given = [np.ascontiguousarray(table) for table in given]
        self._work = [np.empty(n, np.int32) for n in (facts + 1, facts + 1, *[actions] * 3)]
        self._work += [np.empty(n, np.int64) for n in (facts + 1, actions)]
        self._work += [np.empty(n, np.uint8) for n in (facts + 1, actions)]
        self._found = np.empty(actions, np.int32), np.empty(actions, np.int64)
        self._plans = _Plans(
            *(facts, actions, MOST_NAMES, tables.needs.shape[1], tables.makes.shape[1]),
            *(point_to(table) for table in self._given),
            len(free),
            *(point_to(room) for room in self._work),
        )

    @classmethod
    def load(cls, tables: PlanTables) -> Self | None:
        """Return the kernel, or None if there is none."""
        library = load_kernel(False) if is_wanted() else None
        return None if library is None else cls(library, tables)

    def find(self, holding: Ints, wanted: Ints) -> tuple[list[int], list[int]]:
        """Return what `find_in_numpy` does, in another order."""
        count = self._library.regoal_relaxed_plan(
            ctypes.byref(self._plans),
            *(point_to(holding), ctypes.c_int64(len(holding))),
            *(point_to(wanted), ctypes.c_int64(len(wanted))),
            *(point_to(found) for found in self._found),
        )
        actions, bits = (found[:count].tolist() for found in self._found)
        return actions, bits
