"""Miconic: a lift takes passengers from their origins to their destinations."""

from itertools import combinations
from random import Random

from regoal.domains.instance import Atom, Instance, require


def generate(rng: Random, *, people: int, floors: int) -> Instance:
    """Generate uniform origins and, on other floors, uniform destinations; the lift is at f0."""
    require(people > 0, f"people must be at least 1, got {people}")
    require(floors > 1, f"floors must be at least 2, got {floors}")
    passengers = tuple(f"p{i}" for i in range(people))
    levels = tuple(f"f{i}" for i in range(floors))
    trips = [(passenger, *rng.sample(levels, 2)) for passenger in passengers]
    init: list[Atom] = [("above", low, high) for low, high in combinations(levels, 2)]
    init += [("origin", passenger, start) for passenger, start, _ in trips]
    init += [("destin", passenger, end) for passenger, _, end in trips]
    init += [("lift-at", levels[0])]
    goal = tuple(("served", passenger) for passenger in passengers)
    objects = (("passenger", passengers), ("floor", levels))
    return Instance(f"miconic-{people}-{floors}", "miconic", objects, tuple(init), goal)


def count_reachable_states(instance: Instance, limit: int) -> int:
    """Count the reachable states: each passenger waits, rides or is served, the lift on any floor.

    The count is exact and ignores `limit`.
    """
    del limit
    statuses = 3
    return len(instance.of_type("floor")) * int(statuses ** len(instance.goal))
