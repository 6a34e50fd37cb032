"""Print checked PDDL files as text for the PDDL library (pymimir).

The library crashes on some correct files and misreads some requirements. It reads `either` on
parameters as an intersection, and turns types into predicates with the same name.

It therefore gets only text that is printed here from a checked file. Sections are in order, empty
preconditions are written out, conditions are in normal form. Each `either` becomes a separate
type. Types and predicates have different names.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path

from regoal.planning.goals import Atom, Goal
from regoal.planning.pddl.conjunctions import is_strips
from regoal.planning.pddl.model import (
    TRUE,
    Formula,
    Literal,
    PddlAction,
    PddlDomain,
    PddlProblem,
    Types,
    Values,
    Variable,
)
from regoal.planning.pddl.normal_form import NormalForm, NormalRule

REQUIREMENTS = (
    "(:requirements :strips :typing :negative-preconditions :disjunctive-preconditions "
    ":existential-preconditions :universal-preconditions :conditional-effects "
    ":derived-predicates"
)
LARGE = 100
"""Number of objects, constants included, from which a problem of a domain without ADL is large."""

_SAFE = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True)
class DomainText:
    """A domain as the library gets it.

    The maps give each name in `text` its name in the file (lower case): `types`, without `object`
    and unions, `predicates`, `actions` and `constants`. `content` is the checked domain. If no map
    has a predicate or type that the library shows, the library has added it.
    """

    path: Path
    text: str
    types: dict[str, str]
    predicates: dict[str, str]
    actions: dict[str, str]
    constants: dict[str, str]
    content: PddlDomain = field(repr=False)


@dataclass(frozen=True)
class ProblemText:
    """A problem as the library gets it, with the goal and costs that were read from it.

    `objects` gives each name in `text` its name in the file, constants included. `types_of` gives
    each object's types in the file, without `object`. `values` are the functions that costs refer
    to; they count only if `has_costs`. `source` is the file's text, decoded.

    In a large problem of a domain without ADL, see `is_strips`, `text` has only the initial atoms
    that can change, and no goal. `static` then has the other atoms; else it is None.
    """

    path: Path
    text: str
    objects: dict[str, str]
    types_of: dict[str, tuple[str, ...]]
    goal: Goal
    values: Values
    has_costs: bool
    source: str = field(repr=False)
    static: tuple[Atom, ...] | None = field(repr=False)


def print_domain(path: Path, domain: PddlDomain) -> DomainText:
    """Print a domain, which was read from `path`.

    Raises `UnsupportedPddlError`, without the file's name, if a condition has too many cases.
    """
    predicates = _make_safe_names(domain.symbols.predicates, "is-")
    types = _make_safe_names(domain.parents, "of-")
    actions = _make_safe_names((action.name for action in domain.actions), "")
    constants = _make_safe_names(domain.symbols.objects, "")
    return DomainText(
        path,
        _Printer(domain, types, predicates, constants).print_domain(actions),
        _invert(types),
        _invert(predicates),
        _invert(actions),
        _invert(constants),
        domain,
    )


def print_effects(domain: DomainText) -> str:
    """Print a domain without preconditions and without the predicates that never change.

    For a large problem, the library need only compute successors. It would store static predicates
    in tables that grow with the square of the number of objects.
    """
    content = domain.content
    changing = {k: v for k, v in content.symbols.predicates.items() if k in content.changing}
    smaller = replace(
        content,
        symbols=replace(content.symbols, predicates=changing),
        actions=tuple(replace(action, precondition=TRUE) for action in content.actions),
    )
    types, predicates = _invert(domain.types), _invert(domain.predicates)
    printer = _Printer(smaller, types, predicates, _invert(domain.constants))
    return printer.print_domain(_invert(domain.actions))


def print_problem(path: Path, problem: PddlProblem, domain: DomainText) -> ProblemText:
    """Print a problem of `domain`, which was read from `path`."""
    constants = _invert(domain.constants)
    objects = _make_safe_names(problem.objects, "", constants.values())
    everything = {**constants, **objects}
    types, predicates = _invert(domain.types), _invert(domain.predicates)
    printer = _Printer(domain.content, types, predicates, everything)
    above = domain.content.symbols.types
    typed = {**domain.content.symbols.objects, **problem.objects}
    init, goal, static = problem.init, problem.goal, None
    if len(typed) >= LARGE and is_strips(domain.content):
        changing = domain.content.changing
        static = tuple(atom for atom in init if atom.predicate not in changing)
        init, goal = tuple(atom for atom in init if atom.predicate in changing), Goal.of(())
    return ProblemText(
        path,
        printer.print_problem(problem.objects, init, goal),
        _invert(everything),
        {o: tuple(sorted(above[t] - {"object"})) for o, t in typed.items()},
        problem.goal,
        problem.values,
        problem.has_costs,
        problem.source,
        static,
    )


def _invert(names: Mapping[str, str]) -> dict[str, str]:
    return {new: old for old, new in names.items()}


def _make_safe_names(
    names: Iterable[str], prefix: str, taken: Iterable[str] = ()
) -> dict[str, str]:
    """Give each name one that the library accepts: prefix and name, changed if necessary."""
    names = list(names)
    safe = {name: prefix + name for name in names if _SAFE.fullmatch(prefix + name)}
    used = {*taken, *safe.values()}
    for name in names:
        if name not in safe:
            stem = f"{prefix or 'x'}{re.sub('[^a-z0-9_-]', '_', name)}"
            safe[name] = next(n for i in count() if (n := f"{stem}-{i}") not in used)
            used.add(safe[name])
    return {name: safe[name] for name in names}


MAX_GROUPS = 1000
"""Most groups of a typed list that keep their order."""


def _group_by_type(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Write names and types as the groups of a typed list, e.g. `a b - room`.

    The library reads groups recursively, and thousands of them overflow its stack. If there are
    many groups, all names of a type share one.
    """
    listed = list(pairs)
    groups = [(of, [name for name, _ in some]) for of, some in groupby(listed, itemgetter(1))]
    if len(groups) > MAX_GROUPS:
        listed.sort(key=itemgetter(1))
        groups = [(of, [name for name, _ in some]) for of, some in groupby(listed, itemgetter(1))]
    return (f"{' '.join(names)} - {of}" for of, names in groups)


