"""Greedy execution, with Q-values made by hand and on many problems in one batch."""

import gc
import itertools
import logging
import math
import random
import time
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regoal.domains
import regoal.evaluation.execution
import regoal.evaluation.inputs
from conftest import reachable, walked
from planning.dead_end_domains import FLOOR, POCKET, THREE_THINGS, WAX
from regoal.domains import childsnack, gripper
from regoal.errors import TooWideError, lacks_memory
from regoal.evaluation.attempts import Means
from regoal.evaluation.batching import BYTES_A_NUMBER, Memory
from regoal.evaluation.evaluate import TestSettings, solve
from regoal.evaluation.execution import Execution, Visited, execute
from regoal.networks.encoder import Encoder
from regoal.networks.parameters import Layout
from regoal.networks.relations import relations_of
from regoal.planning.dead_ends import DeadEnds
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.plans import validate_plan
from regoal.planning.task import Task
from regoal.records.results import Outcome
from regoal.system import cancellation as stopping


class Preferring:
    """Stands for a network that prefers actions in the order given by their texts."""

    layout = Layout((), 16)

    def __init__(self, encoder, *order, room=math.inf):
        self.encoder = encoder
        self.room = room
        self.order = order
        self.batches = []
        self.task_of = {}

    def input(self, state, goal):
        x, wanted = self.encoder.input(state, goal)
        self.task_of[id(x)] = state.task
        return x, wanted

    def input_over(self, representatives, goal):
        return self.encoder.input_over(representatives, goal)

    def forget(self, task):
        self.encoder.forget(task)

    def join(self, inputs):
        self.batches.append(len(inputs))
        return [x for x, _ in inputs]

    def q_values(self, batch, layers):
        if len(batch) > self.room:
            raise self.error
        return [
            torch.tensor(
                [
                    -float(self.order.index(str(a)) if str(a) in self.order else len(self.order))
                    for a in x.actions
                ]
            )
            for x in batch
        ]


def run(task, encoder, *order, **options):
    network = Preferring(encoder, *order)
    (execution,) = execute(network, network, [task], layers=1, **options)
    return execution


def plan(execution):
    return [str(action) for action in execution.actions]


def test_the_best_action_is_taken(tasks, encoders):
    task = tasks["roads"]["fork"]
    execution = run(task, encoders["roads"], "(go a c)", "(go a b)")
    assert execution.outcome is Outcome.SOLVED
    assert plan(execution) == ["(go a c)", "(go c d)"]
    assert execution.state.satisfies(task.goal)
    assert execution.seconds > 0


def test_a_dead_end_ends_the_execution(tasks, encoders):
    execution = run(tasks["roads"]["fork"], encoders["roads"], "(go a b)")
    assert execution.outcome is Outcome.DEAD_END
    assert plan(execution) == ["(go a b)"]
    at_once = run(tasks["roads"]["end"], encoders["roads"])
    assert at_once.outcome is Outcome.DEAD_END
    assert at_once.actions == []


def test_the_best_action_into_a_new_state(tasks, encoders):
    # From c, both roads lead to visited states, however high their Q-values are.
    best = ["(go a b)", "(go b c)", "(go c b)", "(go c a)"]
    execution = run(tasks["roads"]["ring"], encoders["roads"], *best)
    assert plan(execution) == ["(go a b)", "(go b c)"]
    assert execution.outcome is Outcome.DEAD_END
    back_first = ["(unstack a b)", "(stack a b)", "(put-down a)", "(pick-up b)", "(stack b c)"]
    execution = run(tasks["blocks"]["three"], encoders["blocks"], *back_first)
    assert plan(execution) == ["(unstack a b)", "(put-down a)", "(pick-up b)", "(stack b c)"]
    assert execution.outcome is Outcome.SOLVED


