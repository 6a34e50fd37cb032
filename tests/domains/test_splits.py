"""The splits: the paper's sizes, even distribution, determinism, files."""

import os
import subprocess
import sys
from collections import Counter
from itertools import islice

import pytest

from regoal.domains import splits
from regoal.errors import UsageError
from regoal.planning.actions import DUMMY_ACTION
from regoal.planning.load import load_domain, load_task

PLAIN = [name for name in splits.DOMAINS if not name.endswith("-l")]
LIMITED = [name for name in splits.DOMAINS if name.endswith("-l")]

# The paper's Table 1, row by row: train, validation, test.
TABLE_1 = """
blocks         2-14            15-19              20-50
childsnack     1-6             7-12               13-50
childsnack-af  1-10            11-19              20-119
delivery       2-5,1-5         6-9,1-7            10-25,6-10
gripper        1-19            20-29              30-129
hiking         1-6,1-4         6-10,2-5           10-26,5-7
miconic        1-19,2-20       20-29,21-30        30-80,31-81
reward         2-12,1-7        13-15,8-13         16-29,8-14
spanner        1-14            15-24              25-50
visitall       2-12            13-15              16-30
"""


def written_ranges(split: splits.Split) -> str:
    return ",".join(f"{low}-{high}" for low, high in split.sizes.values())


def drawn_sizes(name: str, split: str) -> list[dict[str, int]]:
    entry = splits.DOMAINS[name]
    possible = filter(entry.has_instance, entry.splits[split].draw())
    return list(islice(possible, entry.splits[split].count))


def test_ranges_are_those_of_table_1():
    rows = [line.split() for line in TABLE_1.strip().splitlines()]
    ours = [
        [
            name,
            *(written_ranges(splits.DOMAINS[name].splits[s]) for s in splits.DOMAINS[name].splits),
        ]
        for name, *_ in rows
    ]
    assert [row[:4] for row in ours] == rows
    assert {name for name, *_ in rows} == set(PLAIN) - {"maze"}


@pytest.mark.parametrize("name", PLAIN)
def test_every_value_of_every_size_occurs(name):
    for split, chosen in splits.DOMAINS[name].splits.items():
        drawn = drawn_sizes(name, split)
        least = 1 if name == "gripper" or split.startswith("test") else 2
        for size, (low, high) in chosen.sizes.items():
            counts = Counter(sizes[size] for sizes in drawn)
            # A single location in Hiking is solved from the start.
            values = range(max(low, 2) if size == "locations" else low, high + 1)
            assert set(counts) == set(values), (split, size)
            assert min(counts.values()) >= least, (split, size)


@pytest.mark.parametrize("name", PLAIN)
def test_test_sets_have_100_instances(name):
    for split in splits.DOMAINS[name].splits:
        if split.startswith("test"):
            assert len(list(splits.instances(name, split))) == 100


def test_round_robin_of_one_size():
    sizes = [s["blocks"] for s in drawn_sizes("blocks", "test")]
    assert sizes == [20 + i % 31 for i in range(100)]


def test_ranges_of_equal_length_scale_together():
    for split in ("train", "validation", "test"):
        assert all(s["floors"] == s["people"] + 1 for s in drawn_sizes("miconic", split))


@pytest.mark.parametrize(
    ("name", "split", "rounds"),
    [
        ("delivery", "train", 3),
        ("delivery", "validation", 1),
        ("hiking", "train", 3),
        ("hiking", "validation", 1),
        ("reward", "train", 1),
        ("reward", "validation", 1),
    ],
)
def test_pairs_of_sizes_occur_equally_often(name, split, rounds):
    drawn = Counter(tuple(sizes.values()) for sizes in drawn_sizes(name, split))
    entry = splits.DOMAINS[name]
    (a, (low_a, high_a)), (b, (low_b, high_b)) = entry.splits[split].sizes.items()
    pairs = {
        (x, y)
        for x in range(low_a, high_a + 1)
        for y in range(low_b, high_b + 1)
        if entry.has_instance({a: x, b: y})
    }
    assert drawn == dict.fromkeys(pairs, rounds)


