"""A policy must learn what it must not do: learnt with mistakes that are taken back, not without.

A cleaner waxes a floor row by row, and walks on no waxed tile. Who waxes a tile too soon can never
wax the one behind it, or is shut in.
"""

import random
from dataclasses import replace

import pytest

from learning.held_out import list_solved
from planning.dead_end_domains import WAX
from regoal.config import LAPTOP, Decay


def floor(rng, rows, columns):
    """All tiles but those of the row at the southern wall are to be waxed."""
    tiles = {
        (row, column): f"t{row}-{column}" for row in range(rows + 1) for column in range(columns)
    }
    start = rng.choice(sorted(tiles.values()))
    init = [f"(on {start})", *(f"(dry {tile})" for tile in tiles.values() if tile != start)]
    for (row, column), tile in tiles.items():
        if (row + 1, column) in tiles:
            init.append(f"(north {tile} {tiles[row + 1, column]})")
        for other in (column - 1, column + 1):
            if (row, other) in tiles:
                init.append(f"(beside {tile} {tiles[row, other]})")
    goal = [f"(waxed {tile})" for (row, _), tile in tiles.items() if row]
    return (
        f"(define (problem p) (:domain wax) (:objects {' '.join(tiles.values())} - tile)"
        f" (:init {' '.join(init)}) (:goal (and {' '.join(goal)})))"
    )


@pytest.mark.slow
@pytest.mark.parametrize("learn_dead_ends", [True, False])
def test_a_floor_is_waxed_from_its_end(read_task, learn_dead_ends):
    rng = random.Random(3)
    sizes = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (2, 3), (3, 2)]
    training = [read_task(WAX, floor(rng, *size)) for size in 4 * sizes]
    held_out = [read_task(WAX, floor(rng, 4, 3)) for _ in range(10)]
    config = replace(
        LAPTOP,
        episodes=60,
        layers=8,
        learn_dead_ends=learn_dead_ends,
        learning_rate=Decay(start=2e-3, end=2e-4, episodes=60),
        temperature=Decay(start=1.0, end=0.1, episodes=40, shape="geometric"),
        updates=16,
        horizon=60,
        average=0.9,
        curriculum=Decay(start=0.5, end=1.0, episodes=20),
    )
    coverage = list_solved(training, held_out, config, capacity=2000, max_steps=100)
    if learn_dead_ends:
        assert max(coverage) >= len(held_out) - 1, coverage
    else:
        assert max(coverage) <= len(held_out) // 2, coverage
