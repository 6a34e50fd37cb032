"""Read a domain's action schemas and axioms from the PDDL library."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from regoal.planning.domain import Domain
from regoal.planning.matching.dynamics import (
    ActionSchema,
    Axiom,
    SchemaEffect,
    SchemaLiteral,
    Symbol,
)
from regoal.planning.matching.schema import Schema

_BUILT_IN = frozenset(("=", "object", "number"))


@dataclass(frozen=True)
class _Names:
    """The meaning of the library's names. A name that the file does not declare is internal."""

    domain: Domain
    supertypes: Mapping[str, frozenset[str]]
    declared: frozenset[Symbol]

    def symbol(self, library_name: str, arity: int) -> Symbol:
        text = self.domain.text
        if library_name in text.types:
            return Symbol("type", text.types[library_name], 1)
        symbol = Symbol("predicate", text.predicates.get(library_name, library_name), arity)
        return symbol if symbol in self.declared else Symbol("internal", library_name, arity)

    def literal(
        self, name: str, terms: Iterable[str], positive: bool, number: Mapping[str, int]
    ) -> SchemaLiteral:
        constants: Mapping[str, str] = getattr(self.domain.text, "constants", {})
        found = tuple(number.get(term, constants.get(term, term)) for term in terms)
        return SchemaLiteral(self.symbol(name, len(found)), found, positive)

    def literals(
        self, library_literals: Iterable[Any], number: Mapping[str, int]
    ) -> list[SchemaLiteral]:
        """Return the literals of a condition or effect, without built-in predicates."""
        found = []
        for library_literal in library_literals:
            atom = library_literal.get_atom()
            name = atom.get_predicate().get_name()
            if name not in _BUILT_IN:
                terms = [term.get_name() for term in atom.get_terms()]
                found.append(self.literal(name, terms, library_literal.get_polarity(), number))
        return found

    def condition(
        self, literals: Iterable[SchemaLiteral], bases: Mapping[int, frozenset[str]]
    ) -> tuple[SchemaLiteral, ...]:
        """Return the literals, sorted, without types that a variable's declared type implies."""
        implied = {
            SchemaLiteral(symbol, (variable,))
            for variable, of in bases.items()
            for base in of
            for above in self.supertypes.get(base, ())
            if above not in _BUILT_IN
            for symbol in [self.symbol(above, 1)]
        }
        return tuple(sorted(set(literals) - implied, key=SchemaLiteral.key))


def schema_of(domain: Domain) -> Schema:
    """The structure of a domain that has been read."""
    return Schema(
        domain.name,
        tuple(sorted(read_names(domain))),
        read_actions(domain),
        read_constants(domain),
        read_axioms(domain),
    )


def read_names(domain: Domain) -> frozenset[Symbol]:
    """Return the predicates and types that the file declares, except `=` and `object`."""
    predicates = {Symbol("predicate", name, arity) for name, arity in domain.predicates}
    types = {Symbol("type", name, 1) for name in domain.types}
    return frozenset(symbol for symbol in predicates | types if symbol.name != "=")


def read_constants(domain: Domain) -> tuple[str, ...]:
    """Return the domain's constants, sorted."""
    constants: Mapping[str, str] = getattr(domain.text, "constants", {})
    library_names = [constant.get_name() for constant in domain.library_domain.get_constants()]
    return tuple(sorted(constants.get(name, name) for name in library_names))


def read_actions(domain: Domain) -> tuple[ActionSchema, ...]:
    """Return every action schema, sorted by name; disjuncts of an action keep the file's order."""
    names = _Names(domain, _find_supertypes(domain), read_names(domain))
    return tuple(
        sorted(
            (_read_action(a, names) for a in domain.library_domain.get_actions()),
            key=lambda a: a.name,
        )
    )


def read_axioms(domain: Domain) -> tuple[Axiom, ...]:
    """Return every axiom, including those that the library makes of universal preconditions.

    The library shows axioms only in its printed domain, so this function reads that text.
    """
    if not any(predicate.is_derived() for predicate in domain.library_domain.get_predicates()):
        return ()
    names = _Names(domain, _find_supertypes(domain), read_names(domain))
    printed = _parse(str(domain.library_domain._advanced_domain))
    rules = [part for part in printed if isinstance(part, list) and part[:1] == [":derived"]]
    return tuple(_read_axiom(rule, names) for rule in rules)