def test_without_a_new_state_the_least_visited_one_is_next(tasks, encoders):
    # From c, both roads lead back. It goes to a, visited once, by the order of the actions.
    task, best = tasks["roads"]["ring"], ["(go a b)", "(go b c)", "(go c b)", "(go c a)"]
    execution = run(task, encoders["roads"], *best, visited=Visited.LAST, max_steps=5)
    assert execution.outcome is Outcome.STEP_LIMIT
    assert plan(execution)[:3] == best[:3]
    assert execution.returns == 3
    assert max(execution.visits.values()) == 2
    assert sum(execution.visits.values()) == 6


def test_it_ends_when_all_states_have_been_visited(tasks, encoders):
    task, best = tasks["roads"]["ring"], ["(go a b)", "(go b c)", "(go c b)", "(go c a)"]
    execution = run(task, encoders["roads"], *best, visited=Visited.LAST)
    assert execution.outcome is Outcome.DEAD_END
    assert execution.closed == set(execution.visits)
    assert len(execution.actions) < 12


# Whoever stands on b1 and waxes a1 has to wax b1 from c1, and c1 from b1.
ASTRAY = ["(step a1 b1)", "(wax-behind b1 a1)"]


@pytest.fixture
def floor(read_task):
    """A floor to wax, and a network that prefers a way into a dead end that only pairs show."""
    task = read_task(WAX, FLOOR)
    return task, Preferring(Encoder(relations_of(schema_of(task.domain))), *ASTRAY)


def test_the_best_action_is_not_taken_if_it_leads_into_a_dead_end(floor):
    task, network = floor
    state = walked(task, ASTRAY)[-1]
    tests = DeadEnds(task)
    assert tests.relaxation.reaches(state, task.goal)
    assert tests.has(state)
    execution = Execution(task, Visited.LAST, dead_ends=tests, is_careful=True)
    while execution.outcome is None:
        execution.prepare(network, lambda: False)
        (q,) = network.q_values([execution.input(network)[0]], 1)
        execution.step(q.numpy(), 100)
        assert not tests.has(execution.state)
    assert execution.outcome is Outcome.SOLVED
    assert plan(execution)[0] == ASTRAY[0]
    assert execution.taken_back == 0


@pytest.mark.parametrize("steps", [2, 3, 100])
def test_a_dead_end_is_left_once_it_is_noticed(floor, monkeypatch, steps):
    # There are fewer than 100 states behind it, so it is noticed sooner if all are visited.
    monkeypatch.setattr(regoal.evaluation.execution, "CHECKED_FIRST", steps)
    task, network = floor
    astray = run(task, network.encoder, *ASTRAY, visited=Visited.LAST)
    assert plan(astray)[:2] == ASTRAY
    assert astray.outcome is not Outcome.SOLVED
    tests = DeadEnds(task)
    found = run(task, network.encoder, *ASTRAY, visited=Visited.LAST, dead_ends={task: tests})
    assert found.outcome is Outcome.SOLVED
    assert plan(found)[0] == ASTRAY[0]
    assert validate_plan(task, found.actions).valid
    assert not any(tests.has(state) for state in found.visits)
    assert set(found.visits) == set(walked(task, plan(found)))
    assert found.taken_back == min(steps, len(astray.actions)) - 1
    assert found.steps == len(found.actions) + found.taken_back
    limited = run(
        task,
        network,
        *ASTRAY,
        visited=Visited.LAST,
        dead_ends={task: tests},
        max_steps=found.steps - 1,
    )
    assert (limited.outcome, limited.steps) == (Outcome.STEP_LIMIT, found.steps - 1)


def test_if_the_first_state_is_a_dead_end_there_is_no_plan(read_task, monkeypatch):
    monkeypatch.setattr(regoal.evaluation.execution, "CHECKED_FIRST", 1)
    task = read_task(WAX, FLOOR.replace("(dry c1)", ""))
    encoder = Encoder(relations_of(schema_of(task.domain)))
    ended = run(task, encoder, visited=Visited.LAST, dead_ends={task: DeadEnds(task)})
    assert (ended.outcome, ended.steps, ended.actions) == (Outcome.DEAD_END, 1, [])
    assert ended.has_seen_all
    assert ended.state == task.initial_state


