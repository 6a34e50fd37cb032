"""Maze: find the way between two distant cells of a perfect maze."""

from random import Random

from regoal.domains.grid import Cell, cell_name, cell_names, distances, grid, link_atoms
from regoal.domains.instance import Instance, require

MOST_MAZES = 1000


def generate(rng: Random, *, side: int, nearest: int, farthest: int) -> Instance:
    """Generate a maze of `side` x `side` cells whose solution has `nearest` to `farthest` steps.

    The start is uniform. The target is uniform among the cells at such a distance. If there is
    none, another maze is drawn. Raises `ValueError` if many mazes have no such pair of cells.
    """
    require(side > 1, f"side must be at least 2, got {side}")
    require(0 < nearest <= farthest, f"no distance lies from {nearest} to {farthest}")
    for _ in range(MOST_MAZES):
        links = perfect_maze(rng, side)
        start = rng.choice(tuple(links))
        steps = distances(links, start)
        targets = [cell for cell in links if nearest <= steps[cell] <= farthest]
        if targets:
            break
    else:
        raise ValueError(f"no maze of side {side} with a way of {nearest} to {farthest} steps")
    target = rng.choice(targets)
    init = (*link_atoms("connected", links), ("at", cell_name(start)))
    objects = (("cell", cell_names(links)),)
    goal = (("at", cell_name(target)),)
    return Instance(f"maze-{side}-{steps[target]}", "maze", objects, init, goal)


def perfect_maze(rng: Random, side: int) -> dict[Cell, list[Cell]]:
    """Draw a spanning tree of the grid by a random depth-first walk.

    It has exactly one way between any two cells.
    """
    neighbours = grid(side)
    links: dict[Cell, list[Cell]] = {cell: [] for cell in neighbours}
    path = [rng.choice(tuple(neighbours))]
    reached = {path[0]}
    while path:
        new = [cell for cell in neighbours[path[-1]] if cell not in reached]
        if not new:
            path.pop()
            continue
        cell = rng.choice(new)
        links[path[-1]].append(cell)
        links[cell].append(path[-1])
        reached.add(cell)
        path.append(cell)
    return {cell: sorted(others) for cell, others in links.items()}
