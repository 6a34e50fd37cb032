"""The dynamics of a domain as values: action schemas and axioms, compared without their names.

`Colours` distinguishes their parts without names (colour refinement: Weisfeiler and Leman, 1968).
Fingerprints and the search for a renaming use it.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Term = int | str
"""A variable by its number, or a constant by its name."""

_ALL = 1 << 30
"""A number above every variable, so that the whole definition shares all variables."""

Part = tuple[str, object]
"""A part of a domain: ("symbol", Symbol), ("action", name), ("constant", name), or a variable."""


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


class SchemaLiteral(NamedTuple):
    """A symbol applied to terms, or its negation."""

    symbol: Symbol
    terms: tuple[Term, ...]
    positive: bool = True

    def key(self) -> tuple[Symbol, bool, tuple[tuple[bool, str], ...]]:
        """Return a key for sorting; terms mix numbers and names, so they have no order."""
        return self.symbol, self.positive, tuple((isinstance(t, str), str(t)) for t in self.terms)


class SchemaEffect(NamedTuple):
    """A literal that an action makes true if every literal of `condition` holds.

    Variables from the action's arity on are universally quantified and belong to this effect only.
    """

    literal: SchemaLiteral
    condition: tuple[SchemaLiteral, ...] = ()


@dataclass(frozen=True)
class ActionSchema:
    """An action schema; variable i is its parameter number i.

    Variables from `arity` on are existentially quantified in the preconditions. Equality conditions
    are omitted, and a parameter's type is a literal of the preconditions. Schemas with equal names
    are the disjuncts of one action.
    """

    name: str
    arity: int
    preconditions: tuple[SchemaLiteral, ...]
    effects: tuple[SchemaEffect, ...]


@dataclass(frozen=True)
class Axiom:
    """`head` holds if all of `body` holds for some values of the body's other variables."""

    head: SchemaLiteral
    body: tuple[SchemaLiteral, ...]


class _Edge(NamedTuple):
    """One effect, precondition, head or body literal: first the literal, then its condition."""

    tag: str
    literals: tuple[tuple[Part, bool, tuple[Part, ...]], ...]


class _Definition(NamedTuple):
    """An action schema or an axiom; `owner` is the action's part, None for an axiom."""

    owner: Part | None
    arity: int
    edges: tuple[_Edge, ...]


def digest(*parts: object) -> str:
    """Return a short hash of `parts` that is equal in every process."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


class Colours:
    """The parts of a domain, and a colour for each that depends only on how the part is used.

    Two parts that correspond under a renaming have equal colours.
    """

    def __init__(self, actions: Iterable[ActionSchema], axioms: Iterable[Axiom]) -> None:
        self._definitions = [_define_action(i, action) for i, action in enumerate(actions)]
        self._definitions += [
            _define_axiom(len(self._definitions) + i, axiom) for i, axiom in enumerate(axioms)
        ]
        self.size = sum(
            len(edge.literals) for definition in self._definitions for edge in definition.edges
        )
        """The number of literals, which is the cost of one round of refinement."""
        parts: set[Part] = {
            definition.owner for definition in self._definitions if definition.owner is not None
        }
        for definition in self._definitions:
            for edge in definition.edges:
                for symbol, _, terms in edge.literals:
                    parts.update((symbol, *terms))
        self.parts = sorted(parts, key=repr)
        """Every part that occurs, in a fixed order."""

    def refine(self, seed: Mapping[Part, str]) -> dict[Part, str]:
        """Return the stable colours if the parts in `seed` begin with these colours."""
        colours = {part: digest(_kind_of(part), seed.get(part, "")) for part in self.parts}
        classes = 0
        while len(set(colours.values())) > classes:
            classes = len(set(colours.values()))
            uses = self._uses(colours)
            colours = {n: digest(c, sorted(uses[n])) for n, c in colours.items()}
        return colours

    def fingerprint(self) -> str:
        """Return a digest of everything except names and order."""
        colours = self.refine({})
        kinds = sorted((part[0], colours[part]) for part in self.parts)
        return digest(
            kinds,
            sorted(
                self._colour_definition(definition, colours) for definition in self._definitions
            ),
        )

    def _uses(self, colours: Mapping[Part, str]) -> defaultdict[Part, list[str]]:
        """Return the places of each part as colours."""
        uses: defaultdict[Part, list[str]] = defaultdict(list)
        for definition in self._definitions:
            definition_colour = self._colour_definition(definition, colours)
            if definition.owner is not None:
                uses[definition.owner].append(definition_colour)
            for edge in definition.edges:
                literals = _colour_literals(edge, colours)
                place = digest(definition_colour, _colour_edge(edge, literals))
                for i, (symbol, _, terms) in enumerate(edge.literals):
                    here = digest(place, literals[i], i == 0)
                    uses[symbol].append(here)
                    for position, term in enumerate(terms):
                        uses[term].append(digest(here, position))
        return uses

    def _colour_definition(self, definition: _Definition, colours: Mapping[Part, str]) -> str:
        edges = sorted(_colour_edge(e, _colour_literals(e, colours)) for e in definition.edges)
        return digest(definition.owner and colours[definition.owner], definition.arity, edges)


@dataclass(frozen=True)
class Dynamics:
    """The action schemas and axioms of a domain and their colours, for comparisons."""

    actions: Sequence[ActionSchema]
    axioms: Sequence[Axiom]
    colours: Colours

    def disjuncts(self) -> dict[str, list[ActionSchema]]:
        """Return the schemas of each action."""
        found: defaultdict[str, list[ActionSchema]] = defaultdict(list)
        for action in self.actions:
            found[action.name].append(action)
        return dict(found)


def _kind_of(part: Part) -> object:
    """Return the kind of a part; symbols of different arities, for example, never correspond."""
    return (part[0], part[1].arity) if isinstance(part[1], Symbol) else part[0]


def _colour_literals(edge: _Edge, colours: Mapping[Part, str]) -> list[str]:
    return [
        digest(colours[symbol], positive, [colours[term] for term in terms])
        for symbol, positive, terms in edge.literals
    ]


def _colour_edge(edge: _Edge, literals: list[str]) -> str:
    return digest(edge.tag, literals[0], sorted(literals[1:]))


def _define_action(index: int, action: ActionSchema) -> _Definition:
    edges = [_make_edge("precondition", (p,), (index,), _ALL) for p in action.preconditions]
    for i, effect in enumerate(action.effects):
        literals = (effect.literal, *effect.condition)
        edges.append(_make_edge("effect", literals, (index, i), action.arity))
    return _Definition(("action", action.name), action.arity, tuple(edges))


def _define_axiom(index: int, axiom: Axiom) -> _Definition:
    edges = [_make_edge("body", (literal,), (index,), _ALL) for literal in axiom.body]
    edges.append(_make_edge("head", (axiom.head,), (index,), _ALL))
    return _Definition(None, axiom.head.symbol.arity, tuple(edges))


def _make_edge(
    tag: str, literals: tuple[SchemaLiteral, ...], place: tuple[int, ...], shared: int
) -> _Edge:
    """Make an edge at `place`; the whole definition `place[0]` shares variables below `shared`."""

    def make_part(term: Term) -> Part:
        if isinstance(term, str):
            return "constant", term
        if term < shared:
            return "variable", (place[0], term)
        return "quantified", (*place, term)

    return _Edge(
        tag,
        tuple(
            (("symbol", lit.symbol), lit.positive, tuple(make_part(t) for t in lit.terms))
            for lit in literals
        ),
    )