def test_only_with_search_dead_ends_are_left(floor):
    task, network = floor
    policy = SimpleNamespace(network=network)
    settings = TestSettings(layers=1)
    assert solve(policy, network, task, replace(settings, search=True)).ended.found_by == "greedy"
    assert solve(policy, network, task, settings).outcome is not Outcome.SOLVED


def test_who_has_visited_all_but_dead_ends_has_a_proof(read_task):
    task = read_task(POCKET, THREE_THINGS)
    encoder = Encoder(relations_of(schema_of(task.domain)))
    first, tests = "(buy s1 c1 x)", DeadEnds(task)
    bought = walked(task, [first])[-1]
    assert tests.relaxation.reaches(bought, task.goal)
    execution = run(task, encoder, first, visited=Visited.LAST, dead_ends={task: tests})
    assert execution.outcome is Outcome.DEAD_END
    assert execution.has_seen_all
    assert len(execution.visits) == 12  # the stalls, with both coins, each in a pocket or not
    astray = run(task, encoder, first, visited=Visited.LAST)
    assert astray.actions[0].name == "buy"
    assert not astray.has_seen_all
    assert not any(state.satisfies(task.goal) for state in reachable(task))
    network = Preferring(encoder, first)
    [attempt] = Means(network=network, encoder=network, layers=1).attempt([task])
    assert (attempt.outcome, attempt.expansions) == (Outcome.UNSOLVABLE, 0)
    policy = SimpleNamespace(network=network)
    solution = solve(policy, network, task, TestSettings(layers=1, search=True))
    assert solution.refusal.startswith("There is no plan")


def test_testing_for_dead_ends_ends_in_time(floor):
    task, network = floor
    tests = DeadEnds(task)
    execution = Execution(task, Visited.LAST, time_limit_s=100.0, dead_ends=tests, is_careful=True)
    execution.prepare(network, lambda: False)
    execution.started -= 200.0
    execution.step_in_time(np.zeros(3, np.float32), 10, lambda: False)
    assert (execution.outcome, execution.actions) == (Outcome.TIME_LIMIT, [])


def two_way(roads):
    """Add to every road the road back."""
    return [*roads, *(road[::-1] for road in roads)]


def test_a_walk_that_has_lost_its_way_goes_back(ways):
    # It first walks into the dead end a - b - c, visits c twice, goes back, and on to the goal.
    task = ways(two_way(["ab", "bc", "ag"]), "g", "abcdefg")
    encoder = Encoder(relations_of(schema_of(task.domain)))
    ended = run(task, encoder, "(go a b)", "(go b c)")
    assert (ended.outcome, ended.returns) == (Outcome.DEAD_END, 0)
    back = run(task, encoder, "(go a b)", "(go b c)", visited=Visited.LAST)
    assert back.outcome is Outcome.SOLVED
    way = ["(go a b)", *["(go b c)", "(go c b)"] * 2, "(go b a)", "(go a g)"]
    assert (plan(back), back.returns) == (way, 4)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_if_all_roads_lead_back_it_solves_what_can_be_solved(ways, data):
    pairs = [x + y for x, y in itertools.combinations("abcdef", 2)]
    roads = data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=9))
    task = ways(two_way(roads), "f", "abcdef")
    reached, edge = set(), {"a"}
    while edge:
        reached |= edge
        edge = {y for x, y in two_way(roads) if x in edge} - reached
    order = data.draw(
        st.permutations([f"(go {x} {y})" for x, y in itertools.permutations("abcdef", 2)])
    )
    found = run(task, Encoder(relations_of(schema_of(task.domain))), *order, visited=Visited.LAST)
    assert found.outcome is (Outcome.SOLVED if "f" in reached else Outcome.DEAD_END)
    assert found.outcome is Outcome.SOLVED or found.closed == set(found.visits)


