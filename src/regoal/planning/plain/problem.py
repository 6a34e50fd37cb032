"""A domain and a problem as a plain reading of PDDL has them: nested lists of words.

Only for texts that `regoal.planning.pddl` has accepted, so nothing is checked here. This package
shares no code with that reader, nor with the PDDL library: it judges the plans they lead to.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Fact = tuple[str, ...]
"""A predicate or function and its objects, e.g. `("on", "a", "b")`."""

Expression = Any
"""A condition, effect or list as the file nests it: a word, or a list of expressions.

In conditions and effects the variables of `forall` and `exists` have become a `Range`.
"""

Range = Mapping[str, Mapping[str, None]]
"""The objects that each variable may stand for, as the keys of a mapping: a set in order."""

_Use = tuple[str, str, bool]
"""A derived predicate, one that its rules use, and whether they negate it."""

Typed = list[tuple[str, frozenset[str]]]
"""Names with the types that the file gives them, of which one must fit."""

_TOKEN = re.compile(r"[()]|-(?=[^\W\d])|\?[^\s()?]*|[^\s()?]+")


@dataclass(frozen=True)
class Action:
    """An action schema."""

    parameters: Typed
    precondition: Expression
    effect: Expression

    def binding(self, objects: Sequence[str]) -> dict[str, str]:
        """The objects that stand for its parameters."""
        return {name: found for (name, _), found in zip(self.parameters, objects, strict=True)}


@dataclass(frozen=True)
class Rule:
    """Makes a derived predicate true of all objects of fitting types for which `body` holds."""

    parameters: Typed
    body: Expression


@dataclass(frozen=True)
class Problem:
    """Everything that plans are judged by."""

    objects: Mapping[str, frozenset[str]]
    """All types of each object, `object` among them; constants first."""
    predicates: frozenset[str]
    actions: Mapping[str, Action]
    rules: Mapping[str, tuple[Rule, ...]]
    """The rules of each derived predicate."""
    levels: Mapping[str, int]
    """The stratum of each derived predicate, above those of all that its rules negate."""
    watched: frozenset[str]
    """Every predicate in a rule's body: if none of them changes, no derived fact does."""
    initial: frozenset[Fact]
    goal: Expression
    values: Mapping[Fact, float]
    """The functions that costs refer to, as `:init` gives them."""
    has_costs: bool
    """Whether `(total-cost)` measures plans; else the number of steps does."""


def read_problem(domain: str, problem: str) -> Problem:
    """The problem in the texts of two files, which the checking reader must have accepted."""
    file = _File([*_nested(domain)[2:], *_nested(problem)[2:]])
    rules, actions, init = file.rules(), file.actions(), file.items(":init")
    uses = {
        (name, used, negated)
        for name, of in rules.items()
        for rule in of
        for used, negated in _uses(rule.body)
    }
    return Problem(
        file.objects,
        frozenset(name for name, *_ in file.items(":predicates")),
        actions,
        rules,
        _levels(uses, rules),
        frozenset(used for _, used, _ in uses),
        frozenset(tuple(fact) for fact in init if fact[0] not in ("=", "not")),
        file.with_ranges(file.items(":goal")[0]),
        {tuple(fact[1]): float(fact[2]) for fact in init if fact[0] == "="},
        "total-cost" in _words(file.items(":metric"))
        and any(increases(action.effect) for action in actions.values()),
    )


def increases(effect: Expression) -> list[Expression]:
    """The amounts by which an effect increases `(total-cost)`: numbers, or functions of objects."""
    if effect[:1] == ["and"]:
        return [amount for part in effect[1:] for amount in increases(part)]
    return [effect[2]] if effect[:2] == ["increase", ["total-cost"]] else []


def typed_list(words: list[Expression]) -> Typed:
    """The names of a list such as `a b - t c` with their types; without one it is `object`."""
    found: Typed = []
    waiting: list[str] = []
    rest = iter(words)
    for word in rest:
        if word != "-":
            waiting.append(word)
            continue
        kind = next(rest)
        types = frozenset(kind[1:] if isinstance(kind, list) else [kind])
        found += [(name, types) for name in waiting]
        waiting = []
    return found + [(name, frozenset(["object"])) for name in waiting]


