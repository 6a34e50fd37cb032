"""The engines of Unified Planning: problems built in Python and read from files, renamings."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip(
    "unified_planning", reason="Unified Planning is not installed: pip install 'regoal[up]'"
)

from unified_planning.engines import PlanGenerationResultStatus as Status
from unified_planning.engines import SequentialPlanValidator, ValidationResultStatus
from unified_planning.engines.results import FailedValidationReason
from unified_planning.environment import Environment, get_environment
from unified_planning.io import PDDLReader
from unified_planning.plans import ActionInstance, SequentialPlan
from unified_planning.shortcuts import (
    GE,
    BoolType,
    Exists,
    Fluent,
    InstantaneousAction,
    Int,
    IntType,
    MinimizeActionCosts,
    Object,
    ObjectExp,
    Problem,
    UserType,
    Variable,
)

import conftest
import regoal.up
from regoal.config import LAPTOP
from regoal.errors import UnsupportedPddlError, UsageError
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.matching.schema import match
from regoal.up import engines
from regoal.up.engines import Planner, Validator
from regoal.up.translation import write_problem, write_problems, write_texts

TESTS = Path(__file__).parents[1]
SMALL = replace(
    LAPTOP, layers=2, embedding_size=16, episodes=1, updates=1, validation_steps=3, horizon=10
)


def blocks(names, type_name="Block", env=None):
    """Build a Blocks problem: all blocks lie on the table, and the first ends on top of a tower."""
    env = env or get_environment()
    of = env.type_manager.UserType(type_name)
    arities = {"on": 2, "on table": 1, "Clear": 1, "holding": 1, "idle": 0}
    fluents = [
        Fluent(name, env.type_manager.BoolType(), environment=env, **dict.fromkeys("xy"[:n], of))
        for name, n in arities.items()
    ]
    on, table, clear, holding, idle = fluents
    problem = Problem("Tower of Blocks", env)
    for fluent in fluents:
        problem.add_fluent(fluent, default_initial_value=False)
    pick, put = (InstantaneousAction(name, _env=env, x=of) for name in ("Pick Up", "putdown"))
    stack, unstack = (InstantaneousAction(name, _env=env, x=of, y=of) for name in ("stack", "un"))
    x, y = pick.parameter("x"), stack.parameter("y")
    add_action(problem, pick, [clear(x), table(x), idle()], [holding(x)])
    add_action(problem, put, [holding(x)], [clear(x), table(x), idle()])
    add_action(problem, stack, [holding(x), clear(y)], [on(x, y), clear(x), idle()])
    add_action(problem, unstack, [on(x, y), clear(x), idle()], [holding(x), clear(y)])
    objects = [Object(name, of, env) for name in names]
    problem.add_objects(objects)
    problem.set_initial_value(idle(), True)
    for one in objects:
        problem.set_initial_value(table(one), True)
        problem.set_initial_value(clear(one), True)
    for above, below in pairwise(objects):
        problem.add_goal(on(above, below))
    return problem


def add_action(problem, action, before, after):
    """Add an action that replaces the facts of its precondition by others."""
    for fact in before:
        action.add_precondition(fact)
        action.add_effect(fact, False)
    for fact in after:
        action.add_effect(fact, True)
    problem.add_action(action)


def accepts(problem, plan):
    """Whether Unified Planning's own validator accepts a plan."""
    result = SequentialPlanValidator().validate(problem, plan)
    return result.status is ValidationResultStatus.VALID


def check_solved(problem, **rest):
    """Solve a problem with a shipped policy; its plan must be valid and have no step to spare."""
    result = Planner().solve(problem, **rest)
    assert result.status is Status.SOLVED_SATISFICING, result.log_messages
    assert accepts(problem, result.plan)
    assert len(result.plan.actions) == 2 * (len(problem.all_objects) - 1)
    return result


def read(domain, problem):
    """Read a problem from the texts of two files."""
    return PDDLReader().parse_problem_string(domain, problem)


