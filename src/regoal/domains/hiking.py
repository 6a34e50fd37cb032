"""Hiking: couples walk from place to place and bring tents and cars along."""

from itertools import pairwise
from random import Random

from regoal.domains.instance import Atom, Instance, numbered, require


def generate(rng: Random, *, couples: int, locations: int, cars: int = 2) -> Instance:
    """Generate a problem with all people, cars and tents at the first place.

    There are as many tents as couples, each up or down. The problem is always solvable with two
    cars or more. For each leg, two people take a car each and a tent ahead, and put the tent up.
    They return in one of the cars. Then all couples walk. The two people go back in the car that
    waited ahead and fetch the other one. With one car, a chain of three places or more may have no
    plan; this is not checked.
    """
    require(couples > 0, f"couples must be at least 1, got {couples}")
    require(locations > 1, f"locations must be at least 2, got {locations}")
    require(cars > 0, f"cars must be at least 1, got {cars}")
    places = tuple(f"place{i}" for i in range(locations))
    pairs = numbered("couple", couples)
    people = [(f"guy{i}", f"girl{i}") for i in range(1, couples + 1)]
    tents, car_names = numbered("tent", couples), numbered("car", cars)
    everyone = tuple(person for pair in people for person in pair)
    start = places[0]
    init: list[Atom] = [("next", place, after) for place, after in pairwise(places)]
    init += [("partners", pair, *two) for pair, two in zip(pairs, people, strict=True)]
    init += [("walked", pair, start) for pair in pairs]
    init += [("at_person", person, start) for person in everyone]
    init += [("at_tent", tent, start) for tent in tents]
    init += [(rng.choice(("up", "down")), tent) for tent in tents]
    init += [("at_car", car, start) for car in car_names]
    goal = tuple(("walked", pair, places[-1]) for pair in pairs)
    objects = (
        ("couple", pairs),
        ("person", everyone),
        ("tent", tents),
        ("car", car_names),
        ("place", places),
    )
    return Instance(f"hiking-{couples}-{locations}", "hiking", objects, tuple(init), goal)