class _File:
    """The sections of a domain and its problem as one list."""

    def __init__(self, sections: list[Expression]) -> None:
        self._sections = sections
        parents: dict[str, set[str]] = {"object": set()}
        for name, above in typed_list(self.items(":types")):
            parents.setdefault(name, set()).update(above - {name})

        def with_above(name: str) -> frozenset[str]:
            return frozenset([name, "object"]).union(*map(with_above, parents.get(name, ())))

        listed = typed_list(self.items(":constants")) + typed_list(self.items(":objects"))
        self.objects = {name: frozenset().union(*map(with_above, of)) for name, of in listed}

    def all(self, word: str) -> list[Expression]:
        """What follows this word in each section that begins with it."""
        return [section[1:] for section in self._sections if section[0] == word]

    def items(self, word: str) -> list[Expression]:
        """What stands in the section of this name, which may be missing."""
        return [item for section in self.all(word) for item in section]

    def actions(self) -> dict[str, Action]:
        """Every action schema by its name."""
        found = {}
        for name, *words in self.all(":action"):
            parts = dict(zip(words[::2], words[1::2], strict=True))
            found[name] = Action(
                typed_list(parts.get(":parameters", [])),
                self.with_ranges(parts.get(":precondition", [])),
                self.with_ranges(parts.get(":effect", [])),
            )
        return found

    def rules(self) -> dict[str, tuple[Rule, ...]]:
        """The rules of each derived predicate; a parameter without a type has the predicate's."""
        declared = {name: typed_list(words) for name, *words in self.items(":predicates")}
        found: dict[str, tuple[Rule, ...]] = {}
        for (name, *words), body in self.all(":derived"):
            parameters = [
                (variable, wanted if types == {"object"} else types)
                for (variable, types), (_, wanted) in zip(
                    typed_list(words), declared[name], strict=True
                )
            ]
            found[name] = (*found.get(name, ()), Rule(parameters, self.with_ranges(body)))
        return found

    def with_ranges(self, expression: Expression) -> Expression:
        """The expression with a `Range` for the variables of each `forall` and `exists`."""
        if not isinstance(expression, list):
            return expression
        if expression[:1] not in (["forall"], ["exists"]):
            return [self.with_ranges(part) for part in expression]
        quantifier, variables, body = expression
        ranges = {
            variable: {name: None for name, of in self.objects.items() if of & types}
            for variable, types in typed_list(variables)
        }
        return [quantifier, ranges, self.with_ranges(body)]


def _nested(text: str) -> Expression:
    """The first bracket of a text, comments left out, as lists of words in lower case."""
    stack: list[list[Expression]] = [[]]
    for token in _TOKEN.findall(re.sub(r";[^\n]*", "", text)):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token.lower())
    return stack[0][0]


def _words(expression: Expression) -> Iterator[str]:
    """Every word at any depth."""
    if isinstance(expression, str):
        yield expression
    else:
        for part in expression:
            yield from _words(part)


def _levels(uses: Iterable[_Use], derived: Iterable[str]) -> dict[str, int]:
    """The lowest stratum of each derived predicate; the checking reader knows that there are."""
    level = dict.fromkeys(derived, 0)
    changed = True
    while changed:
        changed = False
        for name, used, negated in uses:
            if used in level and level[name] < level[used] + negated:
                level[name] = level[used] + negated
                changed = True
    return level


def _uses(condition: Expression, negated: bool = False) -> Iterator[tuple[str, bool]]:
    """Each predicate in a condition, and whether it stands under an odd number of negations."""
    match condition:
        case []:
            return
        case ["and" | "or", *parts]:
            for part in parts:
                yield from _uses(part, negated)
        case ["not", part]:
            yield from _uses(part, not negated)
        case ["imply", premise, part]:
            yield from _uses(premise, not negated)
            yield from _uses(part, negated)
        case ["forall" | "exists", _, part]:
            yield from _uses(part, negated)
        case [predicate, *_]:
            yield predicate, negated
