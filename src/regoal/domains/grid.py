"""Square grids: cells, their names, their neighbours and distances."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping

from regoal.domains.instance import Atom

Cell = tuple[int, int]
"""Row and column, both from 0."""
Links = Mapping[Cell, Collection[Cell]]
"""The cells one step away from each cell, in a fixed order."""


def grid(side: int, without: Collection[Cell] = ()) -> dict[Cell, list[Cell]]:
    """Return the 4-neighbour grid of `side` x `side` cells; cells in `without` are walls."""
    inside = [(row, col) for row in range(side) for col in range(side)]
    free = dict.fromkeys(cell for cell in inside if cell not in without)
    return {
        (row, col): [
            cell
            for cell in ((row - 1, col), (row, col - 1), (row, col + 1), (row + 1, col))
            if cell in free
        ]
        for row, col in free
    }


def cell_name(cell: Cell) -> str:
    """Return the cell's name in PDDL, e.g. `c_0_12`."""
    return f"c_{cell[0]}_{cell[1]}"


def cell_names(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return the names of several cells, in their order."""
    return tuple(map(cell_name, cells))


def link_atoms(predicate: str, links: Links) -> list[Atom]:
    """Return one atom for every step between cells, i.e. two for each connection."""
    return [
        (predicate, cell_name(cell), cell_name(other)) for cell in links for other in links[cell]
    ]


def distances(links: Links, start: Cell) -> dict[Cell, int]:
    """Return the number of steps from `start` to every reachable cell."""
    found = {start: 0}
    queue = deque([start])
    while queue:
        cell = queue.popleft()
        for other in links[cell]:
            if other not in found:
                found[other] = found[cell] + 1
                queue.append(other)
    return found
