import re
from dataclasses import fields
from pathlib import Path

import pytest

import regoal
from regoal.config import PRESETS, Decay, TrainConfig

SOURCE = Path(regoal.__file__).parent


def test_every_field_is_read_somewhere():
    text = "\n".join(p.read_text() for p in SOURCE.rglob("*.py") if p.name != "config.py")
    unread = [f.name for f in fields(TrainConfig) if not re.search(rf"\.{f.name}\b", text)]
    assert not unread, f"accepted on the command line but ignored: {unread}"


def test_the_papers_numbers():
    paper = PRESETS["paper"]
    assert (paper.embedding_size, paper.layers, paper.discount) == (32, 100, 0.999)
    assert (paper.updates, paper.batch_size, paper.replay_capacity) == (32, 32, 1000)
    assert (paper.trajectories, paper.horizon, paper.huber_delta) == (4, 100, 1.0)
    assert (paper.priority_exponent, paper.priority_weight) == (0.6, 0.4)
    assert paper.learning_rate == Decay(start=1e-3, end=1e-6, episodes=300)
    assert paper.temperature == Decay(start=1.0, end=0.1, episodes=600)


def test_a_decay_stays_at_its_end():
    decay = Decay(start=1.0, end=0.2, episodes=4)
    assert [round(decay(i), 9) for i in range(6)] == [1.0, 0.8, 0.6, 0.4, 0.2, 0.2]
    falling = Decay(start=8.0, end=1.0, episodes=3, shape="geometric")
    assert [round(falling(i), 9) for i in range(5)] == [8.0, 4.0, 2.0, 1.0, 1.0]
    rising = Decay(start=1.0, end=4.0, episodes=2, shape="geometric")
    assert [round(rising(i), 9) for i in range(3)] == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"layers": 0},
        {"batch_size": -1},
        {"discount": 1.1},
        {"discount": 0.0},
        {"average": 1.0},
        {"average": -0.5},
        {"hindsight": "none"},
        {"patience": -1},
    ],
)
def test_impossible_values_are_refused_by_name(wrong):
    [(name, value)] = wrong.items()
    with pytest.raises(ValueError, match=rf"{name} .*{value}"):
        TrainConfig(**wrong)


def test_a_ladder_rises_towards_the_start():
    decay = Decay(start=1.0, end=0.0625, episodes=2)
    assert decay.ladder(2, 4) == pytest.approx([1 / 16, 1 / 8, 1 / 4, 1 / 2])
    assert decay.ladder(0, 3) == [1.0, 1.0, 1.0]
    assert decay.ladder(9, 1) == [0.0625]


def test_a_decay_needs_episodes_and_positive_values():
    with pytest.raises(ValueError, match="at least one episode, got 0"):
        Decay(start=1.0, end=0.1, episodes=0)
    with pytest.raises(ValueError, match="stays above zero"):
        Decay(start=1.0, end=0.0, episodes=5)
    with pytest.raises(ValueError, match="linear or geometric, got 'steep'"):
        Decay(start=1.0, end=0.1, episodes=5, shape="steep")
