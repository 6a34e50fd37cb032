"""A domain's structure as values: what a policy is tied to, and how it is told from another's."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from regoal.errors import UsageError
from regoal.planning.matching.renaming import (
    Budget,
    Renaming,
    Rules,
    SearchLimitError,
    differences,
    parameter_order,
    renamings,
)
from regoal.planning.matching.rules import (
    ActionSchema,
    Axiom,
    Colours,
    Effect,
    Literal,
    Node,
    Symbol,
)

__all__ = ["ActionSchema", "Matching", "Schema", "Symbol", "match"]


@dataclass(frozen=True)
class Schema:
    """A domain's structure, without the library that read it. Everything is sorted."""

    name: str
    symbols: tuple[Symbol, ...]
    """Predicates and types that are declared, `=` and the universal type aside."""
    actions: tuple[ActionSchema, ...]
    """Several of one name are the disjuncts of that action."""
    constants: tuple[str, ...]
    axioms: tuple[Axiom, ...] = ()

    @cached_property
    def used_symbols(self) -> tuple[Symbol, ...]:
        """The symbols that occur in an action or an axiom.

        The others cannot matter to a plan, and neither can a supertype beside the parameters' own
        types; so two domains may differ in them and still be one.
        """
        return tuple(symbol for symbol in self._occurring if symbol.kind != "internal")

    @cached_property
    def _occurring(self) -> tuple[Symbol, ...]:
        nodes = [part for kind, part in self.rules.colours.nodes if kind == "symbol"]
        return tuple(sorted(part for part in nodes if isinstance(part, Symbol)))

    @cached_property
    def changed_symbols(self) -> frozenset[Symbol]:
        """The symbols that actions change or axioms define."""
        effects = [effect for action in self.actions for effect in action.effects]
        changed = [effect.literal.symbol for effect in effects]
        return frozenset(changed + [axiom.head.symbol for axiom in self.axioms])

    @cached_property
    def action_arities(self) -> dict[str, int]:
        """Number of parameters of each action, by name."""
        return {action.name: action.arity for action in self.actions}

    @cached_property
    def rules(self) -> Rules:
        """The actions and axioms, ready to be compared with another domain's."""
        return Rules(self.actions, self.axioms, Colours(self.actions, self.axioms))

    def fingerprint(self) -> str:
        """A short hexadecimal digest that two domains share if they are one up to renaming.

        It does not see names, order, equality conditions, unused symbols, the order of an action's
        parameters, nor whether a type is declared or written as a static unary predicate.
        """
        return self.rules.colours.fingerprint()

    def __str__(self) -> str:
        """The domain in one line, for messages."""
        predicates = [str(s) for s in self.symbols if s.kind == "predicate"]
        types = [s.name for s in self.symbols if s.kind == "type"]
        actions = [f"{name}/{arity}" for name, arity in sorted(self.action_arities.items())]
        parts = [f"predicates {' '.join(predicates) or '(none)'}"]
        parts += [f"types {' '.join(types)}"] if types else []
        parts += [f"actions {' '.join(actions) or '(none)'}"]
        return f"{self.name} [{self.fingerprint()}]: {'; '.join(parts)}"

    def to_json(self) -> dict[str, Any]:
        """The schema as plain JSON values; a literal is [symbol's index, terms, positive]."""
        symbols = sorted({*self.symbols, *self._occurring})
        index = {symbol: i for i, symbol in enumerate(symbols)}

        def literals(of: Sequence[Literal]) -> list[Any]:
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
        """The schema that `to_json` wrote. Raises `UsageError` where `values` is nothing of it."""
        try:
            return _from_json(values)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"the policy's description of its domain is damaged ({error!r}); "
                "use another copy of the policy"
            ) from error


@dataclass(frozen=True)
class Matching:
    """How a domain is read by a policy that was learnt on another: by names, policy to domain."""

    symbols: dict[Symbol, Symbol]
    """Every used symbol of the policy's domain, and the unused ones that this domain has too."""
    actions: dict[str, str]
    parameters: dict[str, tuple[int, ...]]
    """By the policy's action: parameter i of the policy's is this domain's `[action][i]`."""
    notes: tuple[str, ...] = ()
    """What to say to the user, one line each."""


def match(policy: Schema, domain: Schema) -> Matching:
    """Read `domain` as the domain that a policy was learnt on.

    Names decide where they all coincide, even if preconditions or effects differ. Otherwise it is
    the one renaming under which the action schemas coincide. Unused symbols do not take part, and a
    type may stand for a static unary predicate. Raises `UsageError` where there is no such renaming
    or there are several.
    """
    names = _shared_names(policy, domain)
    same = names.keys() >= set(policy.used_symbols)
    same = same and set(names.values()) >= set(domain.used_symbols)
    if same and policy.action_arities == domain.action_arities:
        return _match_by_name(policy, domain, names)
    renaming = _only_renaming(policy, domain, names)
    taken = set(renaming.symbols.values())
    unused = {a: b for a, b in names.items() if a not in renaming.symbols and b not in taken}
    renamed = {a: b for a, b in renaming.symbols.items() if a.kind != "internal"}
    changed = [f"{a.name} = {b.name}" for a, b in sorted(renamed.items())]
    changed += [f"{a} = {b}" for a, b in sorted(renaming.actions.items())]
    changed = [pair for pair in changed if len(set(pair.split(" = "))) > 1]
    notes = (f"names are read so (policy = this domain): {', '.join(changed)}",)
    return Matching(
        {**renamed, **unused},
        dict(renaming.actions),
        renaming.parameters,
        notes + _order_notes(renaming.parameters),
    )


