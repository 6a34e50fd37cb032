"""Reads a domain's schemas and axioms out of the PDDL library."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from regoal.planning.matching.rules import ActionSchema, Axiom, Effect, Literal, Symbol
from regoal.planning.matching.schema import Schema
from regoal.planning.task import Domain

_BUILT_IN = frozenset(("=", "object", "number"))


@dataclass(frozen=True)
class _Names:
    """What the library's names mean: its own are told from the file's by being undeclared."""

    domain: Domain
    supertypes: Mapping[str, frozenset[str]]
    declared: frozenset[Symbol]

    def symbol(self, native_name: str, arity: int) -> Symbol:
        text = self.domain.text
        if native_name in text.types:
            return Symbol("type", text.types[native_name], 1)
        symbol = Symbol("predicate", text.predicates.get(native_name, native_name), arity)
        return symbol if symbol in self.declared else Symbol("internal", native_name, arity)

    def literal(
        self, name: str, terms: Iterable[str], positive: bool, number: Mapping[str, int]
    ) -> Literal:
        constants: Mapping[str, str] = getattr(self.domain.text, "constants", {})
        found = tuple(number.get(term, constants.get(term, term)) for term in terms)
        return Literal(self.symbol(name, len(found)), found, positive)

    def literals(self, natives: Iterable[Any], number: Mapping[str, int]) -> list[Literal]:
        """The literals of a condition or effect, built-in predicates aside."""
        found = []
        for native in natives:
            atom = native.get_atom()
            name = atom.get_predicate().get_name()
            if name not in _BUILT_IN:
                terms = [term.get_name() for term in atom.get_terms()]
                found.append(self.literal(name, terms, native.get_polarity(), number))
        return found

    def condition(
        self, literals: Iterable[Literal], bases: Mapping[int, frozenset[str]]
    ) -> tuple[Literal, ...]:
        """The literals, sorted, without those that say of a variable a type above its own."""
        implied = {
            Literal(symbol, (variable,))
            for variable, of in bases.items()
            for base in of
            for above in self.supertypes.get(base, ())
            if above not in _BUILT_IN
            for symbol in [self.symbol(above, 1)]
        }
        return tuple(sorted(set(literals) - implied, key=Literal.key))


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
    """The predicates and types that the file declares, `=` and the universal type aside."""
    predicates = {Symbol("predicate", name, arity) for name, arity in domain.predicates}
    types = {Symbol("type", name, 1) for name in domain.types}
    return frozenset(symbol for symbol in predicates | types if symbol.name != "=")


def read_constants(domain: Domain) -> tuple[str, ...]:
    """The domain's constants, sorted."""
    constants: Mapping[str, str] = getattr(domain.text, "constants", {})
    natives = [native.get_name() for native in domain.native.get_constants()]
    return tuple(sorted(constants.get(name, name) for name in natives))


def read_actions(domain: Domain) -> tuple[ActionSchema, ...]:
    """Every action schema, sorted by name; disjuncts of one action in the order of the file."""
    names = _Names(domain, _supertypes(domain), read_names(domain))
    return tuple(
        sorted((_action(a, names) for a in domain.native.get_actions()), key=lambda a: a.name)
    )


def read_axioms(domain: Domain) -> tuple[Axiom, ...]:
    """Every axiom, those included that the library makes of universal preconditions.

    The library shows axioms only in its print of the whole domain, so that is what is read.
    """
    if not any(predicate.is_derived() for predicate in domain.native.get_predicates()):
        return ()
    names = _Names(domain, _supertypes(domain), read_names(domain))
    printed = _parse(str(domain.native._advanced_domain))
    rules = [part for part in printed if isinstance(part, list) and part[:1] == [":derived"]]
    return tuple(_axiom(rule, names) for rule in rules)


def _action(native: Any, names: _Names) -> ActionSchema:
    parameters = list(native._advanced_action.get_parameters())
    number, bases = _variables(parameters, 0)
    effects = []
    for conditional in native.get_conditional_effect():
        condition = conditional.get_condition()
        quantified = condition._advanced_conjunctive_condition.get_parameters()
        own = [p for p in quantified if p.get_variable().get_name() not in number]
        own_number, own_bases = _variables(own, len(number))
        numbers = number | own_number
        literals = names.literals(condition.get_literals(), numbers)
        when = names.condition(literals, bases | own_bases)
        effects += [
            Effect(literal, when)
            for literal in names.literals(conditional.get_effect().get_literals(), numbers)
        ]
    literals = names.literals(native.get_precondition().get_literals(), number)
    actions: Mapping[str, str] = getattr(names.domain.text, "actions", {})
    name = actions.get(native.get_name(), native.get_name())
    return ActionSchema(
        name,
        dict(names.domain.actions)[name],
        names.condition(literals, bases),
        tuple(
            sorted(set(effects), key=lambda e: (e.literal.key(), [c.key() for c in e.condition]))
        ),
    )


def _variables(
    parameters: Iterable[Any], first: int
) -> tuple[dict[str, int], dict[int, frozenset[str]]]:
    """Numbers from `first` on, and by number the declared types as the library names them."""
    number, bases = {}, {}
    for i, parameter in enumerate(parameters, start=first):
        number[parameter.get_variable().get_name()] = i
        bases[i] = frozenset(base.get_name() for base in parameter.get_bases())
    return number, bases


def _supertypes(domain: Domain) -> dict[str, frozenset[str]]:
    """For each type the types above it, all as the library names them."""
    found: dict[str, frozenset[str]] = {}

    def above(native: Any) -> frozenset[str]:
        name = native.get_name()
        if name not in found:
            found[name] = frozenset()  # ends a cycle in the type hierarchy
            bases = list(native.get_bases())
            found[name] = frozenset(b.get_name() for b in bases).union(*map(above, bases))
        return found[name]

    for predicate in domain.native.get_predicates():  # every type is one of them
        for parameter in predicate._advanced_predicate.get_parameters():
            for base in parameter.get_bases():
                above(base)
    return found


def _axiom(rule: list[Any], names: _Names) -> Axiom:
    """An axiom from `(:derived (name ?x - type ...) (and literal ...))`.

    The head lists the body's further variables too, after its own.
    """
    _, (name, *typed), (_, *body) = rule
    natives = names.domain.native.get_predicates()
    arity = next(p.get_arity() for p in natives if p.get_name() == name)
    number, bases = _typed_variables(typed)
    literals = []
    for part in body:
        atom = part[1] if part[0] == "not" else part
        if atom[0] not in _BUILT_IN:
            literals.append(names.literal(atom[0], atom[1:], part[0] != "not", number))
    head = Literal(names.symbol(name, arity), tuple(range(arity)))
    return Axiom(head, names.condition(literals, bases))


def _typed_variables(words: list[Any]) -> tuple[dict[str, int], dict[int, frozenset[str]]]:
    """Number and types of each variable of `?x - type ?y - (either type type)`."""
    number = {words[i]: i // 3 for i in range(0, len(words), 3)}
    types = [words[i] for i in range(2, len(words), 3)]
    return number, {
        i: frozenset(of[1:] if isinstance(of, list) else [of]) for i, of in enumerate(types)
    }


def _parse(text: str) -> list[Any]:
    """The one expression that `text` holds, as nested lists."""
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
