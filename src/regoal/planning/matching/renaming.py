"""Finds the renamings under which the action schemas and axioms of two domains coincide.

Colour refinement leaves few candidates; what is left is tried by individualising one part after
another on both sides (McKay, "Practical graph isomorphism", 1981). Every candidate is then checked
literal by literal.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations, product

from regoal.planning.matching.rules import (
    ActionSchema,
    Axiom,
    Colours,
    Literal,
    Node,
    Symbol,
    Term,
)

WORK_LIMIT = 50_000
"""Most literals looked at in one search, a refinement counted as one look: seconds' worth."""
_MOST_ORDERS = 5040
"""Most orders of an action's parameters tried: every order of seven."""
_MOST_FREE = 4
"""Most quantified variables of one effect or axiom that are tried in every order."""


class SearchLimitError(Exception):
    """The domains are so regular that the search was given up."""


class Budget:
    """The work that one search may still do."""

    def __init__(self, limit: int = WORK_LIMIT) -> None:
        self.left = limit

    def spend(self, literals: int) -> None:
        """Take the work for `literals` off; raises `SearchLimitError` when there is none left."""
        self.left -= literals
        if self.left < 0:
            raise SearchLimitError


@dataclass(frozen=True)
class Renaming:
    """Names of one domain as names of another.

    `parameters[action][i]` is the position, in the other domain's action, of parameter i.
    """

    symbols: Mapping[Symbol, Symbol]
    actions: Mapping[str, str]
    constants: Mapping[str, str]
    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Rules:
    """What is compared: the action schemas and axioms of a domain, and their colours."""

    actions: Sequence[ActionSchema]
    axioms: Sequence[Axiom]
    colours: Colours

    def disjuncts(self) -> dict[str, list[ActionSchema]]:
        """The schemas of each action."""
        found: defaultdict[str, list[ActionSchema]] = defaultdict(list)
        for action in self.actions:
            found[action.name].append(action)
        return dict(found)


def renamings(
    one: Rules, other: Rules, fixed: Sequence[tuple[Node, Node]], budget: Budget
) -> Iterator[Renaming]:
    """Renamings of `one` into `other` that send each first node of `fixed` to its second.

    Those that agree on symbols and actions are one. Raises `SearchLimitError`.
    """
    seen = []
    for renaming in _search(one, other, fixed, budget):
        if (renaming.symbols, renaming.actions) not in seen:
            seen.append((renaming.symbols, renaming.actions))
            yield renaming


def _search(
    one: Rules, other: Rules, fixed: Sequence[tuple[Node, Node]], budget: Budget
) -> Iterator[Renaming]:
    budget.spend(one.colours.size + 1)
    classes = _classes(one.colours, [pair[0] for pair in fixed])
    others = _classes(other.colours, [pair[1] for pair in fixed])
    if {c: len(nodes) for c, nodes in classes.items()} != {c: len(n) for c, n in others.items()}:
        return
    open_ = [
        (nodes[0][0] == "constant", len(nodes), c) for c, nodes in classes.items() if nodes[1:]
    ]
    if not open_:
        pairs = [(classes[c][0], others[c][0]) for c in sorted(classes)]
        renaming = _verified(one, other, pairs, budget)
        if renaming is not None:
            yield renaming
        return
    constants_only, _, colour = min(open_)
    for candidate in others[colour]:
        found = _search(one, other, [*fixed, (classes[colour][0], candidate)], budget)
        if constants_only:  # one choice of constants is as good as another
            found = islice(found, 1)
        some = False
        for renaming in found:
            some = True
            yield renaming
        if constants_only and some:
            return


def _classes(colours: Colours, fixed: Sequence[Node]) -> dict[str, list[Node]]:
    """Symbols, actions and constants by colour when those of `fixed` are told apart by position."""
    stable = colours.refine({node: f"fixed {i}" for i, node in enumerate(fixed)})
    classes: defaultdict[str, list[Node]] = defaultdict(list)
    for node in colours.nodes:
        if node[0] in ("symbol", "action", "constant"):
            classes[stable[node]].append(node)
    return dict(classes)


