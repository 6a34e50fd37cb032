"""Instances of every domain are readable, well-formed, solvable, and as documented."""

import os
from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    splits,
    visitall,
)
from regoal.domains.instance import Instance
from regoal.planning.load import load_domain, load_task

SMALL = {
    "blocks": (blocks.generate, {"blocks": (2, 5)}),
    "blocks-tower": (
        lambda rng, blocks_: blocks.generate(rng, blocks=blocks_, single_tower_goal=True),
        {"blocks_": (2, 5)},
    ),
    "childsnack": (
        lambda rng, children: childsnack.generate(rng, children=children, gluten_ratio=0.5),
        {"children": (1, 3)},
    ),
    "childsnack-af": (childsnack.generate, {"children": (1, 3)}),
    "delivery": (delivery.generate, {"side": (2, 3), "packages": (1, 3)}),
    "gripper": (gripper.generate, {"balls": (1, 6)}),
    "hiking": (hiking.generate, {"couples": (1, 1), "locations": (2, 4)}),
    "miconic": (miconic.generate, {"people": (1, 4), "floors": (2, 5)}),
    "reward": (reward.generate, {"side": (2, 5), "rewards": (1, 3)}),
    "spanner": (
        lambda rng, nuts: spanner.generate(rng, nuts=nuts, longest_path=4, spare_spanners=1),
        {"nuts": (1, 3)},
    ),
    "visitall": (visitall.generate, {"side": (2, 3)}),
    "maze": (
        lambda rng, side: maze.generate(rng, side=side, nearest=2, farthest=side * side // 2),
        {"side": (3, 6)},
    ),
}
COUNTED = {
    "blocks": blocks.count_reachable_states,
    "gripper": gripper.count_reachable_states,
    "miconic": miconic.count_reachable_states,
    "reward": reward.count_reachable_states,
    "visitall": visitall.count_reachable_states,
}
MOST_STATES = 3000
EXAMPLES = int(os.environ.get("DOMAIN_EXAMPLES", "10"))
"""Small instances of each domain that breadth-first search must solve; 100 were solved once
(docs/reference/domains.md)."""


def domain_of(family: str) -> str:
    return family.removesuffix("-tower")


@st.composite
def small_instances(draw, family: str) -> tuple[Instance, Instance]:
    """Draw one small instance, generated twice."""
    generate, ranges = SMALL[family]
    sizes = {name: draw(st.integers(*bounds), label=name) for name, bounds in ranges.items()}
    seed = draw(st.integers(0, 10**6), label="seed")
    return generate(Random(seed), **sizes), generate(Random(seed), **sizes)


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Reads an instance of a domain from a file."""
    folder = tmp_path_factory.mktemp("domains")
    domains = {}

    def load_instance(domain: str, instance: Instance):
        if domain not in domains:
            path = folder / f"{domain}.pddl"
            path.write_text(splits.domain_pddl(domain), encoding="utf-8")
            domains[domain] = load_domain(path)
        problem = folder / "problem.pddl"
        problem.write_text(instance.to_pddl(), encoding="utf-8")
        return load_task(domains[domain], problem)

    return load_instance


def states_by_distance(task, most: int):
    """Yield reachable states with their distance from the initial state, nearest first."""
    distance = {task.initial_state: 0}
    queue = [task.initial_state]
    for state in queue:
        yield state, distance[state]
        if len(queue) > most:
            return
        for action in task.applicable_actions(state):
            successor = task.successor(state, action)
            if successor not in distance:
                distance[successor] = distance[state] + 1
                queue.append(successor)


def shortest_plan(task) -> int:
    found = states_by_distance(task, 50_000)
    return next(steps for state, steps in found if state.satisfies(task.goal))


@pytest.mark.parametrize("family", SMALL)
def test_small_instances_load_and_have_a_plan(family, load):
    @settings(deadline=None, max_examples=EXAMPLES)
    @given(small_instances(family))
    def check(twins):
        instance, twin = twins
        assert instance == twin
        task = load(domain_of(family), instance)
        assert set(task.objects) >= {name for _, names in instance.objects for name in names}
        assert shortest_plan(task) > 0

    check()


@pytest.mark.parametrize("family", COUNTED)
def test_reachable_states_are_counted_exactly(family, load):
    @settings(deadline=None, max_examples=6)
    @given(small_instances(family))
    def check(twins):
        count = COUNTED[family](twins[0], MOST_STATES)
        if count <= MOST_STATES:
            found = states_by_distance(load(family, twins[0]), MOST_STATES)
            assert sum(1 for _ in found) == count

    check()


@pytest.mark.parametrize("family", SMALL)
def test_instances_are_well_formed(family):
    @settings(deadline=None, max_examples=20)
    @given(small_instances(family))
    def check(twins):
        instance = twins[0]
        names = Counter(name for _, names in instance.objects for name in names)
        assert set(names.values()) == {1}
        known = {*names, "kitchen"}
        assert all(known.issuperset(atom[1:]) for atom in (*instance.init, *instance.goal))
        assert len(set(instance.init)) == len(instance.init)
        assert len(set(instance.goal)) == len(instance.goal)
        assert not set(instance.goal) <= set(instance.init)

    check()


@pytest.mark.parametrize("name", ["blocks", "delivery", "reward", "visitall", "maze", "miconic"])
def test_another_seed_gives_another_text(name):
    first, second = (
        [x.to_pddl() for x in splits.instances(name, "validation", seed)] for seed in (0, 1)
    )
    assert first != second


@pytest.mark.parametrize(
    ("generate", "sizes", "message"),
    [
        (childsnack.generate, {"children": 0}, "children must be at least 1, got 0"),
        (delivery.generate, {"side": 1, "packages": 1}, "side must be at least 2"),
        (delivery.generate, {"side": 2, "packages": 0}, "packages must be at least 1"),
        (gripper.generate, {"balls": 0}, "balls must be at least 1"),
        (hiking.generate, {"couples": 1, "locations": 1}, "locations must be at least 2"),
        (miconic.generate, {"people": 1, "floors": 1}, "floors must be at least 2"),
        (spanner.generate, {"nuts": 0}, "nuts must be at least 1"),
        (visitall.generate, {"side": 1}, "side must be at least 2"),
        (visitall.generate, {"side": 2, "goal_ratio": 0.0}, "goal_ratio must lie in"),
        (maze.generate, {"side": 3, "nearest": 5, "farthest": 4}, "no distance lies from 5 to 4"),
    ],
)
def test_impossible_sizes_are_refused(generate, sizes, message):
    with pytest.raises(ValueError, match=message):
        generate(Random(0), **sizes)


def atoms(instance: Instance, predicate: str) -> list[tuple[str, ...]]:
    return [atom[1:] for atom in instance.init if atom[0] == predicate]


def test_childsnack_has_exactly_what_it_needs():
    instance = childsnack.generate(Random(1), children=13, gluten_ratio=0.4)
    for kind in ("no_gluten_bread", "no_gluten_content", "allergic_gluten"):
        assert len(atoms(instance, kind)) == 5
    assert len(atoms(instance, "not_allergic_gluten")) == 8
    assert len(atoms(instance, "notexist")) == 13
    assert instance.of_type("tray") == ("tray1",)
    assert {place for _, place in atoms(instance, "waiting")} == set(childsnack.TABLES)


def test_delivery_has_one_target_and_one_truck():
    instance = delivery.generate(Random(2), side=5, packages=4)
    assert len({target for _, _, target in instance.goal}) == 1
    assert instance.of_type("truck") == ("t1",)
    assert len(instance.of_type("cell")) == 25
    assert len(atoms(instance, "adjacent")) == 2 * 2 * 5 * 4


def hiking_plan(instance: Instance) -> list[tuple[str, ...]]:
    """The plan that the generator's docstring describes."""
    (driver, other), (car, spare) = instance.of_type("person")[:2], instance.of_type("car")[:2]
    tent, couples = instance.of_type("tent")[0], atoms(instance, "partners")
    plan = []
    down = (tent,) in atoms(instance, "down")
    for here, there in atoms(instance, "next"):
        plan += [] if down else [("put_down", driver, here, tent)]
        plan += [("drive_tent", driver, here, there, car, tent), ("put_up", driver, there, tent)]
        plan += [("drive", other, here, there, spare)]
        plan += [("drive_passenger", driver, there, here, car, other)]
        plan += [("walk_together", tent, there, x, here, y, couple) for couple, x, y in couples]
        plan += [("drive_passenger", driver, there, here, spare, other)]
        plan += [("drive", driver, here, there, car), ("drive", other, here, there, spare)]
        down = False
    return plan


@pytest.mark.parametrize(("couples", "locations"), [(1, 2), (2, 3), (3, 5), (6, 4)])
def test_hiking_has_a_plan_with_two_cars(couples, locations, load):
    for seed in range(5):
        instance = hiking.generate(Random(seed), couples=couples, locations=locations)
        task = load("hiking", instance)
        state = task.initial_state
        for step in hiking_plan(instance):
            (action,) = (a for a in task.applicable_actions(state) if (a.name, *a.objects) == step)
            state = task.successor(state, action)
        assert state.satisfies(task.goal)


def test_hiking_has_a_tent_a_couple_and_two_cars():
    instance = hiking.generate(Random(3), couples=4, locations=3)
    assert [len(names) for _, names in instance.objects] == [4, 8, 4, 2, 3]
    assert len(atoms(instance, "up")) + len(atoms(instance, "down")) == 4
    assert atoms(instance, "next") == [("place0", "place1"), ("place1", "place2")]


def test_miconic_takes_nobody_to_the_floor_of_origin():
    instance = miconic.generate(Random(4), people=30, floors=3)
    destination = dict(atoms(instance, "destin"))
    assert all(destination[person] != floor for person, floor in atoms(instance, "origin"))
    assert atoms(instance, "lift-at") == [("f0",)]
    assert len(atoms(instance, "above")) == 3


def test_reward_starts_in_a_corner_with_few_blocked_cells():
    for seed in range(20):
        instance = reward.generate(Random(seed), side=6, rewards=4)
        unblocked = {name for (name,) in atoms(instance, "unblocked")}
        assert 36 - 5 <= len(unblocked) <= 36
        assert atoms(instance, "at") == [("c_0_0",)]
        assert {cell for _, cell in instance.goal} <= unblocked - {"c_0_0"}
        assert len(instance.goal) == 4


def test_spanner_has_three_spanners_to_spare_on_a_one_way_path():
    instances = [spanner.generate(Random(seed), nuts=5) for seed in range(200)]
    assert all(len(instance.of_type("spanner")) == 8 for instance in instances)
    lengths = {len(instance.of_type("location")) - 2 for instance in instances}
    assert min(lengths) == 1
    assert max(lengths) == 40
    path = instances[0].of_type("location")
    assert atoms(instances[0], "link") == list(pairwise(path))


def test_visitall_marks_half_of_the_cells():
    goals = [len(visitall.generate(Random(seed), side=20).goal) for seed in range(50)]
    assert sum(goals) / len(goals) == pytest.approx(200, abs=8)
    assert len(visitall.generate(Random(0), side=5, goal_ratio=1.0).goal) == 25
