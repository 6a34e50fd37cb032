"""Dead ends that show if what is possible once stays possible: even then the goal is not reached.

Only some dead ends show in this way, but no state is called dead wrongly (delete relaxation; Bonet
and Geffner, AIJ 2001). An atom can be true and false at once here, so that this holds for negative
literals too, and for all other conditions and effects that PDDL has.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence, Set

from regoal.errors import TooWideError
from regoal.planning.datalog.grounding import Fact, GroundRule, TooManyRulesError, ground
from regoal.planning.datalog.rules import rules_of
from regoal.planning.goals import Atom, Goal
from regoal.planning.task import State, Task


class Relaxations(dict[Task, "Relaxation"]):
    """The relaxation of each task, made when it is first asked for."""

    def __missing__(self, task: Task) -> "Relaxation":
        return self.setdefault(task, Relaxation(task))


def first_dead_end(states: Sequence[State], goal: Goal, relaxations: Relaxations) -> int | None:
    """Position of the first state of a walk from which the goal cannot be reached any more.

    None if none shows. What can be reached later can be reached from the start too, so that halving
    the walk finds it. A last state without applicable actions is dead in any case.
    """
    relaxation, last = relaxations[states[0].task], len(states) - 1
    if relaxation.reaches(states[last], goal):
        return last if _is_stuck(states[last], goal) else None
    alive, dead = -1, last
    while dead - alive > 1:
        middle = (alive + dead) // 2
        if relaxation.reaches(states[middle], goal):
            alive = middle
        else:
            dead = middle
    return dead


def _is_stuck(state: State, goal: Goal) -> bool:
    """Whether no action is applicable, short of the goal; false if they are too many to list."""
    with contextlib.suppress(TooWideError):
        return not state.satisfies(goal) and state.task.is_dead_end(state)
    return False


class Relaxation:
    """What is possible from the states of one task. Its rules are grounded once for all states."""

    def __init__(self, task: Task) -> None:
        rules = rules_of(task.domain.text.content, {atom.predicate for atom in task.goal.negative})
        self._deleted = rules.deleted
        self._static = frozenset(a for a in task.static_atoms if a.predicate not in rules.changing)
        self._kept = task.static_atoms - self._static
        """Atoms that only actions could change which no state allows."""
        initial = (*self._kept, *task.initial_state.fluent_atoms)
        self._exploration: _Exploration | None = None
        with contextlib.suppress(TooManyRulesError):
            self._exploration = _Exploration(*ground(rules, self._static, initial, task.types_of))

    def reaches(self, state: State, goal: Goal) -> bool:
        """Whether the goal is possible from a state.

        True too if the task has too many rules, or for a state that its initial state cannot reach.
        """
        exploration, atoms = self._exploration, {*state.fluent_atoms, *self._kept}
        if exploration is None or not atoms <= exploration.atoms:
            return True
        is_possible = exploration.possible_from(atoms)

        def can_fail(atom: Atom) -> bool:
            if atom not in atoms or atom.predicate not in self._deleted:
                return atom not in self._static
            return is_possible((atom, False))

        return all(map(can_fail, goal.negative)) and all(
            atom in self._static or is_possible((atom, True)) for atom in goal.atoms
        )


class _Exploration:
    """Finds what ground rules make possible, in time linear in their size.

    Each rule counts its conditions that are not possible yet (Dowling and Gallier, 1984).
    """

    def __init__(self, rules: Iterable[GroundRule], atoms: Set[Atom]) -> None:
        self.atoms = atoms
        """The atoms that a state may have; the rules leave others out."""
        self._numbers: dict[Fact, int] = {}
        self._heads: list[int] = []
        self._sizes: list[int] = []
        self._needed: list[list[int]] = []
        """By fact, the rules that need it."""
        for atom in atoms:
            self._number((atom, True))
        for i, (head, body) in enumerate(rules):
            self._heads.append(self._number(head))
            self._sizes.append(len(body))
            for fact in body:
                self._needed[self._number(fact)].append(i)
        sized = zip(self._heads, self._sizes, strict=True)
        self._certain = [head for head, size in sized if size == 0]
        self._negative = [(a, i) for (a, positive), i in self._numbers.items() if not positive]

    def _number(self, fact: Fact) -> int:
        if fact not in self._numbers:
            self._numbers[fact] = len(self._numbers)
            self._needed.append([])
        return self._numbers[fact]

    def possible_from(self, atoms: Set[Atom]) -> Callable[[Fact], bool]:
        """What is possible from the state in which these atoms are true and all others false."""
        missing = self._sizes.copy()
        possible = bytearray(len(self._numbers))
        waiting = [number for atom, number in self._negative if atom not in atoms]
        waiting += (self._numbers[atom, True] for atom in atoms)
        waiting += self._certain
        while waiting:
            fact = waiting.pop()
            if not possible[fact]:
                possible[fact] = 1
                for rule in self._needed[fact]:
                    missing[rule] -= 1
                    if not missing[rule]:
                        waiting.append(self._heads[rule])
        return lambda fact: fact in self._numbers and bool(possible[self._numbers[fact]])