def _verified(
    one: Rules, other: Rules, pairs: Sequence[tuple[Node, Node]], budget: Budget
) -> Renaming | None:
    """The renaming that `pairs` spell out, if under it actions and axioms coincide."""
    names = Renaming(
        {a: b for (_, a), (_, b) in pairs if isinstance(a, Symbol) and isinstance(b, Symbol)},
        {str(a): str(b) for (kind, a), (_, b) in pairs if kind == "action"},
        {str(a): str(b) for (kind, a), (_, b) in pairs if kind == "constant"},
    )
    if _axioms(one, names) != _axioms(other, None):
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
    """Where each parameter of our action goes for it to coincide with theirs, or None.

    The order as it stands comes first. Both arguments hold the disjuncts of one action. Raises
    `SearchLimitError`.
    """
    arity = ours[0].arity
    if len(ours) != len(theirs) or {a.arity for a in (*ours, *theirs)} != {arity}:
        return None
    target = Counter(_canonical(schema, tuple(range(arity)), None) for schema in theirs)
    for order in islice(_orders(ours, theirs, names), _MOST_ORDERS):
        budget.spend(sum(len(schema.preconditions) + len(schema.effects) for schema in ours))
        if Counter(_canonical(schema, order, names) for schema in ours) == target:
            return order
    return None


def differences(
    ours: Sequence[ActionSchema], theirs: Sequence[ActionSchema], names: Renaming
) -> tuple[bool, bool]:
    """Whether preconditions and whether effects differ, parameters taken in their order."""
    order = tuple(range(ours[0].arity))
    mine = [_canonical(schema, order, names) for schema in ours]
    other = [_canonical(schema, order, None) for schema in theirs]
    first, second = (
        Counter(form[part] for form in mine) != Counter(form[part] for form in other)
        for part in (0, 1)
    )
    return first, second


def _orders(
    ours: Sequence[ActionSchema], theirs: Sequence[ActionSchema], names: Renaming
) -> Iterator[tuple[int, ...]]:
    """Parameter orders that respect in which literals each stands, the unchanged one first."""
    arity = ours[0].arity
    yield tuple(range(arity))
    roles = [_role(ours, i, names) for i in range(arity)]
    targets = [_role(theirs, i, None) for i in range(arity)]
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


def _role(schemas: Sequence[ActionSchema], parameter: int, names: Renaming | None) -> str:
    """In which literals a parameter stands, and where in them."""
    role = []
    for schema in schemas:
        literals = [("precondition", literal) for literal in schema.preconditions]
        literals += [("effect", effect.literal) for effect in schema.effects]
        for tag, literal in literals:
            renamed = rename(literal, {}, names)
            places = [i for i, term in enumerate(literal.terms) if term == parameter]
            role += [(tag, renamed.symbol, literal.positive, place) for place in places]
    return repr(sorted(role))


def rename(literal: Literal, variables: Mapping[int, int], names: Renaming | None) -> Literal:
    """The literal under other names; a variable that `variables` leaves out keeps its number."""

    def term(of: Term) -> Term:
        if isinstance(of, int):
            return variables.get(of, of)
        return names.constants.get(of, of) if names else of

    symbol = names.symbols.get(literal.symbol, literal.symbol) if names else literal.symbol
    return Literal(symbol, tuple(map(term, literal.terms)), literal.positive)


def _canonical(
    schema: ActionSchema, order: tuple[int, ...], names: Renaming | None
) -> tuple[str, frozenset[str]]:
    """Preconditions and effects, under other names and parameter order, fit to be compared."""
    moved = dict(enumerate(order))
    return (
        least_form([], schema.preconditions, moved, names),
        frozenset(
            least_form([effect.literal], effect.condition, moved, names)
            for effect in schema.effects
        ),
    )


def least_form(
    first: Sequence[Literal],
    rest: Sequence[Literal],
    variables: Mapping[int, int],
    names: Renaming | None,
) -> str:
    """`first` and the set `rest` as text, whichever way the variables beside `variables` are named.

    More than four of those keep their order: then equal rules may look different.
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
        forms.append(repr((heads, sorted(body, key=Literal.key))))
    return min(forms)


def _axioms(rules: Rules, names: Renaming | None) -> Counter[str]:
    forms = []
    for axiom in rules.axioms:
        head = {i: i for i in range(axiom.head.symbol.arity)}
        forms.append(least_form([axiom.head], axiom.body, head, names))
    return Counter(forms)
