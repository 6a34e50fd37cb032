"""Random small domains and problems with everything of ADL, derived predicates among it.

Rules are stratified by construction. What regoal refuses by its documents is not made, but for
conditions of too many cases and goals that contradict themselves.
"""

import random
from dataclasses import dataclass, field, replace
from functools import partial

TYPES = {"object": {"t", "u", "v"}, "t": {"t", "u"}, "u": {"u"}, "v": {"v"}}
"""The declared types whose objects each type has."""
OBJECTS = {"c": "t", "a": "t", "b": "u", "d": "v"}
"""`c` is a constant of the domain."""
PREDICATES = {
    "p": (),
    "q": ("object",),
    "r": ("object", "object"),
    "w": ("t",),
    "s": ("object",),
    "k": ("t", "object"),
}
STATIC = ("s", "k")
_SHAPES = ["literal"] * 4 + ["=", "not", "and", "and", "or", "imply", "forall", "exists"]
_KINDS = ["object", "object", "t", "t", "u", "v", "(either u v)"]


@dataclass(frozen=True)
class Scope:
    """The terms that a formula may use in its place, and the derived predicates.

    `plain` derived predicates may stand without negation, `complete` ones anywhere.
    """

    rng: random.Random
    predicates: dict[str, tuple[str, ...]]
    plain: tuple[str, ...]
    complete: tuple[str, ...]
    terms: dict[str, set[str]] = field(default_factory=lambda: {"c": {"t"}})

    def with_variable(self, name: str, kind: str) -> "Scope":
        """One more variable of a type, which hides an older one of its name."""
        return replace(self, terms={**self.terms, name: members(kind)})

    def in_forall(self) -> "Scope":
        """Inside a `forall`, where regoal wants derived predicates of lower strata only."""
        return replace(self, plain=self.complete)


def members(kind: str) -> set[str]:
    """The declared types of the objects that a type has, an `either` too."""
    return set().union(*(TYPES[word] for word in kind.strip("()").split() if word != "either"))


def domain_and_problem(rng: random.Random, *, derived: bool) -> tuple[str, str]:
    """The texts of a domain `d` and a problem of it."""
    levels = {f"d{i}": rng.randint(0, 2) for i in range(rng.randint(2, 5))} if derived else {}
    kinds = {name: tuple(rng.choices(_KINDS[:5], k=rng.randint(0, 2))) for name in levels}
    predicates = {**PREDICATES, **kinds}
    scope = Scope(rng, predicates, tuple(levels), tuple(levels))
    rules = [text for name in levels for text in _rules(scope, name, levels)]
    rng.shuffle(rules)
    costs = rng.random() < 0.5
    actions = [_action(scope, i, costs) for i in range(rng.randint(1, 3))]
    declared = " ".join(f"({_typed(name, of)})" for name, of in predicates.items())
    domain = "\n  ".join(
        [
            "(define (domain d) (:requirements :adl :derived-predicates :action-costs)",
            "(:types u - t t v - object)",
            "(:constants c - t)",
            f"(:predicates {declared})",
            "(:functions (total-cost) - number (price ?x - object) - number)",
            *rules,
            *actions,
        ]
    )
    return f"{domain})\n", _problem(scope, costs)


def _typed(name: str, kinds: tuple[str, ...]) -> str:
    return " ".join([name, *(f"?x{i} - {kind}" for i, kind in enumerate(kinds))])


