"""The uniform state sampler and the goals of Blocks."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.domains import blocks
from regoal.domains.instance import numbered

SEEDS = st.integers(0, 10**6)


@pytest.mark.parametrize(("n", "states"), [(2, 3), (3, 13), (4, 73)])
def test_every_state_is_equally_likely(n, states):
    draws = 400 * states
    rng = Random("uniform")
    counts = Counter(frozenset(blocks.random_towers(rng, numbered("b", n))) for _ in range(draws))
    assert len(counts) == states
    expected = draws / states
    chi_square = sum((c - expected) ** 2 / expected for c in counts.values())
    # Mean states - 1, variance 2 (states - 1): five standard deviations above.
    assert chi_square < states - 1 + 5 * (2 * (states - 1)) ** 0.5


@settings(deadline=None, max_examples=30)
@given(SEEDS, st.integers(2, 30))
def test_a_state_has_every_block_once(seed, n):
    towers = blocks.random_towers(Random(seed), numbered("b", n))
    assert sorted(b for tower in towers for b in tower) == sorted(numbered("b", n))


@settings(deadline=None, max_examples=30)
@given(SEEDS, st.integers(2, 30))
def test_a_single_tower_goal_is_a_chain_of_all_blocks(seed, n):
    instance = blocks.generate(Random(seed), blocks=n, single_tower_goal=True)
    below = {above: under for _, above, under in instance.goal}
    (top,) = set(below) - set(below.values())
    tower = [top]
    while tower[-1] in below:
        tower.append(below[tower[-1]])
    assert sorted(tower) == sorted(numbered("b", n))
    assert len(instance.goal) == n - 1


def test_mean_number_of_towers_of_20_blocks():
    rng = Random("towers")
    sizes = [len(blocks.random_towers(rng, numbered("b", 20))) for _ in range(2000)]
    assert sum(sizes) / len(sizes) == pytest.approx(4.3, abs=0.1)


def test_counts_of_reachable_states():
    """Published counts of the four-action domain."""
    counts = [
        blocks.count_reachable_states(blocks.generate(Random(0), blocks=n), 0) for n in range(2, 9)
    ]
    assert counts == [5, 22, 125, 866, 7057, 65990, 695417]
    assert all(low < high for low, high in pairwise(counts))


def test_one_block_has_no_goal():
    with pytest.raises(ValueError, match="blocks must be at least 2, got 1"):
        blocks.generate(Random(0), blocks=1)
