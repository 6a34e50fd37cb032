"""PDDL files in, text for the parser out: checked, complete, and in names it cannot confuse.

The parser (pymimir) crashes on some correct files, takes some requirements amiss, reads
`either` on parameters as an intersection, and turns types into predicates of the same name.
So it only ever sees text that is printed here from a checked file: sections in order, empty
preconditions written out, conditions in normal form, `either` as a type of its own, types and
predicates told apart by name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path

from regoal.planning.goals import Goal
from regoal.planning.pddl.domain import PddlAction, PddlDomain, parse_domain
from regoal.planning.pddl.effects import Values
from regoal.planning.pddl.formulas import Formula, Literal, Variable
from regoal.planning.pddl.normal_form import NormalForm, Rule
from regoal.planning.pddl.problem import PddlProblem, parse_problem
from regoal.planning.pddl.syntax import naming
from regoal.planning.pddl.types import Types

REQUIREMENTS = (
    "(:requirements :strips :typing :negative-preconditions :disjunctive-preconditions "
    ":existential-preconditions :universal-preconditions :conditional-effects "
    ":derived-predicates"
)
_SAFE = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True)
class DomainText:
    """A domain as the parser gets it.

    The maps give each name in `text` its name in the file (lower case): `types` (`object` and
    unions aside), `predicates`, `actions` and `constants`. `content` is the domain as it was
    read. A predicate or type that the parser shows and no map has is the parser's own.
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
    """A problem as the parser gets it, with the goal and costs that were read from it.

    `objects` gives each name in `text` its name in the file, constants included; `types_of`
    gives each object's types in the file, `object` aside; `values` are the functions that costs
    refer to, and count only where `has_costs`. `source` is the file's text, decoded.
    """

    path: Path
    text: str
    objects: dict[str, str]
    types_of: dict[str, tuple[str, ...]]
    goal: Goal
    values: Values
    has_costs: bool
    source: str = field(repr=False)


def read_domain(path: Path) -> DomainText:
    """Read and check a domain file, and print it for the parser.

    Raises `UsageError` where there is no such file, `PddlError` where it is wrong and
    `UnsupportedPddlError` where it goes beyond classical planning, with file, line and remedy.
    """
    domain = parse_domain(path)
    predicates = _safe_names(domain.symbols.predicates, "is-")
    types = _safe_names(domain.parents, "of-")
    actions = _safe_names((action.name for action in domain.actions), "")
    constants = _safe_names(domain.symbols.objects, "")
    printer = _Printer(domain, types, predicates, constants)
    with naming(path):
        text = printer.domain_text(actions)
    return DomainText(
        path,
        text,
        _inverse(types),
        _inverse(predicates),
        _inverse(actions),
        _inverse(constants),
        domain,
    )


def read_problem(path: Path, domain: DomainText) -> ProblemText:
    """Read and check a problem file of `domain`. Raises as `read_domain` does."""
    problem = parse_problem(path, domain.content, domain.path)
    constants = _inverse(domain.constants)
    objects = _safe_names(problem.objects, "", constants.values())
    everything = {**constants, **objects}
    types, predicates = _inverse(domain.types), _inverse(domain.predicates)
    printer = _Printer(domain.content, types, predicates, everything)
    above = domain.content.symbols.types
    typed = {**domain.content.symbols.objects, **problem.objects}
    return ProblemText(
        path,
        printer.problem_text(problem),
        _inverse(everything),
        {o: tuple(sorted(above[t] - {"object"})) for o, t in typed.items()},
        problem.goal,
        problem.values,
        problem.has_costs,
        problem.source,
    )


def _inverse(names: Mapping[str, str]) -> dict[str, str]:
    return {new: old for old, new in names.items()}


def _safe_names(names: Iterable[str], prefix: str, taken: Iterable[str] = ()) -> dict[str, str]:
    """A name for each that the parser takes: prefix and name, changed where need be."""
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


