"""Delivery: one truck that holds one package brings all packages to the same cell."""

from random import Random

from regoal.domains.grid import cell_name, cell_names, grid, link_atoms
from regoal.domains.instance import Atom, Instance, numbered, require


def generate(rng: Random, *, side: int, packages: int) -> Instance:
    """Generate a problem with truck, packages and the shared target on uniform cells.

    Cells may coincide. They are drawn again while every package already lies on the target.
    """
    require(side > 1, f"side must be at least 2, got {side}")
    require(packages > 0, f"packages must be at least 1, got {packages}")
    links = grid(side)
    cells = tuple(links)
    names = numbered("p", packages)
    while True:
        truck, target, *places = (rng.choice(cells) for _ in range(packages + 2))
        if any(place != target for place in places):
            break
    init: list[Atom] = link_atoms("adjacent", links)
    init += [("at", "t1", cell_name(truck)), ("empty", "t1")]
    init += [("at", name, cell_name(place)) for name, place in zip(names, places, strict=True)]
    goal = tuple(("at", name, cell_name(target)) for name in names)
    objects = (("cell", cell_names(cells)), ("truck", ("t1",)), ("package", names))
    return Instance(f"delivery-{side}-{packages}", "delivery", objects, tuple(init), goal)
