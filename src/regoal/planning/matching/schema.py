"""The structure of a domain as a value, and the matching of a policy's domain with another."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from regoal.errors import UsageError
from regoal.planning.matching.dynamics import (
    ActionSchema,
    Axiom,
    Colours,
    Dynamics,
    Part,
    SchemaEffect,
    SchemaLiteral,
    Symbol,
)
from regoal.planning.matching.renaming import (
    Budget,
    Renaming,
    SearchLimitError,
    differences,
    find_renamings,
    parameter_order,
)

__all__ = ["ActionSchema", "Matching", "Schema", "Symbol", "match"]


@dataclass(frozen=True)
class Schema:
    """The structure of a domain, independent of the PDDL library. Everything is sorted."""

    name: str
    symbols: tuple[Symbol, ...]
    """The declared predicates and types, except `=` and `object`."""
    actions: tuple[ActionSchema, ...]
    """Schemas with equal names are the disjuncts of one action."""
    constants: tuple[str, ...]
    axioms: tuple[Axiom, ...] = ()

    @cached_property
    def used_symbols(self) -> tuple[Symbol, ...]:
        """The symbols that occur in an action or an axiom.

        Other symbols cannot affect a plan, nor can a supertype of a parameter's type. Two domains
        may differ in them and still match.
        """
        return tuple(symbol for symbol in self._occurring if symbol.kind != "internal")

    @cached_property
    def _occurring(self) -> tuple[Symbol, ...]:
        found = [part for kind, part in self.dynamics.colours.parts if kind == "symbol"]
        return tuple(sorted(part for part in found if isinstance(part, Symbol)))

    @cached_property
    def changed_symbols(self) -> frozenset[Symbol]:
        """The symbols that actions change or axioms define."""
        effects = [effect for action in self.actions for effect in action.effects]
        changed = [effect.literal.symbol for effect in effects]
        return frozenset(changed + [axiom.head.symbol for axiom in self.axioms])

    @cached_property
    def action_arities(self) -> dict[str, int]:
        """The number of parameters of each action, by name."""
        return {action.name: action.arity for action in self.actions}

    @cached_property
    def dynamics(self) -> Dynamics:
        """The actions and axioms, prepared for a comparison with another domain."""
        return Dynamics(self.actions, self.axioms, Colours(self.actions, self.axioms))

    def fingerprint(self) -> str:
        """Return a short hexadecimal digest, equal for two domains that differ by a renaming only.

        It ignores names, order, equality conditions, unused symbols and the order of an action's
        parameters. A declared type equals a static unary predicate.
        """
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return self.dynamics.colours.fingerprint()

    def __str__(self) -> str:
        """Describe the domain in one line, for messages."""
        predicates = [str(s) for s in self.symbols if s.kind == "predicate"]
        types = [s.name for s in self.symbols if s.kind == "type"]
        actions = [f"{name}/{arity}" for name, arity in sorted(self.action_arities.items())]
        parts = [f"predicates {' '.join(predicates) or '(none)'}"]
        parts += [f"types {' '.join(types)}"] if types else []
        parts += [f"actions {' '.join(actions) or '(none)'}"]
        return f"{self.name} [{self.fingerprint()}]: {'; '.join(parts)}"

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON values; a literal is [symbol's index, terms, positive]."""
        symbols = sorted({*self.symbols, *self._occurring})
        index = {symbol: i for i, symbol in enumerate(symbols)}

        def literals(of: Sequence[SchemaLiteral]) -> list[Any]:
            return [[index[x.symbol], list(x.terms), x.positive] for x in of]

        return {
            "name": self.name,
            "symbols": [[s.kind, s.name, s.arity] for s in symbols],
            "actions": [
                {
                    "name": a.name,
                    "arity": a.arity,
                    "preconditions": literals(a.preconditions),
                    "effects": [literals((e.literal, *e.condition)) for e in a.effects],
                }
                for a in self.actions
            ],
            "constants": list(self.constants),
            "axioms": [literals((axiom.head, *axiom.body)) for axiom in self.axioms],
        }

    @classmethod
    def from_json(cls, values: Any) -> "Schema":
        """Read the schema that `to_json` wrote. Raises `UsageError` if `values` is damaged."""
        try:
            return _read_json(values)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"the policy's description of its domain is damaged ({error!r}); "
                "use another copy of the policy"
            ) from error


