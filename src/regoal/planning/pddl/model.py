"""PDDL domains and problems as checked values, with the names of their files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from regoal.planning.goals import Atom, Goal

Types = tuple[str, ...]
"""Sorted types of which one must hold. Only an `either` in the file gives more than one."""

Ancestors = Mapping[str, frozenset[str]]
"""Maps each type to itself and all types above it; `object` is above all."""


def objects_of(types_of: Mapping[str, Sequence[str]], types: Sequence[str]) -> list[str]:
    """Return the objects that have one of these types, in order.

    `types_of` gives the types of each object, without `object`, which all have.

    >>> objects_of({"van": ("car",), "home": ("place",)}, ("place",))
    ['home']
    """
    return [name for name, of in types_of.items() if not {*of, "object"}.isdisjoint(types)]


@dataclass(frozen=True)
class Variable:
    """A parameter or bound variable, with `?` in its name, and the types of its values."""

    name: str
    types: Types


@dataclass(frozen=True)
class Literal:
    """An atom or its negation: a predicate or `=`, applied to variables (with `?`) and objects."""

    predicate: str
    terms: tuple[str, ...]
    positive: bool = True

    def ground(self, binding: Mapping[str, str]) -> Atom:
        """Return the literal's atom, with objects for the terms that `binding` names."""
        return Atom(self.predicate, tuple(binding.get(term, term) for term in self.terms))


@dataclass(frozen=True)
class Junction:
    """A conjunction (`and`) or disjunction (`or`) of any number of parts."""

    connective: str
    parts: "tuple[Formula, ...]"


@dataclass(frozen=True)
class Quantified:
    """`forall` or `exists` over some variables."""

    quantifier: str
    variables: tuple[Variable, ...]
    body: "Formula"


Formula = Literal | Junction | Quantified

TRUE = Junction("and", ())


@dataclass(frozen=True)
class Symbols:
    """The names that a file may refer to.

    `types` maps each type to itself and all types above it. `objects` gives each object's type.
    `predicates` and `functions` give the types of each argument.
    """

    types: Ancestors
    predicates: Mapping[str, tuple[Types, ...]]
    functions: Mapping[str, tuple[Types, ...]]
    derived: frozenset[str]
    objects: Mapping[str, str]

    def belongs(self, name: str, types: Types) -> bool:
        """Return whether an object is of one of these types."""
        return not self.types[self.objects[name]].isdisjoint(types)

    def meet(self, some: Types, others: Types) -> bool:
        """Return whether an object could be of one of `some` and one of `others` at once."""
        return any(
            not above.isdisjoint(some) and not above.isdisjoint(others)
            for above in self.types.values()
        )


Values = Mapping[tuple[str, ...], float]
"""Maps (function, object, ...) to the number that `:init` gives it."""


@dataclass(frozen=True)
class Effect:
    """Literals that an action makes true, for all `variables` for which `condition` held before."""

    variables: tuple[Variable, ...]
    condition: Formula
    literals: tuple[Literal, ...]


@dataclass(frozen=True)
class Cost:
    """An action's cost: a number, or a function of parameters (with `?`) and constants."""

    number: float = 0.0
    function: str = ""
    terms: tuple[str, ...] = ()

    def value(self, binding: Mapping[str, str], values: Values) -> float | None:
        """Return the cost for a binding of parameters, or None if `:init` gives no value."""
        if not self.function:
            return self.number
        return values.get((self.function, *(binding.get(term, term) for term in self.terms)))


@dataclass(frozen=True)
class DerivedRule:
    """One rule for a derived predicate: if `body` holds, `predicate(parameters)` is true."""

    predicate: str
    parameters: tuple[Variable, ...]
    body: Formula


@dataclass(frozen=True)
class PddlAction:
    """An action schema. `costs` are the amounts by which it increases `(total-cost)`."""

    name: str
    parameters: tuple[Variable, ...]
    precondition: Formula
    effects: tuple[Effect, ...]
    costs: tuple[Cost, ...]

    def bind(self, objects: Sequence[str]) -> dict[str, str]:
        """Map the names of the parameters to these objects."""
        return {v.name: o for v, o in zip(self.parameters, objects, strict=True)}


@dataclass(frozen=True)
class PddlDomain:
    """A checked domain.

    `parents` gives the types right above each type except `object`, in file order. `source` is
    the file's text, decoded.
    """

    name: str
    parents: Mapping[str, tuple[str, ...]]
    symbols: Symbols
    derived: tuple[DerivedRule, ...]
    actions: tuple[PddlAction, ...]
    source: str = field(repr=False)

    @cached_property
    def changing(self) -> frozenset[str]:
        """The predicates that actions change or rules derive; all others are static."""
        changed = {x.predicate for a in self.actions for e in a.effects for x in e.literals}
        return self.symbols.derived | changed


@dataclass(frozen=True)
class PddlProblem:
    """A checked problem.

    `objects` does not include the domain's constants. `values` holds the values of functions.
    `has_costs` says whether the plan's total cost is to be minimized. `source` is the file's text,
    decoded.
    """

    name: str
    objects: Mapping[str, str]
    init: tuple[Atom, ...]
    values: Values
    goal: Goal
    has_costs: bool
    source: str = field(repr=False)
