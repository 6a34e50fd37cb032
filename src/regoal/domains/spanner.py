"""Spanner: pick up spanners on a one-way path and tighten the nuts at its end."""

from itertools import pairwise
from random import Random

from regoal.domains.instance import Atom, Instance, numbered, require


def generate(
    rng: Random, *, nuts: int, longest_path: int = 40, spare_spanners: int = 3
) -> Instance:
    """Generate a path of 1 to `longest_path` locations (uniform) between the shed and the gate.

    Every spanner lies on one of these locations, drawn uniformly. All nuts are at the gate. There
    are `spare_spanners` more spanners than nuts.
    """
    require(nuts > 0, f"nuts must be at least 1, got {nuts}")
    require(longest_path > 0, f"longest_path must be at least 1, got {longest_path}")
    between = numbered("location", rng.randint(1, longest_path))
    path = ("shed", *between, "gate")
    nut_names, spanners = numbered("nut", nuts), numbered("spanner", nuts + spare_spanners)
    init: list[Atom] = [("link", here, there) for here, there in pairwise(path)]
    init += [("at", "bob", "shed")]
    init += [("at", spanner, rng.choice(between)) for spanner in spanners]
    init += [("useable", spanner) for spanner in spanners]
    init += [("at", nut, "gate") for nut in nut_names]
    init += [("loose", nut) for nut in nut_names]
    goal = tuple(("tightened", nut) for nut in nut_names)
    objects = (("man", ("bob",)), ("spanner", spanners), ("nut", nut_names), ("location", path))
    return Instance(f"spanner-{nuts}-{len(between)}", "spanner", objects, tuple(init), goal)
