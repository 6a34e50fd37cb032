"""States of a plain problem: what holds in them, and what actions make of them."""

import contextlib
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from regoal.planning.plain.facts import Facts
from regoal.planning.plain.problem import Action, Expression, Fact, Problem, Range, Typed, increases

Binding = Mapping[str, str]
"""The objects that stand for variables."""

DECIDES = {"and": False, "forall": False, "or": True, "exists": True}
"""The truth of a single part that settles the whole."""

_CALLS = 300
"""Most calls inside each other for one condition: files are nested at most 200 deep."""


@dataclass
class _Stratum:
    """Derived facts of one stratum that questions have come to, while they are being settled."""

    true: dict[Fact, bool] = field(default_factory=dict)
    """Each with what is known so far; False may still become True."""
    waiting: list[Fact] = field(default_factory=list)
    """To be looked at (again)."""
    askers: defaultdict[Fact, set[Fact]] = field(default_factory=lambda: defaultdict(set))
    """The facts that need looking at again if one turns out true."""
    asker: Fact | None = None
    """The fact being looked at."""


@contextlib.contextmanager
def room_for_calls(problem: Problem) -> Iterator[None]:
    """Let questions about states of this problem nest as deep as its conditions and strata ask."""
    before = sys.getrecursionlimit()
    calls = _CALLS * (2 + max(problem.levels.values(), default=0))
    sys.setrecursionlimit(max(before, calls))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class State:
    """The facts that hold. Derived ones are found out as they are asked for."""

    def __init__(self, problem: Problem, facts: Iterable[Fact]) -> None:
        self.problem = problem
        self.facts = Facts(facts)
        """What holds, derived facts left out."""
        self._settled: dict[Fact, bool] = {}
        self._open: dict[int, _Stratum] = {}

    def holds(self, condition: Expression, binding: Binding) -> bool:
        """Whether a condition is true with these objects for its free variables."""
        word = condition[0] if condition else "and"
        if word in DECIDES:
            for part, inner in self._possible_cases(condition, binding):
                if self.holds(part, inner) is DECIDES[word]:
                    return DECIDES[word]
            return not DECIDES[word]
        if word == "not":
            return not self.holds(condition[1], binding)
        if word == "imply":
            return not self.holds(condition[1], binding) or self.holds(condition[2], binding)
        fact = ground(condition, binding)
        if word == "=":
            return fact[1] == fact[2]
        return self._is_derived(fact) if word in self.problem.rules else fact in self.facts

    def execute(self, action: Action, binding: Binding) -> None:
        """Go on to the state after an action: all changes at once, and what is added stays."""
        changes = list(self._changes(action.effect, binding))
        self.facts.change(changes)
        if any(fact[0] in self.problem.watched for fact, _ in changes):
            self._settled.clear()

    def _changes(self, effect: Expression, binding: Binding) -> Iterator[tuple[Fact, bool]]:
        """Each fact that an effect changes, and whether it adds it."""
        word = effect[0] if effect else "and"
        if word in ("and", "forall"):
            for part, inner in self._possible_cases(effect, binding):
                yield from self._changes(part, inner)
        elif word == "when":
            if self.holds(effect[1], binding):
                yield from self._changes(effect[2], binding)
        elif word == "not":
            yield ground(effect[1], binding), False
        elif not increases(effect):
            yield ground(effect, binding), True

    def _possible_cases(
        self, expression: Expression, binding: Binding
    ) -> Iterator[tuple[Expression, Binding]]:
        """The `cases`, without objects for which an `exists` fails or a `forall` says nothing.

        This only saves time, on problems of a thousand objects a thousandfold.
        """
        if expression[:1] in (["forall"], ["exists"]):
            word, ranges, body = expression
            if word == "exists":
                expression = [word, self._narrowed(ranges, body, binding), body]
            elif body[:1] in (["imply"], ["when"]):
                expression = [word, self._narrowed(ranges, body[1], binding), body]
        return cases(expression, binding)

    def _narrowed(self, ranges: Range, needed: Expression, binding: Binding) -> Range:
        """The ranges without objects for which one of the atoms in `needed` has no fact."""
        found = dict(ranges)
        for atom in needed[1:] if needed[:1] == ["and"] else [needed]:
            if not atom or atom[0] in self.problem.rules or atom[0] not in self.problem.predicates:
                continue
            fixed = [
                self.facts.with_object(atom[0], place, binding.get(term, term))
                for place, term in enumerate(atom)
                if place and term not in ranges
            ]
            facts = min(fixed, key=len) if fixed else self.facts.of(atom[0])
            for place, term in enumerate(atom):
                if term in ranges:
                    found[term] = {f[place]: None for f in facts if f[place] in found[term]}
        return found

    def _is_derived(self, fact: Fact) -> bool:
        """Whether the rules make a fact true.

        The first question about a stratum settles it. Questions that come up meanwhile about the
        same stratum are answered with what is known so far, and those who ask are looked at again
        when more is known. An early False makes nothing true, as a stratum negates none of its
        own facts.
        """
        if fact in self._settled:
            return self._settled[fact]
        level = self.problem.levels[fact[0]]
        if level in self._open:
            return self._ask(self._open[level], fact)
        stratum = self._open[level] = _Stratum()
        self._ask(stratum, fact)
        while stratum.waiting:
            stratum.asker = stratum.waiting.pop()
            if not stratum.true[stratum.asker] and self._follows(stratum.asker):
                stratum.true[stratum.asker] = True
                stratum.waiting += stratum.askers[stratum.asker]
        del self._open[level]
        self._settled.update(stratum.true)
        return stratum.true[fact]

    def _ask(self, stratum: _Stratum, fact: Fact) -> bool:
        if fact not in stratum.true:
            stratum.true[fact] = False
            stratum.waiting.append(fact)
        if stratum.asker is not None:
            stratum.askers[fact].add(stratum.asker)
        return stratum.true[fact]

    def _follows(self, fact: Fact) -> bool:
        """Whether a rule makes a fact true now."""
        for rule in self.problem.rules[fact[0]]:
            if fits(self.problem, rule.parameters, fact[1:]):
                names = (name for name, _ in rule.parameters)
                if self.holds(rule.body, dict(zip(names, fact[1:], strict=True))):
                    return True
        return False


def cases(expression: Expression, binding: Binding) -> Iterator[tuple[Expression, Binding]]:
    """The parts of an `and` or `or`, or the body of a quantifier for all objects."""
    if expression[:1] in (["forall"], ["exists"]):
        _, ranges, body = expression
        for objects in product(*ranges.values()):
            yield body, {**binding, **dict(zip(ranges, objects, strict=True))}
    else:
        for part in expression[1:]:
            yield part, binding


def ground(atom: Expression, binding: Binding) -> Fact:
    """An atom or a function with objects for its variables."""
    return tuple(binding.get(word, word) for word in atom)


def fits(problem: Problem, parameters: Typed, objects: Iterable[str]) -> bool:
    """Whether each object is of a type that its parameter takes."""
    pairs = zip(parameters, objects, strict=True)
    return all(problem.objects[name] & types for (_, types), name in pairs)


def cost(problem: Problem, action: Action, binding: Binding) -> float | None:
    """What an action adds to the cost of a plan; None if `:init` gives a function no value."""
    if not problem.has_costs:
        return 1.0
    total = 0.0
    for amount in increases(action.effect):
        value = (
            problem.values.get(ground(amount, binding))
            if isinstance(amount, list)
            else float(amount)
        )
        if value is None:
            return None
        total += value
    return total