def _shared_names(policy: Schema, domain: Schema) -> dict[Symbol, Symbol]:
    """Symbols that both have: by kind, name and arity, or a type here and a predicate there."""
    shared = {symbol: symbol for symbol in policy.symbols if symbol in domain.symbols}
    free = {s for s in domain.symbols if s not in shared and s not in domain.changed_symbols}
    for symbol in policy.symbols:
        twin = Symbol("predicate" if symbol.kind == "type" else "type", symbol.name, symbol.arity)
        if symbol not in shared and symbol not in policy.changed_symbols and twin in free:
            shared[symbol] = twin
    return shared


def _fixed_nodes(
    policy: Schema, domain: Schema, names: dict[Symbol, Symbol]
) -> list[tuple[Node, Node]]:
    """The parts with one name on both sides, for a search that keeps every such name."""
    used, others = set(policy.used_symbols), set(domain.used_symbols)
    fixed: list[tuple[Node, Node]] = [
        (("symbol", a), ("symbol", b)) for a, b in names.items() if a in used and b in others
    ]
    for name, arity in policy.action_arities.items():
        if domain.action_arities.get(name) == arity:
            fixed.append((("action", name), ("action", name)))
    constants = sorted(set(policy.constants).intersection(domain.constants))
    return fixed + [(("constant", name), ("constant", name)) for name in constants]


def _match_by_name(policy: Schema, domain: Schema, names: dict[Symbol, Symbol]) -> Matching:
    actions = {name: name for name in policy.action_arities}
    fixed = _fixed_nodes(policy, domain, names)
    try:
        exact = next(renamings(policy.rules, domain.rules, fixed, Budget()), None)
    except SearchLimitError:
        exact = None
    if exact is not None:
        return Matching(names, actions, exact.parameters, _order_notes(exact.parameters))
    parameters, told = {}, []
    ours, theirs = policy.rules.disjuncts(), domain.rules.disjuncts()
    for name in actions:
        parameters[name], difference = _compare(ours[name], theirs[name], names)
        told += [f"{name} has other {difference}"] if difference else []
    what = ", ".join(told) or "derived predicates or constants are other ones"
    note = f"this domain is not quite the policy's: {what}; every plan is validated"
    return Matching(names, actions, parameters, (note, *_order_notes(parameters)))


def _compare(
    ours: list[ActionSchema], theirs: list[ActionSchema], names: dict[Symbol, Symbol]
) -> tuple[tuple[int, ...], str]:
    """The parameter order of an action of both domains, and what differs, "" for nothing."""
    renaming = Renaming(names, {}, {})
    try:
        order = parameter_order(ours, theirs, renaming, Budget())
    except SearchLimitError:
        order = None
    if order is not None:
        return order, ""
    parts = zip(("preconditions", "effects"), differences(ours, theirs, renaming), strict=True)
    return tuple(range(ours[0].arity)), " and ".join(word for word, differs in parts if differs)


def _order_notes(parameters: dict[str, tuple[int, ...]]) -> tuple[str, ...]:
    moved = [a for a, order in sorted(parameters.items()) if order != tuple(sorted(order))]
    return (f"parameters are read in another order: {', '.join(moved)}",) if moved else ()


def _only_renaming(policy: Schema, domain: Schema, names: dict[Symbol, Symbol]) -> Renaming:
    """The one exact renaming, of those that keep every shared name if there are any."""
    fixed = _fixed_nodes(policy, domain, names)
    try:
        for keep in [fixed, []] if fixed else [[]]:
            found = list(islice(renamings(policy.rules, domain.rules, keep, Budget()), 2))
            if found:
                break
    except SearchLimitError:
        raise _misfit(policy, domain, "the two are too regular to be compared") from None
    if not found:
        raise _misfit(policy, domain, "no renaming makes their actions the same")
    if len(found) > 1:
        first, second = (
            sorted([(a.name, b.name) for a, b in r.symbols.items()] + [*r.actions.items()])
            for r in found
        )
        (a, b), (_, c) = next((x, y) for x, y in zip(first, second, strict=True) if x != y)
        why = f"several renamings make their actions the same ({a} is {b} or {c})"
        raise _misfit(policy, domain, f"{why}; rename it in the domain file")
    return found[0]


def _misfit(policy: Schema, domain: Schema, why: str) -> UsageError:
    return UsageError(
        f"the policy was learnt on another domain: {why}\n  policy: {policy}\n  domain: {domain}"
    )


def _from_json(values: Any) -> Schema:
    symbols = tuple(
        Symbol(str(kind), str(name), int(arity)) for kind, name, arity in values["symbols"]
    )

    def literal(parts: Any) -> Literal:
        index, terms, positive = parts
        if not all(isinstance(term, int | str) for term in terms):
            raise ValueError(f"{terms} are no terms")
        return Literal(symbols[index], tuple(terms), bool(positive))

    def literals(of: Any) -> tuple[Literal, ...]:
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
                    Effect(literal(first), literals(condition))
                    for first, *condition in action["effects"]
                ),
            )
            for action in values["actions"]
        ),
        tuple(str(name) for name in values["constants"]),
        tuple(Axiom(literal(head), literals(body)) for head, *body in values["axioms"]),
    )
