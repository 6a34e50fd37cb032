"""Blocks: rebuild towers with one arm (four actions). Both states are drawn uniformly."""

from functools import cache
from itertools import pairwise
from random import Random

from regoal.domains.instance import Atom, Instance, numbered, require

Towers = tuple[tuple[str, ...], ...]
"""A state with an empty arm: every tower from its bottom block to its top block."""


def generate(rng: Random, *, blocks: int, single_tower_goal: bool = False) -> Instance:
    """Two independent uniform states; the goal is the `on` atoms of the second.

    With `single_tower_goal` the goal is one tower of all blocks in a uniform order. States are
    drawn again until the goal has an atom that does not hold initially. Needs two blocks.
    """
    require(blocks > 1, f"blocks must be at least 2, got {blocks}")
    names = numbered("b", blocks)
    while True:
        init = random_towers(rng, names)
        end = (
            (tuple(rng.sample(names, blocks)),) if single_tower_goal else random_towers(rng, names)
        )
        goal = _on_atoms(end)
        if not set(goal) <= set(_on_atoms(init)):
            kind = "tower" if single_tower_goal else "blocks"
            return Instance(f"{kind}-{blocks}", "blocks", (("", names),), _state_atoms(init), goal)


def random_towers(rng: Random, names: tuple[str, ...]) -> Towers:
    """A state drawn uniformly from all states of these blocks with an empty arm.

    Slaney and Thiébaux, "Blocks World revisited" (Artificial Intelligence 125, 2001): start with
    every block a floating tower; put one after the other on the table or on another tower, each
    with probability proportional to the number of states it can still lead to.
    """
    completions = _completions(len(names))
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


def reachable_states(instance: Instance, limit: int) -> int:
    """How many states can be reached: all with an empty arm, and all with one block held.

    Exact, whatever the `limit`.
    """
    del limit
    n = len(instance.of_type(""))
    return _completions(n)[n][0] + n * _completions(n)[n - 1][0]


@cache
def _completions(n: int) -> list[list[int]]:
    """`[m][k]`: the states that m floating and k rooted towers can become, for m + k up to n + 1.

    The first floating tower goes on the table, or on one of the other m - 1 + k towers.
    """
    table = [[1] * (n + 2)]
    for m in range(1, n + 1):
        below = table[-1]
        table.append([below[k] * (m - 1 + k) + below[k + 1] for k in range(n + 2 - m)])
    return table


def _on_atoms(towers: Towers) -> tuple[Atom, ...]:
    pairs = ((above, below) for t in towers for below, above in pairwise(t))
    return tuple(sorted((("on", *pair) for pair in pairs), key=_natural))


def _state_atoms(towers: Towers) -> tuple[Atom, ...]:
    table = sorted((("on-table", tower[0]) for tower in towers), key=_natural)
    clear = sorted((("clear", tower[-1]) for tower in towers), key=_natural)
    return (("arm-empty",), *table, *_on_atoms(towers), *clear)


def _natural(atom: Atom) -> tuple[int, ...]:
    return tuple(int(name[1:]) for name in atom[1:])
