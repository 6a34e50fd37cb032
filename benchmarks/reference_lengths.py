"""Lengths of short plans for benchmark instances, each found by a method for its domain.

Each function takes an instance of its domain and returns a number of steps. Its docstring says
whether this is the optimum, or the length of a plan close to it.
"""

from collections.abc import Sequence

import numpy as np

from regoal.domains.instance import Instance


def gripper(instance: Instance) -> int:
    """Optimum: two balls a trip, a pick and a drop for each, and no way back after the last."""
    balls = len(instance.goal)
    trips = (balls + 1) // 2
    return 2 * balls + 2 * trips - 1


def childsnack(instance: Instance) -> int:
    """Optimum: make, put and serve for every child, and one visit to every occupied table."""
    tables = {atom[2] for atom in _find_atoms(instance, "waiting")}
    return 3 * len(instance.goal) + len(tables)


def spanner(instance: Instance) -> int:
    """Optimum: one spanner picked and used for every nut, and the walk."""
    return 2 * len(instance.goal) + len(_find_atoms(instance, "link"))


def maze(instance: Instance) -> int:
    """Optimum, which the generator writes into the instance's name."""
    return int(instance.name.split("-")[2])


def delivery(instance: Instance) -> int:
    """Optimum: each package off the target costs a pick, a drop, and the way there and back.

    The first trip starts at the truck instead of the target. So it fetches the package for which
    this saves most.
    """
    cells = {name: _parse_cell(name) for name in instance.of_type("cell")}
    place = {name: cells[cell] for _, name, cell in _find_atoms(instance, "at")}
    target = cells[instance.goal[0][2]]
    ways = {
        name: _manhattan(place[name], target)
        for name in instance.of_type("package")
        if place[name] != target
    }
    saved = min(_manhattan(place["t1"], place[name]) - way for name, way in ways.items())
    return sum(2 + 2 * way for way in ways.values()) + saved


def miconic(instance: Instance) -> int:
    """Length of a greedy plan: the lift prefers floors whose arriving passengers are all in it."""
    origin = {person: floor for _, person, floor in _find_atoms(instance, "origin")}
    destination = {person: floor for _, person, floor in _find_atoms(instance, "destin")}
    (_, lift), moves = _find_atoms(instance, "lift-at")[0], 0
    waiting, riding = set(origin), set[str]()
    while True:
        riding = {p for p in riding if destination[p] != lift}
        riding |= {p for p in waiting if origin[p] == lift}
        waiting = {p for p in waiting if origin[p] != lift}
        if not (waiting or riding):
            return 2 * len(origin) + moves
        stops = {origin[p] for p in waiting} | {destination[p] for p in riding}
        # Arriving passengers who still wait elsewhere force a second visit.
        late = {f: sum(destination[p] == f for p in waiting) for f in stops}
        there = {f: sum(origin[p] == f for p in waiting) for f in stops}
        lift = min(sorted(stops), key=lambda f: (late[f] > 0, late[f] - there[f], f))
        moves += 1


