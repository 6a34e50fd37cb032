"""Atoms and goals as values: equal by content, hashable and in a fixed order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Atom(NamedTuple):
    """A ground atom: a predicate applied to objects, all by name and in lower case."""

    predicate: str
    objects: tuple[str, ...]

    def __str__(self) -> str:
        """Write the atom in PDDL, e.g. `(on a b)`."""
        return f"({' '.join((self.predicate, *self.objects))})"


@dataclass(frozen=True)
class Goal:
    """A conjunction of ground literals: `atoms` must hold, `negative` must not.

    Equal literals make equal goals, so that a goal can key a dict (paper, "Classical Planning";
    negative literals go beyond the paper).
    """

    atoms: frozenset[Atom]
    negative: frozenset[Atom] = field(default=frozenset())

    @classmethod
    def of(cls, atoms: Iterable[Atom], negative: Iterable[Atom] = ()) -> "Goal":
        """Return the goal with these literals, in any order."""
        return cls(frozenset(atoms), frozenset(negative))

    @classmethod
    def of_literals(cls, literals: Iterable[tuple[Atom, bool]]) -> "Goal":
        """Return the goal with these literals (atom, positive), in any order."""
        chosen = list(literals)
        return cls.of((a for a, sign in chosen if sign), (a for a, sign in chosen if not sign))

    def __len__(self) -> int:
        """Return the number of literals, |g|."""
        return len(self.atoms) + len(self.negative)

    def __str__(self) -> str:
        """Write the goal in PDDL, with sorted atoms."""
        literals = [str(atom) for atom in sorted(self.atoms)]
        literals += [f"(not {atom})" for atom in sorted(self.negative)]
        return f"(and {' '.join(literals)})" if literals else "(and)"

    def literals(self) -> Iterator[tuple[Atom, bool]]:
        """Yield every literal as (atom, positive), in an order that does not depend on hashing."""
        for atom in sorted(self.atoms):
            yield atom, True
        for atom in sorted(self.negative):
            yield atom, False

    def holds_in(self, atoms: frozenset[Atom]) -> bool:
        """Return whether a state in which exactly these atoms are true is a goal state."""
        return self.atoms <= atoms and self.negative.isdisjoint(atoms)
