"""PDDL files in, text for the parser out: checked, complete, and in names it cannot confuse.

The parser (pymimir) crashes on some correct files, takes some requirements amiss, reads
`either` on parameters as an intersection, and turns types into predicates of the same name.
So it only ever sees text that is printed here from a checked file: sections in order, empty
preconditions written out, `either` as a type of its own, types and predicates told apart by name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from regoal.errors import UnsupportedPddlError
from regoal.planning.goals import Goal
from regoal.planning.pddl_domain import PddlAction, PddlDomain, parse_domain
from regoal.planning.pddl_effects import Effect, Values
from regoal.planning.pddl_formulas import TRUE, Formula, Junction, Literal, Variable
from regoal.planning.pddl_problem import PddlProblem, parse_problem
from regoal.planning.pddl_types import Types

REQUIREMENTS = (
    "(:requirements :strips :typing :negative-preconditions :disjunctive-preconditions "
    ":existential-preconditions :universal-preconditions :conditional-effects "
    ":derived-predicates"
)
MAX_CASES = 512
"""How many conjunctions a condition may expand into; the parser makes an action of each."""

_SAFE = re.compile(r"[a-z][a-z0-9_-]*")
_TAKEN = re.compile(
    r"object|number|either|either-\d+|axiom_\d+|and|or|not|imply|forall|exists|when"
)


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
    actions: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    content: PddlDomain = field(kw_only=True, repr=False)


@dataclass(frozen=True)
class ProblemText:
    """A problem as the parser gets it, with the goal and costs that were read from it.

    `objects` gives each name in `text` its name in the file, constants included; `types_of`
    gives each object's types in the file, `object` aside; `values` are the functions that costs
    refer to, and count only where `has_costs`.
    """

    path: Path
    text: str
    objects: dict[str, str]
    types_of: dict[str, tuple[str, ...]]
    goal: Goal
    values: Values
    has_costs: bool


def read_domain(path: Path) -> DomainText:
    """Read and check a domain file, and print it for the parser.

    Raises `UsageError` where there is no such file, `PddlError` where it is wrong and
    `UnsupportedPddlError` where it goes beyond classical planning, with file, line and remedy.
    """
    domain = parse_domain(path)
    predicates = _safe_names(domain.symbols.predicates, set())
    types = _safe_names(domain.parents, set(predicates.values()))
    actions = _safe_names((action.name for action in domain.actions), set())
    constants = _safe_names(domain.symbols.objects, set())
    printer = _Printer(path, domain, types, predicates, constants)
    return DomainText(
        path,
        printer.domain_text(actions),
        *(_inverse(names) for names in (types, predicates, actions, constants)),
        content=domain,
    )


def read_problem(path: Path, domain: DomainText) -> ProblemText:
    """Read and check a problem file of `domain`. Raises as `read_domain` does."""
    problem = parse_problem(path, domain.content, domain.path)
    constants = _inverse(domain.constants)
    objects = _safe_names(problem.objects, set(constants.values()))
    everything = {**constants, **objects}
    types, predicates = _inverse(domain.types), _inverse(domain.predicates)
    printer = _Printer(path, domain.content, types, predicates, everything)
    above = domain.content.symbols.types
    typed = {**domain.content.symbols.objects, **problem.objects}
    return ProblemText(
        path,
        printer.problem_text(problem, objects),
        _inverse(everything),
        {o: tuple(sorted(above[t] - {"object"})) for o, t in typed.items()},
        problem.goal,
        problem.values,
        problem.has_costs,
    )


def _inverse(names: Mapping[str, str]) -> dict[str, str]:
    return {new: old for old, new in names.items()}


def _safe_names(names: Iterable[str], taken: set[str]) -> dict[str, str]:
    """A name for each that the parser takes and that is not `taken`; its own where it may be."""
    names = list(names)
    safe = {
        n: n for n in names if _SAFE.fullmatch(n) and not _TAKEN.fullmatch(n) and n not in taken
    }
    used = taken.union(safe)
    for name in names:
        if name not in safe:
            stem = re.sub(r"[^a-z0-9_-]", "_", name)
            safe[name] = next(n for i in count() if (n := f"x{i}-{stem}") not in used)
            used.add(safe[name])
    return {name: safe[name] for name in names}


@dataclass
class _Printer:
    """Prints one file for the parser; `unions` collects what `either` asked for."""

    path: Path
    domain: PddlDomain
    types: Mapping[str, str]
    predicates: Mapping[str, str]
    objects: Mapping[str, str]
    unions: dict[Types, str] = field(default_factory=dict)
    equality: bool = False

    def domain_text(self, actions: Mapping[str, str]) -> str:
        rules = [
            f"(:derived ({self.predicates[rule.predicate]}{self._typed(rule.parameters)})"
            f"\n  {self._formula(rule.body, rule.predicate)})"
            for rule in self.domain.derived
        ]
        schemas = [self._action(action, actions[action.name]) for action in self.domain.actions]
        requirements = f"{REQUIREMENTS}{' :equality' if self.equality else ''})"
        constants = self._objects(self.domain.symbols.objects)
        sections = [
            requirements,
            *([f"(:types {' '.join(self._type_lines())})"] if self.types else []),
            *([f"(:constants{constants})"] if constants else []),
            f"(:predicates {' '.join(self._declarations())})",
            *rules,
            *schemas,
        ]
        return "\n".join(["(define (domain d)", *sections]) + ")\n"

    def problem_text(self, problem: PddlProblem, objects: Mapping[str, str]) -> str:
        init = " ".join(self._literal(Literal(*atom)) for atom in problem.init)
        goal = " ".join(
            self._literal(Literal(*atom, positive)) for atom, positive in problem.goal.literals()
        )
        declared = self._objects(problem.objects) if objects else ""
        sections = [
            "(:domain d)",
            *([f"(:objects{declared})"] if declared else []),
            f"(:init {init})",
            f"(:goal (and {goal}))",
        ]
        return "\n".join(["(define (problem p)", *sections]) + ")\n"

    def _type_lines(self) -> Iterator[str]:
        for name, parents in self.domain.parents.items():
            for parent in parents:
                yield f"{self.types[name]} - {self.types.get(parent, parent)}"
        for members, union in self.unions.items():
            yield f"{union} - object"
            for member in members:
                yield f"{self.types[member]} - {union}"

    def _declarations(self) -> Iterator[str]:
        for name, arguments in self.domain.symbols.predicates.items():
            variables = "".join(f" ?v{i}" for i in range(len(arguments)))
            yield f"({self.predicates[name]}{variables})"

    def _objects(self, objects: Mapping[str, str]) -> str:
        return "".join(f" {self.objects[o]} - {self._type((t,))}" for o, t in objects.items())

    def _type(self, types: Types) -> str:
        if len(types) > 1:
            return self.unions.setdefault(types, f"either-{len(self.unions)}")
        return self.types.get(types[0], types[0])

    def _typed(self, variables: Iterable[Variable]) -> str:
        return "".join(f" {v.name} - {self._type(v.types)}" for v in variables)

    def _action(self, action: PddlAction, name: str) -> str:
        place = f"the precondition of action {action.name}"
        return (
            f"(:action {name} :parameters ({self._typed(action.parameters).strip()})"
            f"\n  :precondition {self._formula(action.precondition, place)}"
            f"\n  :effect (and{''.join(self._effects(action.effects, action.name))}))"
        )

    def _effects(self, effects: Iterable[Effect], action: str) -> Iterator[str]:
        """One text for all effects under the same variables and condition."""
        together: dict[tuple[tuple[Variable, ...], Formula], list[Literal]] = {}
        for effect in effects:
            together.setdefault((effect.variables, effect.condition), []).extend(effect.literals)
        for (variables, condition), literals in together.items():
            text = f"(and {' '.join(map(self._literal, literals))})"
            if condition != TRUE:
                premise = self._formula(condition, f"a condition in the effect of action {action}")
                text = f"(when {premise} {text})"
            if variables:
                text = f"(forall ({self._typed(variables).strip()}) {text})"
            yield f"\n    {text}"

    def _formula(self, formula: Formula, place: str) -> str:
        if cases(formula) > MAX_CASES:
            raise UnsupportedPddlError(
                f"{self.path}: {place} expands into more than {MAX_CASES} conjunctions; "
                "use a derived predicate for part of it."
            )
        text = self._condition(formula)
        return text if isinstance(formula, Junction) else f"(and {text})"

    def _condition(self, formula: Formula) -> str:
        if isinstance(formula, Literal):
            return self._literal(formula)
        if isinstance(formula, Junction):
            return f"({' '.join((formula.connective, *map(self._condition, formula.parts)))})"
        variables = self._typed(formula.variables).strip()
        return f"({formula.quantifier} ({variables}) {self._condition(formula.body)})"

    def _literal(self, literal: Literal) -> str:
        self.equality |= literal.predicate == "="
        name = self.predicates.get(literal.predicate, "=")
        terms = (self.objects.get(term, term) for term in literal.terms)
        text = f"({' '.join((name, *terms))})"
        return text if literal.positive else f"(not {text})"


def cases(formula: Formula) -> int:
    """How many conjunctions the formula has in disjunctive normal form; a `forall` is one."""
    if isinstance(formula, Literal):
        return 1
    if isinstance(formula, Junction):
        numbers = [cases(part) for part in formula.parts]
        if formula.connective == "or":
            return sum(numbers)
        total = 1
        for number in numbers:
            total = min(total * number, MAX_CASES + 1)
        return total
    return cases(formula.body) if formula.quantifier == "exists" else 1
