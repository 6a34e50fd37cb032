"""A policy must learn what it must not do: learnt with mistakes that are taken back, not without.

A cleaner waxes a floor row by row, and walks on no waxed tile. Who waxes a tile too soon can never
wax the one behind it, or is shut in.
"""

import random
from dataclasses import replace

import pytest

from planning.dead_end_domains import WAX
from regoal.config import LAPTOP, Decay
from regoal.evaluation.execution import execute
from regoal.learning.dqn import train
from regoal.learning.learner import Learner
from regoal.learning.replay import Replay
from regoal.learning.streams import Streams
from regoal.networks.encoder import Encoder
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.planning.matching.library_schema import schema_of
from regoal.records.results import Outcome


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
    relations = relations_of(schema_of(training[0].domain), achieved_goals=True)
    network, encoder = QNetwork(relations, 32, seed=1), Encoder(relations)
    learner = Learner(network, encoder, config)
    replay = Replay(2000, exponent=0.6, weight=0.4)
    coverage = []
    for stats in train(training, learner, replay, Streams.from_seed(1)):
        if stats.episode % 5 == 0:
            ended = execute(network, encoder, held_out, layers=8, max_steps=100)
            coverage.append(sum(x.outcome is Outcome.SOLVED for x in ended))
            if coverage[-1] == len(held_out):
                break
    if learn_dead_ends:
        assert max(coverage) >= len(held_out) - 1, coverage
    else:
        assert max(coverage) <= len(held_out) // 2, coverage