def test_blocks_built_in_python_are_solved_by_the_shipped_policy():
    result = check_solved(blocks(["a", "b", "c", "d"]))
    assert float(result.metrics["engine_internal_time"]) > 0
    assert result.metrics["plan_length"] == "6"
    assert all(isinstance(value, str) for value in result.metrics.values())


def test_names_in_upper_case_and_with_blanks_come_back():
    result = check_solved(blocks(["A", "Block 2", "b"]))
    assert [str(step) for step in result.plan.actions] == [
        "Pick Up(Block 2)",
        "stack(Block 2, b)",
        "Pick Up(A)",
        "stack(A, Block 2)",
    ]


def test_names_that_are_keywords_of_pddl_come_back():
    problem = blocks(["domain", "goal", "when"])
    assert "domain_ goal_ when_ - block" in write_texts(problem)[1]
    check_solved(problem)


def test_a_type_and_an_object_of_one_name_in_lower_case_are_kept_apart():
    problem = blocks(["truck", "Truck_0", "b"], type_name="Truck")
    domain, text, _ = write_texts(problem)
    assert "(:types truck_" in domain
    assert " truck " in text
    check_solved(problem)


def test_letters_beyond_ascii_and_leading_digits_come_back():
    problem = blocks(["1", "é", "è"])
    assert "o_1 o__ o___0" in write_texts(problem)[1]
    check_solved(problem)


def test_constants_that_no_action_mentions_become_objects(tmp_path):
    (tmp_path / "given.pddl").write_text(
        conftest.FERRY.replace("(:constants depot - place)", "(:constants depot spare - place)"),
        encoding="utf-8",
    )
    given = schema_of(load_domain(tmp_path / "given.pddl"))
    problem = read((tmp_path / "given.pddl").read_text(encoding="utf-8"), conftest.FERRY_TWO)
    written = write_problem(problem, tmp_path / "written")
    domain = load_domain(written.domain)
    assert given.constants == ("depot", "spare")
    assert schema_of(domain).constants == ("depot",)
    assert match(given, schema_of(domain)).symbols
    assert set(load_task(domain, written.path).objects) == {"depot", "spare", "p", "q", "a", "b"}


def test_types_that_no_object_needs_are_flattened_and_the_domain_still_matches(tmp_path):
    text = conftest.FERRY.replace("car bus - vehicle", "car bus - vehicle tram - bus")
    (tmp_path / "given.pddl").write_text(text, encoding="utf-8")
    given = schema_of(load_domain(tmp_path / "given.pddl"))
    written = write_problem(read(text, conftest.FERRY_ONE), tmp_path / "written")
    found = schema_of(load_domain(written.domain))
    assert found.fingerprint() == given.fingerprint()
    assert match(given, found).actions == {a: a for a in ("sail", "home", "board", "leave")}


def test_the_only_type_is_dropped_for_a_policy_without_types(tmp_path):
    domain, text, _ = write_texts(blocks(["a", "b"]), untyped=True)
    assert "block " not in domain
    assert "a b - object" in text
    typed = schema_of(load_domain(write_problem(blocks(["a", "b"]), tmp_path / "typed").domain))
    assert [s.name for s in typed.symbols if s.kind == "type"] == ["block"]


def test_constants_are_listed_by_name():
    place = UserType("place")
    here = Fluent("here", BoolType(), at=place)
    problem = Problem("p")
    problem.add_fluent(here, default_initial_value=False)
    objects = [Object(name, place) for name in "fbdaec"]
    problem.add_objects(objects)
    move = InstantaneousAction("move")
    for one in objects:
        move.add_effect(here(one), True)
    problem.add_action(move)
    assert "\n   a b c d e f - place\n" in write_texts(problem)[0]


