"""Effects and action costs of PDDL as checked values."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from regoal.planning.pddl.formulas import (
    KEYWORDS,
    Formula,
    Junction,
    Literal,
    Scope,
    Variable,
    applied,
    atom,
    condition,
    parts_of,
    refuse_beyond_classical,
)
from regoal.planning.pddl.syntax import (
    Form,
    Node,
    Word,
    bad,
    head,
    shorten,
    shown,
    suggestion,
    unsupported,
)
from regoal.planning.pddl.types import variables

_OUTSIDE_EFFECTS = {
    "probabilistic": "probabilistic effects",
    "oneof": "non-deterministic effects",
    "unknown": "non-deterministic effects",
}

Values = Mapping[tuple[str, ...], float]
"""The values that `:init` gives: (function, object, ...) to number."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?")
_CALCULATIONS = frozenset("+-*/")


@dataclass(frozen=True)
class Effect:
    """Literals that come true for all `variables` for which `condition` holds before."""

    variables: tuple[Variable, ...]
    condition: Formula
    literals: tuple[Literal, ...]


@dataclass(frozen=True)
class Cost:
    """A number, or a function of some parameters (with `?`) and constants."""

    number: float = 0.0
    function: str = ""
    terms: tuple[str, ...] = ()

    def value(self, binding: Mapping[str, str], values: Values) -> float | None:
        """The cost under a binding of parameters; None where `:init` gives no value."""
        if not self.function:
            return self.number
        return values.get((self.function, *(binding.get(term, term) for term in self.terms)))


LARGEST_COST = 10**12
"""So that the cost of a plan is a number that is written and compared exactly."""


def number(node: Node) -> float | None:
    """The value of a word that is a number, else None.

    Raises `UnsupportedPddlError` for one that no cost may have: negative, or too large.
    """
    if not isinstance(node, Word) or not _NUMBER.fullmatch(node.text):
        return None
    value = float(node.text)
    if value < 0:
        raise unsupported(node, f"negative action costs ({shorten(node.text)}).")
    if value > LARGEST_COST:
        raise unsupported(node, f"costs above {LARGEST_COST:.0e} ({shorten(node.text)}).")
    return value


def cost(increase: Form, scope: Scope) -> Cost:
    """The amount of an `(increase (total-cost) AMOUNT)`, checked."""
    if len(increase.items) != 3:  # noqa: PLR2004
        raise bad(increase, f"{shown(increase)} must name (total-cost) and one amount.")
    amount = increase.items[2]
    if (value := number(amount)) is not None:
        return Cost(number=value)
    if isinstance(amount, Word):
        raise bad(amount, f"'{amount.text}' is no number (in {scope.place}).")
    if head(amount) in _CALCULATIONS or head(amount) == "total-cost":
        raise unsupported(amount, f"calculated action costs ({shown(increase)} in {scope.place}).")
    return Cost(function=head(amount), terms=function_terms(amount, scope))


def function_terms(node: Form, scope: Scope) -> tuple[str, ...]:
    """The checked arguments of a declared function."""
    name, functions = head(node), scope.symbols.functions
    if name not in functions:
        hint = suggestion(name, functions) or " Declare it in (:functions ...)."
        raise bad(node, f"there is no function '{name}' (in {scope.place}).{hint}")
    return applied(node, functions[name], list(node.items[1:]), scope)


def effects(
    node: Node,
    scope: Scope,
    bound: tuple[Variable, ...] = (),
    when: tuple[Formula, ...] = (),
) -> Iterator[Effect | Form]:
    """An effect as a flat list; increases of `(total-cost)` come out as the brackets they are."""
    if isinstance(node, Word):
        raise bad(node, f"expected an effect in brackets here, not '{node.text}'.")
    word = head(node)
    if word == "and" or not node.items:
        for part in node.items[1:]:
            yield from effects(part, scope, bound, when)
    elif word == "forall":
        listed, body = parts_of(node, 2)
        inner, names = scope.bind(
            variables(listed, scope.symbols.types, f"forall in {scope.place}")
        )
        yield from effects(body, inner, bound + names, when)
    elif word == "when":
        premise, body = parts_of(node, 2)
        yield from effects(body, scope, bound, (*when, condition(premise, scope)))
    elif _is_cost(node, scope) and (bound or when):
        raise unsupported(node, f"action costs inside when or forall (in {scope.place}).")
    elif _is_cost(node, scope):
        yield node
    else:
        premises = when[0] if len(when) == 1 else Junction("and", when)
        yield Effect(bound, premises, (_effect_literal(node, scope),))


def _is_cost(node: Form, scope: Scope) -> bool:
    changed = node.items[1] if len(node.items) > 1 else node
    return (
        head(node) == "increase"
        and head(changed) == "total-cost"
        and "total-cost" in scope.symbols.functions
    )


def _effect_literal(node: Form, scope: Scope) -> Literal:
    positive = head(node) != "not"
    inner = node if positive else parts_of(node, 1)[0]
    if isinstance(inner, Word) or head(inner) in KEYWORDS:
        raise bad(node, f"{shown(node)} cannot be an effect (in {scope.place}).")
    refuse_beyond_classical(inner, scope, _OUTSIDE_EFFECTS)
    literal = atom(inner, scope)
    if literal.predicate in scope.symbols.derived:
        raise bad(
            node,
            f"the derived predicate '{literal.predicate}' cannot be changed by an effect "
            f"(in {scope.place}).",
        )
    return replace(literal, positive=positive)
