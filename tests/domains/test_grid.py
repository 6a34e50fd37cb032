"""Grids and mazes."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.domains import maze, reward
from regoal.domains.grid import distances, grid, link_atoms


def test_grid_of_side_two():
    assert grid(2) == {
        (0, 0): [(0, 1), (1, 0)],
        (0, 1): [(0, 0), (1, 1)],
        (1, 0): [(0, 0), (1, 1)],
        (1, 1): [(0, 1), (1, 0)],
    }


def test_walls_are_no_cells():
    assert grid(2, without={(1, 1), (0, 1)}) == {(0, 0): [(1, 0)], (1, 0): [(0, 0)]}


def test_distances_stop_at_walls():
    assert distances(grid(3, without={(0, 1), (1, 1)}), (0, 0)) == {
        (0, 0): 0,
        (1, 0): 1,
        (2, 0): 2,
        (2, 1): 3,
        (2, 2): 4,
        (1, 2): 5,
        (0, 2): 6,
    }


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 15))
def test_a_perfect_maze_is_a_spanning_tree(seed, side):
    links = maze.perfect_maze(Random(seed), side)
    assert len(link_atoms("connected", links)) == 2 * (side * side - 1)
    assert len(distances(links, (0, 0))) == side * side
    assert all(cell in links[other] for cell in links for other in links[cell])
    assert all(abs(a - c) + abs(b - d) == 1 for a, b in links for c, d in links[a, b])


def test_an_impossible_distance_is_refused():
    with pytest.raises(ValueError, match="no maze of side 3"):
        maze.generate(Random(0), side=3, nearest=9, farthest=12)


def test_too_many_rewards_are_refused():
    with pytest.raises(ValueError, match="from 1 to 3 on a grid of side 2, got 4"):
        reward.generate(Random(0), side=2, rewards=4)