def _problem(scope: Scope, costs: bool) -> str:
    rng = scope.rng
    objects = replace(scope, terms={name: {kind} for name, kind in OBJECTS.items()})
    ground = [_atom(replace(objects, plain=()), basic=True) for _ in range(rng.randint(2, 10))]
    prices = [f"(= (price {name}) {rng.choice((0, 1, 2, 7, 2.5))})" for name in OBJECTS]
    goals = [_literal(objects) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.3:
        goals.append(f"(forall (?g - {rng.choice(_KINDS)}) {_atom(objects)})")
    metric = "(:metric minimize (total-cost))" if costs else ""
    return (
        f"(define (problem one) (:domain d) (:objects a - t b - u d - v)\n"
        f"  (:init {' '.join([*dict.fromkeys(ground), *prices])})\n"
        f"  (:goal (and {' '.join(goals)})) {metric})\n"
    )


def _rules(scope: Scope, name: str, levels: dict[str, int]) -> list[str]:
    """Up to five rules of one predicate; often one of a lower stratum is negated in one only."""
    level, rng = levels[name], scope.rng
    lower = tuple(other for other, of in levels.items() if of < level)
    same = tuple(other for other, of in levels.items() if of == level)
    parts: list[str] = [""] * rng.randint(1, 3)
    if lower and rng.random() < 0.7:
        parts += [rng.choice(lower), f"not {rng.choice(lower)}"]
    rule_scope = replace(scope, plain=lower + same, complete=lower)
    return [_rule(rule_scope, name, part) for part in parts]


def _rule(scope: Scope, name: str, part: str) -> str:
    """A rule that needs `part`: a derived predicate, with `not ` before it, or nothing."""
    head = [name]
    for i, kind in enumerate(scope.predicates[name]):
        narrow = scope.rng.choice(["object", kind, "u"])  # `object` leaves it to the predicate
        head += [f"?x{i}", "-", narrow]
        scope = scope.with_variable(f"?x{i}", kind if narrow == "object" else narrow)
    body = condition(scope, scope.rng.randint(1, 3))
    if part:
        atom = _atom_of(scope, part.removeprefix("not ")) or "(p)"
        body = f"(and {f'(not {atom})' if part.startswith('not ') else atom} {body})"
    return f"(:derived ({' '.join(head)}) {body})"


def _action(scope: Scope, number: int, costs: bool) -> str:
    rng, inner = scope.rng, scope
    kinds = [rng.choice(_KINDS) for _ in range(rng.randint(0, 2))]
    for i, kind in enumerate(kinds):
        inner = inner.with_variable(f"?x{i}", kind)
    parts = [_effect(inner) for _ in range(rng.randint(1, 3))]
    if costs and rng.random() < 0.8:
        amount = rng.choice(["3", "0", f"(price {rng.choice(list(inner.terms))})"])
        parts.append(f"(increase (total-cost) {amount})")
    rng.shuffle(parts)
    before = f":precondition {condition(inner, 3)}" if rng.random() < 0.9 else ""
    return (
        f"(:action act{number} :parameters ({_typed('', tuple(kinds)).strip()})\n"
        f"    {before} :effect (and {' '.join(parts)}))"
    )


def _effect(scope: Scope, depth: int = 2) -> str:
    shape = scope.rng.choice(["literal", "literal", "when", "forall", "and"]) if depth else ""
    if shape == "when":
        return f"(when {condition(scope, 2)} {_effect(scope, depth - 1)})"
    if shape == "forall":
        name, kind = _new_variable(scope)
        return f"(forall ({name} - {kind}) {_effect(scope.with_variable(name, kind), depth - 1)})"
    if shape == "and":
        return f"(and {_effect(scope, depth - 1)} {_effect(scope, depth - 1)})"
    found = _atom(scope, changing=True)
    return found if scope.rng.random() < 0.5 else f"(not {found})"


def condition(scope: Scope, depth: int, positive: bool = True) -> str:
    """A condition of any shape, under an odd number of negations if not `positive`."""
    rng = scope.rng
    shape = rng.choice(_SHAPES) if depth else rng.choice(_SHAPES[:5])
    inner = partial(condition, depth=depth - 1)
    if shape == "not":
        return f"(not {inner(scope, positive=not positive)})"
    if shape == "imply":
        premise = inner(scope, positive=not positive)
        return f"(imply {premise} {inner(scope, positive=positive)})"
    if shape in ("and", "or"):
        count = rng.choice((0, 1, 2, 2, 2, 3))
        parts = [inner(scope, positive=positive) for _ in range(count)]
        return f"({' '.join([shape, *parts])})"
    if shape in ("forall", "exists"):
        name, kind = _new_variable(scope)
        below = scope.with_variable(name, kind)
        if shape == "forall" or not positive:
            below = below.in_forall()
        return f"({shape} ({name} - {kind}) {inner(below, positive=positive)})"
    if shape == "=":
        terms = rng.choices(list(scope.terms), k=2)
        return f"(= {' '.join(terms)})"
    return _literal(scope, positive)


def _new_variable(scope: Scope) -> tuple[str, str]:
    """A name, which may hide another, and a type."""
    return scope.rng.choice(["?x0", "?y", "?z"]), scope.rng.choice(_KINDS)


def _literal(scope: Scope, positive: bool = True) -> str:
    negated = scope.rng.random() < 0.4
    found = _atom(scope, positive=positive is not negated)
    return f"(not {found})" if negated else found


def _atom(
    scope: Scope, *, positive: bool = True, basic: bool = False, changing: bool = False
) -> str:
    """An atom over terms that its predicate takes; derived ones come often, if they may."""
    rng = scope.rng
    names = [name for name in PREDICATES if not (changing and name in STATIC)]
    if not (basic or changing):
        names += 3 * (scope.plain if positive else scope.complete)
    while True:
        if found := _atom_of(scope, rng.choice(names)):
            return found


def _atom_of(scope: Scope, name: str) -> str:
    """An atom of a predicate, or nothing if no terms fit."""
    fitting = [
        [term for term, of in scope.terms.items() if of & members(kind)]
        for kind in scope.predicates[name]
    ]
    return f"({' '.join([name, *map(scope.rng.choice, fitting)])})" if all(fitting) else ""
