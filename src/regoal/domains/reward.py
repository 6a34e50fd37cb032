"""Reward: collect all rewards on a grid with a few blocked cells."""

from random import Random

from regoal.domains.grid import Cell, cell_name, cell_names, distances, grid, link_atoms
from regoal.domains.instance import Atom, Instance, require

START: Cell = (0, 0)


def generate(rng: Random, *, side: int, rewards: int) -> Instance:
    """Generate a grid with the start in a corner and rewards on uniform free cells.

    The number of blocked cells is uniform from 0 to `side` - 1. Cells are drawn again until every
    reward is reachable.
    """
    require(
        0 < rewards < side * side,
        f"rewards must be from 1 to {side * side - 1} on a grid of side {side}, got {rewards}",
    )
    others = [cell for cell in grid(side) if cell != START]
    while True:
        walls = rng.randrange(side)
        if walls + rewards > len(others):
            continue
        drawn = rng.sample(others, walls + rewards)
        blocked, prizes = frozenset(drawn[:walls]), sorted(drawn[walls:])
        if distances(grid(side, blocked), START).keys() >= set(prizes):
            break
    cells = grid(side)
    init: list[Atom] = link_atoms("adjacent", cells)
    init += [("unblocked", name) for name in cell_names(c for c in cells if c not in blocked)]
    init += [("at", cell_name(START))]
    init += [("reward", name) for name in cell_names(prizes)]
    goal = tuple(("picked", name) for name in cell_names(prizes))
    objects = (("cell", cell_names(cells)),)
    return Instance(f"reward-{side}-{rewards}", "reward-strips", objects, tuple(init), goal)


def count_reachable_states(instance: Instance, limit: int) -> int:
    """Count the reachable states: any set of picked rewards, on any reachable cell.

    The count is exact and ignores `limit`.
    """
    del limit
    unblocked = {atom[1] for atom in instance.init if atom[0] == "unblocked"}
    steps: dict[str, list[str]] = {name: [] for name in unblocked}
    for atom in instance.init:
        if atom[0] == "adjacent" and unblocked.issuperset(atom[1:]):
            steps[atom[1]].append(atom[2])
    found, stack = {cell_name(START)}, [cell_name(START)]
    while stack:
        new = [cell for cell in steps[stack.pop()] if cell not in found]
        found.update(new)
        stack += new
    return len(found) << len(instance.goal)
