"""What begins a relaxed plan by its definition: with sets, and every ground action."""

from itertools import product

from planning.plain_pairs import bind
from regoal.planning.actions import GroundAction


def find_steps(task, state, missing):
    """Return (action, what it leads towards or None) of each action that begins a relaxed plan."""
    actions = dict(list_actions(task))
    facts, first = find_rounds(task, state, actions)
    chosen, waiting = set(), {fact for fact in missing if facts.get(fact, 0) > 0}
    while waiting:
        makers = {a for fact in waiting for a in find_makers(fact, actions, facts, first)} - chosen
        chosen |= makers
        waiting = {fact for a in makers for fact in actions[a][0] if facts[fact] > 0}
    found = {(action, None) for action in chosen if first[action] == 0}
    for name in {action.name for action in chosen}:
        lacking = [[f for f in actions[a][0] if facts[f]] for a in chosen if a.name == name]
        single = {fact for facts_of in lacking if len(facts_of) == 1 for fact in facts_of}
        nearest = min((facts[fact] for fact in single), default=0)
        waiting = {fact for fact in single if facts[fact] == nearest}
        for rounds in range(nearest - 1, -1, -1):
            makers = {a for fact in waiting for a in find_makers(fact, actions, facts, first)}
            waiting = {f for a in makers for f in actions[a][0] if facts[f] == rounds > 0}
            found |= {(action, name) for action in makers if rounds == 0}
    return found


def list_actions(task):
    """Yield every ground action that types and equalities allow, and what it needs and makes."""
    for schema in task.domain.text.content.actions:
        types = [v.types for v in schema.parameters]
        names = [[o for o in task.objects if allows(task, o, of)] for of in types]
        possible = [
            objects
            for objects in product(*names)
            if all(
                (atom.objects[0] == atom.objects[1]) == x.positive
                for x in schema.precondition.parts
                for atom in [x.ground(schema.bind(objects))]
                if x.predicate == "="
            )
        ]
        for objects, facts in zip(possible, bind(task, schema), strict=True):
            yield GroundAction(schema.name, objects), facts


def allows(task, name, types):
    return not {*task.types_of[name], "object"}.isdisjoint(types)


def find_rounds(task, state, actions):
    """Return the rounds after which facts are true and actions applicable, if they ever are."""
    every = {fact for needs, makes in actions.values() for fact in (*needs, *makes)}
    facts = {fact: 0 for fact in every if state.holds(fact[0]) == fact[1]}
    first, rounds = {}, 0
    while new := {a for a in actions.keys() - first.keys() if actions[a][0] <= facts.keys()}:
        first |= dict.fromkeys(new, rounds)
        rounds += 1
        made = {fact for action in new for fact in actions[action][1]}
        facts |= dict.fromkeys(made - facts.keys(), rounds)
    return facts, first


def find_makers(fact, actions, facts, first):
    """Return the actions that make a fact in time."""
    return {a for a, rounds in first.items() if fact in actions[a][1] and rounds == facts[fact] - 1}
