"""Find the renamings under which the action schemas and axioms of two domains coincide.

Colour refinement leaves few candidates. The search tries them by individualising one part after
another on both sides (McKay, "Practical graph isomorphism", 1981). It then checks every candidate
literal by literal.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations, product

from regoal.planning.matching.dynamics import (
    ActionSchema,
    Colours,
    Dynamics,
    Part,
    SchemaLiteral,
    Symbol,
    Term,
)

WORK_LIMIT = 50_000
"""Most literals that one search examines, which takes seconds.

A refinement examines each literal once.
"""
_MOST_ORDERS = 5040
"""Most orders of an action's parameters that are tried: all orders of seven parameters."""
_MOST_FREE = 4
"""Most quantified variables of an effect or axiom whose orders are all tried."""


class SearchLimitError(Exception):
    """Raised if the domains are so regular that the search takes too long."""


class Budget:
    """Counts the work that one search may still do."""

    def __init__(self, limit: int = WORK_LIMIT) -> None:
        self.left = limit

    def spend(self, literals: int) -> None:
        """Subtract the work for `literals`. Raises `SearchLimitError` if too little is left."""
        self.left -= literals
        if self.left < 0:
            raise SearchLimitError


@dataclass(frozen=True)
class Renaming:
    """Maps the names of one domain to names of another.

    `parameters[action][i]` is the position of parameter i in the other domain's action.
    """

    symbols: Mapping[Symbol, Symbol]
    actions: Mapping[str, str]
    constants: Mapping[str, str]
    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict)


def find_renamings(
    one: Dynamics, other: Dynamics, fixed: Sequence[tuple[Part, Part]], budget: Budget
) -> Iterator[Renaming]:
    """Yield renamings of `one` into `other` that map each first part of `fixed` to its second.

    Renamings with equal symbols and actions are yielded once. Raises `SearchLimitError`.
    """
    seen = []
    for renaming in _search(one, other, fixed, budget):
        if (renaming.symbols, renaming.actions) not in seen:
            seen.append((renaming.symbols, renaming.actions))
            yield renaming


def _search(
    one: Dynamics, other: Dynamics, fixed: Sequence[tuple[Part, Part]], budget: Budget
) -> Iterator[Renaming]:
    budget.spend(one.colours.size + 1)
    classes = _group_by_colour(one.colours, [pair[0] for pair in fixed])
    others = _group_by_colour(other.colours, [pair[1] for pair in fixed])
    if {c: len(parts) for c, parts in classes.items()} != {c: len(n) for c, n in others.items()}:
        return
    open_ = [
        (parts[0][0] == "constant", len(parts), c) for c, parts in classes.items() if parts[1:]
    ]
    if not open_:
        pairs = [(classes[c][0], others[c][0]) for c in sorted(classes)]
        renaming = _verify(one, other, pairs, budget)
        if renaming is not None:
            yield renaming
        return
    constants_only, _, colour = min(open_)
    for candidate in others[colour]:
        found = _search(one, other, [*fixed, (classes[colour][0], candidate)], budget)
        if constants_only:  # every choice of constants gives the same symbols and actions
            found = islice(found, 1)
        some = False
        for renaming in found:
            some = True
            yield renaming
        if constants_only and some:
            return


def _group_by_colour(colours: Colours, fixed: Sequence[Part]) -> dict[str, list[Part]]:
    """Group symbols, actions and constants by colour, after each of `fixed` gets its own colour."""
    stable = colours.refine({part: f"fixed {i}" for i, part in enumerate(fixed)})
    classes: defaultdict[str, list[Part]] = defaultdict(list)
    for part in colours.parts:
        if part[0] in ("symbol", "action", "constant"):
            classes[stable[part]].append(part)
    return dict(classes)


def _verify(
    one: Dynamics, other: Dynamics, pairs: Sequence[tuple[Part, Part]], budget: Budget
) -> Renaming | None:
    """Return the renaming given by `pairs` if actions and axioms coincide under it, else None."""
    names = Renaming(
        {a: b for (_, a), (_, b) in pairs if isinstance(a, Symbol) and isinstance(b, Symbol)},
        {str(a): str(b) for (kind, a), (_, b) in pairs if kind == "action"},
        {str(a): str(b) for (kind, a), (_, b) in pairs if kind == "constant"},
    )
    if _count_axioms(one, names) != _count_axioms(other, None):
        return None
    ours, theirs = one.disjuncts(), other.disjuncts()
    for action, schemas in ours.items():
        order = parameter_order(schemas, theirs[names.actions[action]], names, budget)
        if order is None:
            return None
        names.parameters[action] = order
    return names