def test_without_actions_it_ends_if_returns_are_allowed(tasks, encoders):
    execution = run(tasks["roads"]["fork"], encoders["roads"], "(go a b)", visited=Visited.LAST)
    assert (execution.outcome, plan(execution)) == (Outcome.DEAD_END, ["(go a b)"])


def test_if_visited_states_are_allowed_it_ends_on_a_cycle(tasks, encoders):
    order = ["(unstack a b)", "(stack a b)"]
    execution = run(tasks["blocks"]["three"], encoders["blocks"], *order, visited=Visited.ALLOWED)
    assert plan(execution) == ["(unstack a b)", "(stack a b)"]
    assert execution.outcome is Outcome.DEAD_END
    assert execution.state == tasks["blocks"]["three"].initial_state


def test_if_visited_states_are_allowed_a_dead_end_ends_it_too(tasks, encoders):
    execution = run(tasks["roads"]["end"], encoders["roads"], visited=Visited.ALLOWED)
    assert (execution.outcome, execution.actions) == (Outcome.DEAD_END, [])


def test_ties_fall_in_the_order_of_the_actions(tasks, encoders):
    execution = run(tasks["blocks"]["tower"], encoders["blocks"], max_steps=3)
    assert plan(execution) == ["(pick-up b1)", "(stack b1 b2)", "(pick-up b3)"]


@pytest.mark.parametrize(("limit", "outcome"), [(3, Outcome.STEP_LIMIT), (4, Outcome.SOLVED)])
def test_the_step_limit(tasks, encoders, limit, outcome):
    order = ["(unstack a b)", "(put-down a)", "(pick-up b)", "(stack b c)"]
    execution = run(tasks["blocks"]["three"], encoders["blocks"], *order, max_steps=limit)
    assert plan(execution) == order[:limit]
    assert execution.outcome is outcome


def test_a_goal_that_holds_at_the_start(tasks, encoders):
    task = tasks["roads"]["done"]
    execution = run(task, encoders["roads"])
    assert (execution.outcome, execution.actions) == (Outcome.SOLVED, [])
    assert Execution(task, Visited.EXCLUDED).outcome is Outcome.SOLVED


def test_no_problems(encoders):
    network = Preferring(encoders["roads"])
    assert list(execute(network, network, [], layers=1)) == []


@pytest.mark.parametrize("batch_bytes", [1, 60_000, 10**8])
def test_a_batch_gives_the_plans_of_one_at_a_time(tasks, relations, policy, batch_bytes):
    for name in ("blocks", "ferry", "odd", "roads"):
        problems = list(tasks[name].values()) * 2
        network = policy(relations[name], 32, seed=2)

        def plans(of, room, name=name, network=network):
            encoder = Encoder(relations[name])
            ended = execute(network, encoder, of, layers=6, max_steps=25, batch_bytes=room)
            return [(x.task, x.outcome, plan(x)) for x in ended]

        alone = {task: plans([task], 10**8)[0][1:] for task in problems}
        together = plans(problems, batch_bytes)
        assert len(together) == len(problems)
        for task, *found in together:
            assert tuple(found) == alone[task]


def test_a_finished_problem_makes_room_for_the_next(tasks, encoders):
    encoder = encoders["roads"]
    roads = tasks["roads"]
    problems = [roads["fork"], roads["done"], roads["ring"], roads["end"]]
    for batch_bytes, batches in [(1, [1] * 5), (10**8, [3, 2])]:
        network = Preferring(encoder, "(go a c)")
        ended = execute(network, network, problems, layers=1, batch_bytes=batch_bytes)
        outcomes = {x.task: x.outcome for x in ended}
        assert set(outcomes) == set(problems)
        assert outcomes[roads["fork"]] is Outcome.SOLVED
        assert network.batches[: len(batches)] == batches


