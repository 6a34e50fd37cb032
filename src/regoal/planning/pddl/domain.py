"""Read a PDDL domain as a checked value, with the names of its file."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from regoal.planning.pddl.effects import read_cost, read_effects
from regoal.planning.pddl.formulas import KEYWORDS, Scope, read_condition
from regoal.planning.pddl.model import (
    Ancestors,
    DerivedRule,
    Effect,
    Formula,
    Junction,
    Literal,
    PddlAction,
    PddlDomain,
    Quantified,
    Symbols,
    Types,
)
from regoal.planning.pddl.syntax import (
    Bracket,
    Node,
    Word,
    bad,
    head,
    name_file,
    read_define,
    show,
    suggest,
    unsupported,
)
from regoal.planning.pddl.types import (
    collect_ancestors,
    find_types,
    read_name,
    read_objects,
    read_parents,
    read_typed_list,
    read_variables,
    warn_of_empty_group,
)

_ONCE = (":requirements", ":types", ":constants", ":predicates", ":functions")
_MANY = (":action", ":derived")
_BEYOND = {
    ":durative-action": "durative actions",
    ":process": "processes and events (PDDL+)",
    ":event": "processes and events (PDDL+)",
    ":constraints": "trajectory constraints",
    ":axiom": "axioms in the old form (write them as :derived)",
    ":method": "hierarchical tasks",
    ":task": "hierarchical tasks",
}


def parse_domain(path: Path) -> PddlDomain:
    """Read and check a domain file.

    Raises `UsageError` if there is no such file, `PddlError` if it is wrong, and
    `UnsupportedPddlError` if it goes beyond classical planning.
    """
    name, sections, source = read_define(path, "domain")
    with name_file(path):
        one = index_sections(sections, _ONCE, _MANY, _BEYOND)
        parents = read_parents(one.get(":types", ()))
        types = collect_ancestors(parents, one.get(":types", ()))
        symbols = Symbols(
            types,
            _read_predicates(one.get(":predicates", ()), types),
            _read_functions(one.get(":functions", ()), types),
            _find_derived_names(sections),
            read_objects(one.get(":constants", ()), types, {}),
        )
        derived = tuple(_read_rule(s, symbols) for s in sections if head(s) == ":derived")
        actions: dict[str, PddlAction] = {}
        for section in sections:
            if head(section) == ":action":
                action = _read_action(section, symbols)
                if action.name in actions:
                    raise bad(section, f"the action '{action.name}' is defined twice; rename one.")
                actions[action.name] = action
        _check_strata(derived, sections)
        return PddlDomain(name.text, parents, symbols, derived, tuple(actions.values()), source)


def index_sections(
    sections: Iterable[Bracket], once: Iterable[str], many: Iterable[str], beyond: Mapping[str, str]
) -> dict[str, tuple[Node, ...]]:
    """Return the content of each section that may occur once.

    `many` has the sections that may be repeated, `beyond` the unsupported ones with their names.
    Raises `PddlError` if a section is unknown or repeated.
    """
    found: dict[str, Bracket] = {}
    for section in sections:
        word = head(section)
        if word in beyond:
            raise unsupported(section, f"{beyond[word]} ({word}).")
        if word in many:
            continue
        if word not in once:
            known = [*once, *many]
            hint = suggest(word, known) or f" Known are {', '.join(known)}."
            raise bad(section, f"there is no section '{word}'.{hint}")
        if word in found:
            first = found[word].line
            raise bad(section, f"the section {word} stands here again, first on line {first}.")
        found[word] = section
    return {word: section.items[1:] for word, section in found.items()}


def _read_declarations(
    nodes: Iterable[Node], what: str, types: Ancestors
) -> Iterator[tuple[Bracket, str, tuple[Types, ...]]]:
    for node in nodes:
        if isinstance(node, Word) or not node.items:
            raise bad(node, f"expected a {what} such as (name ?x ?y) here, not {show(node)}.")
        name = read_name(node.items[0], f"a {what}")
        if name in KEYWORDS:
            raise bad(node, f"'{name}' is a word of PDDL and cannot name a {what}; rename it.")
        of = []
        for word, kind in read_typed_list(node.items[1:]):
            if word.text[0] != "?":
                raise bad(word, f"'{word.text}' is no variable; write '?{word.text}'.")
            of.append(find_types(kind, types))
        yield node, name, tuple(of)


def _read_predicates(nodes: Iterable[Node], types: Ancestors) -> dict[str, tuple[Types, ...]]:
    predicates: dict[str, tuple[Types, ...]] = {}
    for node, name, of in _read_declarations(nodes, "predicate", types):
        if name in predicates:
            raise bad(node, f"the predicate '{name}' is declared twice; rename one.")
        predicates[name] = of
    return predicates


def _read_functions(nodes: Iterable[Node], types: Ancestors) -> dict[str, tuple[Types, ...]]:
    """Read the argument types of the functions; the `- number` after them is optional.

    `(total-cost)` needs no declaration.
    """
    plain: list[Node] = []
    typed = 0
    rest = iter(nodes)
    for node in rest:
        if isinstance(node, Bracket):
            plain.append(node)
            continue
        kind = next(rest, None) if node.text == "-" else node
        if kind is None or show(kind) != "number":
            raise unsupported(node, "functions that do not give numbers (object fluents).")
        if len(plain) == typed:
            warn_of_empty_group(node, kind)
        typed = len(plain)
    functions: dict[str, tuple[Types, ...]] = {}
    for node, name, of in _read_declarations(plain, "function", types):
        if name in functions:
            raise bad(node, f"the function '{name}' is declared twice; rename one.")
        functions[name] = of
    return {"total-cost": (), **functions}


def _read_action(section: Bracket, symbols: Symbols) -> PddlAction:
    if len(section.items) < 2:  # noqa: PLR2004
        raise bad(section, "this action has no name.")
    name = read_name(section.items[1], "an action")
    parts = _split_action(section, name)
    place = f"the parameters of action {name}"
    listed = read_variables(
        parts.get(":parameters", Bracket((), section.line)), symbols.types, place
    )
    scope, parameters = Scope(symbols, place).bind(listed)
    before = Scope(symbols, f"the precondition of action {name}", scope.variables, scope.used)
    after = Scope(symbols, f"the effect of action {name}", scope.variables, scope.used)
    precondition = read_condition(parts.get(":precondition", Bracket((), section.line)), before)
    found = list(read_effects(parts.get(":effect", Bracket((), section.line)), after))
    return PddlAction(
        name,
        parameters,
        precondition,
        tuple(effect for effect in found if isinstance(effect, Effect)),
        tuple(read_cost(increase, after) for increase in found if isinstance(increase, Bracket)),
    )


def _split_action(section: Bracket, name: str) -> dict[str, Node]:
    known = (":parameters", ":precondition", ":effect")
    parts: dict[str, Node] = {}
    rest = iter(section.items[2:])
    for key in rest:
        word = show(key)
        if word == ":vars":
            raise unsupported(
                key, f":vars (PDDL 1.2) in action {name}; list these variables in :parameters."
            )
        if word not in known:
            hint = suggest(word, known) or f" Known are {', '.join(known)}."
            raise bad(key, f"'{word}' cannot stand in action {name}.{hint}")
        if word in parts:
            raise bad(key, f"action {name} has {word} twice.")
        value = next(rest, None)
        if value is None or (isinstance(value, Word) and value.text in known):
            raise bad(key, f"nothing follows {word} in action {name}; write {word} ().")
        parts[word] = value
    return parts


def _read_rule(section: Bracket, symbols: Symbols) -> DerivedRule:
    if len(section.items) != 3 or not isinstance(section.items[1], Bracket):  # noqa: PLR2004
        raise bad(
            section, f"expected (:derived (PREDICATE ?x ...) CONDITION), not {show(section)}."
        )
    name, declared = head(section.items[1]), symbols.predicates
    if name in KEYWORDS:
        raise bad(
            section.items[1],
            f"{show(section.items[1])} cannot be derived; a rule derives one atom, "
            "(PREDICATE ?x ...), and negation belongs in its condition.",
        )
    if name not in declared:
        hint = suggest(name, declared) or " Declare it in (:predicates ...)."
        raise bad(section, f"there is no predicate '{name}' to derive.{hint}")
    place = f"the rule for derived predicate {name}"
    listed = read_variables(Bracket(section.items[1].items[1:], section.line), symbols.types, place)
    if len(listed) != len(declared[name]):
        raise bad(section, f"'{name}' takes {len(declared[name])} arguments, not {len(listed)}.")
    typed = [
        (word, wanted if of == ("object",) else of)
        for (word, of), wanted in zip(listed, declared[name], strict=True)
    ]
    scope, parameters = Scope(symbols, place).bind(typed)
    return DerivedRule(name, parameters, read_condition(section.items[2], scope))


def _find_derived_names(sections: Iterable[Bracket]) -> frozenset[str]:
    return frozenset(head(s.items[1]) for s in sections if head(s) == ":derived" and s.items[1:])


def _check_strata(rules: tuple[DerivedRule, ...], sections: Iterable[Bracket]) -> None:
    """Refuse rules that need their own predicate negated or inside a `forall`.

    The PDDL library cannot order rules that need it inside a `forall`.
    """
    where = next((s for s in sections if head(s) == ":derived"), Bracket((), 1))
    for forall_step in (0, 1):
        name = _find_unstratified(rules, forall_step)
        if name and not forall_step:
            raise bad(where, f"the derived predicate '{name}' depends on its own negation.")
        if name:
            raise unsupported(
                where, f"the derived predicate '{name}', which needs itself inside a forall."
            )


def _find_unstratified(rules: tuple[DerivedRule, ...], forall_step: int) -> str:
    """Return a predicate that no stratum can hold, or "" if all rules are stratified."""
    level = {rule.predicate: 0 for rule in rules}
    needs = [
        (r.predicate, p, step) for r in rules for p, step in _find_uses(r.body, 0, forall_step)
    ]
    changed = True
    while changed:
        changed = False
        for derived, used, step in needs:
            if used in level and level[used] + step > level[derived]:
                level[derived] = level[used] + step
                changed = True
            if level[derived] > len(level):
                return derived
    return ""


def _find_uses(formula: Formula, step: int, forall_step: int) -> Iterator[tuple[str, int]]:
    """Yield each predicate in a formula, with 1 if its rules must be complete before, else 0."""
    if isinstance(formula, Literal):
        yield formula.predicate, step if formula.positive else 1
    elif isinstance(formula, Junction):
        for part in formula.parts:
            yield from _find_uses(part, step, forall_step)
    elif isinstance(formula, Quantified):
        inner = forall_step if formula.quantifier == "forall" else 0
        yield from _find_uses(formula.body, max(step, inner), forall_step)
