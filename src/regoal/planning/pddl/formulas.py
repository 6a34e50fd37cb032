"""Read the conditions of PDDL as checked values.

Conditions come out in negation normal form. Variables are renamed so that no name is bound twice
in an action, even if the file does so.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from regoal.planning.pddl.model import (
    Formula,
    Junction,
    Literal,
    Quantified,
    Symbols,
    Types,
    Variable,
)
from regoal.planning.pddl.syntax import (
    Bracket,
    Node,
    Word,
    bad,
    head,
    show,
    suggest,
    unsupported,
    warn,
)
from regoal.planning.pddl.types import read_variables

KEYWORDS = frozenset(("and", "or", "not", "imply", "forall", "exists", "when", "="))
_NUMERIC = frozenset(
    ("<", ">", "<=", ">=", "increase", "decrease", "assign", "scale-up", "scale-down")
)
_OUTSIDE_CONDITIONS = {
    "preference": "preferences",
    "always": "trajectory constraints",
    "sometime": "trajectory constraints",
    "at-most-once": "trajectory constraints",
    "within": "trajectory constraints",
}


@dataclass(frozen=True)
class Scope:
    """The variables that a formula may use, and the place that messages name.

    `variables` maps a name in the file to its variable. `used` collects every name given so far,
    so that no two variables of one action share a name.
    """

    symbols: Symbols
    place: str
    variables: Mapping[str, Variable] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def bind(self, listed: "Iterable[tuple[Word, Types]]") -> "tuple[Scope, tuple[Variable, ...]]":
        """Return this scope with more variables, which hide older ones of the same name."""
        new: dict[str, Variable] = {}
        for word, types in listed:
            if word.text in new:
                raise bad(word, f"{word.text} is listed twice in {self.place}; rename one.")
            name = word.text
            if name in self.used or not re.fullmatch(r"\?[a-z][a-z0-9_-]*", name):
                name = next(
                    n for i in range(len(self.used) + 1) if (n := f"?v{i}") not in self.used
                )
            self.used.add(name)
            new[word.text] = Variable(name, types)
        return replace(self, variables={**self.variables, **new}), tuple(new.values())


def read_atom(node: Bracket, scope: Scope) -> Literal:
    """Read an atom and check its predicate, arity, variables, objects and types."""
    word, arguments = node.items[0] if node.items else node, list(node.items[1:])
    if isinstance(word, Bracket):
        raise bad(node, f"expected an atom here, not {show(node)}.")
    if word.text == "=":
        wanted: tuple[Types, ...] = (("object",), ("object",))
    elif word.text in scope.symbols.predicates:
        wanted = scope.symbols.predicates[word.text]
    elif word.text == "when":
        raise bad(word, f"'when' can stand in effects only, not in {scope.place}.")
    else:
        hint = suggest(word.text, scope.symbols.predicates)
        raise bad(
            word,
            f"there is no predicate '{word.text}' (in {scope.place})."
            f"{hint or ' Declare it in (:predicates ...).'}",
        )
    return Literal(word.text, read_arguments(node, wanted, arguments, scope))


def read_arguments(
    node: Bracket, wanted: tuple[Types, ...], arguments: list[Node], scope: Scope
) -> tuple[str, ...]:
    """Return the arguments of a predicate or function, checked against the types it wants."""
    if len(arguments) != len(wanted):
        raise bad(
            node,
            f"'{head(node)}' takes {len(wanted)} argument{'s' * (len(wanted) != 1)}, "
            f"but {show(node)} (in {scope.place}) has {len(arguments)}.",
        )
    return tuple(
        _read_argument(a, types, node, scope) for a, types in zip(arguments, wanted, strict=True)
    )


def _read_argument(argument: Node, wanted: Types, node: Bracket, scope: Scope) -> str:
    symbols = scope.symbols
    if isinstance(argument, Bracket):
        if head(argument) in symbols.functions or head(node) == "=":
            raise unsupported(argument, f"numeric fluents ({show(node)} in {scope.place}).")
        raise bad(argument, f"{show(argument)} cannot be an argument (in {scope.place}).")
    name = argument.text
    if name[0] == "?":
        if name not in scope.variables:
            raise bad(
                argument,
                f"the variable {name} is free in {scope.place}; "
                "list it in :parameters or bind it with a quantifier.",
            )
        variable = scope.variables[name]
        fits, kind, result = symbols.meet(variable.types, wanted), variable.types, variable.name
    elif name in symbols.objects:
        fits, kind, result = symbols.belongs(name, wanted), (symbols.objects[name],), name
    else:
        hint = suggest(name, symbols.objects) or " Declare it."
        raise bad(argument, f"there is no object '{name}' (in {scope.place}).{hint}")
    if not fits:
        raise bad(
            argument,
            f"'{name}' is of type {' or '.join(kind)}, but {show(node)} (in {scope.place}) "
            f"needs {' or '.join(wanted)} there.",
        )
    return result


def read_condition(node: Node, scope: Scope, positive: bool = True) -> Formula:
    """Read a condition in negation normal form; if `positive` is false, read its negation."""
    if isinstance(node, Word):
        raise bad(node, f"expected a condition in brackets here, not '{node.text}'.")
    word, parts = head(node), node.items[1:]
    if word == "or" and not parts:
        warn(node, "empty or", f"an 'or' of nothing never holds (in {scope.place}).")
    if word in ("and", "or") or not node.items:
        connective = "and" if (word != "or") == positive else "or"
        return Junction(connective, tuple(read_condition(part, scope, positive) for part in parts))
    if word == "not":
        return read_condition(read_parts(node, 1)[0], scope, not positive)
    if word == "imply":
        premise, conclusion = read_parts(node, 2)
        return Junction(
            "or" if positive else "and",
            (
                read_condition(premise, scope, not positive),
                read_condition(conclusion, scope, positive),
            ),
        )
    if word in ("forall", "exists"):
        bound, body = read_parts(node, 2)
        inner, names = scope.bind(
            read_variables(bound, scope.symbols.types, f"{word} in {scope.place}")
        )
        quantifier = word if positive else {"forall": "exists", "exists": "forall"}[word]
        return Quantified(quantifier, names, read_condition(body, inner, positive))
    refuse_beyond_classical(node, scope, _OUTSIDE_CONDITIONS)
    return replace(read_atom(node, scope), positive=positive)


def refuse_beyond_classical(node: Bracket, scope: Scope, others: Mapping[str, str]) -> None:
    """Refuse numbers and the words in `others`, unless the domain declares them as predicates.

    `others` gives each refused word the name of its feature.
    """
    word = head(node)
    if word in scope.symbols.predicates:
        return
    if word in _NUMERIC or word in scope.symbols.functions:
        raise unsupported(node, f"numeric fluents ({show(node)} in {scope.place}).")
    if word in others:
        raise unsupported(node, f"{others[word]} ({show(node)} in {scope.place}).")


def read_parts(node: Bracket, count: int) -> tuple[Node, ...]:
    """Return what follows the first word of a bracket, which must be `count` parts."""
    if len(node.items) != count + 1:
        raise bad(
            node,
            f"'{head(node)}' needs {count} part{'s' * (count > 1)}, "
            f"but {show(node)} has {len(node.items) - 1}.",
        )
    return node.items[1:]
