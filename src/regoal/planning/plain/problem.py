"""Read a domain and a problem in a plain way, as nested lists of words.

The texts must have been accepted by `regoal.planning.pddl`, so nothing is checked here. This
package shares no code with that reader or the PDDL library, because it judges their plans.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Fact = tuple[str, ...]
"""A predicate or function and its objects, e.g. `("on", "a", "b")`."""

Expression = Any
"""A condition, effect or list as the file nests it: a word, or a list of expressions.

In conditions and effects, `Ranges` replace the variables of `forall` and `exists`.
"""

Ranges = Mapping[str, Mapping[str, None]]
"""Maps each variable to the objects that it may stand for: the keys, as an ordered set."""

_Use = tuple[str, str, bool]
"""A derived predicate, a predicate that its rules use, and whether they negate it."""

Typed = list[tuple[str, frozenset[str]]]
"""Names with the types that the file gives them, of which one must hold."""

_TOKEN = re.compile(r"[()]|-(?=[^\W\d])|\?[^\s()?]*|[^\s()?]+")


@dataclass(frozen=True)
class Action:
    """An action schema."""

    parameters: Typed
    precondition: Expression
    effect: Expression

    def bind(self, objects: Sequence[str]) -> dict[str, str]:
        """Map the names of the parameters to these objects."""
        return {name: found for (name, _), found in zip(self.parameters, objects, strict=True)}


@dataclass(frozen=True)
class DerivedRule:
    """A rule for a derived predicate, true of all objects of these types for which `body` holds."""

    parameters: Typed
    body: Expression


@dataclass(frozen=True)
class Problem:
    """All the facts and rules that plans are judged by."""

    objects: Mapping[str, frozenset[str]]
    """All types of each object, `object` among them; constants first."""
    predicates: Mapping[str, int]
    """The number of arguments of each predicate."""
    actions: Mapping[str, Action]
    rules: Mapping[str, tuple[DerivedRule, ...]]
    """The rules of each derived predicate."""
    strata: Mapping[str, int]
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
    """Read the problem in the texts of two files, which `regoal.planning.pddl` has accepted."""
    file = _File([*_parse(domain)[2:], *_parse(problem)[2:]])
    rules, actions, init = file.rules(), file.actions(), file.items(":init")
    uses = {
        (name, used, negated)
        for name, of in rules.items()
        for rule in of
        for used, negated in _find_uses(rule.body)
    }
    return Problem(
        file.objects,
        {name: len(read_typed_list(words)) for name, *words in file.items(":predicates")},
        actions,
        rules,
        _find_strata(uses, rules),
        frozenset(used for _, used, _ in uses),
        frozenset(tuple(fact) for fact in init if fact[0] not in ("=", "not")),
        file.add_ranges(file.items(":goal")[0]),
        {tuple(fact[1]): float(fact[2]) for fact in init if fact[0] == "="},
        "total-cost" in _list_words(file.items(":metric"))
        and any(find_increases(action.effect) for action in actions.values()),
    )


def find_increases(effect: Expression) -> list[Expression]:
    """Return the amounts by which an effect increases `(total-cost)`: numbers or functions."""
    if effect[:1] == ["and"]:
        return [amount for part in effect[1:] for amount in find_increases(part)]
    return [effect[2]] if effect[:2] == ["increase", ["total-cost"]] else []


def read_typed_list(words: list[Expression]) -> Typed:
    """Read the names of a list such as `a b - t c` with their types; the default is `object`."""
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
        for name, above in read_typed_list(self.items(":types")):
            parents.setdefault(name, set()).update(above - {name})

        def add_ancestors(name: str) -> frozenset[str]:
            return frozenset([name, "object"]).union(*map(add_ancestors, parents.get(name, ())))

        listed = read_typed_list(self.items(":constants")) + read_typed_list(self.items(":objects"))
        self.objects = {name: frozenset().union(*map(add_ancestors, of)) for name, of in listed}

    def all(self, word: str) -> list[Expression]:
        """Return the rest of each section that begins with this word."""
        return [section[1:] for section in self._sections if section[0] == word]

    def items(self, word: str) -> list[Expression]:
        """Return the content of the section that begins with this word, which may be missing."""
        return [item for section in self.all(word) for item in section]

    def actions(self) -> dict[str, Action]:
        """Read every action schema by its name."""
        found = {}
        for name, *words in self.all(":action"):
            parts = dict(zip(words[::2], words[1::2], strict=True))
            found[name] = Action(
                read_typed_list(parts.get(":parameters", [])),
                self.add_ranges(parts.get(":precondition", [])),
                self.add_ranges(parts.get(":effect", [])),
            )
        return found

    def rules(self) -> dict[str, tuple[DerivedRule, ...]]:
        """Read the rules of each derived predicate.

        A parameter without a type has the type that the predicate declares.
        """
        declared = {name: read_typed_list(words) for name, *words in self.items(":predicates")}
        found: dict[str, tuple[DerivedRule, ...]] = {}
        for (name, *words), body in self.all(":derived"):
            parameters = [
                (variable, wanted if types == {"object"} else types)
                for (variable, types), (_, wanted) in zip(
                    read_typed_list(words), declared[name], strict=True
                )
            ]
            found[name] = (*found.get(name, ()), DerivedRule(parameters, self.add_ranges(body)))
        return found

    def add_ranges(self, expression: Expression) -> Expression:
        """Replace the variables of each `forall` and `exists` by their `Ranges`."""
        if not isinstance(expression, list):
            return expression
        if expression[:1] not in (["forall"], ["exists"]):
            return [self.add_ranges(part) for part in expression]
        quantifier, variables, body = expression
        ranges = {
            variable: {name: None for name, of in self.objects.items() if of & types}
            for variable, types in read_typed_list(variables)
        }
        return [quantifier, ranges, self.add_ranges(body)]


def _parse(text: str) -> Expression:
    """Return the first bracket of a text as nested lists of words, in lower case."""
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


def _list_words(expression: Expression) -> Iterator[str]:
    """Yield every word of an expression, at any depth."""
    if isinstance(expression, str):
        yield expression
    else:
        for part in expression:
            yield from _list_words(part)


def _find_strata(uses: Iterable[_Use], derived: Iterable[str]) -> dict[str, int]:
    """Return the lowest stratum of each derived predicate.

    `regoal.planning.pddl` has checked that there are strata.
    """
    level = dict.fromkeys(derived, 0)
    changed = True
    while changed:
        changed = False
        for name, used, negated in uses:
            if used in level and level[name] < level[used] + negated:
                level[name] = level[used] + negated
                changed = True
    return level


def _find_uses(condition: Expression, negated: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield each predicate in a condition, and whether an odd number of negations contains it."""
    match condition:
        case []:
            return
        case ["and" | "or", *parts]:
            for part in parts:
                yield from _find_uses(part, negated)
        case ["not", part]:
            yield from _find_uses(part, not negated)
        case ["imply", premise, part]:
            yield from _find_uses(premise, not negated)
            yield from _find_uses(part, negated)
        case ["forall" | "exists", _, part]:
            yield from _find_uses(part, negated)
        case [predicate, *_]:
            yield predicate, negated
