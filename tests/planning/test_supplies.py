"""Numbers that differ are chosen from lists, against trying all choices."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from regoal.planning.supplies import can_be_distinct


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=6))
def test_random_lists(choices):
    expected = any(len(set(chosen)) == len(chosen) for chosen in product(*choices))
    assert can_be_distinct(choices) == expected


def test_a_long_path_of_changes():
    # The last one can only have 0, so that all others must move on by one.
    choices = [[i, i + 1] for i in range(5000)]
    assert can_be_distinct([*choices, [0]])
    assert not can_be_distinct([*choices, [0], [5000]])
