"""Hindsight goals on the paper's example, and the loop that cuts trajectories into parts."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.dead_end_domains import FLOOR, WAX
from regoal.learning.hindsight import (
    LiftedGoals,
    have_dead_ends,
    hindsight_goals,
    into_dead_end,
    other_transitions,
    propositional_goal,
    relabel,
    state_goal,
)
from regoal.learning.trajectory import Trajectory
from regoal.planning.dead_ends import DeadEnds, DeadEndsOfTasks
from regoal.planning.goals import Atom, Goal
from regoal.planning.load import load_domain, load_task

B1_B2, B2_B3, B3_B4 = (Atom("on", pair) for pair in [("b1", "b2"), ("b2", "b3"), ("b3", "b4")])


def blocks_with(read_task, tasks, *towers):
    """The state of four blocks with these towers, written from top to bottom."""
    text = tasks["blocks"]["tower"].path.read_text(encoding="utf-8")
    start, end = text.index("(ontable"), text.index("(handempty")
    atoms = []
    for tower in towers:
        blocks = tower.split()
        atoms += [f"(on {a} {b})" for a, b in pairwise(blocks)]
        atoms += [f"(clear {blocks[0]})", f"(ontable {blocks[-1]})"]
    domain = tasks["blocks"]["tower"].domain.path.read_text(encoding="utf-8")
    return read_task(domain, text[:start] + " ".join(atoms) + text[end:]).initial_state


# The paper's example: b1 on b2 on b3 on b4


@pytest.mark.parametrize(
    ("towers", "expected"),
    [
        (["b1 b2 b3 b4"], {B1_B2, B2_B3, B3_B4}),
        (["b1 b2 b3", "b4"], {B1_B2, B2_B3}),
        (["b2 b3 b4", "b1"], {B2_B3, B3_B4}),
        (["b1 b2", "b3 b4"], {B1_B2, B3_B4}),
        (["b1 b2", "b4 b3"], {B1_B2}),
        (["b4 b2 b3", "b1"], {B2_B3}),
        (["b1", "b2", "b3 b4"], {B3_B4}),
    ],
)
def test_propositional_subsets_of_a_tower(read_task, tasks, towers, expected):
    state = blocks_with(read_task, tasks, *towers)
    goal = tasks["blocks"]["tower"].goal
    assert propositional_goal(state, goal) == Goal(frozenset(expected))


def test_propositional_finds_nothing_where_no_atom_holds(read_task, tasks):
    state = blocks_with(read_task, tasks, "b4 b3 b2 b1")
    assert propositional_goal(state, tasks["blocks"]["tower"].goal) is None


def test_propositional_is_the_arg_max_over_all_subsets(tasks, walk):
    for name, problem in (("blocks", "tower"), ("ferry", "two"), ("odd", "names")):
        task = tasks[name][problem]
        for seed in range(20):
            state = walk(task, 8, seed)[0][-1]
            literals = list(task.goal.literals())
            holding = [
                subset
                for size in range(len(literals) + 1)
                for subset in combinations(literals, size)
                if all(state.holds(atom) == positive for atom, positive in subset)
            ]
            goal = propositional_goal(state, task.goal)
            found = [] if goal is None else list(goal.literals())
            assert sorted(found) == sorted(holding[-1])


@pytest.mark.parametrize(
    ("towers", "chain"),
    [
        (["b4 b3 b2 b1"], 3),
        (["b1 b2 b3 b4"], 3),
        (["b4 b2 b3", "b1"], 2),
        (["b1 b2", "b4 b3"], 1),
        (["b1", "b2", "b4 b3"], 1),
    ],
)
def test_lifted_goals_of_a_tower_are_chains(read_task, tasks, towers, chain):
    state = blocks_with(read_task, tasks, *towers)
    goal = LiftedGoals(np.random.default_rng(0))(state, tasks["blocks"]["tower"].goal)
    assert goal is not None
    assert goal.holds_in(state.atoms)
    assert len(goal) == chain
    above = dict(atom.objects for atom in goal.atoms)
    tops = set(above) - set(above.values())
    assert {atom.predicate for atom in goal.atoms} == {"on"}
    assert len(tops) == 1


def test_lifted_finds_nothing_where_no_block_is_on_another(read_task, tasks):
    state = blocks_with(read_task, tasks, "b1", "b2", "b3", "b4")
    assert LiftedGoals(np.random.default_rng(0))(state, tasks["blocks"]["tower"].goal) is None


def test_lifted_keeps_a_goal_that_holds_and_goals_apart(read_task, tasks):
    lifted = LiftedGoals(np.random.default_rng(0))
    state = blocks_with(read_task, tasks, "b1 b2 b3 b4")
    assert lifted(state, tasks["blocks"]["tower"].goal) == tasks["blocks"]["tower"].goal
    assert lifted(state, Goal.of([])) is None
    # Two goals in one task, one after the other.
    assert len(lifted(state, Goal.of([B1_B2, Atom("on", ("b2", "b4"))])) or ()) == 2
    table = lifted(state, Goal.of([Atom("ontable", ("b1",))]))
    assert table == Goal.of([Atom("ontable", ("b4",))])
    assert lifted.unproven == 0


def test_state_goal_has_static_atoms_too(tasks):
    task = tasks["ferry"]["one"]
    goal = state_goal(task.initial_state, task.goal)
    assert goal.atoms == {
        Atom("at-ferry", ("depot",)),
        Atom("at", ("a", "p")),
        Atom("at", ("c", "depot")),
        Atom("route", ("depot", "p")),
        Atom("route", ("p", "depot")),
    }
    assert not goal.negative
    assert task.initial_state.satisfies(goal)


def test_negative_literals_are_part_of_the_subset(tasks):
    task = tasks["ferry"]["two"]  # (at a q), (at-ferry depot) and not (full)
    goal = propositional_goal(task.initial_state, task.goal)
    assert goal == Goal.of([], [Atom("full", ())])


# The loop


def holds(goal, state):
    return all(state.holds(a) for a in goal.atoms) and not any(
        state.holds(a) for a in goal.negative
    )


def plain_relabel(trajectory, hindsight_goal):
    """The paper's words as loops over index pairs: for each end, the earliest start allowed."""
    states, parts, end = trajectory.states, [], len(trajectory)
    while end > 0:
        goal = hindsight_goal(states[end], trajectory.goal)
        allowed = []
        if goal is not None:
            for start in range(end):
                earlier = states[start:end]
                simple = len({*earlier, states[end]}) == end - start + 1
                if simple and not any(holds(goal, state) for state in earlier):
                    allowed.append(start)
        if allowed:
            parts.append((min(allowed), end, goal))
            end = min(allowed)
        else:
            end -= 1
    return parts


