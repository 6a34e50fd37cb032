"""Read a PDDL problem as a checked value, with the names of its file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from regoal.planning.goals import Atom, Goal
from regoal.planning.pddl.domain import index_sections
from regoal.planning.pddl.effects import read_function_terms, read_number
from regoal.planning.pddl.formulas import KEYWORDS, Scope, read_atom, read_condition
from regoal.planning.pddl.model import (
    Formula,
    Junction,
    Literal,
    PddlDomain,
    PddlProblem,
    Quantified,
    Symbols,
)
from regoal.planning.pddl.syntax import (
    Bracket,
    Node,
    Word,
    bad,
    head,
    name_file,
    read_define,
    show,
    unsupported,
)
from regoal.planning.pddl.types import read_objects

_ONCE = (":domain", ":requirements", ":objects", ":init", ":goal", ":metric", ":length")
_BEYOND = {":constraints": "trajectory constraints", ":htn": "hierarchical tasks"}
_INIT_BEYOND = {
    "probabilistic": "probabilistic effects",
    "oneof": "incomplete knowledge of the initial state",
    "unknown": "incomplete knowledge of the initial state",
    "or": "incomplete knowledge of the initial state",
}


def parse_problem(path: Path, domain: PddlDomain, domain_path: Path) -> PddlProblem:
    """Read and check a problem file of a domain. Raises the errors of `parse_domain`."""
    name, sections, source = read_define(path, "problem")
    with name_file(path):
        one = index_sections(sections, _ONCE, (), _BEYOND)
        _check_domain_name(one.get(":domain"), domain.name, domain_path)
        for word in (":init", ":goal"):
            if word not in one:
                raise bad(name, f"the problem has no section ({word} ...); is the file complete?")
        objects = read_objects(
            one.get(":objects", ()), domain.symbols.types, domain.symbols.objects
        )
        symbols = replace(domain.symbols, objects={**domain.symbols.objects, **objects})
        init, values = _read_init(one[":init"], Scope(symbols, ":init"))
        goal_node = one[":goal"]
        if len(goal_node) != 1:
            raise bad(goal_node[0] if goal_node else name, "(:goal ...) must hold one condition.")
        formula = read_condition(goal_node[0], Scope(symbols, "the goal"))
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


def _read_init(
    nodes: tuple[Node, ...], scope: Scope
) -> tuple[list[Atom], dict[tuple[str, ...], float]]:
    """Read the atoms, in file order and each once, and the function values.

    Negated atoms add nothing. Raises `PddlError` if an atom is also negated.
    """
    atoms: dict[Atom, int] = {}
    negated: dict[Atom, Node] = {}
    values: dict[tuple[str, ...], float] = {}
    for node in nodes:
        if isinstance(node, Word):
            raise bad(node, f"expected an atom in brackets in :init, not '{node.text}'.")
        word = head(node)
        if word == "not" and len(node.items) == 2 and isinstance(node.items[1], Bracket):  # noqa: PLR2004
            negated[_read_init_atom(node.items[1], scope)] = node
        elif word == "=":
            _read_value(node, scope, values)
        else:
            atoms.setdefault(_read_init_atom(node, scope), node.line)
    for found, node in negated.items():
        if found in atoms:
            raise bad(
                node, f"{found} is both true (line {atoms[found]}) and false in :init; remove one."
            )
    return list(atoms), values


def _read_init_atom(node: Bracket, scope: Scope) -> Atom:
    word = head(node)
    if word not in scope.symbols.predicates:
        if word in _INIT_BEYOND:
            raise unsupported(node, f"{_INIT_BEYOND[word]} ({show(node)} in :init).")
        if word in KEYWORDS:
            raise bad(node, f"'{word}' cannot stand here in :init; give atoms one after the other.")
    if word == "at" and len(node.items) == 3 and isinstance(node.items[2], Bracket):  # noqa: PLR2004
        raise unsupported(node, f"timed initial literals ({show(node)}).")
    literal = read_atom(node, scope)
    if literal.predicate in scope.symbols.derived:
        raise bad(
            node,
            f"{show(node)} cannot stand in :init, since '{word}' is derived; remove it.",
        )
    return Atom(literal.predicate, literal.terms)


def _read_value(node: Bracket, scope: Scope, values: dict[tuple[str, ...], float]) -> None:
    if len(node.items) != 3 or isinstance(node.items[1], Word):  # noqa: PLR2004
        raise bad(node, f"{show(node)} in :init must give a function a value: (= (f a) 1).")
    value = read_number(node.items[2])
    if value is None:
        raise bad(node, f"{show(node)} in :init gives no number.")
    key = (head(node.items[1]), *read_function_terms(node.items[1], scope))
    if values.setdefault(key, value) != value:
        raise bad(node, f"{show(node.items[1])} has two values in :init; remove one.")


def _wants_costs(metric: tuple[Node, ...]) -> bool:
    """Return whether `:metric` asks for small total cost.

    Without a metric, and with `(total-time)`, each step counts 1.
    """
    if not metric:
        return False
    text = " ".join(map(show, metric))
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
    """Turn a goal into a conjunction of literals, with quantifiers over the problem's objects."""

    domain: PddlDomain
    symbols: Symbols
    init: frozenset[Atom]
    where: Node

    def goal(self, formula: Formula) -> Goal:
        literals = self._expand(formula, {}, inside_or=False)
        if literals is None:
            raise bad(self.where, f"the goal {show(self.where)} can never hold; correct it.")
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
        """Return the literals that must hold for a binding of variables, or None if they cannot."""
        if isinstance(formula, Literal):
            return self._expand_literal(formula, binding, inside_or)
        conjunctive = (
            formula.connective == "and"
            if isinstance(formula, Junction)
            else formula.quantifier == "forall"
        )
        inner = inside_or or not conjunctive
        if isinstance(formula, Junction):
            parts = [self._expand(part, binding, inner) for part in formula.parts]
        else:
            parts = [
                self._expand(formula.body, b, inner) for b in self._list_bindings(formula, binding)
            ]
        return self._join_parts(parts) if conjunctive else self._choose_part(parts)

    def _join_parts(
        self, parts: list[list[tuple[Atom, bool]] | None]
    ) -> list[tuple[Atom, bool]] | None:
        if any(part is None for part in parts):
            return None
        return [literal for part in parts if part is not None for literal in part]

    def _choose_part(
        self, parts: list[list[tuple[Atom, bool]] | None]
    ) -> list[tuple[Atom, bool]] | None:
        possible = [part for part in parts if part is not None]
        if not possible or [] in possible:
            return [] if possible else None
        if any(set(part) != set(possible[0]) for part in possible):
            raise unsupported(
                self.where,
                f"a goal that leaves a choice (or, imply, exists): {show(self.where)}; "
                "a goal must come down to a conjunction of literals.",
            )
        return possible[0]

    def _expand_literal(
        self, literal: Literal, binding: Mapping[str, str], inside_or: bool
    ) -> list[tuple[Atom, bool]] | None:
        """Return the literals that one literal of the goal needs, or None if it cannot hold.

        Inside a choice, a literal that no action can change counts as true or false at once.
        """
        ground = literal.ground(binding)
        if ground.predicate == "=":
            return [] if (ground.objects[0] == ground.objects[1]) == literal.positive else None
        if inside_or and ground.predicate not in self.domain.changing:
            return [] if (ground in self.init) == literal.positive else None
        return [(ground, literal.positive)]

    def _list_bindings(
        self, formula: Quantified, binding: Mapping[str, str]
    ) -> list[Mapping[str, str]]:
        names = [variable.name for variable in formula.variables]
        ranges = [
            [name for name in self.symbols.objects if self.symbols.belongs(name, variable.types)]
            for variable in formula.variables
        ]
        return [{**binding, **dict(zip(names, of, strict=True))} for of in product(*ranges)]
