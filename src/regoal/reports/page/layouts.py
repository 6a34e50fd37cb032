"""Arrange the places of a drawing: cells of a grid, or a sequence."""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from regoal.reports.page.declarations import Places
from regoal.reports.page.patterns import Alternative, Fact, match_facts
from regoal.system.files import natural_key

Position = tuple[int, int]
"""Column and row, both from 0; rows are counted downwards."""
Links = frozenset[tuple[str, str]]


def place_cells(
    declared: Places, places: Sequence[str], facts: Iterable[Fact]
) -> dict[str, Position]:
    """Return the positions of the places on a grid, or nothing if they have none.

    Places have positions by `up` and `right` if the drawing declares them, else by their names.
    """
    facts = list(facts)
    if declared.up or declared.right:
        steps = {(0, -1): find_links(declared.up, facts), (1, 0): find_links(declared.right, facts)}
        return _shift_to_zero(_place_by_steps(places, steps))
    for pattern in declared.names:
        found = _place_by_names(pattern, places)
        if found:
            return _shift_to_zero(found)
    return {}


def find_links(links: Alternative, facts: Iterable[Fact]) -> Links:
    """Return the pairs of places for `?from` and `?to` in a pattern that facts match."""
    return frozenset(
        (found["?from"], found["?to"])
        for pattern in links
        for found in match_facts(pattern, facts)
        if "?from" in found and "?to" in found
    )


def find_walls(cells: Mapping[str, Position], links: Links) -> list[tuple[int, int, str]]:
    """Return the walls right of a cell (`r`) and below it (`b`), between cells without a link."""
    at = {position: name for name, position in cells.items()}
    linked = {name for pair in links for name in pair}
    walls = []
    for name, (column, row) in cells.items():
        for side, position in (("r", (column + 1, row)), ("b", (column, row + 1))):
            other = at.get(position)
            if other is None or not {name, other} <= linked:
                continue
            if (name, other) not in links and (other, name) not in links:
                walls.append((column, row, side))
    return walls


def order_places(order: Alternative, places: Sequence[str], facts: Iterable[Fact]) -> list[str]:
    """Return the places in the order of the links of a pattern, or by name if there is none."""
    by_name = sorted(places, key=lambda name: (natural_key(name), name))
    links = find_links(order, facts)
    before: dict[str, list[str]] = {name: [] for name in by_name}
    for first, second in links:
        if first in before and second in before:
            before[second].append(first)
    try:
        return list(TopologicalSorter(before).static_order()) if links else by_name
    except CycleError:
        return by_name


def _place_by_names(pattern: str, places: Sequence[str]) -> dict[str, Position]:
    """Read the positions out of names, or return nothing if a name does not fit the pattern."""
    regex = re.escape(pattern).replace(r"\*", ".*")
    regex = regex.replace(r"\{row\}", r"(?P<row>\d{1,4})")
    regex = regex.replace(r"\{column\}", r"(?P<column>\d{1,4})")
    found = {name: re.fullmatch(regex, name) for name in places}
    positions = {n: (int(m["column"]), int(m["row"])) for n, m in found.items() if m is not None}
    different = len(set(positions.values())) == len(places)
    return positions if different else {}


def _place_by_steps(places: Sequence[str], steps: Mapping[Position, Links]) -> dict[str, Position]:
    """Walk from a place to all others; parts that are not connected stand side by side."""
    ways: defaultdict[str, list[tuple[str, Position]]] = defaultdict(list)
    for (x, y), links in steps.items():
        for first, second in sorted(links):
            ways[first].append((second, (x, y)))
            ways[second].append((first, (-x, -y)))
    found: dict[str, Position] = {}
    for start in places:
        if start in found:
            continue
        left = max((x for x, _ in found.values()), default=-2) + 2
        part = _walk(start, ways)
        shift = left - min(x for x, _ in part.values())
        found |= {name: (x + shift, y) for name, (x, y) in part.items()}
    return found if len(set(found.values())) == len(found) else {}


def _walk(start: str, ways: Mapping[str, Sequence[tuple[str, Position]]]) -> dict[str, Position]:
    found = {start: (0, 0)}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        x, y = found[here]
        for other, (dx, dy) in ways.get(here, ()):
            if other not in found:
                found[other] = (x + dx, y + dy)
                queue.append(other)
    return found


def _shift_to_zero(found: Mapping[str, Position]) -> dict[str, Position]:
    left = min((x for x, _ in found.values()), default=0)
    top = min((y for _, y in found.values()), default=0)
    return {name: (x - left, y - top) for name, (x, y) in found.items()}
