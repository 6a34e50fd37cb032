"""Decide if everyone can have a supply of their own: a matching in a bipartite graph."""

from collections.abc import Sequence


def can_be_distinct(choices: Sequence[Sequence[int]]) -> bool:
    """Return whether a number can be chosen from each list so that no two are equal.

    Finds augmenting paths, breadth first (Kuhn 1955).

    >>> can_be_distinct([[1, 2], [1], [2, 3]]), can_be_distinct([[1, 2], [1], [2]])
    (True, False)
    """
    taker: dict[int, int] = {}
    chosen: dict[int, int] = {}
    for start in range(len(choices)):
        free, seen_by = _find_free(choices, start, taker)
        if free is None:
            return False
        number: int | None = free
        while number is not None:  # each taker on the path gives its number to the one before
            i = seen_by[number]
            taker[number] = i
            chosen[i], number = number, chosen.get(i)
    return True


def _find_free(
    choices: Sequence[Sequence[int]], start: int, taker: dict[int, int]
) -> tuple[int | None, dict[int, int]]:
    """Find a number that nobody has, over numbers whose takers could change to others.

    Returns it, or None, and for each number that was seen the list that it was seen in.
    """
    seen_by: dict[int, int] = {}
    waiting = [start]
    for i in waiting:  # it grows meanwhile
        for number in choices[i]:
            if number not in seen_by:
                seen_by[number] = i
                if number not in taker:
                    return number, seen_by
                waiting.append(taker[number])
    return None, seen_by
