"""The benchmark's training, validation and test sets: their sizes, counts and generators.

The size ranges are the paper's Table 1. `docs/reference/domains.md` lists what the paper leaves
open.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import count, islice
from pathlib import Path
from random import Random

from regoal.domains import (
    blocks,
    childsnack,
    delivery,
    gripper,
    hiking,
    maze,
    miconic,
    reward,
    spanner,
    visitall,
)
from regoal.domains.instance import Instance
from regoal.errors import UsageError
from regoal.system.files import write_text_atomically

SizeRange = tuple[int, int]
"""The lowest and highest value of a size, both included."""


@dataclass(frozen=True)
class Split:
    """A set of instances: their number, and the ranges of their sizes."""

    count: int
    sizes: Mapping[str, SizeRange]
    fixed: Mapping[str, float] = field(default_factory=dict)
    """Arguments of the generator that are equal for all instances of the split."""

    def draw(self) -> Iterator[dict[str, int]]:
        """Yield the sizes of instance 0, 1, 2, ... without end, evenly distributed.

        Instance i takes value i modulo the length of each range ("even distribution", Table 1).
        Ranges of equal length therefore grow together. If lengths differ, the second range is
        shifted by one after each common period, so that every pair of sizes occurs.
        """
        lengths = [high - low + 1 for low, high in self.sizes.values()]
        period = math.lcm(*lengths)
        shifts = [i if len(set(lengths)) > 1 else 0 for i in range(len(lengths))]
        for i in count():
            yield {
                name: low + (i + shift * (i // period)) % length
                for (name, (low, _)), length, shift in zip(
                    self.sizes.items(), lengths, shifts, strict=True
                )
            }


@dataclass(frozen=True)
class DomainEntry:
    """One row of the benchmark."""

    pddl: str
    """The stem of the domain file in `pddl/`."""
    generate: Callable[..., Instance]
    splits: Mapping[str, Split]
    has_instance: Callable[[Mapping[str, int]], bool] = lambda sizes: True
    """Whether there is an instance of these sizes; a split skips sizes without one."""
    count_reachable_states: Callable[[Instance, int], int] | None = None
    """Counts the reachable states; above the given limit, it may return any larger number."""
    expandable_training: bool = False
    """Whether training instances too large for full expansion are omitted (rows with suffix -l)."""


TEST_COUNT = 100
"""Instances of every test set (paper, caption of Table 3)."""
DEFAULT_MAX_STATES = 1_000_000
"""Training instances of the -l rows have at most this many reachable states: the smallest power of
ten that keeps enough blocks to learn from (docs/reference/domains.md)."""


def _make_splits(
    train: tuple[int, Mapping[str, SizeRange]],
    validation: tuple[int, Mapping[str, SizeRange]],
    test: Mapping[str, SizeRange],
    **fixed: float,
) -> dict[str, Split]:
    """Make the splits of a row of Table 1: (count, sizes) for train and validation, test sizes."""
    return {
        "train": Split(*train, fixed),
        "validation": Split(*validation, fixed),
        "test": Split(TEST_COUNT, test, fixed),
    }


DOMAINS: dict[str, DomainEntry] = {
    "blocks": DomainEntry(
        "blocks",
        blocks.generate,
        _make_splits((65, {"blocks": (2, 14)}), (20, {"blocks": (15, 19)}), {"blocks": (20, 50)})
        | {"test-tower": Split(TEST_COUNT, {"blocks": (20, 50)}, {"single_tower_goal": True})},
        count_reachable_states=blocks.count_reachable_states,
    ),
    "childsnack": DomainEntry(
        "childsnack",
        childsnack.generate,
        _make_splits(
            (30, {"children": (1, 6)}),
            (24, {"children": (7, 12)}),
            {"children": (13, 50)},
            gluten_ratio=0.4,
        ),
    ),
    "childsnack-af": DomainEntry(
        "childsnack",
        childsnack.generate,
        _make_splits(
            (50, {"children": (1, 10)}),
            (18, {"children": (11, 19)}),
            {"children": (20, 119)},
            gluten_ratio=0.0,
        ),
    ),
    "delivery": DomainEntry(
        "delivery",
        delivery.generate,
        _make_splits(
            (60, {"side": (2, 5), "packages": (1, 5)}),
            (28, {"side": (6, 9), "packages": (1, 7)}),
            {"side": (10, 25), "packages": (6, 10)},
        ),
    ),
    "gripper": DomainEntry(
        "gripper",
        gripper.generate,
        _make_splits((19, {"balls": (1, 19)}), (10, {"balls": (20, 29)}), {"balls": (30, 129)}),
        count_reachable_states=gripper.count_reachable_states,
    ),
    "hiking": DomainEntry(
        "hiking",
        hiking.generate,
        _make_splits(
            (54, {"couples": (1, 6), "locations": (1, 4)}),
            (20, {"couples": (6, 10), "locations": (2, 5)}),
            {"couples": (10, 26), "locations": (5, 7)},
        ),
        # With a single location every couple has arrived before the first step.
        has_instance=lambda sizes: sizes["locations"] > 1,
    ),
    "miconic": DomainEntry(
        "miconic",
        miconic.generate,
        _make_splits(
            (95, {"people": (1, 19), "floors": (2, 20)}),
            (20, {"people": (20, 29), "floors": (21, 30)}),
            {"people": (30, 80), "floors": (31, 81)},
        ),
        count_reachable_states=miconic.count_reachable_states,
    ),
    "reward": DomainEntry(
        "reward",
        reward.generate,
        _make_splits(
            (73, {"side": (2, 12), "rewards": (1, 7)}),
            (18, {"side": (13, 15), "rewards": (8, 13)}),
            {"side": (16, 29), "rewards": (8, 14)},
        ),
        # The smallest grid has three cells besides the start.
        has_instance=lambda sizes: sizes["rewards"] < sizes["side"] ** 2,
        count_reachable_states=reward.count_reachable_states,
    ),
    "spanner": DomainEntry(
        "spanner",
        spanner.generate,
        _make_splits((70, {"nuts": (1, 14)}), (20, {"nuts": (15, 24)}), {"nuts": (25, 50)}),
    ),
    "visitall": DomainEntry(
        "visitall",
        visitall.generate,
        _make_splits((55, {"side": (2, 12)}), (21, {"side": (13, 15)}), {"side": (16, 30)})
        | {"test-full": Split(TEST_COUNT, {"side": (16, 30)}, {"goal_ratio": 1.0})},
        count_reachable_states=visitall.count_reachable_states,
    ),
    "maze": DomainEntry(
        "maze",
        maze.generate,
        _make_splits(
            (50, {"side": (13, 13)}),
            (20, {"side": (13, 13)}),
            {"side": (13, 13)},
            nearest=60,
            farthest=70,
        ),
    ),
}
"""Every row of the paper's Table 3, and Maze, by name."""

