"""A policy must find what lies farther away than its layers reach: learnt with relaxed plans only.

A van in a row of places fetches parcels and brings them to other places. It learns in short rows.
"""

import random
from dataclasses import replace

import pytest

from learning.held_out import list_solved
from networks.test_relaxed_plans import VAN, row
from regoal.config import LAPTOP, Decay

PROBLEMS = 10


def draw(rng, length):
    parcels = [tuple(rng.sample(range(length), 2)) for _ in range(2)]
    return row(length, rng.randrange(length), parcels)


@pytest.mark.slow
@pytest.mark.parametrize("relaxed_plans", [True, False])
def test_parcels_that_are_far_away(read_task, relaxed_plans):
    rng = random.Random(3)
    training = [read_task(VAN, draw(rng, 2 + i % 4)) for i in range(24)]
    held_out = [read_task(VAN, draw(rng, 25)) for _ in range(PROBLEMS)]
    config = replace(
        LAPTOP,
        episodes=25,
        layers=4,
        relaxed_plans=relaxed_plans,
        learn_others=True,
        learning_rate=Decay(start=2e-3, end=2e-4, episodes=60),
        temperature=Decay(start=1.0, end=0.1, episodes=30, shape="geometric"),
        updates=16,
        horizon=40,
        average=0.9,
        curriculum=Decay(start=0.5, end=1.0, episodes=10),
    )
    coverage = list_solved(training, held_out, config, capacity=2000, max_steps=100)
    if relaxed_plans:
        assert max(coverage) >= PROBLEMS - 1, coverage
    else:
        assert max(coverage) <= PROBLEMS // 2, coverage