def test_ferry_read_from_text_is_solved_by_a_policy_that_was_given(tmp_path):
    problem = read(conftest.FERRY, conftest.FERRY_ONE)
    summary = regoal.up.train([problem], [problem], out=tmp_path / "run", config=SMALL)
    assert summary.ended == "episodes"
    result = Planner(policy=summary.policy).solve(problem, timeout=60)
    assert result.status is Status.SOLVED_SATISFICING  # by never repeating a state
    assert accepts(problem, result.plan)


def test_training_names_the_domain_alike_in_all_problems(tmp_path):
    problems = [blocks(["a", "b"], "Truck"), blocks(["truck", "Clear_"], "Truck")]
    folder = tmp_path / "pddl"
    domain, [files, _] = write_problems([problems, []], folder)
    assert [path.relative_to(folder).as_posix() for path in files] == [
        "set0/p001.pddl",
        "set0/p002.pddl",
    ]
    assert "(:types truck)" in domain.read_text(encoding="utf-8")
    tasks = [load_task(load_domain(domain), path) for path in files]
    assert tasks[1].objects == ("truck_0", "clear_")
    assert all(len(task.applicable_actions(task.initial_state)) == 2 for task in tasks)


def test_training_takes_problems_with_other_types_and_leaves_out_costs(tmp_path):
    first, second = blocks(["a", "b"]), blocks(["c", "d"])
    second.add_object(Object("e", UserType("Brick", father=first.user_types[0])))
    second.add_quality_metric(MinimizeActionCosts({}, default=Int(3)))
    domain, [files, _] = write_problems([[first, second], []], tmp_path / "pddl")
    tasks = [load_task(load_domain(domain), path) for path in files]
    assert tasks[1].types_of["e"] == ("block", "brick")
    assert not tasks[1].has_costs


def test_training_refuses_problems_of_two_domains(tmp_path):
    other = blocks(["a", "b"])
    other.clear_actions()
    with pytest.raises(UsageError, match=r"problem 2 \(.*other actions than the first \(Pick Up, "):
        regoal.up.train([blocks(["a", "b"]), other], out=tmp_path / "run")
    with pytest.raises(UsageError, match="at least one problem"):
        regoal.up.train([], out=tmp_path / "run")


def test_a_problem_beyond_pddl_is_refused_with_its_features(tmp_path):
    problem = blocks(["a", "b"])
    fuel = problem.add_fluent(Fluent("fuel", IntType()), default_initial_value=3)
    problem.action("stack").add_precondition(GE(fuel, 1))
    with pytest.raises(UnsupportedPddlError, match="INT_FLUENTS"):
        regoal.up.train([problem], out=tmp_path / "run", config=SMALL)
    assert not Planner.supports(problem.kind)


def test_a_problem_without_policy_is_unsupported():
    problem = read(conftest.ROADS, conftest.ROADS_FORK)
    result = Planner().solve(problem)
    assert result.status is Status.UNSUPPORTED_PROBLEM
    assert result.plan is None
    [message] = result.log_messages
    assert "no shipped policy is for a domain of this structure" in message.message
    assert "go/2" in message.message


def test_a_policy_for_another_domain_is_unsupported_and_says_both():
    problem = read(conftest.ROADS, conftest.ROADS_FORK)
    result = Planner(policy="gripper").solve(problem)
    assert result.status is Status.UNSUPPORTED_PROBLEM
    assert "policy was trained on another domain" in result.log_messages[0].message


def test_a_policy_given_to_solve_goes_before_the_engines():
    problem = blocks(["a", "b"])
    assert Planner(policy="gripper").solve(problem).status is Status.UNSUPPORTED_PROBLEM
    result = Planner(policy="gripper").solve(problem, policy="blocks")
    assert result.status is Status.SOLVED_SATISFICING
    with pytest.raises(UsageError, match="nowhere is not a policy"):
        Planner(policy="nowhere").solve(problem)


