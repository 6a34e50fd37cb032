"""Policies from Python: plans, Q-values, evaluation."""

import subprocess
import sys

import pytest

import regoal
from regoal.errors import UsageError
from regoal.planning.goals import Goal
from regoal.planning.plans import validate_plan
from regoal.records.results import Outcome

GRIPPER_ONE = """(define (problem one) (:domain gripper-strips)
  (:objects rooma roomb left right b1 b2)
  (:init (room rooma) (room roomb) (gripper left) (gripper right) (ball b1) (ball b2)
    (at-robby rooma) (free left) (free right) (at b1 rooma) (at b2 rooma))
  (:goal (and (at b1 roomb) (at b2 roomb))))"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five problems of Gripper, and one with a goal that the policy was not trained with."""
    folder = tmp_path_factory.mktemp("gripper")
    for surplus in regoal.generate("gripper", folder)[5:]:
        surplus.unlink()
    return folder


@pytest.fixture
def task(folder, tmp_path):
    (tmp_path / "p.pddl").write_text(GRIPPER_ONE, encoding="utf-8")
    return regoal.load_task(folder / "domain.pddl", tmp_path / "p.pddl")


def test_two_balls_are_carried_at_once(task):
    found = regoal.load_policy("gripper").plan(task)
    assert found.outcome is Outcome.SOLVED
    assert [action.name for action in found.actions] == ["pick", "pick", "move", "drop", "drop"]
    assert validate_plan(task, found.actions).valid


def test_without_a_plan_the_reason_is_given(task):
    found = regoal.load_policy("gripper").plan(task, max_steps=2, search=False)
    assert found.actions is None
    assert "step" in found.reason


def test_q_values_are_those_that_execution_follows(task):
    policy = regoal.load_policy("gripper")
    state, steps = task.initial_state, 0
    while not state.satisfies(task.goal):
        rated = policy.q_values(state, task.goal)
        assert tuple(rated) == task.applicable_actions(state)
        state, steps = task.successor(state, max(rated, key=rated.get)), steps + 1
    assert steps == 5


def test_the_best_q_value_is_minus_the_steps_to_go(task):
    rated = regoal.load_policy("gripper").q_values(task.initial_state, task.goal)
    assert max(rated.values()) == pytest.approx(-5, abs=0.5)


def test_q_values_depend_on_the_goal(task):
    policy = regoal.load_policy("gripper")
    one, _ = sorted(task.goal.atoms)
    nearer = policy.q_values(task.initial_state, Goal.of([one]))
    assert max(nearer.values()) > max(policy.q_values(task.initial_state, task.goal).values()) + 1


def test_no_action_has_no_q_value(ways, tmp_path):
    from regoal.networks.policy_file import Policy
    from regoal.networks.q_network import QNetwork
    from regoal.networks.relations import relations_of
    from regoal.planning.matching.library_schema import schema_of

    task = ways(["ab"], "c", "abc")
    schema = schema_of(task.domain)
    network = QNetwork(relations_of(schema, achieved_goals=False), 4, seed=0).to_function()
    policy = regoal.RunnablePolicy(Policy(network, schema, 2, {}))
    [there] = task.applicable_actions(task.initial_state)
    assert list(policy.q_values(task.initial_state, task.goal)) == [there]
    assert policy.q_values(task.successor(task.initial_state, there), task.goal) == {}


def test_one_policy_runs_on_many_tasks(folder):
    policy = regoal.load_policy("gripper")
    tasks = [regoal.load_task(folder / "domain.pddl", path) for path in folder.glob("p*.pddl")]
    assert all(policy.plan(task).actions for task in [*tasks, *tasks])


def test_a_policy_for_another_domain_is_refused(task):
    with pytest.raises(UsageError, match="another domain"):
        regoal.load_policy("blocks").plan(task)


def test_loading_needs_no_problem_but_a_policy():
    assert regoal.load_policy("gripper").policy.layers == 30
    with pytest.raises(UsageError, match="not a policy"):
        regoal.load_policy("no-such-policy")


def test_evaluate_yields_a_result_for_each_problem(folder, tmp_path):
    policy = regoal.load_policy("gripper")
    results = list(regoal.evaluate(policy, folder, plans=tmp_path / "plans"))
    # Balls 1 to 5: each pair takes 5 actions and a way back, a last single one takes 3.
    assert sorted(result.plan_length for result in results) == [3, 5, 9, 11, 15]
    assert len(list((tmp_path / "plans").iterdir())) == 5


def test_evaluate_tells_of_a_problem_that_cannot_be_read(folder, tmp_path):
    (tmp_path / "bad.pddl").write_text("(define", encoding="utf-8")
    notes = []
    policy = regoal.load_policy("gripper")
    problems = [folder / "p001.pddl", tmp_path / "bad.pddl"]
    results = regoal.evaluate(policy, problems, domain=folder / "domain.pddl", tell=notes.append)
    assert {result.problem: result.outcome for result in results} == {
        "p001": Outcome.SOLVED,
        "bad": Outcome.ERROR,
    }
    assert any("bad.pddl" in note for note in notes)


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_nothing_large():
    loaded = run_python("import sys, regoal; dir(regoal); print(*sys.modules)").split()
    assert {"torch", "pymimir", "numpy", "regoal.api.running"}.isdisjoint(loaded)


def test_planning_loads_no_torch(folder):
    code = f"""
import sys, regoal
task = regoal.load_task({str(folder / "domain.pddl")!r}, {str(folder / "p001.pddl")!r})
policy = regoal.load_policy("gripper")
policy.plan(task), policy.q_values(task.initial_state, task.goal)
print("torch" in sys.modules)"""
    assert run_python(code).strip() == "False"


def test_names_are_complete():
    assert set(regoal.__all__) <= set(dir(regoal))
    assert all(callable(getattr(regoal, name)) for name in regoal.__all__)
    with pytest.raises(AttributeError, match="no_such"):
        regoal.no_such  # noqa: B018