def test_instances_have_the_sizes_of_their_split():
    (gripper, blocks, delivery) = (
        list(splits.instances(name, "test")) for name in ("gripper", "blocks", "delivery")
    )
    assert [len(x.goal) for x in gripper] == list(range(30, 130))
    assert [len(x.of_type("")) for x in blocks] == [20 + i % 31 for i in range(100)]
    assert [len(x.of_type("cell")) for x in delivery] == [(10 + i % 16) ** 2 for i in range(100)]
    assert [len(x.goal) for x in delivery][:80] == [6 + i % 5 for i in range(80)]


def test_maze_solutions_take_60_to_70_steps():
    for split in ("train", "validation", "test"):
        lengths = [int(x.name.split("-")[2]) for x in splits.instances("maze", split)]
        assert set(lengths) <= set(range(60, 71))


@pytest.mark.parametrize("name", PLAIN)
def test_no_instance_is_in_two_splits(name):
    seen: dict[object, str] = {}
    for split in ("train", "validation", "test"):
        for instance in splits.instances(name, split):
            key = (instance.objects, instance.init, instance.goal)
            assert seen.setdefault(key, split) == split


@pytest.mark.parametrize("name", LIMITED)
def test_l_variants_drop_large_training_instances_only(name):
    plain = name.removesuffix("-l")
    count = splits.DOMAINS[name].count_reachable_states
    assert count is not None
    for cutoff in (100, 10_000):
        kept = list(splits.instances(name, "train", max_states=cutoff))
        everything = list(splits.instances(plain, "train"))
        assert kept == [x for x in everything if count(x, cutoff) <= cutoff]
        assert 0 < len(kept) < len(everything)
    for split in ("validation", "test"):
        assert list(splits.instances(name, split)) == list(splits.instances(plain, split))


def test_sizes_that_the_default_cutoff_keeps():
    blocks = {len(x.of_type("")) for x in splits.instances("blocks-l", "train")}
    gripper = {len(x.goal) for x in splits.instances("gripper-l", "train")}
    miconic = {len(x.goal) for x in splits.instances("miconic-l", "train")}
    visitall = {len(x.of_type("place")) for x in splits.instances("visitall-l", "train")}
    assert (blocks, gripper, miconic, visitall) == (
        set(range(2, 9)),
        set(range(1, 14)),
        set(range(1, 11)),
        {4, 9, 16},
    )


DIGEST = """
import hashlib
from regoal.domains import splits
total = hashlib.sha256()
for name in splits.DOMAINS:
    for instance in splits.instances(name, "validation", seed=7):
        total.update(instance.to_pddl().encode())
print(total.hexdigest())
"""


def test_text_does_not_depend_on_the_hash_seed():
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "2")
    }
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 64


@pytest.mark.parametrize("name", PLAIN)
def test_written_files_load(name, tmp_path):
    paths = splits.write_split(name, "validation", tmp_path, seed=3)
    expected = [x.to_pddl() for x in splits.instances(name, "validation", seed=3)]
    assert [path.read_text(encoding="utf-8") for path in paths] == expected
    assert paths[0].name == "p001.pddl"
    domain = load_domain(tmp_path / "domain.pddl")
    task = load_task(domain, paths[0])
    assert not task.initial_state.satisfies(task.goal)
    assert task.applicable_actions(task.initial_state)[0] is not DUMMY_ACTION


def test_writing_again_neither_replaces_nor_mixes(tmp_path):
    first = splits.write_split("gripper", "validation", tmp_path)
    assert splits.write_split("gripper", "validation", tmp_path) == first
    with pytest.raises(UsageError, match=r"holds files of another set, e\.g\. p001\.pddl"):
        splits.write_split("gripper-l", "train", tmp_path)
    first[-1].unlink()  # a call that was killed
    assert splits.write_split("gripper", "validation", tmp_path) == first
    first[0].write_text(first[0].read_text() + "\n")
    with pytest.raises(UsageError, match="another set"):
        splits.write_split("gripper", "validation", tmp_path)


def test_unknown_names_list_the_choices():
    with pytest.raises(UsageError, match=r"Unknown domain 'block'. Choose one of: blocks, "):
        splits.instances("block", "train")
    with pytest.raises(UsageError, match=r"no split 'all'. Choose one of: train, validation, test"):
        splits.instances("gripper", "all")
    with pytest.raises(UsageError, match="Unknown domain"):
        splits.domain_pddl("chess")