def test_time_and_memory_have_their_own_statuses(monkeypatch):
    problem = blocks(["a", "b"])
    assert Planner().solve(problem, timeout=0).status is Status.TIMEOUT

    def out_of_memory(*of):
        raise MemoryError

    monkeypatch.setattr(engines, "solve", out_of_memory)
    result = Planner().solve(problem)
    assert result.status is Status.MEMOUT
    assert result.log_messages[-1].message == "out of memory"


def test_a_goal_that_cannot_be_reached_is_proven_unsolvable():
    problem = blocks(["a", "b"])
    a, b = problem.all_objects
    problem.add_goal(problem.fluent("on")(b, a))
    result = Planner().solve(problem)
    assert result.status is Status.UNSOLVABLE_PROVEN
    assert result.log_messages[-1].message.startswith("There is no plan: ")


def test_a_heuristic_is_not_used_and_output_goes_to_the_stream(tmp_path):
    problem = blocks(["a", "b"])
    with (tmp_path / "log").open("w") as stream, pytest.warns(UserWarning, match="no heuristic"):
        Planner().solve(problem, heuristic=lambda state: 0, output_stream=stream)
    assert "names correspond" in (tmp_path / "log").read_text()


def test_registered_engines_are_found_by_name_and_never_chosen():
    env = Environment()
    before = list(env.factory.preference_list)
    regoal.up.register(env)
    regoal.up.register(env)
    assert {"regoal", "regoal-validator"} <= set(env.factory.engines)
    assert env.factory.preference_list == before
    env.credits_stream = None
    problem = blocks(["a", "b"], env=env)
    planner = env.factory.OneshotPlanner(name="regoal", params={"policy": "blocks"})
    with planner:
        plan = planner.solve(problem, timeout=60).plan
    with env.factory.PlanValidator(name="regoal-validator") as validator:
        assert validator.validate(problem, plan).status is ValidationResultStatus.VALID


def test_the_validator_says_which_step_fails_and_what_a_plan_costs():
    problem = blocks(["a", "b"])
    a, b = map(ObjectExp, problem.all_objects)
    pick = ActionInstance(problem.action("Pick Up"), (a,))
    stack = ActionInstance(problem.action("stack"), (a, b))
    judge = Validator().validate
    found = judge(problem, SequentialPlan([stack]))
    assert found.status is ValidationResultStatus.INVALID
    assert found.reason is FailedValidationReason.INAPPLICABLE_ACTION
    assert found.inapplicable_action is stack
    found = judge(problem, SequentialPlan([pick]))
    assert found.reason is FailedValidationReason.UNSATISFIED_GOALS
    assert judge(problem, SequentialPlan([pick, stack])).metric_evaluations is None
    metric = MinimizeActionCosts({problem.action("stack"): Int(5)}, default=Int(2))
    problem.add_quality_metric(metric)
    assert judge(problem, SequentialPlan([pick, stack])).metric_evaluations == {metric: 7}


def test_the_validator_judges_goals_that_leave_a_choice():
    problem = blocks(["a", "b"])
    x = Variable("x", problem.user_types[0])
    problem.clear_goals()
    problem.add_goal(Exists(problem.fluent("holding")(x), x))
    pick = ActionInstance(problem.action("Pick Up"), (ObjectExp(problem.object("a")),))
    assert Validator().validate(problem, SequentialPlan([pick]))
    assert not Validator().validate(problem, SequentialPlan([]))
    result = Planner().solve(problem)
    assert result.status is Status.UNSUPPORTED_PROBLEM
    assert result.log_messages[0].message.startswith("problem.pddl, line ")  # not where it was


def test_the_librarys_own_report_finds_no_error():
    words = [
        "--packages",
        "unified_planning.test",
        "--filter",
        "basic",
        "hierarchical_blocks",
        "robot",
    ]
    words += ["--mode", "oneshot", "validation"]
    done = subprocess.run(
        [sys.executable, "-m", "reliability.up_report", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("|   regoal ") > 10
    assert done.stdout.count("|   regoal-validator ") > 10
