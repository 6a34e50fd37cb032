"""States of a plain problem: test which conditions hold, and execute actions."""

import contextlib
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from regoal.planning.plain.facts import Facts
from regoal.planning.plain.problem import (
    Action,
    Expression,
    Fact,
    Problem,
    Ranges,
    Typed,
    find_increases,
)

Binding = Mapping[str, str]
"""Maps variables to objects."""

DECIDES = {"and": False, "forall": False, "or": True, "exists": True}
"""The truth value of a single part that decides the whole."""

_CALLS = 300
"""Most nested calls for one condition, because brackets are nested at most 200 deep."""


@dataclass
class _Stratum:
    """The derived facts of one stratum while their truth is being decided."""

    true: dict[Fact, bool] = field(default_factory=dict)
    """The truth of each fact as far as it is known; False may still become True."""
    waiting: list[Fact] = field(default_factory=list)
    """Facts to be examined, some of them again."""
    askers: defaultdict[Fact, set[Fact]] = field(default_factory=lambda: defaultdict(set))
    """By fact, the facts that must be examined again if it turns out true."""
    asker: Fact | None = None
    """The fact that is being examined."""


@contextlib.contextmanager
def allow_nested_calls(problem: Problem) -> Iterator[None]:
    """Raise the recursion limit so that conditions and strata of a problem can nest calls."""
    before = sys.getrecursionlimit()
    calls = _CALLS * (2 + max(problem.strata.values(), default=0))
    sys.setrecursionlimit(max(before, calls))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class State:
    """The facts that hold. The truth of a derived fact is decided when a condition needs it."""

    def __init__(self, problem: Problem, facts: Iterable[Fact]) -> None:
        self.problem = problem
        self.facts = Facts(facts)
        """The facts that hold, without derived ones."""
        self._settled: dict[Fact, bool] = {}
        self._open: dict[int, _Stratum] = {}

    def holds(self, condition: Expression, binding: Binding) -> bool:
        """Return whether a condition is true with these objects for its free variables."""
        word = condition[0] if condition else "and"
        if word in DECIDES:
            for part, inner in self._list_possible_cases(condition, binding):
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
        """Change this state by an action: all changes at once, and additions win over deletions."""
        changes = list(self.find_changes(action.effect, binding))
        self.facts.change(changes)
        if any(fact[0] in self.problem.watched for fact, _ in changes):
            self._settled.clear()

    def find_changes(self, effect: Expression, binding: Binding) -> Iterator[tuple[Fact, bool]]:
        """Yield each fact that an effect changes, and whether it adds the fact."""
        word = effect[0] if effect else "and"
        if word in ("and", "forall"):
            for part, inner in self._list_possible_cases(effect, binding):
                yield from self.find_changes(part, inner)
        elif word == "when":
            if self.holds(effect[1], binding):
                yield from self.find_changes(effect[2], binding)
        elif word == "not":
            yield ground(effect[1], binding), False
        elif not find_increases(effect):
            yield ground(effect, binding), True

    def _list_possible_cases(
        self, expression: Expression, binding: Binding
    ) -> Iterator[tuple[Expression, Binding]]:
        """Yield the `list_cases`, without objects that cannot decide a quantifier.

        These are objects for which the condition of an `exists` fails, or for which a `forall` with
        `imply` or `when` demands nothing. Problems of a thousand objects become a thousand times
        faster in this way.
        """
        if expression[:1] in (["forall"], ["exists"]):
            word, ranges, body = expression
            if word == "exists":
                expression = [word, self._narrow(ranges, body, binding), body]
            elif body[:1] in (["imply"], ["when"]):
                expression = [word, self._narrow(ranges, body[1], binding), body]
        return list_cases(expression, binding)

    def _narrow(self, ranges: Ranges, needed: Expression, binding: Binding) -> Ranges:
        """Return the ranges without objects for which some atom in `needed` has no fact."""
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
        """Return whether the rules make a fact true.

        The first question about a stratum decides it. Meanwhile, a question about another fact of
        the stratum gets the truth known so far. The fact that asks is examined again when more is
        known. A premature False makes no fact true, because a stratum negates none of its facts.
        """
        if fact in self._settled:
            return self._settled[fact]
        level = self.problem.strata[fact[0]]
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
        """Return whether some rule makes a fact true, as far as is known."""
        for rule in self.problem.rules[fact[0]]:
            if fits(self.problem, rule.parameters, fact[1:]):
                names = (name for name, _ in rule.parameters)
                if self.holds(rule.body, dict(zip(names, fact[1:], strict=True))):
                    return True
        return False


def list_cases(expression: Expression, binding: Binding) -> Iterator[tuple[Expression, Binding]]:
    """Yield the parts of an `and` or `or`, or the body of a quantifier for all objects."""
    if expression[:1] in (["forall"], ["exists"]):
        _, ranges, body = expression
        for objects in product(*ranges.values()):
            yield body, {**binding, **dict(zip(ranges, objects, strict=True))}
    else:
        for part in expression[1:]:
            yield part, binding


def ground(atom: Expression, binding: Binding) -> Fact:
    """Replace the variables of an atom or a function by objects."""
    return tuple(binding.get(word, word) for word in atom)


def fits(problem: Problem, parameters: Typed, objects: Iterable[str]) -> bool:
    """Return whether each object has a type that its parameter accepts."""
    pairs = zip(parameters, objects, strict=True)
    return all(problem.objects[name] & types for (_, types), name in pairs)


def cost(problem: Problem, action: Action, binding: Binding) -> float | None:
    """Return what an action adds to a plan's cost, or None if `:init` gives a function no value."""
    if not problem.has_costs:
        return 1.0
    total = 0.0
    for amount in find_increases(action.effect):
        value = (
            problem.values.get(ground(amount, binding))
            if isinstance(amount, list)
            else float(amount)
        )
        if value is None:
            return None
        total += value
    return total
