"""Pairs of facts by their definition: apply every action until nothing changes."""

from itertools import product

from regoal.planning.goals import Atom


def find_pairs(task, state):
    """Return the sets of one or two facts that are possible in h²; static facts are included."""
    domain = task.domain.text.content
    predicates = domain.symbols.predicates.items()
    atoms = [
        Atom(name, of)
        for name, types in predicates
        for of in product(task.objects, repeat=len(types))
    ]
    facts = {(atom, holds) for atom in atoms for holds in (True, False)}
    actions = [ground for action in domain.actions for ground in bind(task, action)]
    holding = {fact for fact in facts if state.holds(fact[0]) == fact[1]}
    found, size = pair_up(holding, holding), 0
    while size < len(found):
        size = len(found)
        for needs, makes in actions:
            if pair_up(needs, needs) <= found:
                ends = {(atom, not holds) for atom, holds in makes}
                kept = {f for f in facts - ends if pair_up({f}, needs | {f}) <= found}
                found |= pair_up(makes, makes | kept)
    return found


def find_never_last(task, pairs, goal):
    """Return the largest part of a goal of which no fact can be made last, by these pairs."""
    domain = task.domain.text.content
    actions = [ground for action in domain.actions for ground in bind(task, action)]
    part = set(goal)
    while True:
        last = set()
        for needs, makes in actions:
            ends = {(atom, not holds) for atom, holds in makes}
            others = part - makes
            if others & ends or not pair_up(needs | others, needs) <= pairs:
                continue
            last |= makes & part
        if not last:
            return part
        part -= last


def find_choices(task, pairs, missing):
    """For each predicate: for each missing fact that uses some atom up, the atoms that may be."""
    domain = task.domain.text.content
    actions = [ground for action in domain.actions for ground in bind(task, action)]
    made = {fact for _, makes in actions for fact in makes}
    possible = [(needs, makes) for needs, makes in actions if pair_up(needs, needs) <= pairs]
    found = {predicate: [] for predicate in task.domain.text.content.symbols.predicates}
    for fact in missing:
        makers = [(needs, makes) for needs, makes in possible if fact in makes]
        uses = [
            {(atom, holds) for atom, holds in needs if (atom, not holds) in makes} - made
            for needs, makes in makers
        ]
        if any(len(makes & missing) > 1 for _, makes in makers):
            continue
        for predicate, choices in found.items():
            own = [
                {atom for atom, holds in of if holds and atom.predicate == predicate} for of in uses
            ]
            if all(own):
                choices.append(sorted(set().union(*own)))
    return found.values()


def pair_up(some, others):
    """Return every set of a fact of `some` and one of `others`."""
    return {frozenset(pair) for pair in product(some, others)}


def bind(task, action):
    """Yield what an action needs and makes, for all objects that types and equalities allow."""
    ranges = [[o for o in task.objects if is_of(task, o, v.types)] for v in action.parameters]
    for objects in product(*ranges):
        binding = action.bind(objects)
        needs = {(x.ground(binding), x.positive) for x in action.precondition.parts}
        equal = {fact for fact in needs if fact[0].predicate == "="}
        if all((atom.objects[0] == atom.objects[1]) == holds for atom, holds in equal):
            effects = [x for effect in action.effects for x in effect.literals]
            added = {x.ground(binding) for x in effects if x.positive}
            deleted = {x.ground(binding) for x in effects if not x.positive} - added
            yield needs - equal, {*((a, True) for a in added), *((a, False) for a in deleted)}


def is_of(task, name, types):
    """Return whether an object is of one of these types."""
    return not {*task.types_of[name], "object"}.isdisjoint(types)
