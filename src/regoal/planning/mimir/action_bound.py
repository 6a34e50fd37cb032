"""Bound the number of applicable actions of a state, so that no state fills the memory.

The PDDL library lists all applicable actions of a state in one call, which nothing can interrupt.
A bound shows before the call whether their number is harmless. If it does not, a copy of the
process counts them first; the copy can be killed.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from regoal.errors import TooWideError
from regoal.planning.actions import MOST_APPLICABLE
from regoal.planning.mimir.crash_isolation import count_in_copy

TRIAL_MIB = 640
"""Additional memory for the copy that counts actions; a million actions usually take 350 MiB."""


@dataclass(frozen=True)
class SchemaBound:
    """The literals that bound the number of ground actions of one schema of the library."""

    arity: int
    positive: tuple[tuple[str, frozenset[int]], ...]
    """The library's predicate and the parameters of each positive literal of the precondition."""

    def bound(self, sizes: Mapping[str, int], objects: int) -> float:
        """Return a bound on the number of ground actions.

        `sizes` gives the number of atoms of each predicate, `objects` the number of objects. The
        parameters of a literal together take at most as many values as its predicate has atoms.
        Literals are chosen one by one until they cover all parameters. The literal with the fewest
        values per new parameter comes first.
        """
        free, product = frozenset(range(self.arity)), 1.0
        while free:
            choices = [
                (math.pow(sizes[name], 1 / len(new)), sizes[name], new)
                for name, of in self.positive
                if name in sizes and (new := of & free)
            ]
            _, size, new = min(
                choices, default=(0, objects, frozenset([min(free)])), key=itemgetter(0)
            )
            product *= min(size, float(objects) ** len(new))
            free = free - new
        return product


def read_schema_bound(action: Any) -> SchemaBound:
    """Read the positive literals of a schema of the library."""
    names = [variable.get_name() for variable in action.get_parameters()]
    position = {name: i for i, name in enumerate(names)}
    positive = []
    for literal in action.get_precondition().get_literals():
        atom = literal.get_atom()
        terms = frozenset(
            position[t.get_name()] for t in atom.get_terms() if t.get_name() in position
        )
        if literal.get_polarity() and terms:
            positive.append((atom.get_predicate().get_name(), terms))
    return SchemaBound(len(names), tuple(positive))


class ActionBound:
    """Bounds the number of applicable actions of each state of a problem."""

    def __init__(self, domain: Any, problem: Any, predicates: Mapping[str, str]) -> None:
        """Read what bounds the actions; `predicates` maps the library's names to the file's."""
        self._schemas = [read_schema_bound(action) for action in domain.get_actions()]
        self._objects = len(domain.get_constants()) + len(problem.get_objects())
        static = problem.get_initial_atoms(ignore_fluent=True, ignore_derived=True)
        self._static = Counter(atom.get_predicate().get_name() for atom in static)
        fixed = {p.get_name() for p in domain.get_predicates() if p.is_static()}
        self._static.update(dict.fromkeys(fixed, 0))
        self._changing = [(k, v) for k, v in predicates.items() if k not in fixed]
        self.never_exceeded = self._bound(self._static) <= MOST_APPLICABLE
        """Whether no state at all has too many actions."""

    def _bound(self, sizes: Mapping[str, int]) -> float:
        return sum(schema.bound(sizes, self._objects) for schema in self._schemas)

    def check(self, place: object, predicates: Iterable[str], actions: Any) -> None:
        """Raise `TooWideError` if a state has more than `MOST_APPLICABLE` actions.

        `predicates` has the predicate of each changeable atom of the state, with repetitions.
        `actions()` lists its actions. Raises `StoppedError` if `regoal.system.cancellation` ends
        the work while actions are counted.
        """
        if self.never_exceeded:
            return
        counts = Counter(predicates)
        sizes = {**self._static, **{k: counts[v] for k, v in self._changing}}
        if self._bound(sizes) <= MOST_APPLICABLE:
            return
        found = count_in_copy(lambda: len(actions()), mib=TRIAL_MIB)
        if found is None or found > MOST_APPLICABLE:
            raise TooWideError(
                f"{place}: a state has too many applicable actions to be listed (more than "
                f"{MOST_APPLICABLE}, or {TRIAL_MIB} MiB of them); use fewer objects, or actions "
                f"with fewer parameters."
            )
