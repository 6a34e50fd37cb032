"""Reads a domain's schemas and axioms out of the PDDL library."""

import re
from collections.abc import Iterable
from typing import Any

from regoal.planning.pddl_text import DomainText
from regoal.planning.structure import ActionSchema, Axiom, Effect, Literal, Symbol, Term
from regoal.planning.task import Domain

_BUILT_IN = frozenset(("=", "object", "number"))


def read_actions(domain: Domain) -> tuple[ActionSchema, ...]:
    """Every action schema, sorted by name; disjuncts of one action in the order of the file."""
    supertypes = _supertypes(domain)
    actions = [_action(a, domain.text, supertypes) for a in domain.native.get_actions()]
    return tuple(sorted(actions, key=lambda a: a.name))


def read_axioms(domain: Domain) -> tuple[Axiom, ...]:
    """Every axiom, those included that the library makes of universal preconditions.

    The library shows axioms only in its print of the whole domain, so that is what is read.
    """
    if not any(predicate.is_derived() for predicate in domain.native.get_predicates()):
        return ()
    supertypes = _supertypes(domain)
    printed = _parse(str(domain.native._advanced_domain))
    rules = [part for part in printed if isinstance(part, list) and part[:1] == [":derived"]]
    return tuple(_axiom(rule, domain, supertypes) for rule in rules)


def _action(native: Any, text: DomainText, supertypes: dict[str, frozenset[str]]) -> ActionSchema:
    parameters = list(native._advanced_action.get_parameters())
    number = {p.get_variable().get_name(): i for i, p in enumerate(parameters)}
    bases = _bases(parameters)
    effects = []
    for conditional in native.get_conditional_effect():
        condition = conditional.get_condition()
        quantified = list(condition._advanced_conjunctive_condition.get_parameters())
        own = [p for p in quantified if p.get_variable().get_name() not in number]
        names = [p.get_variable().get_name() for p in own]
        numbers = number | {name: len(number) + i for i, name in enumerate(names)}
        literals = _read(condition.get_literals(), numbers, text)
        when = _without_supertypes(literals, numbers, bases | _bases(own), supertypes)
        for literal in _read(conditional.get_effect().get_literals(), numbers, text):
            effects.append(Effect(literal, when))
    literals = _read(native.get_precondition().get_literals(), number, text)
    return ActionSchema(
        native.get_name(),
        len(parameters),
        _without_supertypes(literals, number, bases, supertypes),
        tuple(
            sorted(set(effects), key=lambda e: (e.literal.key(), [c.key() for c in e.condition]))
        ),
    )


def _read(natives: Iterable[Any], number: dict[str, int], text: DomainText) -> list[Literal]:
    """The literals of a condition or effect, built-in predicates aside."""
    literals = []
    for native in natives:
        atom = native.get_atom()
        name = atom.get_predicate().get_name()
        words = [term.get_name() for term in atom.get_terms()]
        if name not in _BUILT_IN:
            literals.append(_literal(name, words, native.get_polarity(), number, text))
    return literals


def _literal(
    name: str, words: list[str], positive: bool, number: dict[str, int], text: DomainText
) -> Literal:
    terms: tuple[Term, ...] = tuple(number.get(word, word) for word in words)
    return Literal(symbol_of(name, len(terms), text), terms, positive)


def symbol_of(native_name: str, arity: int, text: DomainText) -> Symbol:
    """The symbol behind a predicate of the library, under its name in the file."""
    if arity == 1 and native_name in text.types:
        return Symbol("type", text.types[native_name], 1)
    return Symbol("predicate", text.predicates.get(native_name, native_name), arity)


def _without_supertypes(
    literals: list[Literal],
    number: dict[str, int],
    bases: dict[str, frozenset[str]],
    supertypes: dict[str, frozenset[str]],
) -> tuple[Literal, ...]:
    """The literals, sorted, without those that say of a variable a supertype of its own type."""
    implied = {
        (above, number[variable])
        for variable, of in bases.items()
        if variable in number
        for base in of
        for above in supertypes.get(base, ())
    }
    kept = {
        literal
        for literal in literals
        if not (
            literal.symbol.kind == "type"
            and literal.positive
            and (literal.symbol.name, literal.terms[0]) in implied
        )
    }
    return tuple(sorted(kept, key=Literal.key))


def _bases(parameters: Iterable[Any]) -> dict[str, frozenset[str]]:
    """The declared types of each variable, as the library names them."""
    return {
        p.get_variable().get_name(): frozenset(base.get_name() for base in p.get_bases())
        for p in parameters
    }


def _supertypes(domain: Domain) -> dict[str, frozenset[str]]:
    """For each type as the library names it, the types above it as the file names them."""
    found: dict[str, frozenset[str]] = {}

    def above(native: Any) -> frozenset[str]:
        if native.get_name() not in found:
            found[native.get_name()] = frozenset()  # ends a cycle in the type hierarchy
            bases = list(native.get_bases())
            names = {domain.text.types.get(base.get_name(), base.get_name()) for base in bases}
            found[native.get_name()] = frozenset(names.union(*map(above, bases)))
        return found[native.get_name()]

    for predicate in domain.native.get_predicates():  # every type is one of them
        for parameter in predicate._advanced_predicate.get_parameters():
            for base in parameter.get_bases():
                above(base)
    return found


def _axiom(rule: list[Any], domain: Domain, supertypes: dict[str, frozenset[str]]) -> Axiom:
    """An axiom from `(:derived (name ?x - type ...) (and literal ...))`.

    The head lists the body's further variables too, after its own.
    """
    _, (name, *typed), (_, *body) = rule
    natives = domain.native.get_predicates()
    arity = next(p.get_arity() for p in natives if p.get_name() == name)
    variables, bases = _typed_variables(typed)
    literals = []
    for part in body:
        atom = part[1] if part[0] == "not" else part
        if atom[0] not in _BUILT_IN:
            positive = part[0] != "not"
            literals.append(_literal(atom[0], atom[1:], positive, variables, domain.text))
    return Axiom(
        Literal(symbol_of(name, arity, domain.text), tuple(range(arity))),
        _without_supertypes(literals, variables, bases, supertypes),
    )


def _typed_variables(words: list[Any]) -> tuple[dict[str, int], dict[str, frozenset[str]]]:
    """Number and types of each variable of `?x - type ?y - (either type type)`."""
    variables = [words[i] for i in range(0, len(words), 3)]
    types = [words[i] for i in range(2, len(words), 3)]
    bases = [frozenset(of[1:] if isinstance(of, list) else [of]) for of in types]
    return {v: i for i, v in enumerate(variables)}, dict(zip(variables, bases, strict=True))


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
