"""Trainings that get nowhere get advice, and the others none."""

import re
from dataclasses import replace

import pytest

from regoal.config import LAPTOP
from regoal.learning.episode_stats import EpisodeStats
from regoal.records.validation import Validation
from regoal.runs.advice import RECENT, advice


def episodes(solved, parts=4, count=RECENT):
    one = EpisodeStats(1, 4, solved, parts, 30, 2.0, 8.0, 0.5, 0.3, 1e-3, 1.0, 1.0)
    return [replace(one, episode=i + 1) for i in range(count)]


def validations(*solved):
    return [Validation(5 * i + 5, n, 20, 30 * n, 20) for i, n in enumerate(solved)]


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ((episodes(0, parts=0), []), "no trajectory reached any part of its goal"),
        ((episodes(0), validations(0, 0)), "more than 100 steps"),
        ((episodes(4), validations(3, 7, 5)), r"\(160 of the last 160 .* \(7 of 20 at best\)"),
        ((episodes(3), validations(0, 19, 2)), "from 19 to 2 of 20 .* episode 10 is kept"),
    ],
)
def test_what_is_said(seen, words):
    (said,) = advice(*seen, LAPTOP).values()
    assert re.search(words, said), said


@pytest.mark.parametrize(
    "seen",
    [
        ([], []),
        (episodes(0, count=RECENT - 1), validations(0)),
        (episodes(4), validations(0, 19, 20)),
        (episodes(2), validations(3, 7, 9)),
    ],
    ids=["nothing yet", "too soon", "complete", "on its way"],
)
def test_nothing_is_said(seen):
    assert advice(*seen, LAPTOP) == {}
