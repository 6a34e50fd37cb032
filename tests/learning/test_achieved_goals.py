"""A policy must see which goals hold: learnt with the relations of achieved goals, not without.

Cars are brought to places by a ferry that holds one of them. Two cars are swapped and the others
are at home; the places all look alike to a network that sees atoms and goals one by one.
"""

import random

import pytest

from learning.held_out import list_solved
from networks.test_encoder import CARS
from regoal.config import Decay, TrainConfig

PROBLEMS, SHORTEST = 20, 7
"""Held-out problems, and the actions that each of them needs."""


def swapped_pair(rng, at_home):
    """Two cars to be exchanged, others at home, and the ferry at a place without a car."""
    cars = [f"c{i}" for i in range(at_home + 2)]
    places = [f"p{i}" for i in range(at_home + 3)]
    rng.shuffle(places)
    wanted = dict(zip(cars, places, strict=False))
    found, (first, second) = dict(wanted), rng.sample(cars, 2)
    found[first], found[second] = wanted[second], wanted[first]
    init = [f"(car {car}) (at {car} {place})" for car, place in found.items()]
    init += [f"(place {place})" for place in places]
    goal = [f"(at {car} {place})" for car, place in wanted.items()]
    return (
        f"(define (problem p) (:domain cars) (:objects {' '.join(sorted(cars + places))})"
        f" (:init {' '.join(init)} (free) (ferry-at {places[-1]})) (:goal (and {' '.join(goal)})))"
    )


@pytest.mark.slow
@pytest.mark.parametrize("achieved_goals", [True, False])
def test_swapped_cars_are_told_from_cars_at_home(read_task, achieved_goals):
    rng = random.Random(3)
    training = [read_task(CARS, swapped_pair(rng, i % 3)) for i in range(30)]
    held_out = [read_task(CARS, swapped_pair(rng, 4)) for _ in range(PROBLEMS)]
    config = TrainConfig(
        episodes=30,
        layers=5,
        achieved_goals=achieved_goals,
        learning_rate=Decay(start=2e-3, end=2e-4, episodes=60),
        temperature=Decay(start=1.0, end=0.1, episodes=30, shape="geometric"),
        updates=16,
        horizon=30,
        bound_targets=True,
    )
    coverage = list_solved(training, held_out, config, capacity=1000, max_steps=SHORTEST + 2)
    if achieved_goals:
        assert max(coverage) >= PROBLEMS - 1, coverage
    else:
        assert max(coverage) <= PROBLEMS // 2, coverage
