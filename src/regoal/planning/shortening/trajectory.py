"""A plan with the atoms that each step flips; tells quickly what follows if a step is removed.

The states are not stored. If a step is removed, the new states differ from the old ones in a few
atoms. Only steps that touch one of these atoms can behave in another way, so only they are looked
at. As soon as nothing differs any more, the rest of the plan is as before.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from regoal.planning.shortening.grounding import GroundStep, UnclearError, holds


@dataclass
class Removal:
    """A set of steps that can be removed together, so that the rest is a plan."""

    cost: float = 0.0
    """The cost of these steps."""
    steps: list[int] = field(default_factory=list)
    """Their positions."""
    flips: dict[int, frozenset[int]] = field(default_factory=dict)
    """By position, the atoms that steps flip then, if not the same as before."""

    @property
    def rank(self) -> tuple[float, int, int]:
        """A key that sorts better removals first: by cost, by number of steps, by position."""
        return -self.cost, -len(self.steps), self.steps[0]


class Trajectory:
    """A plan from which steps can be removed one after another.

    Raises `UnclearError` if a step is not applicable as far as its conditions were grounded.
    """

    def __init__(
        self,
        steps: Sequence[GroundStep],
        initial: Iterable[int],
        goal: frozenset[int],
        watched_goal: frozenset[str],
        predicates: Sequence[str],
    ) -> None:
        self._steps = steps
        self.costs = [step.cost for step in steps]
        self._initial = frozenset(initial)
        self._goal = goal
        self._watched = watched_goal
        self._predicates = predicates
        self._is_watching = any(step.watched for step in steps)
        self._kept = bytearray(b"\1") * len(steps)
        self._touched: defaultdict[int | str, list[int]] = defaultdict(list)
        """By atom, or predicate that is watched, the positions of the steps that touch it."""
        self._writers: defaultdict[int, list[int]] = defaultdict(list)
        """By atom of the goal, the positions of the steps that may set it."""
        self._flipped_at: defaultdict[int, list[int]] = defaultdict(list)
        """By atom, the positions of the steps that flip it."""
        self._flips: list[frozenset[int]] = []
        """By position, the atoms that the step flips."""
        self._execute()

    def _execute(self) -> None:
        state = set(self._initial)
        for position, step in enumerate(self._steps):
            if not all((test.atom in state) is test.positive for test in step.literals):
                raise UnclearError("a step is not applicable")
            settings = step.compute_settings(state.__contains__)
            flips = frozenset(a for a, value in settings.items() if (a in state) is not value)
            state ^= flips
            self._flips.append(flips)
            for atom in flips:
                self._flipped_at[atom].append(position)
            for key in _list_keys(step):
                self._touched[key].append(position)
            for atom in step.writes & self._goal:
                self._writers[atom].append(position)

    @property
    def kept(self) -> list[int]:
        """The positions of the steps that have not been removed."""
        return [position for position, kept in enumerate(self._kept) if kept]

    def list_states(self) -> list[int]:
        """Return the state before each kept step and at the end, as a number each.

        Bit i is set if atom i is not as it is in the initial state.
        """
        states = [0]
        for position in self.kept:
            states.append(states[-1] ^ sum(1 << atom for atom in self._flips[position]))
        return states

    def find_removal(self, first: int) -> Removal | None:
        """Return the removal of a step, and of all later ones that it makes inapplicable.

        A later step counts as inapplicable if one of its watched predicates differs. Returns None
        if the goal is then missed, or may be missed, and if the step has been removed already.
        """
        removal, differing = Removal(), frozenset[int]()
        waiting, latest = [first] if self._kept[first] else [], -1
        while waiting:
            position = heappop(waiting)
            if position == latest:
                continue
            latest = position
            differing = self._pass(removal, position, differing)
            if not differing:
                return removal
            lost = differing & self._steps[position].writes & self._goal
            if any(self._writers[atom][-1] <= position for atom in lost):
                return None
            self._add_next(waiting, position, differing)
        missed = not differing.isdisjoint(self._goal) or self._differs(differing, self._watched)
        return removal if removal.steps and not missed else None

    def _pass(self, removal: Removal, position: int, differing: frozenset[int]) -> frozenset[int]:
        """Remove a step if it is the first or inapplicable; return the atoms that differ then."""
        step = self._steps[position]
        if removal.steps and self._is_applicable(step, position, differing):
            after = self._apply(step, position, differing)
        else:
            removal.steps.append(position)
            removal.cost += step.cost
            after = differing ^ self._flips[position]
        if changed := differing ^ after:
            removal.flips[position] = self._flips[position] ^ changed
        return after

    def remove(self, removal: Removal) -> None:
        """Remove steps; every other `Removal` must be found again after this."""
        for position in removal.steps:
            step = self._steps[position]
            self._kept[position] = 0
            for key in _list_keys(step):
                _discard(self._touched[key], position)
            for atom in step.writes & self._goal:
                _discard(self._writers[atom], position)
        for position, flips in removal.flips.items():
            for atom in self._flips[position] - flips:
                _discard(self._flipped_at[atom], position)
            for atom in flips - self._flips[position]:
                insort(self._flipped_at[atom], position)
            self._flips[position] = flips

    def _add_next(self, waiting: list[int], position: int, differing: frozenset[int]) -> None:
        """Add the next position at which each atom matters that the step touches and that differs.

        Atoms that the step does not touch were added when they began to differ.
        """
        step = self._steps[position]
        keys: list[int | str] = [*(differing & step.touches), *step.watched]
        if self._is_watching:
            keys += (self._predicates[atom] for atom in differing & step.writes)
        for key in keys:
            positions = self._touched.get(key, ())
            at = bisect_right(positions, position)
            if at < len(positions):
                heappush(waiting, positions[at])

    def _is_applicable(self, step: GroundStep, position: int, differing: frozenset[int]) -> bool:
        if not step.reads.isdisjoint(differing) or self._differs(differing, step.watched):
            return False
        is_true = self._look_up(position, differing)
        return all(holds(condition, is_true) for condition in step.others)

    def _apply(self, step: GroundStep, position: int, differing: frozenset[int]) -> frozenset[int]:
        """Return the atoms that differ after a step that is executed in both plans."""
        if not step.conditional:
            return differing - step.writes
        was_true, is_true = self._look_up(position), self._look_up(position, differing)
        settings = step.compute_settings(is_true)
        before = {atom: was_true(atom) ^ (atom in self._flips[position]) for atom in step.writes}
        now = {atom: settings.get(atom, is_true(atom)) for atom in step.writes}
        changed = (atom for atom in step.writes if now[atom] is not before[atom])
        return (differing - step.writes).union(changed)

    def _look_up(
        self, position: int, differing: frozenset[int] = frozenset()
    ) -> Callable[[int], bool]:
        """Return a function that says which atoms are true before a step."""

        def is_true(atom: int) -> bool:
            flips = bisect_left(self._flipped_at.get(atom, ()), position)
            return (atom in self._initial) ^ bool(flips & 1) ^ (atom in differing)

        return is_true

    def _differs(self, differing: frozenset[int], predicates: frozenset[str]) -> bool:
        return bool(predicates) and any(self._predicates[a] in predicates for a in differing)


def _list_keys(step: GroundStep) -> list[int | str]:
    """Return the atoms and predicates on which a step depends or that it changes."""
    return [*step.touches, *step.watched]


def _discard(positions: list[int], position: int) -> None:
    """Remove a position from a sorted list that has it."""
    del positions[bisect_left(positions, position)]