def _typed_groups(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Names and types as the groups of a typed list, e.g. `a b - room`.

    The parser reads a group inside the one before, so that thousands of them overflow its stack.
    Where there are many, all names of a type come together.
    """
    listed = list(pairs)
    groups = [(of, [name for name, _ in some]) for of, some in groupby(listed, itemgetter(1))]
    if len(groups) > MAX_GROUPS:
        listed.sort(key=itemgetter(1))
        groups = [(of, [name for name, _ in some]) for of, some in groupby(listed, itemgetter(1))]
    return (f"{' '.join(names)} - {of}" for of, names in groups)


@dataclass
class _Printer:
    """Prints one file for the parser; `unions` collects what `either` asked for."""

    domain: PddlDomain
    types: Mapping[str, str]
    predicates: dict[str, str]
    objects: Mapping[str, str]
    unions: dict[Types, str] = field(default_factory=dict)
    equality: bool = False
    normal: NormalForm = field(default_factory=NormalForm)

    def domain_text(self, actions: Mapping[str, str]) -> str:
        schemas = [
            text
            for action in self.domain.actions
            for text in self._schemas(action, actions[action.name])
        ]
        rules = [self._rule(rule) for rule in self._all_rules()]
        constants = self._objects(self.domain.symbols.objects)
        sections = [
            f"{REQUIREMENTS}{' :equality' if self.equality else ''})",
            *([f"(:types {' '.join(self._type_lines())})"] if self.types else []),
            *([f"(:constants{constants})"] if constants else []),
            f"(:predicates {' '.join(self._declarations())})",
            *rules,
            *schemas,
        ]
        return "\n".join(["(define (domain d)", *sections]) + ")\n"

    def problem_text(self, problem: PddlProblem) -> str:
        objects = self._objects(problem.objects)
        init = "\n  ".join(self._literal(Literal(*atom)) for atom in problem.init)
        goal = " ".join(
            self._literal(Literal(*atom, positive)) for atom, positive in problem.goal.literals()
        )
        sections = [
            "(:domain d)",
            *([f"(:objects{objects})"] if objects else []),
            f"(:init {init})",
            f"(:goal (and {goal}))",
        ]
        return "\n".join(["(define (problem p)", *sections]) + ")\n"

    def _type_lines(self) -> Iterator[str]:
        pairs = [
            (self.types[name], self.types.get(parent, parent))
            for name, parents in self.domain.parents.items()
            for parent in parents
        ]
        for members, union in self.unions.items():
            pairs.append((union, "object"))
            pairs += [(self.types[member], union) for member in members]
        yield from _typed_groups(pairs)

    def _declarations(self) -> Iterator[str]:
        arities = {name: len(types) for name, types in self.domain.symbols.predicates.items()}
        for name, arity in {**arities, **self.normal.auxiliary}.items():
            yield f"({self._predicate(name)}{''.join(f' ?v{i}' for i in range(arity))})"

    def _predicate(self, name: str) -> str:
        """A predicate's name in the text; those of the normal form are `forall-0`, `equal-0`."""
        return self.predicates.get(name) or name.strip("<>").replace(" ", "-")

    def _objects(self, objects: Mapping[str, str]) -> str:
        typed = ((self.objects[o], self._type((t,))) for o, t in objects.items())
        return "".join(f" {group}" for group in _typed_groups(typed))

    def _type(self, types: Types) -> str:
        if len(types) > 1:
            return self.unions.setdefault(types, f"either-{len(self.unions)}")
        return self.types.get(types[0], types[0])

    def _typed(self, variables: Iterable[Variable]) -> str:
        return " ".join(f"{v.name} - {self._type(v.types)}" for v in variables)

    def _all_rules(self) -> list[Rule]:
        rules = [
            Rule(derived.predicate, derived.parameters, case)
            for derived in self.domain.derived
            for case in self.normal.conjunctions(
                derived.body, derived.parameters, f"a rule for {derived.predicate}"
            )
        ]
        return self.normal.separate_uses(rules + self.normal.rules)

    def _rule(self, rule: Rule) -> str:
        body = self._conjunction(rule.body.literals)
        if rule.body.variables:
            body = f"(exists ({self._typed(rule.body.variables)}) {body})"
        parameters = self._typed(rule.parameters)
        head = f"{self._predicate(rule.predicate)}{' ' * bool(parameters)}{parameters}"
        return f"(:derived ({head}) {body})"

    def _schemas(self, action: PddlAction, name: str) -> Iterator[str]:
        """An action for each case of the precondition, with what must exist as more parameters."""
        effects = "".join(self._effects(action))
        place = f"the precondition of action {action.name}"
        for case in self.normal.conjunctions(action.precondition, action.parameters, place):
            yield (
                f"(:action {name} :parameters ({self._typed(action.parameters + case.variables)})"
                f"\n  :precondition {self._conjunction(case.literals)}"
                f"\n  :effect (and{effects}))"
            )

    def _effects(self, action: PddlAction) -> Iterator[str]:
        """One text for all effects under the same variables and condition."""
        together: dict[tuple[tuple[Variable, ...], Formula], list[Literal]] = {}
        for effect in action.effects:
            together.setdefault((effect.variables, effect.condition), []).extend(effect.literals)
        place = f"a condition in the effect of action {action.name}"
        for (bound, condition), literals in together.items():
            for case in self.normal.conjunctions(condition, action.parameters + bound, place):
                text = self._conjunction(dict.fromkeys(literals))
                if case.literals:
                    text = f"(when {self._conjunction(case.literals)} {text})"
                if bound or case.variables:
                    text = f"(forall ({self._typed(bound + case.variables)}) {text})"
                yield f"\n    {text}"

    def _conjunction(self, literals: Iterable[Literal]) -> str:
        return f"(and{''.join(f' {self._literal(literal)}' for literal in literals)})"

    def _literal(self, literal: Literal) -> str:
        equality = literal.predicate == "="
        self.equality |= equality
        name = "=" if equality else self._predicate(literal.predicate)
        terms = (self.objects.get(term, term) for term in literal.terms)
        text = f"({' '.join((name, *terms))})"
        return text if literal.positive else f"(not {text})"
