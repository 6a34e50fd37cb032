"""A PDDL problem as a checked value, in the names of its file."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from regoal.planning.goals import Atom, Goal
from regoal.planning.pddl.domain import PddlDomain, sections_by_name
from regoal.planning.pddl.effects import Values, function_terms, number
from regoal.planning.pddl.formulas import (
    KEYWORDS,
    Formula,
    Junction,
    Literal,
    Quantified,
    Scope,
    Symbols,
    atom,
    condition,
)
from regoal.planning.pddl.syntax import (
    Form,
    Node,
    Word,
    bad,
    head,
    naming,
    read_define,
    shown,
    unsupported,
)
from regoal.planning.pddl.types import objects_of

_ONCE = (":domain", ":requirements", ":objects", ":init", ":goal", ":metric", ":length")
_BEYOND = {":constraints": "trajectory constraints", ":htn": "hierarchical tasks"}
_INIT_BEYOND = {
    "probabilistic": "probabilistic effects",
    "oneof": "incomplete knowledge of the initial state",
    "unknown": "incomplete knowledge of the initial state",
    "or": "incomplete knowledge of the initial state",
}


@dataclass(frozen=True)
class PddlProblem:
    """A problem: `objects` leaves the domain's constants out; `values` holds static functions.

    `has_costs` says whether the plan's total cost is to be minimized; `source` is the file's
    text, decoded.
    """

    name: str
    objects: Mapping[str, str]
    init: tuple[Atom, ...]
    values: Values
    goal: Goal
    has_costs: bool
    source: str = field(repr=False)


def parse_problem(path: Path, domain: PddlDomain, domain_path: Path) -> PddlProblem:
    """Read and check a problem file of a domain. Raises as `parse_domain` does."""
    name, sections, source = read_define(path, "problem")
    with naming(path):
        one = sections_by_name(sections, _ONCE, (), _BEYOND)
        _check_domain_name(one.get(":domain"), domain.name, domain_path)
        for word in (":init", ":goal"):
            if word not in one:
                raise bad(name, f"the problem has no section ({word} ...); is the file complete?")
        objects = objects_of(one.get(":objects", ()), domain.symbols.types, domain.symbols.objects)
        symbols = replace(domain.symbols, objects={**domain.symbols.objects, **objects})
        init, values = _init(one[":init"], Scope(symbols, ":init"))
        goal_node = one[":goal"]
        if len(goal_node) != 1:
            raise bad(goal_node[0] if goal_node else name, "(:goal ...) must hold one condition.")
        formula = condition(goal_node[0], Scope(symbols, "the goal"))
        goal = _GoalReader(domain, symbols, frozenset(init), goal_node[0]).goal(formula)
        has_costs = _wants_costs(one.get(":metric", ())) and any(a.costs for a in domain.actions)
        return PddlProblem(name.text, objects, tuple(init), values, goal, has_costs, source)


def _check_domain_name(found: tuple[Node, ...] | None, name: str, path: Path) -> None:
    if found is None or len(found) != 1 or not isinstance(found[0], Word):
        raise bad(1, f"the problem must name its domain: add (:domain {name}).")
    if found[0].text != name:
        raise bad(
            found[0],
            f"this is a problem of the domain '{found[0].text}', but {path} defines '{name}'; "
            "give the domain file that belongs to it.",
        )


def _init(nodes: tuple[Node, ...], scope: Scope) -> tuple[list[Atom], dict[tuple[str, ...], float]]:
    """Atoms in file order, each once, and function values. Negated atoms add nothing."""
    atoms: dict[Atom, int] = {}
    negated: dict[Atom, Node] = {}
    values: dict[tuple[str, ...], float] = {}
    for node in nodes:
        if isinstance(node, Word):
            raise bad(node, f"expected an atom in brackets in :init, not '{node.text}'.")
        word = head(node)
        if word == "not" and len(node.items) == 2 and isinstance(node.items[1], Form):  # noqa: PLR2004
            negated[_init_atom(node.items[1], scope)] = node
        elif word == "=":
            _read_value(node, scope, values)
        else:
            atoms.setdefault(_init_atom(node, scope), node.line)
    for found, node in negated.items():
        if found in atoms:
            raise bad(
                node, f"{found} is both true (line {atoms[found]}) and false in :init; remove one."
            )
    return list(atoms), values


def _init_atom(node: Form, scope: Scope) -> Atom:
    word = head(node)
    if word not in scope.symbols.predicates:
        if word in _INIT_BEYOND:
            raise unsupported(node, f"{_INIT_BEYOND[word]} ({shown(node)} in :init).")
        if word in KEYWORDS:
            raise bad(node, f"'{word}' cannot stand here in :init; give atoms one after the other.")
    if word == "at" and len(node.items) == 3 and isinstance(node.items[2], Form):  # noqa: PLR2004
        raise unsupported(node, f"timed initial literals ({shown(node)}).")
    literal = atom(node, scope)
    if literal.predicate in scope.symbols.derived:
        raise bad(
            node,
            f"{shown(node)} cannot stand in :init, since '{word}' is derived; remove it.",
        )
    return Atom(literal.predicate, literal.terms)


def _read_value(node: Form, scope: Scope, values: dict[tuple[str, ...], float]) -> None:
    if len(node.items) != 3 or isinstance(node.items[1], Word):  # noqa: PLR2004
        raise bad(node, f"{shown(node)} in :init must give a function a value: (= (f a) 1).")
    value = number(node.items[2])
    if value is None:
        raise bad(node, f"{shown(node)} in :init gives no number.")
    key = (head(node.items[1]), *function_terms(node.items[1], scope))
    if values.setdefault(key, value) != value:
        raise bad(node, f"{shown(node.items[1])} has two values in :init; remove one.")


def _wants_costs(metric: tuple[Node, ...]) -> bool:
    """Whether `:metric` asks for small total cost; none and `(total-time)` count steps."""
    if not metric:
        return False
    text = " ".join(map(shown, metric))
    if text in ("minimize (total-cost)", "minimize total-cost"):
        return True
    if text in ("minimize (total-time)", "minimize total-time"):
        return False
    raise unsupported(
        metric[0],
        f"the metric {text}; only (total-cost) can be minimized, or steps without a metric.",
    )


@dataclass(frozen=True)
class _GoalReader:
    """Turns a goal into a conjunction of literals, with quantifiers over the problem's objects."""

    domain: PddlDomain
    symbols: Symbols
    init: frozenset[Atom]
    where: Node

    def goal(self, formula: Formula) -> Goal:
        literals = self._expand(formula, {}, inside_or=False)
        if literals is None:
            raise bad(self.where, f"the goal {shown(self.where)} can never hold; correct it.")
        positive = {a for a, sign in literals if sign}
        negative = {a for a, sign in literals if not sign}
        for contradiction in sorted(positive & negative):
            raise bad(
                self.where, f"the goal needs {contradiction} both true and false; remove one."
            )
        return Goal.of(positive, negative)

    def _expand(
        self, formula: Formula, binding: Mapping[str, str], inside_or: bool
    ) -> list[tuple[Atom, bool]] | None:
        """The literals that must hold under a binding of variables; None where they cannot."""
        if isinstance(formula, Literal):
            return self._literal(formula, binding, inside_or)
        conjunctive = (
            formula.connective == "and"
            if isinstance(formula, Junction)
            else formula.quantifier == "forall"
        )
        inner = inside_or or not conjunctive
        if isinstance(formula, Junction):
            parts = [self._expand(part, binding, inner) for part in formula.parts]
        else:
            parts = [self._expand(formula.body, b, inner) for b in self._bindings(formula, binding)]
        return self._all(parts) if conjunctive else self._any(parts)

    def _all(self, parts: list[list[tuple[Atom, bool]] | None]) -> list[tuple[Atom, bool]] | None:
        if any(part is None for part in parts):
            return None
        return [literal for part in parts if part is not None for literal in part]

    def _any(self, parts: list[list[tuple[Atom, bool]] | None]) -> list[tuple[Atom, bool]] | None:
        possible = [part for part in parts if part is not None]
        if not possible or [] in possible:
            return [] if possible else None
        if any(set(part) != set(possible[0]) for part in possible):
            raise unsupported(
                self.where,
                f"a goal that leaves a choice (or, imply, exists): {shown(self.where)}; "
                "a goal must come down to a conjunction of literals.",
            )
        return possible[0]

    def _literal(
        self, literal: Literal, binding: Mapping[str, str], inside_or: bool
    ) -> list[tuple[Atom, bool]] | None:
        """A literal of the goal; one that can never change counts as true or false in a choice."""
        ground = literal.ground(binding)
        if ground.predicate == "=":
            return [] if (ground.objects[0] == ground.objects[1]) == literal.positive else None
        if inside_or and ground.predicate not in self.domain.changing:
            return [] if (ground in self.init) == literal.positive else None
        return [(ground, literal.positive)]

    def _bindings(self, formula: Quantified, binding: Mapping[str, str]) -> list[Mapping[str, str]]:
        names = [variable.name for variable in formula.variables]
        ranges = [
            [name for name in self.symbols.objects if self.symbols.belongs(name, variable.types)]
            for variable in formula.variables
        ]
        return [{**binding, **dict(zip(names, of, strict=True))} for of in product(*ranges)]