def parameter_order(
    ours: Sequence[ActionSchema],
    theirs: Sequence[ActionSchema],
    names: Renaming,
    budget: Budget,
) -> tuple[int, ...] | None:
    """Return the parameter order under which our action coincides with theirs, or None.

    Both arguments hold the disjuncts of one action. The unchanged order is tried first. Raises
    `SearchLimitError`.
    """
    arity = ours[0].arity
    if len(ours) != len(theirs) or {a.arity for a in (*ours, *theirs)} != {arity}:
        return None
    target = Counter(_make_canonical(schema, tuple(range(arity)), None) for schema in theirs)
    for order in islice(_find_orders(ours, theirs, names), _MOST_ORDERS):
        budget.spend(sum(len(schema.preconditions) + len(schema.effects) for schema in ours))
        if Counter(_make_canonical(schema, order, names) for schema in ours) == target:
            return order
    return None


def differences(
    ours: Sequence[ActionSchema], theirs: Sequence[ActionSchema], names: Renaming
) -> tuple[bool, bool]:
    """Return whether preconditions and whether effects differ, with parameters in their order."""
    order = tuple(range(ours[0].arity))
    mine = [_make_canonical(schema, order, names) for schema in ours]
    other = [_make_canonical(schema, order, None) for schema in theirs]
    first, second = (
        Counter(form[part] for form in mine) != Counter(form[part] for form in other)
        for part in (0, 1)
    )
    return first, second


def _find_orders(
    ours: Sequence[ActionSchema], theirs: Sequence[ActionSchema], names: Renaming
) -> Iterator[tuple[int, ...]]:
    """Yield the orders that move each parameter to an equal role; the unchanged order is first."""
    arity = ours[0].arity
    yield tuple(range(arity))
    roles = [_describe_role(ours, i, names) for i in range(arity)]
    targets = [_describe_role(theirs, i, None) for i in range(arity)]
    if sorted(roles) != sorted(targets):
        return
    groups = sorted(set(roles))
    places = [[i for i in range(arity) if roles[i] == group] for group in groups]
    goals = [[i for i in range(arity) if targets[i] == group] for group in groups]
    for choice in product(*(permutations(goal) for goal in goals)):
        order = [0] * arity
        for place, goal in zip(places, choice, strict=True):
            for i, j in zip(place, goal, strict=True):
                order[i] = j
        yield tuple(order)


def _describe_role(schemas: Sequence[ActionSchema], parameter: int, names: Renaming | None) -> str:
    """Describe the literals that contain a parameter, and its places in them."""
    role = []
    for schema in schemas:
        literals = [("precondition", literal) for literal in schema.preconditions]
        literals += [("effect", effect.literal) for effect in schema.effects]
        for tag, literal in literals:
            renamed = rename(literal, {}, names)
            places = [i for i, term in enumerate(literal.terms) if term == parameter]
            role += [(tag, renamed.symbol, literal.positive, place) for place in places]
    return repr(sorted(role))


def rename(
    literal: SchemaLiteral, variables: Mapping[int, int], names: Renaming | None
) -> SchemaLiteral:
    """Rename a literal; a variable that is not in `variables` keeps its number."""

    def term(of: Term) -> Term:
        if isinstance(of, int):
            return variables.get(of, of)
        return names.constants.get(of, of) if names else of

    symbol = names.symbols.get(literal.symbol, literal.symbol) if names else literal.symbol
    return SchemaLiteral(symbol, tuple(map(term, literal.terms)), literal.positive)


def _make_canonical(
    schema: ActionSchema, order: tuple[int, ...], names: Renaming | None
) -> tuple[str, frozenset[str]]:
    """Return preconditions and effects in canonical form, with other names and parameter order."""
    moved = dict(enumerate(order))
    return (
        write_least_form([], schema.preconditions, moved, names),
        frozenset(
            write_least_form([effect.literal], effect.condition, moved, names)
            for effect in schema.effects
        ),
    )


def write_least_form(
    first: Sequence[SchemaLiteral],
    rest: Sequence[SchemaLiteral],
    variables: Mapping[int, int],
    names: Renaming | None,
) -> str:
    """Write the list `first` and the set `rest` as text that does not depend on free variables.

    Free variables are those not in `variables`; the text is the least over all their orders. More
    than four free variables keep their order, so equal conditions may then give different texts.
    """
    terms = {term for literal in (*first, *rest) for term in literal.terms}
    free = sorted(t for t in terms if isinstance(t, int) and t not in variables)
    numbers = range(len(variables), len(variables) + len(free))
    orders = permutations(numbers) if len(free) <= _MOST_FREE else [tuple(numbers)]
    forms = []
    for order in orders:
        given = {**variables, **dict(zip(free, order, strict=True))}
        heads = [rename(literal, given, names) for literal in first]
        body = {rename(literal, given, names) for literal in rest}
        forms.append(repr((heads, sorted(body, key=SchemaLiteral.key))))
    return min(forms)


def _count_axioms(dynamics: Dynamics, names: Renaming | None) -> Counter[str]:
    forms = []
    for axiom in dynamics.axioms:
        head = {i: i for i in range(axiom.head.symbol.arity)}
        forms.append(write_least_form([axiom.head], axiom.body, head, names))
    return Counter(forms)