def test_stop_leaves_the_unfinished_out(tasks, encoders):
    roads = tasks["roads"]
    network = Preferring(encoders["roads"], "(go a c)")
    asked = []

    def stop():
        asked.append(len(network.batches))
        return len(network.batches) == 1

    problems = [roads["done"], roads["end"], roads["fork"], roads["ring"]]
    ended = list(execute(network, network, problems, layers=1, stop=stop))
    assert [x.task for x in ended] == [roads["done"], roads["end"]]
    assert set(asked) == {0, 1}


def test_plans_do_not_depend_on_what_is_remembered(tasks, relations, policy):
    network = policy(relations["blocks"], 32)
    problems = list(tasks["blocks"].values())
    runs = [
        [
            plan(x)
            for x in execute(
                network, Encoder(relations["blocks"], remember=n), problems, layers=3, max_steps=20
            )
        ]
        for n in (0, 20_000_000)
    ]
    assert runs[0] == runs[1]


# Memory

OUT_OF_MEMORY = [
    (MemoryError, ""),
    (
        RuntimeError,
        "[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory",
    ),
    (torch.OutOfMemoryError, "CUDA out of memory. Tried to allocate 2.00 GiB."),
]
"""Each test makes its error, because a kept error would keep all that its traceback names."""


@pytest.mark.parametrize(("kind", "words"), OUT_OF_MEMORY, ids=["python", "cpu", "cuda"])
def test_a_batch_that_does_not_fit_is_halved(tasks, encoders, kind, words, caplog):
    problems = [tasks["blocks"]["three"]] * 5
    order = ["(unstack a b)", "(put-down a)", "(pick-up b)", "(stack b c)"]
    network = Preferring(encoders["blocks"], *order, room=2)
    network.error = kind(words)
    with caplog.at_level(logging.WARNING):
        ended = list(execute(network, network, problems, layers=1))
    assert [plan(x) for x in ended] == [order] * 5
    assert [record.message for record in caplog.records] == [
        "memory ran out: going on with smaller batches, which takes longer"
    ]
    assert network.batches == [5, *[2, 2, 1] * 4]


def test_a_problem_that_does_not_fit_alone_ends_and_the_others_go_on(tasks, encoders):
    blocks = tasks["blocks"]
    order = ["(unstack a b)", "(put-down a)", "(pick-up b)", "(stack b c)"]
    network = Preferring(encoders["blocks"], *order)
    network.error, whole = MemoryError(), network.q_values

    def q_values(batch, layers):
        tasks_met = [network.task_of[id(x)] for x in batch]
        network.room = 0 if blocks["tower"] in tasks_met else math.inf
        return whole(batch, layers)

    network.q_values = q_values
    ended = execute(network, network, [blocks["three"], blocks["tower"]], layers=1)
    assert {x.task: x.outcome for x in ended} == {
        blocks["tower"]: Outcome.MEMORY_LIMIT,
        blocks["three"]: Outcome.SOLVED,
    }


def test_other_errors_are_no_lack_of_memory(tasks, encoders):
    network = Preferring(encoders["blocks"], room=0)
    network.error = RuntimeError("shapes differ")
    with pytest.raises(RuntimeError, match="shapes differ"):
        list(execute(network, network, [tasks["blocks"]["three"]] * 2, layers=1))
    assert not lacks_memory(ValueError("out of memory"))


def test_the_encoder_forgets_problems_that_have_ended(tasks, relations, policy):
    encoder, network = Encoder(relations["blocks"]), policy(relations["blocks"])
    problems = [tasks["blocks"]["tower"].renewed(), tasks["blocks"]["three"].renewed()]
    left = [weakref.ref(problem) for problem in problems]
    assert sum(1 for _ in execute(network, encoder, problems, layers=1, max_steps=3)) == 2
    problems.clear()
    gc.collect()
    assert [problem() for problem in left] == [None, None]


