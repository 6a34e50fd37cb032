"""Turn plans with their states, and the drawings of their domains, into JSON for the player."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from regoal.planning.plain.replay import Replay
from regoal.reports.page.declarations import Drawing, Places, Thing, choose_drawing
from regoal.reports.page.layouts import find_links, find_walls, order_places, place_cells
from regoal.reports.page.patterns import Alternative, Fact, match_facts

Json = dict[str, object]

MOST_CELLS = 10_000
"""Grids with more columns times rows are not drawn; browsers become slow."""


@dataclass(frozen=True)
class Watched:
    """The plans of a report that fit into its size, and the names of those that do not."""

    plans: tuple[Json, ...]
    drawings: tuple[Json, ...]
    left_out: tuple[str, ...]


def fit_plans(replays: Sequence[Replay], drawings: Sequence[Drawing], budget: int) -> Watched:
    """Return the plans whose JSON has at most `budget` bytes together, small ones first."""
    chosen = [choose_drawing(drawings, replay.predicates) for replay in replays]
    used = list({id(drawing): drawing for drawing in chosen if drawing is not None}.values())
    numbers = {id(drawing): i for i, drawing in enumerate(used)}
    looks = tuple(map(describe_drawing, used))
    plans = [
        describe_plan(replay, drawing, numbers.get(id(drawing), -1))
        for replay, drawing in zip(replays, chosen, strict=True)
    ]
    sizes = [count_bytes(plan) for plan in plans]
    left = budget - count_bytes(looks)
    kept: set[int] = set()
    for i in sorted(range(len(plans)), key=sizes.__getitem__):
        if sizes[i] > left:
            break
        left -= sizes[i]
        kept.add(i)
    return Watched(
        tuple(plan for i, plan in enumerate(plans) if i in kept),
        looks,
        tuple(f"{r.domain} {r.problem}" for i, r in enumerate(replays) if i not in kept),
    )


def count_bytes(value: object) -> int:
    """Return how many bytes a value has in the page, with a separator."""
    text = json.dumps(value, separators=(",", ":"))
    return len(text) + 1 + 5 * sum(map(text.count, "<>&'"))


def describe_drawing(drawing: Drawing) -> Json:
    """Return what the player must know of a drawing, whatever the plan."""
    return {
        "layout": drawing.places.layout if drawing.places else "towers",
        "towers": drawing.towers,
        "things": [
            {
                "shape": thing.shape,
                "name": thing.name,
                "at": thing.at,
                "holds": thing.holds,
                "note": thing.note,
                "done": thing.done,
                "trail": thing.trail,
            }
            for thing in drawing.things
        ],
        "marks": [
            {"look": m.look, "label": m.label, "on": m.pattern, "unless": m.unless}
            for m in drawing.marks
        ],
        "counters": [{"label": label, "count": count} for label, count in drawing.counters],
    }


def describe_plan(replay: Replay, drawing: Drawing | None, number: int) -> Json:
    """Return a plan as JSON: facts of the initial state, changes, and where places are.

    Facts are numbered: `facts` lists their texts, and the first `initial` of them are true at
    first. A step is its text and numbers: `n` if it makes fact `n - 1` true, `-n` if false.
    Facts that never change are left out unless the drawing reads them.
    """
    read = {f[0] for c in replay.changes for f in (*c.added, *c.removed)}
    read |= {fact[0] for fact, _ in replay.goal}
    read |= _find_predicates(drawing) if drawing is not None else set()
    initial = sorted(fact for fact in replay.initial if fact[0] in read)
    numbers = {fact: i for i, fact in enumerate(initial)}

    def number_of(fact: Fact) -> int:
        return numbers.setdefault(fact, len(numbers)) + 1

    steps = [
        [
            " ".join(change.step),
            *(-number_of(fact) for fact in change.removed),
            *(number_of(fact) for fact in change.added),
        ]
        for change in replay.changes
    ]
    goal = [number_of(fact) * (1 if wanted else -1) for fact, wanted in replay.goal]
    return {
        "domain": replay.domain,
        "problem": replay.problem,
        "cost": replay.cost,
        "fault": replay.fault,
        "facts": [" ".join(fact) for fact in numbers],
        "initial": len(initial),
        "steps": steps,
        "goal": goal,
        "others": replay.other_goals,
        "drawing": number,
        **(_describe_scene(replay, drawing) if drawing is not None else {}),
    }


def _find_predicates(drawing: Drawing) -> set[str]:
    """Return the predicates that the player reads to draw a state."""
    alternatives: list[Alternative] = [count for _, count in drawing.counters]
    alternatives += [mark.pattern for mark in drawing.marks]
    alternatives += (drawing.towers or {}).values()
    for thing in drawing.things:
        alternatives += [*thing.at, thing.holds, thing.note, thing.done]
    return {pattern[0] for alternative in alternatives for pattern in alternative}


def _describe_scene(replay: Replay, drawing: Drawing) -> Json:
    """Return which objects are things, and the places with their positions or order."""
    if drawing.places is None:
        return {}
    facts = sorted({*replay.initial, *(f for c in replay.changes for f in c.added)})
    wanted = [fact for fact, positive in replay.goal if positive]
    places = _find_places(drawing, [*facts, *wanted])
    things = [
        [thing.name, i] if thing.name else [name, i]
        for i, thing in enumerate(drawing.things)
        for name in ([thing.name] if thing.name else _find_things(thing, replay, facts))
    ]
    scene: Json = {"things": things}
    if drawing.places.layout == "grid":
        return scene | _describe_grid(drawing.places, places, facts)
    return scene | {"places": order_places(drawing.places.order, places, facts)}


def _describe_grid(declared: Places, places: Sequence[str], facts: Sequence[Fact]) -> Json:
    cells = place_cells(declared, places, facts)
    columns = 1 + max((x for x, _ in cells.values()), default=-1)
    rows = 1 + max((y for _, y in cells.values()), default=-1)
    if not cells or columns * rows > MOST_CELLS:
        return {"places": order_places((), places, facts)}
    links = find_links(declared.links, facts)
    return {
        "cells": {name: list(position) for name, position in cells.items()},
        "walls": find_walls(cells, links) if links else [],
    }


def _find_places(drawing: Drawing, facts: Sequence[Fact]) -> list[str]:
    """Return all objects that are a place in some fact, in natural order."""
    places = drawing.places
    assert places is not None
    by_name = {"?place"}
    ways = {"?from", "?to"}
    read: list[tuple[Alternative, set[str]]] = [
        *(
            (alternative, ways)
            for alternative in (places.links, places.order, places.up, places.right)
        ),
        (places.are, by_name),
        *((mark.pattern, by_name) for mark in drawing.marks),
        *((alternative, by_name) for thing in drawing.things for alternative in thing.at),
    ]
    found = {
        name
        for alternative, variables in read
        for pattern in alternative
        for objects in match_facts(pattern, facts)
        for variable, name in objects.items()
        if variable in variables
    }
    return order_places((), sorted(found), ())


def _find_things(thing: Thing, replay: Replay, facts: Sequence[Fact]) -> list[str]:
    """Return the objects of a type, or those that fulfil a condition, or that are at a place."""
    of_type = {n for n, types in replay.objects.items() if not thing.type or thing.type in types}
    if thing.is_:
        of_type &= set(_find_variable(thing.is_, sorted(replay.initial)))
    elif not thing.type:
        of_type &= {name for at in thing.at for name in _find_variable(at, facts)}
    return order_places((), sorted(of_type), ())


def _find_variable(alternative: Alternative, facts: Iterable[Fact]) -> Iterator[str]:
    facts = list(facts)
    for pattern in alternative:
        for objects in match_facts(pattern, facts):
            if "?thing" in objects:
                yield objects["?thing"]


def describe_watched(watched: Watched) -> Mapping[str, object]:
    """Return the JSON that the page embeds."""
    return {"plans": watched.plans, "drawings": watched.drawings}
