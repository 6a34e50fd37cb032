"""Lifted goals (Algorithm 1 of the paper).

A lifted goal is a part of the goal with its objects replaced by variables. The part is connected
within each component of the goal-dependency graph, and all variables stand for different objects.
Lifted goals that are equal up to renaming are one lifted goal.

Choices where the paper is silent. Constants of the domain stay, and a variable never stands for
a constant that occurs in the same lifted goal. A variable stands only for objects that have all
the types of the goal's object. Negative literals are vertices of the graph like others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import NamedTuple

from regoal.planning.goals import Atom, Goal
from regoal.planning.lifting.patterns import components, nullary_literals
from regoal.planning.lifting.structures import Structure, VertexLiteral


class LiftedLiteral(NamedTuple):
    """A predicate applied to variables (numbers) and constants (names), perhaps negated."""

    predicate: str
    terms: tuple[int | str, ...]
    positive: bool = True

    def __str__(self) -> str:
        """As in the paper, e.g. `on(X0,X1)`."""
        terms = ",".join(f"X{term}" if isinstance(term, int) else term for term in self.terms)
        return f"{'' if self.positive else 'not '}{self.predicate}({terms})"


@dataclass(frozen=True)
class LiftedGoal:
    """A conjunction of literals over variables, all of which stand for different objects.

    Made by `lifted_goals`, it is in canonical form: equal if equal up to renaming. `types[i]`
    are the types that an object for variable i must have.
    """

    literals: tuple[LiftedLiteral, ...]
    types: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        """How many literals the lifted goal has."""
        return len(self.literals)

    def __str__(self) -> str:
        """The literals joined by `&`; that variables differ goes without saying."""
        return " & ".join(map(str, self.literals))

    def as_goal(self) -> tuple[Goal, dict[str, tuple[str, ...]]]:
        """The goal over objects named `?0`, `?1`, ..., one a variable, and their types."""
        names = [f"?{i}" for i in range(len(self.types))]
        literals = [
            (Atom(p, tuple(names[t] if isinstance(t, int) else t for t in terms)), positive)
            for p, terms, positive in self.literals
        ]
        return Goal.of_literals(literals), dict(zip(names, self.types, strict=True))


def lifted_goals(
    goal: Goal, types_of: Mapping[str, tuple[str, ...]], constants: frozenset[str] = frozenset()
) -> Iterator[LiftedGoal]:
    """All lifted goals of a goal (paper, Algorithm 1), each once, largest first, one at a time.

    There may be very many if the goal is irregular; `GoalLifter` does not need them all.

    >>> chain = Goal.of(Atom("on", pair) for pair in [("a", "b"), ("b", "c")])
    >>> [str(lifted) for lifted in lifted_goals(chain, {})]
    ['on(X0,X1) & on(X1,X2)', 'on(X0,X1)']
    """
    choices = [
        ([pattern.structure for pattern in component.patterns], component.copies)
        for component in reversed(components(goal, types_of, constants))
    ]
    for atom, positive in nullary_literals(goal):
        choices.append(([Structure((), ((atom.predicate, (), positive),))], 1))
    for total in range(len(goal), 0, -1):
        seen = set()
        for parts in _combinations(choices, total):
            key = tuple(sorted(parts, key=_size_first))
            if key not in seen:
                seen.add(key)
                yield _join(key)


def _size_first(part: Structure) -> tuple[int, Structure]:
    return -len(part.literals), part


def _combinations(
    choices: Sequence[tuple[list[Structure], int]], total: int
) -> Iterator[tuple[Structure, ...]]:
    """At most `copies` of each list of patterns, largest first, `total` literals in all."""
    if not choices:
        yield ()
        return
    (patterns, copies), later = choices[0], choices[1:]
    most_later = sum(len(x[0].literals) * n for x, n in later)
    for count in range(copies, -1, -1):
        if count * len(patterns[0].literals) + most_later < total:
            return
        for chosen in combinations_with_replacement(patterns, count):
            rest = total - sum(len(pattern.literals) for pattern in chosen)
            if 0 <= rest <= most_later:
                for others in _combinations(later, rest):
                    yield chosen + others


def _join(parts: Iterable[Structure]) -> LiftedGoal:
    """Return the lifted goal with these parts side by side."""
    literals: list[LiftedLiteral] = []
    types: list[tuple[str, ...]] = []
    for part in parts:
        variables, ordered = _reading_order(part)
        number: dict[int, int | str] = {v: len(types) + i for i, v in enumerate(variables)}
        for predicate, args, positive in ordered:
            terms = tuple(number.get(a, part.labels[a][1]) for a in args)
            literals.append(LiftedLiteral(predicate, terms, positive))
        types += [part.labels[v][0] for v in variables]
    return LiftedGoal(tuple(literals), tuple(types))


@lru_cache(maxsize=1024)
def _reading_order(part: Structure) -> tuple[list[int], list[VertexLiteral]]:
    """Variables by first appearance, and literals such that chains read from end to end."""
    number: dict[int, int] = {}
    ordered = []
    left = list(part.literals)
    while left:
        last = len(part.labels)
        literal = min(left, key=lambda x: ([number.get(a, last) for a in x[1]], x))
        left.remove(literal)
        ordered.append(literal)
        for a in literal[1]:
            number.setdefault(a, len(number))
    return [v for v in number if not part.labels[v][1]], ordered