CASES = [("blocks", "tower"), ("blocks", "three"), ("ferry", "two"), ("odd", "names"),
         ("lamp", "dark"), ("roads", "fork"), ("roads", "ring")]  # fmt: skip


@pytest.mark.parametrize("variant", ["state", "propositional", "lifted"])
@settings(max_examples=40, deadline=None)
@given(case=st.sampled_from(CASES), steps=st.integers(0, 25), seed=st.integers(0, 9999))
def test_parts_of_random_walks(tasks, walk, variant, case, steps, seed):
    task = tasks[case[0]][case[1]]
    states, actions = walk(task, steps, seed)
    trajectory = Trajectory(tuple(states), tuple(actions), task.goal)
    parts = list(relabel(trajectory, hindsight_goals(variant, np.random.default_rng(seed))))
    before = len(trajectory)
    expected = plain_relabel(trajectory, hindsight_goals(variant, np.random.default_rng(seed)))
    assert len(parts) == len(expected)
    for part, (start, end, goal) in zip(parts, expected, strict=True):
        assert (part.states, part.actions, part.goal) == (
            trajectory.states[start : end + 1], trajectory.actions[start:end], goal
        )  # fmt: skip
        assert end <= before  # neighbours share at most a state
        before = start
        assert part.solved
        assert not any(holds(part.goal, state) for state in part.states[:-1])
        assert len(set(part.states)) == len(part.states)
        for i, action in enumerate(part.actions):
            applicable = task.applicable_actions(part.states[i])
            assert task.successor(part.states[i], applicable[action]) == part.states[i + 1]
        transitions = list(part.transitions())
        assert [t.remaining for t in transitions] == list(range(len(part), 0, -1))
        assert [t.solved for t in transitions] == [False] * (len(part) - 1) + [True]


def test_neighbours_share_a_state_and_no_step_is_lost(tasks, walk):
    # Under state goals a walk without repeated states is one part.
    task = tasks["blocks"]["tower"]
    found = {str(a): i for i, a in enumerate(task.applicable_actions(task.initial_state))}
    states, actions = [task.initial_state], [found["(pick-up b1)"]]
    states.append(task.successor(states[0], task.applicable_actions(states[0])[actions[0]]))
    held = {str(a): i for i, a in enumerate(task.applicable_actions(states[1]))}
    actions.append(held["(put-down b1)"])
    states.append(task.successor(states[1], task.applicable_actions(states[1])[actions[1]]))
    assert states[2] == states[0]
    trajectory = Trajectory(tuple(states), tuple(actions), task.goal)
    parts = list(relabel(trajectory, state_goal))
    assert [(part.states[0], part.states[-1]) for part in parts] == [
        (states[1], states[2]),
        (states[0], states[1]),
    ]


