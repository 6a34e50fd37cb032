"""Find dead ends by delete relaxation (Bonet and Geffner, AIJ 2001).

In the relaxation a possible fact stays possible. If the goal is impossible even then, the state is
a dead end. This finds only some dead ends, but never calls another state dead. An atom can be
possibly true and possibly false at once, which covers negative literals and all of PDDL's
conditions and effects.
"""

import contextlib
from collections.abc import Callable, Iterable, Set

from regoal.planning.datalog.grounding import Fact, GroundRule, TooManyRulesError, ground
from regoal.planning.datalog.rules import write_rules
from regoal.planning.goals import Atom, Goal
from regoal.planning.task import State, Task


class Relaxation:
    """The delete relaxation of one task, with rules grounded once for all states."""

    def __init__(self, task: Task) -> None:
        rules = write_rules(
            task.domain.text.content, {atom.predicate for atom in task.goal.negative}
        )
        self._deleted = rules.deleted
        self._static = frozenset(a for a in task.static_atoms if a.predicate not in rules.changing)
        self._kept = task.static_atoms - self._static
        """Static atoms that only actions that are never applicable could change."""
        initial = (*self._kept, *task.initial_state.fluent_atoms)
        self._exploration: _Exploration | None = None
        with contextlib.suppress(TooManyRulesError):
            self._exploration = _Exploration(*ground(rules, self._static, initial, task.types_of))

    def reaches(self, state: State, goal: Goal) -> bool:
        """Return whether the goal is possible from a state.

        Returns true if this is unknown: the task has too many rules, or its initial state cannot
        reach the state.
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
    """Finds the facts that ground rules make possible, in time linear in the size of the rules.

    Each rule counts its conditions that are not yet possible (Dowling and Gallier, 1984).
    """

    def __init__(self, rules: Iterable[GroundRule], atoms: Set[Atom]) -> None:
        self.atoms = atoms
        """The atoms that a state may have; the rules do not cover others."""
        self._numbers: dict[Fact, int] = {}
        self._heads: list[int] = []
        self._sizes: list[int] = []
        self._needed: list[list[int]] = []
        """By number of a fact, the rules that need it."""
        for atom in atoms:
            self._number_fact((atom, True))
        for i, (head, body) in enumerate(rules):
            self._heads.append(self._number_fact(head))
            self._sizes.append(len(body))
            for fact in body:
                self._needed[self._number_fact(fact)].append(i)
        sized = zip(self._heads, self._sizes, strict=True)
        self._certain = [head for head, size in sized if size == 0]
        self._negative = [(a, i) for (a, positive), i in self._numbers.items() if not positive]

    def _number_fact(self, fact: Fact) -> int:
        if fact not in self._numbers:
            self._numbers[fact] = len(self._numbers)
            self._needed.append([])
        return self._numbers[fact]

    def possible_from(self, atoms: Set[Atom]) -> Callable[[Fact], bool]:
        """Return a test for facts that are possible from the state with exactly these atoms."""
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