def test_visited_states_keep_no_lists_of_atoms(tasks, relations, policy):
    (ended,) = execute(
        policy(relations["blocks"]), Encoder(relations["blocks"]), [tasks["blocks"]["tower"]],
        layers=2, max_steps=5,
    )  # fmt: skip
    left = [state for state in ended.visits if state is not ended.state]
    assert left
    assert not any(vars(state) for state in left)
    assert ended.task.initial_state.fluent_atoms


def test_large_problems_come_first_and_equal_ones_in_their_order(tasks, encoders):
    blocks = tasks["blocks"]
    network = Preferring(encoders["blocks"])
    met = []
    whole = network.join

    def join(inputs):
        met.extend(network.task_of[id(x)] for x, _ in inputs)
        return whole(inputs)

    network.join = join
    again = blocks["three"].renewed()
    problems = [blocks["three"], blocks["tower"], again]
    list(execute(network, network, problems, layers=1, max_steps=1, batch_bytes=1))
    assert met == [blocks["tower"], blocks["three"], again]


def test_states_that_grow_out_of_the_budget_are_split(tasks, relations, policy):
    # The first states of both problems fit into one batch, but some later ones do not.
    encoder, network = Encoder(relations["blocks"]), policy(relations["blocks"], 32, seed=2)
    problems = [tasks["blocks"]["tower"]] * 2
    memory = Memory(encoder, 32, 0)
    room = 2 * memory.estimate(Execution(problems[0], Visited.EXCLUDED))
    batches = []

    class Watched:
        layout = network.layout

        def q_values(self, batch, layers):
            rows = batch.nodes + len(batch.args)
            batches.append((len(batch.action_counts), rows * BYTES_A_NUMBER * 32))
            return network.q_values(batch, layers)

    list(execute(Watched(), encoder, problems, layers=3, max_steps=8, batch_bytes=room))
    assert batches[0] == (2, room)
    assert all(count == 1 or used <= room for count, used in batches)


# Interchangeable objects


class BySchema:
    """Stands for a network with Q-values by step and name of action, so many are equal."""

    layout = Layout((), 16)

    def __init__(self, encoder, seed):
        self.encoder, self.seed = encoder, seed
        self.nodes = []

    def input(self, state, goal):
        return self.encoder.input(state, goal)

    def input_over(self, representatives, goal):
        return self.encoder.input_over(representatives, goal)

    def forget(self, task):
        self.encoder.forget(task)

    def join(self, inputs):
        self.nodes += [x.nodes for x, _ in inputs]
        return [x for x, _ in inputs]

    def q_values(self, batch, layers):
        return [torch.tensor([self._value(a.name) for a in x.actions]) for x in batch]

    def _value(self, name):
        return random.Random(f"{name} {self.seed} {len(self.nodes)}").choice((-1.0, -2.0, -3.0))


@pytest.fixture(scope="module")
def built_in(tmp_path_factory):
    """Make small problems with many interchangeable objects, by built-in domain."""
    instances = {
        "gripper": gripper.generate(random.Random(1), balls=6),
        "childsnack": childsnack.generate(random.Random(2), children=4, gluten_ratio=0.5),
    }
    tasks = {}
    for name, instance in instances.items():
        path = tmp_path_factory.mktemp(name) / "p.pddl"
        path.write_text(instance.to_pddl(), encoding="utf-8")
        domain = load_domain(Path(regoal.domains.__path__[0], "pddl", f"{name}.pddl"))
        tasks[name] = load_task(domain, path)
    return tasks