def test_a_solved_trajectory_is_one_part_with_its_own_goal(tasks):
    task = tasks["roads"]["fork"]
    go = task.applicable_actions(task.initial_state)
    second = task.successor(task.initial_state, go[1])
    third = task.successor(second, task.applicable_actions(second)[0])
    trajectory = Trajectory((task.initial_state, second, third), (1, 0), task.goal)
    assert trajectory.solved
    for variant in ("propositional", "lifted"):
        parts = list(relabel(trajectory, hindsight_goals(variant, np.random.default_rng(0))))
        assert [(part.states, part.actions, part.goal) for part in parts] == [
            (trajectory.states, trajectory.actions, task.goal)
        ]


def test_an_unknown_variant():
    with pytest.raises(KeyError):
        hindsight_goals("none", np.random.default_rng(0))


def test_a_trajectory_has_one_state_more_than_actions(tasks):
    state = tasks["blocks"]["three"].initial_state
    with pytest.raises(ValueError, match="one state more"):
        Trajectory((state,), (0,), Goal.of([]))


def test_the_way_into_a_dead_end_ends_with_the_step_that_stays(tmp_path):
    # Of two cells that are left behind for ever, the second is a trap; the goal is the third.
    (tmp_path / "domain.pddl").write_text(
        "(define (domain trap) (:predicates (at ?x) (next ?x ?y)) (:action go :parameters (?x ?y)"
        " :precondition (and (at ?x) (next ?x ?y)) :effect (and (at ?y) (not (at ?x)))))"
    )
    (tmp_path / "p1.pddl").write_text(
        "(define (problem p) (:domain trap) (:objects a b c d) (:init (at a) (next a b)"
        " (next b d) (next a c)) (:goal (at c)))"
    )
    task = load_task(load_domain(tmp_path / "domain.pddl"), tmp_path / "p1.pddl")
    states = [task.initial_state]
    for _ in range(2):
        states.append(task.successor(states[-1], task.applicable_actions(states[-1])[0]))
    way = into_dead_end(Trajectory(tuple(states), (0, 0), task.goal), DeadEnds(task))
    assert way.states == (*states, states[-1])
    assert way.actions == (0, 0, 0)
    assert [t.remaining for t in way.transitions()] == [0, 0, 0]
    assert into_dead_end(Trajectory(tuple(states[:1]), (), task.goal), DeadEnds(task)) is None


def test_random_walks_show_whether_problems_have_dead_ends(read_task, tasks):
    floors = [read_task(WAX, FLOOR)]
    assert have_dead_ends(floors, DeadEndsOfTasks())
    assert have_dead_ends([*tasks["blocks"].values(), *floors], DeadEndsOfTasks())
    assert not have_dead_ends([*tasks["blocks"].values()], DeadEndsOfTasks())


# Other actions


def test_one_other_action_of_each_state_of_a_part(tasks):
    task = tasks["blocks"]["tower"]
    state, states, actions = task.initial_state, [task.initial_state], []
    for _ in range(4):
        actions.append(0)
        state = task.successor(state, task.applicable_actions(state)[0])
        states.append(state)
    part = Trajectory(tuple(states), tuple(actions), task.goal)
    drawn = set()
    for seed in range(40):
        found = list(other_transitions(part, np.random.default_rng(seed), None))
        several = [s for s in states[:-1] if len(task.applicable_actions(s)) > 1]
        assert [x.state for x in found] == several
        for x in found:
            assert x.action != 0
            assert x.next_state == task.successor(
                x.state, task.applicable_actions(x.state)[x.action]
            )
            assert x.remaining == int(x.next_state.satisfies(task.goal))
            assert x.goal == task.goal
        drawn |= {(x.state, x.action) for x in found}
    assert drawn == {(s, i) for s in several for i in range(1, len(task.applicable_actions(s)))}


def test_another_action_into_a_dead_end_is_a_mistake(read_task):
    task = read_task(WAX, FLOOR)
    tests = DeadEndsOfTasks()
    state, found = task.initial_state, []
    for i, action in enumerate(task.applicable_actions(state)):
        part = Trajectory((state, task.successor(state, action)), (i,), task.goal)
        for seed in range(20):
            found += other_transitions(part, np.random.default_rng(seed), tests)
    assert {x.mistaken for x in found} == {True, False}
    assert all(x.mistaken == tests.prove(x.next_state) for x in found)
    assert not any(x.mistaken for x in other_transitions(part, np.random.default_rng(0), None))
