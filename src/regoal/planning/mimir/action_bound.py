"""How many actions a state can have at most, so that no state fills the memory.

The PDDL library lists all applicable actions of a state in one call, which nothing can interrupt.
A bound tells before the call whether their number is harmless; where it does not, they are counted
in a copy of the process first, which can be killed.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from regoal.errors import TooWideError
from regoal.planning.mimir.crash_isolation import count_of

MOST_APPLICABLE = 1_000_000
"""Most applicable actions of a state. A million take 10 s and 0.8 GB to list."""
TRIAL_MIB = 640
"""Memory for counting them, beyond what the process has; a million usually take 350."""


@dataclass(frozen=True)
class Literals:
    """What bounds the ground actions of one schema of the library."""

    arity: int
    positive: tuple[tuple[str, frozenset[int]], ...]
    """The library's predicate and the parameters of each positive literal of the precondition."""

    def most(self, sizes: Mapping[str, int], objects: int) -> float:
        """A bound on the actions where each predicate has so many atoms.

        A literal's parameters take as many values together as it has atoms. Literals that cover all
        parameters are picked one by one, those with the fewest values a new parameter first.
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


def literals_of(action: Any) -> Literals:
    """The positive literals of a schema of the library."""
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
    return Literals(len(names), tuple(positive))


class Width:
    """A bound on the applicable actions of any state of a problem."""

    def __init__(self, domain: Any, problem: Any, predicates: Mapping[str, str]) -> None:
        """`predicates` gives the library's names of predicates those of the file."""
        self._schemas = [literals_of(action) for action in domain.get_actions()]
        self._objects = len(domain.get_constants()) + len(problem.get_objects())
        static = problem.get_initial_atoms(ignore_fluent=True, ignore_derived=True)
        self._static = Counter(atom.get_predicate().get_name() for atom in static)
        fixed = {p.get_name() for p in domain.get_predicates() if p.is_static()}
        self._static.update(dict.fromkeys(fixed, 0))
        self._changing = [(k, v) for k, v in predicates.items() if k not in fixed]
        self.narrow = self._most(self._static) <= MOST_APPLICABLE
        """Whether no state whatever has too many."""

    def _most(self, sizes: Mapping[str, int]) -> float:
        return sum(schema.most(sizes, self._objects) for schema in self._schemas)

    def check(self, place: object, predicates: Iterable[str], actions: Any) -> None:
        """Raise `TooWideError` where a state has more than `MOST_APPLICABLE` actions.

        `predicates` are those of its changeable atoms, one each; `actions()` lists its actions.
        Raises `StoppedError` too, as `regoal.system.cancellation` has it, while they are counted.
        """
        if self.narrow:
            return
        counts = Counter(predicates)
        sizes = {**self._static, **{k: counts[v] for k, v in self._changing}}
        if self._most(sizes) <= MOST_APPLICABLE:
            return
        found = count_of(lambda: len(actions()), mib=TRIAL_MIB)
        if found is None or found > MOST_APPLICABLE:
            raise TooWideError(
                f"{place}: a state has too many applicable actions to be listed (more than "
                f"{MOST_APPLICABLE}, or {TRIAL_MIB} MiB of them); use fewer objects, or actions "
                f"with fewer parameters."
            )
