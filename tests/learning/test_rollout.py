"""Boltzmann exploration."""

import math

import numpy as np
import pytest
import torch

from planning.dead_end_domains import FLOOR, WAX
from planning.graphs import graph
from regoal.learning.rollout import boltzmann, replayed, rollout
from regoal.learning.trajectory import MISTAKE, Mistake, Trajectory
from regoal.networks.encoder import Encoder
from regoal.networks.relations import relations_of
from regoal.planning.dead_ends import DeadEndsOfTasks
from regoal.planning.matching.library_schema import schema_of


def uniform(encoder):
    """Q-values of zero for every applicable action."""
    return lambda pairs: [torch.zeros(len(encoder.state(state).actions)) for state, _ in pairs]


def explore(tasks, encoder, *, seed=0, horizon=10, q_values=None, temperature=1.0, is_dead=None):
    return rollout(
        tasks,
        q_values or uniform(encoder),
        encoder,
        temperatures=[temperature] * len(tasks),
        horizon=horizon,
        rngs=[np.random.default_rng(seed)] * len(tasks),
        is_dead=is_dead,
    )


def test_boltzmann_by_hand():
    # exp(ln 1), exp(ln 2), exp(ln 5) at T = 1; their squares at T = ½
    q = torch.tensor([0.0, math.log(2), math.log(5)], dtype=torch.float64)
    assert boltzmann(q, 1.0).tolist() == pytest.approx([1 / 8, 2 / 8, 5 / 8])
    assert boltzmann(q, 0.5).tolist() == pytest.approx([1 / 30, 4 / 30, 25 / 30])
    assert boltzmann(q - 1e6, 1.0).tolist() == pytest.approx([1 / 8, 2 / 8, 5 / 8], rel=1e-4)


def test_boltzmann_never_excludes_an_action():
    odds = boltzmann(torch.tensor([0.0, -1e9]), 1e-3)
    assert odds[0] == pytest.approx(1.0)
    assert odds[1] > 0


def test_each_task_has_its_temperature(tasks, encoders):
    # The better of two actions is certain at the low temperature, one of two at the high one.
    task, encoder = tasks["blocks"]["three"], encoders["blocks"]
    q = torch.tensor([0.0, 1.0])
    first = [
        [
            t.actions[0]
            for t in rollout(
                [task, task],
                lambda asked: [q for _ in asked],
                encoder,
                temperatures=[0.01, 100.0],
                horizon=1,
                rngs=[np.random.default_rng(seed)] * 2,
            )
        ]
        for seed in range(60)
    ]
    assert {cold for cold, _ in first} == {1}
    assert 15 <= sum(warm for _, warm in first) <= 45


def test_actions_are_drawn_by_their_odds(tasks, encoders):
    # The first step from a state of three blocks: two actions, with odds 1 and 3.
    task, encoder = tasks["blocks"]["three"], encoders["blocks"]
    assert len(encoder.state(task.initial_state).actions) == 2
    first = [
        explore(
            [task],
            encoder,
            seed=seed,
            horizon=1,
            q_values=lambda _: [torch.tensor([0.0, math.log(3)])],
        )[0].actions
        for seed in range(400)
    ]
    assert 70 <= first.count((0,)) <= 130  # 100 expected, the deviation is 8.7
    assert len(set(first)) == 2


def test_ends_at_the_goal_or_a_dead_end_or_the_horizon(tasks, encoders):
    roads, encoder = tasks["roads"], encoders["roads"]
    left = right = 0
    for seed in range(20):
        (trajectory,) = explore([roads["fork"]], encoder, seed=seed)
        if trajectory.solved:  # a, c, d
            assert len(trajectory) == 2
            left += 1
        else:  # a, b: nothing is applicable
            assert len(trajectory) == 1
            right += 1
    assert left
    assert right
    (trajectory,) = explore([tasks["blocks"]["tower"]], encoders["blocks"], horizon=3)
    assert len(trajectory) == 3


def test_nothing_to_do_at_the_start(tasks, encoders):
    roads = tasks["roads"]
    for problem in ("done", "end"):
        (trajectory,) = explore([roads[problem]], encoders["roads"])
        assert len(trajectory) == 0
        assert trajectory.states == (roads[problem].initial_state,)
    assert explore([], encoders["roads"]) == []


def test_replaying_the_actions_gives_the_states(tasks, encoders):
    task = tasks["ferry"]["two"]
    for seed in range(5):
        (trajectory,) = explore([task], encoders["ferry"], seed=seed, horizon=20)
        for i, action in enumerate(trajectory.actions):
            state = trajectory.states[i]
            after = task.successor(state, task.applicable_actions(state)[action])
            assert after == trajectory.states[i + 1]
        assert not any(s.satisfies(task.goal) for s in trajectory.states[:-1])


@pytest.mark.parametrize("name", ["blocks", "ferry", "odd", "roads"])
def test_visited_states_are_avoided_while_there_is_a_new_one(tasks, encoders, name):
    returned = 0
    for task in tasks[name].values():
        for seed in range(5):
            (trajectory,) = explore([task], encoders[name], seed=seed, horizon=30)
            for i in range(len(trajectory)):
                seen = set(trajectory.states[: i + 1])
                state = trajectory.states[i]
                successors = {task.successor(state, a) for a in task.applicable_actions(state)}
                if successors - seen:
                    assert trajectory.states[i + 1] not in seen
                else:
                    returned += 1
    if name == "roads":
        assert returned  # round the ring, where nothing new is left


