"""Connected parts of a goal component that hold in a state, grown greedily.

Stands in for the exact search where a component has too many connected patterns to list.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice, product

from regoal.planning.lifting.embeddings import Form, Image, Steps, label_fits
from regoal.planning.lifting.structures import Literal, Structure, reordered

_FREE_BINDINGS = 50
"""Bindings looked at for a negative literal, which no atom of the state suggests."""


def grow(component: Form, form: Form, steps: Steps) -> list[tuple[Structure, Image]]:
    """The largest part found and the parts on the way to it, each with its image, largest first.

    Starts from each literal and atom in turn, the best connected first, and adds the literal
    whose binding makes most literals true, until nothing can be added or `steps` is spent.
    """
    best: list[tuple[Literal, dict[int, int]]] = []
    growth = _Growth(component, form, steps)
    for literal, binding in growth.seeds():
        grown = growth.from_seed(literal, binding)
        if len(grown) > len(best):
            best = grown
        if steps.left < 0 or len(best) == component.size:
            break
    result = []
    for size in range(len(best), 0, -1):
        literals = [literal for literal, _ in best[:size]]
        vertices = sorted({a for _, args, _ in literals for a in args})
        value = best[size - 1][1]
        structure = reordered(component.structure, vertices, literals)
        result.append((structure, tuple(value[vertex] for vertex in vertices)))
    return result


class _Growth:
    """One component in one form; a binding maps some of its vertices to the form's."""

    def __init__(self, component: Form, form: Form, steps: Steps) -> None:
        self.component = component
        self.form = form
        self.steps = steps
        self.incident: dict[int, list[Literal]] = defaultdict(list)
        for literal in component.structure.literals:
            for vertex in dict.fromkeys(literal[1]):
                self.incident[vertex].append(literal)
        labels = component.structure.labels
        self.allowed = [
            [x for x, offered in enumerate(form.structure.labels) if label_fits(label, offered)]
            for label in labels
        ]

    def seeds(self) -> Iterator[tuple[Literal, dict[int, int]]]:
        """Literals with a binding of their own; first the best connected with its best atoms."""
        literals = sorted(
            self.component.structure.literals,
            key=lambda x: (not x[2], -sum(len(self.incident[a]) for a in x[1])),
        )
        todo = [(literal, self.bindings(literal, {})) for literal in literals]
        while todo:
            kept = []
            for literal, bindings in todo:
                binding = next(bindings, None)
                if binding is not None:
                    yield literal, binding
                    kept.append((literal, bindings))
            todo = kept

    def bindings(self, literal: Literal, value: dict[int, int]) -> Iterator[dict[int, int]]:
        """Extensions of `value` under which the literal holds."""
        predicate, args, positive = literal
        candidates: list[tuple[int, ...]]
        if positive:
            candidates = self.form.atoms.get(predicate, [])
            for position, vertex in enumerate(args):
                if vertex in value:
                    key = (predicate, position, value[vertex])
                    candidates = min(candidates, self.form.atoms_at.get(key, []), key=len)
        else:
            choices = [[value[a]] if a in value else self.allowed[a] for a in args]
            free = (c for c in product(*choices) if (predicate, c) not in self.form.true)
            candidates = list(islice(free, _FREE_BINDINGS))
        for candidate in candidates:
            extended = self._extend(value, args, candidate)
            if extended is not None:
                yield extended

    def _extend(
        self, value: dict[int, int], args: tuple[int, ...], candidate: tuple[int, ...]
    ) -> dict[int, int] | None:
        extended = dict(value)
        for vertex, target in zip(args, candidate, strict=True):
            if extended.setdefault(vertex, target) != target or target not in self.allowed[vertex]:
                return None
        return extended if len(set(extended.values())) == len(extended) else None

    def from_seed(
        self, literal: Literal, binding: dict[int, int]
    ) -> list[tuple[Literal, dict[int, int]]]:
        """Literals in the order in which they became true, each with the binding by then."""
        value: dict[int, int] = {}
        done: dict[Literal, None] = {}
        grown: list[tuple[Literal, dict[int, int]]] = []
        while True:
            gained = self.gained(literal, value, binding)
            grown += [(x, binding) for x in gained]
            done.update(dict.fromkeys(gained))
            value = binding
            best = 0
            for candidate in self._frontier(value, done):
                for extended in self.bindings(candidate, value):
                    gain = len(self.gained(candidate, value, extended))
                    if gain > best:
                        best, literal, binding = gain, candidate, extended
                    self.steps.left -= 1
                if self.steps.left < 0:
                    return grown
            if best == 0:
                return grown

    def _frontier(self, value: dict[int, int], done: dict[Literal, None]) -> list[Literal]:
        """Literals that are partly bound, positive ones first."""
        touched = dict.fromkeys(x for a in value for x in self.incident[a])
        partly = [x for x in touched if x not in done and any(a not in value for a in x[1])]
        return sorted(partly, key=lambda x: not x[2])

    def gained(
        self, literal: Literal, value: dict[int, int], extended: dict[int, int]
    ) -> list[Literal]:
        """`literal`, then the other literals over a new vertex that hold under `extended`."""
        new = [a for a in dict.fromkeys(literal[1]) if a not in value]
        touched = dict.fromkeys(x for a in new for x in self.incident[a])
        return [
            literal,
            *(
                x
                for x in touched
                if x != literal
                and all(a in extended for a in x[1])
                and ((x[0], tuple(extended[a] for a in x[1])) in self.form.true) == x[2]
            ),
        ]