def _read_action(library_action: Any, names: _Names) -> ActionSchema:
    parameters = list(library_action._advanced_action.get_parameters())
    number, bases = _number_parameters(parameters, 0)
    effects = []
    for conditional in library_action.get_conditional_effect():
        condition = conditional.get_condition()
        quantified = condition._advanced_conjunctive_condition.get_parameters()
        own = [p for p in quantified if p.get_variable().get_name() not in number]
        own_number, own_bases = _number_parameters(own, len(number))
        numbers = number | own_number
        literals = names.literals(condition.get_literals(), numbers)
        when = names.condition(literals, bases | own_bases)
        effects += [
            SchemaEffect(literal, when)
            for literal in names.literals(conditional.get_effect().get_literals(), numbers)
        ]
    literals = names.literals(library_action.get_precondition().get_literals(), number)
    actions: Mapping[str, str] = getattr(names.domain.text, "actions", {})
    name = actions.get(library_action.get_name(), library_action.get_name())
    return ActionSchema(
        name,
        dict(names.domain.actions)[name],
        names.condition(literals, bases),
        tuple(
            sorted(set(effects), key=lambda e: (e.literal.key(), [c.key() for c in e.condition]))
        ),
    )


def _number_parameters(
    parameters: Iterable[Any], first: int
) -> tuple[dict[str, int], dict[int, frozenset[str]]]:
    """Number parameters from `first` on; return the numbers and the library types by number."""
    number, bases = {}, {}
    for i, parameter in enumerate(parameters, start=first):
        number[parameter.get_variable().get_name()] = i
        bases[i] = frozenset(base.get_name() for base in parameter.get_bases())
    return number, bases


def _find_supertypes(domain: Domain) -> dict[str, frozenset[str]]:
    """Map each type to the types above it, with the library's names."""
    found: dict[str, frozenset[str]] = {}

    def above(library_type: Any) -> frozenset[str]:
        name = library_type.get_name()
        if name not in found:
            found[name] = frozenset()  # ends a cycle in the type hierarchy
            bases = list(library_type.get_bases())
            found[name] = frozenset(b.get_name() for b in bases).union(*map(above, bases))
        return found[name]

    for predicate in domain.library_domain.get_predicates():  # every type is one of them
        for parameter in predicate._advanced_predicate.get_parameters():
            for base in parameter.get_bases():
                above(base)
    return found


def _read_axiom(rule: list[Any], names: _Names) -> Axiom:
    """Read an axiom from `(:derived (name ?x - type ...) (and literal ...))`.

    The head lists its own variables first, then the other variables of the body.
    """
    _, (name, *typed), (_, *body) = rule
    predicates = names.domain.library_domain.get_predicates()
    arity = next(p.get_arity() for p in predicates if p.get_name() == name)
    number, bases = _read_typed_variables(typed)
    literals = []
    for part in body:
        atom = part[1] if part[0] == "not" else part
        if atom[0] not in _BUILT_IN:
            literals.append(names.literal(atom[0], atom[1:], part[0] != "not", number))
    head = SchemaLiteral(names.symbol(name, arity), tuple(range(arity)))
    return Axiom(head, names.condition(literals, bases))


def _read_typed_variables(words: list[Any]) -> tuple[dict[str, int], dict[int, frozenset[str]]]:
    """Return number and types of each variable of `?x - type ?y - (either type type)`."""
    number = {words[i]: i // 3 for i in range(0, len(words), 3)}
    types = [words[i] for i in range(2, len(words), 3)]
    return number, {
        i: frozenset(of[1:] if isinstance(of, list) else [of]) for i, of in enumerate(types)
    }


def _parse(text: str) -> list[Any]:
    """Return the one expression in `text` as nested lists."""
    stack: list[list[Any]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", re.sub(r";[^\n]*", "", text)):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    return list(stack[0][0])