@dataclass(frozen=True)
class Matching:
    """Maps the names of the domain that a policy was trained on to the names of another domain."""

    symbols: dict[Symbol, Symbol]
    """Every used symbol of the policy's domain, and unused ones that this domain also has."""
    actions: dict[str, str]
    parameters: dict[str, tuple[int, ...]]
    """`parameters[action][i]` is this domain's position of parameter i of the policy's action."""
    notes: tuple[str, ...] = ()
    """Messages for the user, one line each."""


def match(policy: Schema, domain: Schema) -> Matching:
    """Match the domain that a policy was trained on with another domain.

    If all names coincide, they decide, even if preconditions or effects differ. Otherwise the one
    renaming decides under which the action schemas coincide. Unused symbols do not count, and a
    type may correspond to a static unary predicate. Raises `UsageError` if there is no such
    renaming, or more than one.
    """
    names = _find_shared_names(policy, domain)
    same = names.keys() >= set(policy.used_symbols)
    same = same and set(names.values()) >= set(domain.used_symbols)
    if same and policy.action_arities == domain.action_arities:
        return _match_by_name(policy, domain, names)
    renaming = _find_only_renaming(policy, domain, names)
    taken = set(renaming.symbols.values())
    unused = {a: b for a, b in names.items() if a not in renaming.symbols and b not in taken}
    renamed = {a: b for a, b in renaming.symbols.items() if a.kind != "internal"}
    changed = [f"{a.name} = {b.name}" for a, b in sorted(renamed.items())]
    changed += [f"{a} = {b}" for a, b in sorted(renaming.actions.items())]
    changed = [pair for pair in changed if len(set(pair.split(" = "))) > 1]
    notes = (f"names correspond as follows (policy = this domain): {', '.join(changed)}",)
    return Matching(
        {**renamed, **unused},
        dict(renaming.actions),
        renaming.parameters,
        notes + _note_orders(renaming.parameters),
    )


def _find_shared_names(policy: Schema, domain: Schema) -> dict[Symbol, Symbol]:
    """Return symbols that both domains have, with equal kind, name and arity.

    A type may also correspond to a predicate with its name that never changes.
    """
    shared = {symbol: symbol for symbol in policy.symbols if symbol in domain.symbols}
    free = {s for s in domain.symbols if s not in shared and s not in domain.changed_symbols}
    for symbol in policy.symbols:
        twin = Symbol("predicate" if symbol.kind == "type" else "type", symbol.name, symbol.arity)
        if symbol not in shared and symbol not in policy.changed_symbols and twin in free:
            shared[symbol] = twin
    return shared


def _find_fixed_parts(
    policy: Schema, domain: Schema, names: dict[Symbol, Symbol]
) -> list[tuple[Part, Part]]:
    """Return the parts with equal names on both sides, for a search that keeps these names."""
    used, others = set(policy.used_symbols), set(domain.used_symbols)
    fixed: list[tuple[Part, Part]] = [
        (("symbol", a), ("symbol", b)) for a, b in names.items() if a in used and b in others
    ]
    for name, arity in policy.action_arities.items():
        if domain.action_arities.get(name) == arity:
            fixed.append((("action", name), ("action", name)))
    constants = sorted(set(policy.constants).intersection(domain.constants))
    return fixed + [(("constant", name), ("constant", name)) for name in constants]


