"""Connected parts of a goal's components that hold in a state, grown greedily.

Stands in for the exact search if a component has too many connected patterns to list, or if the
search takes too many steps.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice, product, repeat, zip_longest

from regoal.planning.lifting.embeddings import (
    Budget,
    CanonicalForm,
    canonical_form,
    label_fits,
)
from regoal.planning.lifting.patterns import Component
from regoal.planning.lifting.placements import PartCounts, Placement, exchanged, placed
from regoal.planning.lifting.structures import VertexLiteral, reordered

GROWTH_BUDGET = 1000
"""Bindings weighed to grow one component in one part."""

FREE_BINDINGS = 50
"""Bindings looked at for a negative literal, which no atom of the state suggests."""

Binding = dict[int, int]
"""Some of a component's vertices, mapped one-to-one to a part's."""


def greedy_packing(
    components: Sequence[Component], state: PartCounts, connected: bool
) -> tuple[Placement, ...]:
    """Place each component in turn where most of it can be grown."""
    placements = []
    for component in components:
        for _ in range(component.copies):
            found = [grown_placement(component.whole, part, connected) for part, _ in state]
            best = max(filter(None, found), key=lambda x: x.pattern.size, default=None)
            if best is None:
                break
            state = exchanged(state, best.part, [form for form, _ in best.rest])
            placements.append(best)
    return tuple(placements)


@lru_cache(maxsize=1_000)
def grown_placement(
    component: CanonicalForm, part: CanonicalForm, connected: bool
) -> Placement | None:
    """The largest pattern of the component that is grown in the part.

    Starts from each literal and atom in turn, the best connected first, and adds the literal
    whose binding makes most literals true, until nothing can be added or the budget is spent.
    """
    budget = Budget(GROWTH_BUDGET)
    best: list[VertexLiteral] = []
    value: Binding = {}
    for seed in _seeds(component, part):
        literals, bound = _grow(component, part, *seed, budget)
        if len(literals) > len(best):
            best, value = literals, bound
        if budget.left < 0 or len(best) == component.size:
            break
    if not best:
        return None
    vertices = sorted({a for _, args, _ in best for a in args})
    pattern, order = canonical_form(reordered(component.structure, vertices, best))
    embedding = tuple(value[vertices[i]] for i in order)
    return placed(pattern, part, embedding, connected)


def _seeds(
    component: CanonicalForm, part: CanonicalForm
) -> Iterator[tuple[VertexLiteral, Binding]]:
    """Literals with a binding of their own; first the best connected with its best atoms."""
    literals = sorted(
        component.structure.literals,
        key=lambda x: (not x[2], -sum(len(component.incident[a]) for a in x[1])),
    )
    bindings = [zip(repeat(x), _extensions(component, part, x, {})) for x in literals]
    return filter(None, chain.from_iterable(zip_longest(*bindings)))


def _grow(
    component: CanonicalForm,
    part: CanonicalForm,
    literal: VertexLiteral,
    extended: Binding,
    budget: Budget,
) -> tuple[list[VertexLiteral], Binding]:
    """The literals that became true, starting with `literal`, and their binding."""
    value: Binding = {}
    true: list[VertexLiteral] = []
    gained = _compute_gain(component, part, literal, value, extended)
    while gained:
        true += gained
        value, gained = extended, []
        for candidate in _frontier(component, value):
            for new in _extensions(component, part, candidate, value):
                found = _compute_gain(component, part, candidate, value, new)
                if len(found) > len(gained):
                    gained, extended = found, new
                budget.left -= 1
            if budget.left < 0:
                return true + gained, extended
    return true, value


def _frontier(component: CanonicalForm, value: Binding) -> list[VertexLiteral]:
    """Literals that are partly bound, positive ones first."""
    touched = dict.fromkeys(x for a in value for x in component.incident[a])
    return sorted((x for x in touched if not value.keys() >= set(x[1])), key=lambda x: not x[2])


def _extensions(
    component: CanonicalForm, part: CanonicalForm, literal: VertexLiteral, value: Binding
) -> Iterator[Binding]:
    """Extensions of `value` under which the literal holds."""
    predicate, args, positive = literal
    labels, offered = component.structure.labels, part.structure.labels
    candidates: list[tuple[int, ...]]
    if positive:
        bound = [(i, value[a]) for i, a in enumerate(args) if a in value]
        candidates = part.atoms_near(predicate, bound)
    else:
        choices = [[value[a]] if a in value else range(len(offered)) for a in args]
        free = (x for x in product(*choices) if (predicate, x) not in part.facts)
        candidates = list(islice(free, FREE_BINDINGS))
    for candidate in candidates:
        new = value | dict(zip(args, candidate, strict=True))
        if (
            all(new[a] == place for a, place in zip(args, candidate, strict=True))
            and all(new[a] == place for a, place in value.items())
            and len(set(new.values())) == len(new)
            and all(label_fits(labels[a], offered[new[a]]) for a in args)
        ):
            yield new


def _compute_gain(
    component: CanonicalForm,
    part: CanonicalForm,
    literal: VertexLiteral,
    value: Binding,
    new: Binding,
) -> list[VertexLiteral]:
    """`literal`, then the other literals over a new vertex that hold under `new`."""
    touched = dict.fromkeys(x for a in literal[1] if a not in value for x in component.incident[a])
    others = (x for x in touched if x != literal and new.keys() >= set(x[1]))
    return [
        literal,
        *((p, xs, s) for p, xs, s in others if ((p, tuple(new[a] for a in xs)) in part.facts) == s),
    ]