def test_a_walk_leaves_a_blind_end_as_it_came(ways):
    # A corridor a - b - c - d with the goal behind a fork at a: once at d, three steps lead back.
    task = ways(["ab", "ba", "bc", "cb", "cd", "dc", "ax", "xy"], "y", "abcdxy")
    encoder = Encoder(relations_of(schema_of(task.domain)))
    lengths = {len(explore([task], encoder, seed=seed, horizon=50)[0]) for seed in range(30)}
    # Straight on, or after all of the corridor and back, with one more look at d perhaps.
    assert len(lengths) > 1
    assert lengths <= {2, 8, 10}


def test_strongly_preferred_old_states_are_avoided_too(tasks, encoders):
    # (put-down x) leads back and is as good as certain, were it not for the visited states.
    task, encoder = tasks["blocks"]["tower"], encoders["blocks"]

    def q_values(pairs):
        return [
            torch.tensor([1e6 * (a.name == "put-down") for a in encoder.state(state).actions])
            for state, _ in pairs
        ]

    (trajectory,) = explore([task], encoder, q_values=q_values, temperature=0.1, horizon=2)
    assert len(set(trajectory.states)) == 3


def test_the_same_stream_gives_the_same_trajectories(tasks, encoders, policy):
    encoder = encoders["blocks"]
    network = policy(encoder.relations)

    def q_values(pairs):
        return network.q_values(encoder.batch(pairs), 3)

    several = [tasks["blocks"]["tower"], tasks["blocks"]["three"], tasks["blocks"]["tower"]]
    runs = [
        [t.actions for t in explore(several, encoder, seed=seed, q_values=q_values)]
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_side_by_side_trajectories_belong_to_their_tasks(tasks, encoders):
    roads = tasks["roads"]
    several = [roads["done"], roads["ring"], roads["end"], roads["fork"]]
    found = explore(several, encoders["roads"], horizon=4)
    for task, trajectory in zip(several, found, strict=True):
        assert trajectory.goal == task.goal
        assert all(state.task is task for state in trajectory.states)
    assert [len(t) for t in found][:3] == [0, 4, 0]


@pytest.fixture
def floor(read_task):
    return read_task(WAX, FLOOR)


@pytest.fixture
def wax_encoder(floor):
    return Encoder(relations_of(schema_of(floor.domain)))


def test_steps_into_dead_ends_are_taken_back(floor, wax_encoder):
    _, alive = graph(floor)
    walks = [
        explore([floor], wax_encoder, seed=seed, horizon=40, is_dead=DeadEndsOfTasks().prove)[0]
        for seed in range(10)
    ]
    assert all(state in alive for walk in walks for state in walk.states)
    assert all(walk.mistakes for walk in walks)
    for walk in walks:
        for step, action, after in walk.mistakes:
            before = walk.states[step]
            assert after == floor.successor(before, wax_encoder.state(before).actions[action])
            assert after not in alive
    careless = [explore([floor], wax_encoder, seed=seed, horizon=40)[0] for seed in range(10)]
    assert any(state not in alive for walk in careless for state in walk.states)
    assert not any(walk.mistakes for walk in careless)


def test_whoever_starts_in_a_dead_end_goes_on(read_task):
    # c1 cannot be waxed: its neighbours are.
    task = read_task(WAX, FLOOR.replace("(dry b1)", "(waxed b1)").replace("(dry c2)", "(waxed c2)"))
    encoder = Encoder(relations_of(schema_of(task.domain)))
    assert not graph(task)[1]
    [walk] = explore([task], encoder, horizon=20, is_dead=DeadEndsOfTasks().prove)
    assert len(walk) == 20


def test_a_trajectory_is_made_again_with_its_mistakes(floor, wax_encoder):
    [walk] = explore([floor], wax_encoder, seed=3, horizon=30, is_dead=DeadEndsOfTasks().prove)
    told = [(mistake.step, mistake.action) for mistake in walk.mistakes]
    assert told
    assert replayed(floor, walk.actions, told, wax_encoder) == walk


def test_a_mistake_made_twice_is_learnt_once(floor):
    start, other = (
        floor.initial_state,
        floor.successor(floor.initial_state, floor.applicable_actions(floor.initial_state)[0]),
    )
    mistakes = (Mistake(0, 1, other), Mistake(2, 1, other), Mistake(2, 2, other))
    walk = Trajectory((start, other, start), (0, 0), floor.goal, mistakes)
    found = list(walk.mistaken_transitions())
    assert [(t.state, t.action, t.next_state) for t in found] == [
        (start, 1, other),
        (start, 2, other),
    ]
    assert all(t.goal == floor.goal and t.mistaken and not t.solved for t in found)
    assert {t.remaining for t in found} == {MISTAKE}


def test_who_makes_no_mistakes_still_learns_what_they_are(floor, wax_encoder):
    _, alive = graph(floor)

    def know_all(pairs):
        return [
            torch.tensor(
                [
                    0.0 if floor.successor(state, action) in alive else -1000.0
                    for action in wax_encoder.state(state).actions
                ]
            )
            for state, _ in pairs
        ]

    walks = [
        explore(
            [floor],
            wax_encoder,
            seed=seed,
            horizon=40,
            q_values=know_all,
            is_dead=DeadEndsOfTasks().prove,
        )[0]
        for seed in range(5)
    ]
    mistakes = [(walk.states, *mistake) for walk in walks for mistake in walk.mistakes]
    assert all(after not in alive for *_, after in mistakes)
    # If a new state follows, no step into a dead end was drawn.
    assert any(states[step + 1] not in states[: step + 1] for states, step, *_ in mistakes)
