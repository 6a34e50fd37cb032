"""Read the effects and action costs of PDDL as checked values."""

import re
from collections.abc import Iterator
from dataclasses import replace

from regoal.planning.pddl.formulas import (
    KEYWORDS,
    Scope,
    read_arguments,
    read_atom,
    read_condition,
    read_parts,
    refuse_beyond_classical,
)
from regoal.planning.pddl.model import Cost, Effect, Formula, Junction, Literal, Variable
from regoal.planning.pddl.syntax import (
    Bracket,
    Node,
    Word,
    bad,
    head,
    shorten,
    show,
    suggest,
    unsupported,
)
from regoal.planning.pddl.types import read_variables

_OUTSIDE_EFFECTS = {
    "probabilistic": "probabilistic effects",
    "oneof": "non-deterministic effects",
    "unknown": "non-deterministic effects",
}

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?")
_CALCULATIONS = frozenset("+-*/")


LARGEST_COST = 10**12
"""Largest cost of an action, so that a plan's cost is written and compared exactly."""


def read_number(node: Node) -> float | None:
    """Return the value of a word that is a number, else None.

    Raises `UnsupportedPddlError` if the number is negative or too large for a cost.
    """
    if not isinstance(node, Word) or not _NUMBER.fullmatch(node.text):
        return None
    value = float(node.text)
    if value < 0:
        raise unsupported(node, f"negative action costs ({shorten(node.text)}).")
    if value > LARGEST_COST:
        raise unsupported(node, f"costs above {LARGEST_COST:.0e} ({shorten(node.text)}).")
    return value


def read_cost(increase: Bracket, scope: Scope) -> Cost:
    """Read and check the amount of an `(increase (total-cost) AMOUNT)`."""
    if len(increase.items) != 3:  # noqa: PLR2004
        raise bad(increase, f"{show(increase)} must name (total-cost) and one amount.")
    amount = increase.items[2]
    if (value := read_number(amount)) is not None:
        return Cost(number=value)
    if isinstance(amount, Word):
        raise bad(amount, f"'{amount.text}' is no number (in {scope.place}).")
    if head(amount) in _CALCULATIONS or head(amount) == "total-cost":
        raise unsupported(amount, f"calculated action costs ({show(increase)} in {scope.place}).")
    return Cost(function=head(amount), terms=read_function_terms(amount, scope))


def read_function_terms(node: Bracket, scope: Scope) -> tuple[str, ...]:
    """Read and check the arguments of a declared function."""
    name, functions = head(node), scope.symbols.functions
    if name not in functions:
        hint = suggest(name, functions) or " Declare it in (:functions ...)."
        raise bad(node, f"there is no function '{name}' (in {scope.place}).{hint}")
    return read_arguments(node, functions[name], list(node.items[1:]), scope)


def read_effects(
    node: Node,
    scope: Scope,
    bound: tuple[Variable, ...] = (),
    when: tuple[Formula, ...] = (),
) -> Iterator[Effect | Bracket]:
    """Yield the simple effects of an effect, and increases of `(total-cost)` as brackets."""
    if isinstance(node, Word):
        raise bad(node, f"expected an effect in brackets here, not '{node.text}'.")
    word = head(node)
    if word == "and" or not node.items:
        for part in node.items[1:]:
            yield from read_effects(part, scope, bound, when)
    elif word == "forall":
        listed, body = read_parts(node, 2)
        inner, names = scope.bind(
            read_variables(listed, scope.symbols.types, f"forall in {scope.place}")
        )
        yield from read_effects(body, inner, bound + names, when)
    elif word == "when":
        premise, body = read_parts(node, 2)
        yield from read_effects(body, scope, bound, (*when, read_condition(premise, scope)))
    elif _is_cost(node, scope) and (bound or when):
        raise unsupported(node, f"action costs inside when or forall (in {scope.place}).")
    elif _is_cost(node, scope):
        yield node
    else:
        premises = when[0] if len(when) == 1 else Junction("and", when)
        yield Effect(bound, premises, (_read_literal(node, scope),))


def _is_cost(node: Bracket, scope: Scope) -> bool:
    changed = node.items[1] if len(node.items) > 1 else node
    return (
        head(node) == "increase"
        and head(changed) == "total-cost"
        and "total-cost" in scope.symbols.functions
    )


def _read_literal(node: Bracket, scope: Scope) -> Literal:
    positive = head(node) != "not"
    inner = node if positive else read_parts(node, 1)[0]
    if isinstance(inner, Word) or head(inner) in KEYWORDS:
        raise bad(node, f"{show(node)} cannot be an effect (in {scope.place}).")
    refuse_beyond_classical(inner, scope, _OUTSIDE_EFFECTS)
    literal = read_atom(inner, scope)
    if literal.predicate in scope.symbols.derived:
        raise bad(
            node,
            f"the derived predicate '{literal.predicate}' cannot be changed by an effect "
            f"(in {scope.place}).",
        )
    return replace(literal, positive=positive)
