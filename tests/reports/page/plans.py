"""A small domain with rooms, and replays of plans in it, for the tests of the page."""

from regoal.planning.plain.replay import Change, Replay
from regoal.reports.page.declarations import parse_drawing

ROOMS = """
needs = ["at/2", "lit/1"]
[places]
layout = "row"
are = "room ?place"
[[things]]
shape = "person"
at = ["at ?thing ?place"]
[[marks]]
look = "dot"
label = "lit"
on = "lit ?place"
"""
DRAWING = parse_drawing(ROOMS, "rooms.toml")


def make_replay(problem="p1", person="ann", steps=2, domain="house", fault=""):
    """A person who walks from room to room and back; the even ones have light."""
    rooms = [f"room{i}" for i in range(3)]
    changes = []
    for step in range(steps):
        here, there = rooms[step % 3], rooms[(step + 1) % 3]
        lit = (("lit", there),) if step == 0 else ()
        changes.append(
            Change(
                ("walk", person, here, there),
                (("at", person, there), *lit),
                (("at", person, here),),
            )
        )
    return Replay(
        domain=domain,
        problem=problem,
        objects={person: frozenset(["object"]), **dict.fromkeys(rooms, frozenset(["object"]))},
        predicates={"at": 2, "lit": 1, "room": 1},
        initial=frozenset([("at", person, "room0"), *(("room", room) for room in rooms)]),
        changes=tuple(changes),
        goal=((("at", person, rooms[steps % 3]), True), (("lit", "room2"), False)),
        other_goals=0,
        cost=float(steps),
        fault=fault,
    )