def reward(instance: Instance) -> int:
    """Optimum: a shortest walk through all rewards (Held and Karp's recursion), and the picks."""
    (_, start) = _find_atoms(instance, "at")[0]
    prizes = [atom[1] for atom in instance.goal]
    blocked = set(instance.of_type("cell")) - {a[1] for a in _find_atoms(instance, "unblocked")}
    steps = _find_steps(instance, "adjacent", blocked)
    way = np.array([[_measure_distances(steps, a)[b] for b in prizes] for a in [start, *prizes]])
    n = len(prizes)
    best = np.full((1 << n, n), np.iinfo(np.int32).max // 2)
    best[[1 << i for i in range(n)], range(n)] = way[0]
    for visited in range(1, 1 << n):
        for last in range(n):
            if not visited >> last & 1:
                new = (best[visited] + way[1:, last]).min()
                grown = visited | 1 << last
                best[grown, last] = min(best[grown, last], new)
    return n + int(best[-1].min())


def visitall(instance: Instance) -> int:
    """Length of the nearest-neighbour walk; cells passed on the way count as visited."""
    steps = _find_steps(instance, "connected", set())
    (_, here) = _find_atoms(instance, "at-robot")[0]
    left = {atom[1] for atom in instance.goal} - {here}
    length = 0
    while left:
        parent, queue = {here: here}, [here]
        for cell in queue:
            if cell in left:
                break
            new = [other for other in steps[cell] if other not in parent]
            parent |= dict.fromkeys(new, cell)
            queue += new
        left.discard(cell)
        here, back = cell, cell
        while parent[back] != back:
            back, length = parent[back], length + 1
    return length


def hiking(instance: Instance) -> int:
    """Length of the plan that shows the instance solvable (`regoal.domains.hiking.generate`)."""
    legs, couples = len(_find_atoms(instance, "next")), len(instance.goal)
    # Any tent will do, so take one that is already packed, if there is one.
    pack = (legs - 1) + (not _find_atoms(instance, "down"))
    fetch_and_stage = 1 + 3  # on every leg but the last: the spare car ahead, both cars there
    return pack + legs * (couples + 3) + (legs - 1) * fetch_and_stage


def blocks(instance: Instance) -> int:
    """Length of a plan that puts a block into place whenever it can; a move is two actions.

    Else the plan digs for the block that needs the fewest moves to the table before it can be
    placed. Among several such blocks, it takes the one after which most blocks can be placed.
    """
    below = {top: bottom for _, top, bottom in _find_atoms(instance, "on")}
    goal = {top: bottom for _, top, bottom in instance.goal}
    names = instance.of_type("")
    moves = _place_blocks(below, goal, names)
    while misplaced := _find_misplaced(below, goal, names):
        options = []
        for block in sorted(misplaced):
            if goal.get(block) not in misplaced:
                after = dict(below)
                to_table, placed = _dig(block, after, goal, names)
                options.append((to_table, -placed, block, after))
        to_table, placed, _, below = min(options, key=lambda option: option[:3])
        moves += to_table - placed
    return 2 * moves


def _dig(
    block: str, below: dict[str, str], goal: dict[str, str], names: Sequence[str]
) -> tuple[int, int]:
    """Free `block` and its goal support in `below`; count moves to the table and into place."""
    to_table = placed = 0
    while block in _find_misplaced(below, goal, names):
        above = {bottom: top for top, bottom in below.items()}
        top = block if block in above else goal[block]
        while top in above:
            top = above[top]
        del below[top]
        to_table += 1
        placed += _place_blocks(below, goal, names)
    return to_table, placed


def _place_blocks(below: dict[str, str], goal: dict[str, str], names: Sequence[str]) -> int:
    """Move blocks into place in `below` while that is possible; return how many moved."""
    moves = 0
    while True:
        misplaced, covered = _find_misplaced(below, goal, names), set(below.values())
        for block in sorted(misplaced - covered):
            support = goal.get(block)
            if support is None or (support not in misplaced and support not in covered):
                below.pop(block, None)
                below |= {} if support is None else {block: support}
                moves += 1
                break
        else:
            return moves


def _find_misplaced(below: dict[str, str], goal: dict[str, str], names: Sequence[str]) -> set[str]:
    """Find blocks that must move. A tower's lowest block may stay on a block that nothing needs."""
    needed = set(goal.values())
    placed: dict[str, bool] = {}

    def in_place(block: str) -> bool:
        if block not in placed:
            support, wanted = below.get(block), goal.get(block)
            fits = support == wanted or (wanted is None and support not in needed)
            placed[block] = fits and (support is None or in_place(support))
        return placed[block]

    return {block for block in names if not in_place(block)}


def _find_atoms(instance: Instance, predicate: str) -> list[tuple[str, ...]]:
    return [atom for atom in instance.init if atom[0] == predicate]


def _parse_cell(name: str) -> tuple[int, int]:
    _, row, column = name.split("_")
    return int(row), int(column)


def _manhattan(a: tuple[int, int], b: tuple[int, int]) -> int:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def _find_steps(instance: Instance, predicate: str, blocked: set[str]) -> dict[str, list[str]]:
    steps: dict[str, list[str]] = {}
    for _, cell, other in _find_atoms(instance, predicate):
        if not {cell, other} & blocked:
            steps.setdefault(cell, []).append(other)
    return steps


def _measure_distances(steps: dict[str, list[str]], start: str) -> dict[str, int]:
    found, queue = {start: 0}, [start]
    for cell in queue:
        for other in steps[cell]:
            if other not in found:
                found[other] = found[cell] + 1
                queue.append(other)
    return found
