"""Advice for a user whose domain is not learnt: what was seen, and what to try."""

from collections.abc import Sequence

from regoal.config import TrainConfig
from regoal.learning.episode_stats import EpisodeStats
from regoal.records.validation import Validation

RECENT = 40
"""Episodes that are looked at."""
NEARLY_ALL = 0.9
"""The share from which problems count as solved by and large."""


def advice(
    episodes: Sequence[EpisodeStats], validations: Sequence[Validation], config: TrainConfig
) -> dict[str, str]:
    """Sentences about a training so far, by what they are about.

    There are none if it went well or has only begun. `episodes` and `validations` are in the order
    in which they happened.
    """
    recent = list(episodes)[-RECENT:]
    if len(recent) < RECENT or any(v.complete for v in validations[-2:]):
        return {}
    checks = {
        "no goal reached": _no_goal_reached(recent, config),
        "problems too small": _problems_too_small(recent, validations),
        "coverage lost": _coverage_lost(validations),
    }
    return {about: said for about, said in checks.items() if said}


def _no_goal_reached(recent: Sequence[EpisodeStats], config: TrainConfig) -> str | None:
    if any(stats.solved for stats in recent):
        return None
    if not any(stats.parts for stats in recent):
        return (
            f"In {len(recent)} episodes no trajectory reached any part of its goal. Give problems "
            f"that are solved in a few steps, so that random actions reach something to learn from."
        )
    return (
        f"In {len(recent)} episodes no trajectory reached its goal. Give smaller problems, too, or "
        f"a larger --horizon if the smallest one needs more than {config.horizon} steps."
    )


def _problems_too_small(
    recent: Sequence[EpisodeStats], validations: Sequence[Validation]
) -> str | None:
    tried, solved = (sum(getattr(x, name) for x in recent) for name in ("trajectories", "solved"))
    if not validations or solved < NEARLY_ALL * tried:
        return None
    best = max(validations, key=lambda v: v.merit)
    return (
        f"The training problems are solved ({solved} of the last {tried} trajectories), the "
        f"validation problems are not ({best.solved} of {best.problems} at best). Give larger "
        f"training problems, of sizes up to those for validation."
    )


def _coverage_lost(validations: Sequence[Validation]) -> str | None:
    best = max(validations, key=lambda v: v.merit, default=None)
    if best is None or best.coverage < NEARLY_ALL or validations[-1].coverage > best.coverage / 2:
        return None
    return (
        f"Validation went from {best.solved} to {validations[-1].solved} of {best.problems} "
        f"problems. The policy of episode {best.episode} is kept; more validation problems choose "
        f"it better, and another --seed may learn more steadily."
    )
