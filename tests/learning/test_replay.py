"""Prioritized replay: its invariants, frequencies and weights."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.learning.replay import Replay
from regoal.learning.trajectory import Transition


def step(action, remaining=1):
    return Transition("state", action, "next state", "goal", remaining)


def filled(priorities, *, exponent=0.6, weight=0.4):
    replay = Replay(len(priorities), exponent=exponent, weight=weight)
    replay.extend(map(step, range(len(priorities))))
    replay.update(np.arange(len(priorities)), np.array(priorities, dtype=float))
    return replay


CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("extend"), st.integers(0, 9)),
        st.tuples(st.just("sample"), st.integers(1, 6)),
        st.tuples(st.just("update"), st.floats(1e-6, 100.0)),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(calls=CALLS, capacity=st.integers(1, 12), seed=st.integers(0, 99))
def test_sound_after_any_calls(calls, capacity, seed):
    rng = np.random.default_rng(seed)
    replay, model = Replay(capacity, exponent=0.6, weight=0.4), deque(maxlen=capacity)
    added = 0
    for call, value in calls:
        if call == "extend":
            replay.extend(map(step, range(added, added + value)))
            model.extend(map(step, range(added, added + value)))
            added += value
        elif len(replay) and call == "sample":
            sample = replay.sample(value, rng)
            assert [replay.transitions[i] for i in sample.slots] == sample.transitions
            assert ((sample.weights > 0) & (sample.weights <= 1)).all()
        elif len(replay):
            slots = rng.integers(len(replay), size=2)
            replay.update(slots, np.full(2, value))
        assert replay.faults() == []
        assert sorted(replay.transitions) == list(model)


def test_the_oldest_makes_room():
    replay = Replay(3, exponent=0.6, weight=0.4)
    replay.extend(map(step, "abcd"))
    assert replay.transitions == [step(x) for x in "dbc"]
    replay.extend(map(step, "efg"))
    assert sorted(replay.transitions) == [step(x) for x in "efg"]
    assert len(replay) == 3


def test_new_transitions_have_the_largest_priority_so_far():
    replay = Replay(4, exponent=1.0, weight=0.4)
    replay.extend(map(step, "ab"))
    assert replay.priorities.tolist() == [1.0, 1.0, 0.0, 0.0]
    replay.update(np.array([0, 1]), np.array([5.0, 0.2]))
    replay.update(np.array([0]), np.array([0.3]))
    replay.extend([step("c")])
    assert replay.priorities.tolist() == [0.3, 0.2, 5.0, 0.0]


def test_probabilities_by_hand():
    # 16^½ : 4^½ : 1 : 1 = 4 : 2 : 1 : 1
    replay = filled([16.0, 4.0, 1.0, 1.0], exponent=0.5)
    assert replay.probabilities().tolist() == pytest.approx([0.5, 0.25, 0.125, 0.125])
    assert filled([3.0, 9.0], exponent=0.0).probabilities().tolist() == [0.5, 0.5]


def test_weights_by_hand():
    # (4 P)^-½ is 2^-½, 1, 2^½, 2^½, before the division by the largest in the batch
    replay = filled([16.0, 4.0, 1.0, 1.0], exponent=0.5, weight=0.5)
    sample = replay.sample(200, np.random.default_rng(0))
    expected = np.array([0.5, 0.5**0.5, 1.0, 1.0])
    assert set(sample.slots) == {0, 1, 2, 3}
    assert sample.weights.tolist() == pytest.approx(expected[sample.slots].tolist())
    uniform = filled([16.0, 4.0, 1.0], weight=0.0).sample(9, np.random.default_rng(0))
    assert uniform.weights.tolist() == [1.0] * 9


def test_frequencies():
    replay = filled([8.0, 4.0, 2.0, 1.0, 0.5])
    slots = replay.sample(400_000, np.random.default_rng(3)).slots
    shares = np.bincount(slots) / len(slots)
    assert shares.tolist() == pytest.approx(replay.probabilities().tolist(), rel=0.02)


def test_nothing_to_sample():
    with pytest.raises(ValueError, match="empty replay"):
        Replay(3, exponent=0.6, weight=0.4).sample(1, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda r: r.priorities.__setitem__(0, 0.0), "no priority"),
        (lambda r: r.priorities.__setitem__(0, np.nan), "no priority"),
        (lambda r: r.priorities.__setitem__(0, np.inf), "not finite"),
        (lambda r: r.priorities.__setitem__(3, 1.0), "empty slot"),
        (lambda r: r.priorities.__setitem__(0, 9.0), "largest priority"),
        (lambda r: setattr(r, "next_slot", 0), "next slot"),
        (lambda r: r.transitions.extend(map(step, "xyz")), "exceed the capacity"),
    ],
)
def test_faults_are_found(spoil, fault):
    replay = Replay(4, exponent=0.6, weight=0.4)
    replay.extend(map(step, "ab"))
    assert replay.faults() == []
    spoil(replay)
    assert any(fault in said for said in replay.faults())
