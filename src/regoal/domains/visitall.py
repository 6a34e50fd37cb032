"""Visitall: a robot has to visit marked cells of a grid."""

from random import Random

from regoal.domains.grid import Cell, cell_name, cell_names, grid, link_atoms
from regoal.domains.instance import Atom, Instance, require


def generate(rng: Random, *, side: int, goal_ratio: float = 0.5) -> Instance:
    """Generate a full grid with a uniform start and random goal cells.

    Every other cell is a goal with probability `goal_ratio`. The start is visited and belongs to
    the goal. Goals are drawn again while no other cell is a goal.
    """
    require(side > 1, f"side must be at least 2, got {side}")
    require(0.0 < goal_ratio <= 1.0, f"goal_ratio must lie in (0, 1], got {goal_ratio}")
    links = grid(side)
    start = rng.choice(tuple(links))
    goals: list[Cell] = []
    while len(goals) <= 1:
        goals = [cell for cell in links if cell == start or rng.random() < goal_ratio]
    init: list[Atom] = link_atoms("connected", links)
    init += [("at-robot", cell_name(start)), ("visited", cell_name(start))]
    goal = tuple(("visited", name) for name in cell_names(goals))
    objects = (("place", cell_names(links)),)
    return Instance(f"visitall-{side}", "grid-visit-all", objects, tuple(init), goal)


def count_reachable_states(instance: Instance, limit: int) -> int:
    """Count the reachable states by exploring them; stop soon after `limit` states."""
    bit = {name: 1 << i for i, name in enumerate(instance.of_type("place"))}
    steps: dict[str, list[str]] = {name: [] for name in bit}
    for atom in instance.init:
        if atom[0] == "connected":
            steps[atom[1]].append(atom[2])
    (start,) = (atom[1] for atom in instance.init if atom[0] == "at-robot")
    found, stack = {(start, bit[start])}, [(start, bit[start])]
    while stack and len(found) <= limit:
        cell, visited = stack.pop()
        new = {(other, visited | bit[other]) for other in steps[cell]} - found
        found |= new
        stack += new
    return len(found)