def _match_by_name(policy: Schema, domain: Schema, names: dict[Symbol, Symbol]) -> Matching:
    actions = {name: name for name in policy.action_arities}
    fixed = _find_fixed_parts(policy, domain, names)
    try:
        exact = next(find_renamings(policy.dynamics, domain.dynamics, fixed, Budget()), None)
    except SearchLimitError:
        exact = None
    if exact is not None:
        return Matching(names, actions, exact.parameters, _note_orders(exact.parameters))
    parameters, found = {}, []
    ours, theirs = policy.dynamics.disjuncts(), domain.dynamics.disjuncts()
    for name in actions:
        parameters[name], difference = _compare(ours[name], theirs[name], names)
        found += [f"{name} has other {difference}"] if difference else []
    what = ", ".join(found) or "derived predicates or constants differ"
    note = f"this domain differs from the policy's: {what}; every plan is validated"
    return Matching(names, actions, parameters, (note, *_note_orders(parameters)))


def _compare(
    ours: list[ActionSchema], theirs: list[ActionSchema], names: dict[Symbol, Symbol]
) -> tuple[tuple[int, ...], str]:
    """Return the parameter order of an action of both domains, and what differs or ""."""
    renaming = Renaming(names, {}, {})
    try:
        order = parameter_order(ours, theirs, renaming, Budget())
    except SearchLimitError:
        order = None
    if order is not None:
        return order, ""
    parts = zip(("preconditions", "effects"), differences(ours, theirs, renaming), strict=True)
    return tuple(range(ours[0].arity)), " and ".join(word for word, differs in parts if differs)


def _note_orders(parameters: dict[str, tuple[int, ...]]) -> tuple[str, ...]:
    moved = [a for a, order in sorted(parameters.items()) if order != tuple(sorted(order))]
    return (f"parameters have another order: {', '.join(moved)}",) if moved else ()


def _find_only_renaming(policy: Schema, domain: Schema, names: dict[Symbol, Symbol]) -> Renaming:
    """Return the only exact renaming; if some keep every shared name, only these count.

    Raises `UsageError` if there is none or more than one.
    """
    fixed = _find_fixed_parts(policy, domain, names)
    try:
        for keep in [fixed, []] if fixed else [[]]:
            found = list(
                islice(find_renamings(policy.dynamics, domain.dynamics, keep, Budget()), 2)
            )
            if found:
                break
    except SearchLimitError:
        raise _make_mismatch_error(policy, domain, "both are too regular to be compared") from None
    if not found:
        raise _make_mismatch_error(policy, domain, "no renaming makes their actions the same")
    if len(found) > 1:
        first, second = (
            sorted([(a.name, b.name) for a, b in r.symbols.items()] + [*r.actions.items()])
            for r in found
        )
        (a, b), (_, c) = next((x, y) for x, y in zip(first, second, strict=True) if x != y)
        why = f"several renamings make their actions the same ({a} is {b} or {c})"
        raise _make_mismatch_error(policy, domain, f"{why}; rename it in the domain file")
    return found[0]


def _make_mismatch_error(policy: Schema, domain: Schema, why: str) -> UsageError:
    return UsageError(
        f"the policy was trained on another domain: {why}\n  policy: {policy}\n  domain: {domain}"
    )


def _read_json(values: Any) -> Schema:
    symbols = tuple(
        Symbol(str(kind), str(name), int(arity)) for kind, name, arity in values["symbols"]
    )

    def literal(parts: Any) -> SchemaLiteral:
        index, terms, positive = parts
        if not all(isinstance(term, int | str) for term in terms):
            raise ValueError(f"{terms} are not terms")
        return SchemaLiteral(symbols[index], tuple(terms), bool(positive))

    def literals(of: Any) -> tuple[SchemaLiteral, ...]:
        return tuple(literal(parts) for parts in of)

    return Schema(
        str(values["name"]),
        tuple(symbol for symbol in symbols if symbol.kind != "internal"),
        tuple(
            ActionSchema(
                str(action["name"]),
                int(action["arity"]),
                literals(action["preconditions"]),
                tuple(
                    SchemaEffect(literal(first), literals(condition))
                    for first, *condition in action["effects"]
                ),
            )
            for action in values["actions"]
        ),
        tuple(str(name) for name in values["constants"]),
        tuple(Axiom(literal(head), literals(body)) for head, *body in values["axioms"]),
    )