@dataclass
class _Printer:
    """Prints one file for the library; `unions` collects the types that each `either` needs."""

    domain: PddlDomain
    types: Mapping[str, str]
    predicates: dict[str, str]
    objects: Mapping[str, str]
    unions: dict[Types, str] = field(default_factory=dict)
    equality: bool = False
    normal: NormalForm = field(default_factory=NormalForm)

    def print_domain(self, actions: Mapping[str, str]) -> str:
        schemas = [
            text
            for action in self.domain.actions
            for text in self._print_schemas(action, actions[action.name])
        ]
        rules = [self._print_rule(rule) for rule in self._collect_rules()]
        constants = self._print_objects(self.domain.symbols.objects)
        sections = [
            f"{REQUIREMENTS}{' :equality' if self.equality else ''})",
            *([f"(:types {' '.join(self._print_types())})"] if self.types else []),
            *([f"(:constants{constants})"] if constants else []),
            f"(:predicates {' '.join(self._print_declarations())})",
            *rules,
            *schemas,
        ]
        return "\n".join(["(define (domain d)", *sections]) + ")\n"

    def print_problem(self, named: Mapping[str, str], atoms: Iterable[Atom], goal: Goal) -> str:
        objects = self._print_objects(named)
        init = "\n  ".join(self._print_literal(Literal(*atom)) for atom in atoms)
        wanted = " ".join(
            self._print_literal(Literal(*atom, positive)) for atom, positive in goal.literals()
        )
        sections = [
            "(:domain d)",
            *([f"(:objects{objects})"] if objects else []),
            f"(:init {init})",
            f"(:goal (and {wanted}))",
        ]
        return "\n".join(["(define (problem p)", *sections]) + ")\n"

    def _print_types(self) -> Iterator[str]:
        pairs = [
            (self.types[name], self.types.get(parent, parent))
            for name, parents in self.domain.parents.items()
            for parent in parents
        ]
        for members, union in self.unions.items():
            pairs.append((union, "object"))
            pairs += [(self.types[member], union) for member in members]
        yield from _group_by_type(pairs)

    def _print_declarations(self) -> Iterator[str]:
        arities = {name: len(types) for name, types in self.domain.symbols.predicates.items()}
        for name, arity in {**arities, **self.normal.auxiliary}.items():
            yield f"({self._name_predicate(name)}{''.join(f' ?v{i}' for i in range(arity))})"

    def _name_predicate(self, name: str) -> str:
        """Return a predicate's name in the text; auxiliary ones are `forall-0` or `equal-0`."""
        return self.predicates.get(name) or name.strip("<>").replace(" ", "-")

    def _print_objects(self, objects: Mapping[str, str]) -> str:
        typed = ((self.objects[o], self._name_type((t,))) for o, t in objects.items())
        return "".join(f" {group}" for group in _group_by_type(typed))

    def _name_type(self, types: Types) -> str:
        if len(types) > 1:
            return self.unions.setdefault(types, f"either-{len(self.unions)}")
        return self.types.get(types[0], types[0])

    def _print_variables(self, variables: Iterable[Variable]) -> str:
        return " ".join(f"{v.name} - {self._name_type(v.types)}" for v in variables)

    def _collect_rules(self) -> list[NormalRule]:
        rules = [
            NormalRule(derived.predicate, derived.parameters, case)
            for derived in self.domain.derived
            for case in self.normal.conjunctions(
                derived.body, derived.parameters, f"a rule for {derived.predicate}"
            )
        ]
        return self.normal.separate_uses(rules + self.normal.rules)

    def _print_rule(self, rule: NormalRule) -> str:
        body = self._print_conjunction(rule.body.literals)
        if rule.body.variables:
            body = f"(exists ({self._print_variables(rule.body.variables)}) {body})"
        parameters = self._print_variables(rule.parameters)
        head = f"{self._name_predicate(rule.predicate)}{' ' * bool(parameters)}{parameters}"
        return f"(:derived ({head}) {body})"

    def _print_schemas(self, action: PddlAction, name: str) -> Iterator[str]:
        """Print an action for each case of the precondition.

        Objects that must exist for a case become more parameters.
        """
        effects = "".join(self._print_effects(action))
        place = f"the precondition of action {action.name}"
        for case in self.normal.conjunctions(action.precondition, action.parameters, place):
            parameters = self._print_variables(action.parameters + case.variables)
            yield (
                f"(:action {name} :parameters ({parameters})"
                f"\n  :precondition {self._print_conjunction(case.literals)}"
                f"\n  :effect (and{effects}))"
            )

    def _print_effects(self, action: PddlAction) -> Iterator[str]:
        """Print one text for all effects with equal variables and condition."""
        together: dict[tuple[tuple[Variable, ...], Formula], list[Literal]] = {}
        for effect in action.effects:
            together.setdefault((effect.variables, effect.condition), []).extend(effect.literals)
        place = f"a condition in the effect of action {action.name}"
        for (bound, condition), literals in together.items():
            for case in self.normal.conjunctions(condition, action.parameters + bound, place):
                text = self._print_conjunction(dict.fromkeys(literals))
                if case.literals:
                    text = f"(when {self._print_conjunction(case.literals)} {text})"
                if bound or case.variables:
                    text = f"(forall ({self._print_variables(bound + case.variables)}) {text})"
                yield f"\n    {text}"

    def _print_conjunction(self, literals: Iterable[Literal]) -> str:
        return f"(and{''.join(f' {self._print_literal(literal)}' for literal in literals)})"

    def _print_literal(self, literal: Literal) -> str:
        equality = literal.predicate == "="
        self.equality |= equality
        name = "=" if equality else self._name_predicate(literal.predicate)
        terms = (self.objects.get(term, term) for term in literal.terms)
        text = f"({' '.join((name, *terms))})"
        return text if literal.positive else f"(not {text})"