DOMAINS |= {
    f"{name}-l": replace(DOMAINS[name], expandable_training=True)
    for name in ("blocks", "gripper", "miconic", "reward", "visitall")
}


def instances(
    domain: str, split: str, seed: int = 0, *, max_states: int = DEFAULT_MAX_STATES
) -> Iterator[Instance]:
    """Yield the whole split in order; equal arguments give equal instances on every machine.

    A domain with suffix -l has the sets of the domain without it. Only its training set omits
    instances with more than `max_states` reachable states. Raises `UsageError` immediately if the
    domain or split is unknown.
    """
    entry = _find_entry(domain)
    if split not in entry.splits:
        raise UsageError(
            f"Domain {domain} has no split {split!r}. Choose one of: {', '.join(entry.splits)}."
        )
    found = _draw_instances(entry, domain.removesuffix("-l"), split, seed)
    if entry.expandable_training and split == "train" and (size := entry.count_reachable_states):
        found = (instance for instance in found if size(instance, max_states) <= max_states)
    return found


def domain_pddl(domain: str) -> str:
    """Return the text of the domain file. Raises `UsageError` if the domain is unknown."""
    path = files("regoal.domains") / "pddl" / f"{_find_entry(domain).pddl}.pddl"
    return path.read_text(encoding="utf-8")


def write_split(
    domain: str, split: str, out: Path, seed: int = 0, *, max_states: int = DEFAULT_MAX_STATES
) -> list[Path]:
    """Write `domain.pddl` and the problems p001.pddl, p002.pddl, ... into the folder `out`.

    Returns the problem files in order. `max_states` is as in `instances`. The case of `domain` does
    not matter. Raises `UsageError` if the domain or split is unknown, or if no problem is small
    enough. Also raises it if `out` already holds PDDL files that differ from this set. They would
    otherwise join the split or be replaced.
    """
    domain = domain.lower()
    drawn = instances(domain, split, seed, max_states=max_states)
    problems = {f"p{i:03}.pddl": x for i, x in enumerate(drawn, start=1)}
    if not problems:
        raise UsageError(f"No training problem of {domain} has as few as {max_states} states.")
    texts = {"domain.pddl": domain_pddl(domain)}
    texts |= {name: instance.to_pddl() for name, instance in problems.items()}
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file. Give the name of an empty or new folder.")
    out.mkdir(parents=True, exist_ok=True)
    others = sorted(path.name for path in out.glob("*.pddl") if _is_other(path, texts))
    if others:
        raise UsageError(
            f"{out} holds files of another set, e.g. {others[0]}. Choose an empty folder."
        )
    for name, text in texts.items():
        write_text_atomically(out / name, text)
    return [out / name for name in problems]


def _is_other(path: Path, texts: Mapping[str, str]) -> bool:
    """Return whether a file is not one of these texts."""
    return path.name not in texts or path.read_bytes() != texts[path.name].encode("utf-8")


def _find_entry(domain: str) -> DomainEntry:
    if domain not in DOMAINS:
        raise UsageError(f"Unknown domain {domain!r}. Choose one of: {', '.join(DOMAINS)}.")
    return DOMAINS[domain]


def _draw_instances(entry: DomainEntry, domain: str, split: str, seed: int) -> Iterator[Instance]:
    chosen = entry.splits[split]
    possible = filter(entry.has_instance, chosen.draw())
    for i, sizes in enumerate(islice(possible, chosen.count), start=1):
        # Each instance has a separate random stream, which no other instance can shift. The seed
        # is a string because Random hashes strings with SHA-512, equally in every process.
        rng = Random(f"{domain} {split} {seed} {i}")
        instance = entry.generate(rng, **sizes, **chosen.fixed)
        yield replace(instance, name=f"{instance.name}-p{i:03}")
