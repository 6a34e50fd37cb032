"""What a domain says with its names taken away: action schemas and axioms as values.

`Colours` tells their parts apart without looking at a name (colour refinement: Weisfeiler and
Leman, 1968). Fingerprints and the search for a renaming are built on it.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

Term = int | str
"""A variable by its number, or a constant by its name."""

_ALL = 1 << 30
"""More variables than there are: all of them are shared by the whole rule."""

Node = tuple[str, object]
"""One part of a domain: ("symbol", Symbol), ("action", name), ("constant", name), or a variable."""


@dataclass(frozen=True, order=True)
class Symbol:
    """A predicate or a type. A type counts as a unary predicate that no action changes."""

    kind: str
    """`predicate`, `type`, or `internal` for what the PDDL library adds (axioms, unions)."""
    name: str
    arity: int

    def __str__(self) -> str:
        """The symbol as messages show it, e.g. `on/2`."""
        return f"{self.name}/{self.arity}"


class Literal(NamedTuple):
    """A symbol applied to terms, or its negation."""

    symbol: Symbol
    terms: tuple[Term, ...]
    positive: bool = True

    def key(self) -> tuple[Symbol, bool, tuple[tuple[bool, str], ...]]:
        """A total order, which the terms, numbers beside names, do not have by themselves."""
        return self.symbol, self.positive, tuple((isinstance(t, str), str(t)) for t in self.terms)


class Effect(NamedTuple):
    """`literal` comes true where every literal of `condition` holds.

    Variables from the action's arity on are universally quantified and belong to this effect alone.
    """

    literal: Literal
    condition: tuple[Literal, ...] = ()


@dataclass(frozen=True)
class ActionSchema:
    """An action schema; variable i is its parameter number i.

    Variables from `arity` on are existentially quantified in the preconditions. Equality conditions
    are left out, and a parameter's type is a literal of the preconditions. Schemas of one name are
    the disjuncts of one action.
    """

    name: str
    arity: int
    preconditions: tuple[Literal, ...]
    effects: tuple[Effect, ...]


@dataclass(frozen=True)
class Axiom:
    """`head` holds where some values of the body's further variables make all of `body` hold."""

    head: Literal
    body: tuple[Literal, ...]


class _Edge(NamedTuple):
    """One effect, precondition, head or body literal: `literals[0]` first, its condition after."""

    tag: str
    literals: tuple[tuple[Node, bool, tuple[Node, ...]], ...]


class _Rule(NamedTuple):
    """An action schema or an axiom; `owner` is the action's node."""

    owner: Node | None
    arity: int
    edges: tuple[_Edge, ...]


def digest(*parts: object) -> str:
    """A short hash of `parts` that is the same in every process."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


class Colours:
    """The parts of a domain, and a colour for each that its use alone decides.

    Parts of two domains that correspond under a renaming have equal colours.
    """

    def __init__(self, actions: Iterable[ActionSchema], axioms: Iterable[Axiom]) -> None:
        self._rules = [_action_rule(i, action) for i, action in enumerate(actions)]
        self._rules += [_axiom_rule(len(self._rules) + i, axiom) for i, axiom in enumerate(axioms)]
        self.size = sum(len(edge.literals) for rule in self._rules for edge in rule.edges)
        """How many literals there are: the cost of one round of refinement."""
        nodes: set[Node] = {rule.owner for rule in self._rules if rule.owner is not None}
        for rule in self._rules:
            for edge in rule.edges:
                for symbol, _, terms in edge.literals:
                    nodes.update((symbol, *terms))
        self.nodes = sorted(nodes, key=repr)
        """Every part that occurs, in a fixed order."""

    def refine(self, seed: Mapping[Node, str]) -> dict[Node, str]:
        """The stable colours when the parts in `seed` are told apart from the start."""
        colours = {node: digest(_sort(node), seed.get(node, "")) for node in self.nodes}
        classes = 0
        while len(set(colours.values())) > classes:
            classes = len(set(colours.values()))
            uses = self._uses(colours)
            colours = {n: digest(c, sorted(uses[n])) for n, c in colours.items()}
        return colours

    def fingerprint(self) -> str:
        """A digest of everything but the names and the order."""
        colours = self.refine({})
        kinds = sorted((node[0], colours[node]) for node in self.nodes)
        return digest(kinds, sorted(self._rule_colour(rule, colours) for rule in self._rules))

    def _uses(self, colours: Mapping[Node, str]) -> defaultdict[Node, list[str]]:
        """For each part, the places in which it stands, as colours."""
        uses: defaultdict[Node, list[str]] = defaultdict(list)
        for rule in self._rules:
            rule_colour = self._rule_colour(rule, colours)
            if rule.owner is not None:
                uses[rule.owner].append(rule_colour)
            for edge in rule.edges:
                literals = _literal_colours(edge, colours)
                place = digest(rule_colour, _edge_colour(edge, literals))
                for i, (symbol, _, terms) in enumerate(edge.literals):
                    here = digest(place, literals[i], i == 0)
                    uses[symbol].append(here)
                    for position, term in enumerate(terms):
                        uses[term].append(digest(here, position))
        return uses

    def _rule_colour(self, rule: _Rule, colours: Mapping[Node, str]) -> str:
        edges = sorted(_edge_colour(e, _literal_colours(e, colours)) for e in rule.edges)
        return digest(rule.owner and colours[rule.owner], rule.arity, edges)


def _sort(node: Node) -> object:
    """What a part is: symbols of different arities, for one, never correspond."""
    return (node[0], node[1].arity) if isinstance(node[1], Symbol) else node[0]


def _literal_colours(edge: _Edge, colours: Mapping[Node, str]) -> list[str]:
    return [
        digest(colours[symbol], positive, [colours[term] for term in terms])
        for symbol, positive, terms in edge.literals
    ]


def _edge_colour(edge: _Edge, literals: list[str]) -> str:
    return digest(edge.tag, literals[0], sorted(literals[1:]))


def _action_rule(index: int, action: ActionSchema) -> _Rule:
    edges = [_edge("precondition", (p,), (index,), _ALL) for p in action.preconditions]
    for i, effect in enumerate(action.effects):
        literals = (effect.literal, *effect.condition)
        edges.append(_edge("effect", literals, (index, i), action.arity))
    return _Rule(("action", action.name), action.arity, tuple(edges))


def _axiom_rule(index: int, axiom: Axiom) -> _Rule:
    edges = [_edge("body", (literal,), (index,), _ALL) for literal in axiom.body]
    edges.append(_edge("head", (axiom.head,), (index,), _ALL))
    return _Rule(None, axiom.head.symbol.arity, tuple(edges))


def _edge(tag: str, literals: tuple[Literal, ...], place: tuple[int, ...], shared: int) -> _Edge:
    """An edge at `place`; variables below `shared` are common to the whole rule `place[0]`."""

    def node(term: Term) -> Node:
        if isinstance(term, str):
            return "constant", term
        if term < shared:
            return "variable", (place[0], term)
        return "quantified", (*place, term)

    return _Edge(
        tag,
        tuple(
            (("symbol", lit.symbol), lit.positive, tuple(node(t) for t in lit.terms))
            for lit in literals
        ),
    )
