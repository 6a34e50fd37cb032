"""Blocks: rebuild towers with one arm (four actions). Both states are drawn uniformly."""

from functools import cache
from itertools import pairwise
from random import Random

from regoal.domains.instance import Atom, Instance, numbered, require

Towers = tuple[tuple[str, ...], ...]
"""A state with an empty arm: every tower from its bottom block to its top block."""


def generate(rng: Random, *, blocks: int, single_tower_goal: bool = False) -> Instance:
    """Generate a problem from two independent uniform states; the second gives the goal.

    The goal has the `on` atoms of the second state. With `single_tower_goal` it is one tower of all
    blocks in a uniform order. States are drawn again until the goal has an atom that does not hold
    initially. Raises `ValueError` for fewer than two blocks.
    """
    require(blocks > 1, f"blocks must be at least 2, got {blocks}")
    names = numbered("b", blocks)
    while True:
        init = random_towers(rng, names)
        end = (
            (tuple(rng.sample(names, blocks)),) if single_tower_goal else random_towers(rng, names)
        )
        goal = _list_on_atoms(end)
        if not set(goal) <= set(_list_on_atoms(init)):
            kind = "tower" if single_tower_goal else "blocks"
            return Instance(
                f"{kind}-{blocks}", "blocks", (("", names),), _list_state_atoms(init), goal
            )


def random_towers(rng: Random, names: tuple[str, ...]) -> Towers:
    """Draw a state uniformly from all states of these blocks with an empty arm.

    Source: Slaney and Thiébaux, "Blocks World revisited" (Artificial Intelligence 125, 2001). Every
    block begins as a floating tower. Floating towers are put one by one on the table or on another
    tower. Each choice has a probability proportional to the number of states it can lead to.
    """
    completions = _count_completions(len(names))
    floating = [[name] for name in names]
    rooted: list[list[str]] = []
    while floating:
        tower = floating.pop()
        m, k = len(floating), len(rooted)
        draw = rng.randrange(completions[m + 1][k]) - completions[m][k + 1]
        if draw < 0:
            rooted.append(tower)
        else:
            place = draw // completions[m][k]
            (rooted[place] if place < k else floating[place - k]).extend(tower)
    return tuple(map(tuple, rooted))


def count_reachable_states(instance: Instance, limit: int) -> int:
    """Count the reachable states: all with an empty arm, and all with one block held.

    The count is exact and ignores `limit`.
    """
    del limit
    n = len(instance.of_type(""))
    return _count_completions(n)[n][0] + n * _count_completions(n)[n - 1][0]


@cache
def _count_completions(n: int) -> list[list[int]]:
    """Count the states `[m][k]` that m floating and k rooted towers can become, m + k <= n + 1.

    The first floating tower goes on the table, or on one of the other m - 1 + k towers.
    """
    table = [[1] * (n + 2)]
    for m in range(1, n + 1):
        below = table[-1]
        table.append([below[k] * (m - 1 + k) + below[k + 1] for k in range(n + 2 - m)])
    return table


def _list_on_atoms(towers: Towers) -> tuple[Atom, ...]:
    pairs = ((above, below) for t in towers for below, above in pairwise(t))
    return tuple(sorted((("on", *pair) for pair in pairs), key=_number_blocks))


def _list_state_atoms(towers: Towers) -> tuple[Atom, ...]:
    table = sorted((("on-table", tower[0]) for tower in towers), key=_number_blocks)
    clear = sorted((("clear", tower[-1]) for tower in towers), key=_number_blocks)
    return (("arm-empty",), *table, *_list_on_atoms(towers), *clear)


def _number_blocks(atom: Atom) -> tuple[int, ...]:
    return tuple(int(name[1:]) for name in atom[1:])
