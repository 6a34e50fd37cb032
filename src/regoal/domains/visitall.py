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
    """Count the reachable states; stop soon after `limit` states.

    Cells are connected both ways. So the visited ones are any connected set with the start in it,
    and the robot is on any of them. The sets are explored, each as the bits of a number.
    """
    bit = {name: 1 << i for i, name in enumerate(instance.of_type("place"))}
    beside = dict.fromkeys(bit.values(), 0)
    for atom in instance.init:
        if atom[0] == "connected":
            beside[bit[atom[1]]] |= bit[atom[2]]
    (start,) = (bit[atom[1]] for atom in instance.init if atom[0] == "at-robot")
    count, found, stack = 1, {start}, [(start, beside[start])]
    while stack and count <= limit:
        visited, border = stack.pop()
        rest = border
        while rest:
            cell = rest & -rest
            rest ^= cell
            more = visited | cell
            if more not in found:
                found.add(more)
                count += more.bit_count()
                stack.append((more, (border | beside[cell]) & ~more))
    return count