@pytest.mark.parametrize("name", ["gripper", "childsnack"])
@pytest.mark.parametrize("visited", Visited)
def test_representatives_give_the_same_plans(built_in, monkeypatch, name, visited):
    task = built_in[name]
    encoder = Encoder(relations_of(schema_of(task.domain)))
    lengths = set()
    for seed in range(12):
        found, nodes = {}, {}
        for share in (0.1, 2):
            monkeypatch.setattr(regoal.evaluation.inputs, "LEAST_DROPPED", share)
            network = BySchema(encoder, seed)
            (x,) = execute(network, network, [task], layers=1, max_steps=40, visited=visited)
            found[share], nodes[share] = (x.outcome, plan(x)), network.nodes
        assert found[0.1] == found[2]
        assert nodes[0.1][0] < nodes[2][0] / 2
        lengths.add(len(found[2][1]))
    assert len(lengths) > 1 or visited is Visited.LAST  # `LAST` may go on to the step limit


@pytest.mark.parametrize("name", ["gripper", "childsnack"])
def test_representatives_give_plans_of_equal_length(built_in, monkeypatch, policy, name):
    task = built_in[name]
    relations = relations_of(schema_of(task.domain))
    encoder = Encoder(relations)
    for seed in range(6):
        network = policy(relations, 16, seed=seed).double()
        found = {}
        for share in (0.1, 0.1, 2):
            monkeypatch.setattr(regoal.evaluation.inputs, "LEAST_DROPPED", share)
            (x,) = execute(network, encoder, [task], layers=5, max_steps=40)
            found.setdefault(share, []).append((x.outcome, plan(x)))
        first, again = found[0.1]
        assert first == again
        ((outcome, steps),) = found[2]
        assert (outcome, len(steps)) == (first[0], len(first[1]))


def test_a_state_that_is_too_wide_ends_its_problem_alone(tasks, encoders, monkeypatch):
    real, wide = Task.applicable_actions, tasks["roads"]["ring"]

    def applicable_actions(self, state):
        if self is wide:
            raise TooWideError("too many actions")
        return real(self, state)

    monkeypatch.setattr(Task, "applicable_actions", applicable_actions)
    encoder = encoders["roads"]
    network = Preferring(encoder, "(go a c)")
    found = list(execute(network, network, [wide, tasks["roads"]["fork"]], layers=1))
    assert [(x.task, x.outcome, str(x.fault)) for x in found] == [
        (wide, Outcome.MEMORY_LIMIT, "too many actions"),
        (tasks["roads"]["fork"], Outcome.SOLVED, "None"),
    ]


@pytest.mark.parametrize("ends", [True, False])
def test_the_time_limit_and_a_stop_hold_while_actions_are_listed(
    tasks, encoders, monkeypatch, ends
):
    real, slow = Task.applicable_actions, tasks["roads"]["ring"]
    stopped = []

    def applicable_actions(self, state):
        if self is slow:
            if not ends:
                stopped.append(True)
            for _ in range(100):
                stopping.check()
                time.sleep(0.05)
        return real(self, state)

    monkeypatch.setattr(Task, "applicable_actions", applicable_actions)
    network = Preferring(encoders["roads"], "(go a c)")
    found = list(
        execute(
            network,
            network,
            [slow, tasks["roads"]["fork"]],
            layers=1,
            time_limit_s=0.2,
            stop=lambda: bool(stopped),
        )
    )
    assert [x.outcome for x in found] == ([Outcome.TIME_LIMIT, Outcome.SOLVED] if ends else [])


def test_noise_changes_choices_and_is_the_same_in_every_run(tasks, encoders):
    # Values lie 1 apart: noise of 0.01 changes no choice, noise of 100 nearly all.
    task = tasks["blocks"]["tower"]
    best = ["(pick-up b3)", "(stack b3 b4)", "(pick-up b2)", "(stack b2 b3)", "(pick-up b1)"]

    def choices(noise):
        return plan(run(task, encoders["blocks"], *best, max_steps=5, noise=noise))

    assert choices(0.01) == choices(0.0) == best
    assert choices(100.0) == choices(100.0) != best
