"""Tasks as environments of Gymnasium."""

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="Gymnasium is not installed")

from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from conftest import TEXTS
from regoal import gym
from regoal.errors import UsageError
from regoal.gym import PddlEnv


@pytest.fixture
def make(tmp_path):
    """Make the environment of a domain and problem of the tests."""

    def make(domain, problem, **more):
        text, problems = TEXTS[domain]
        (tmp_path / "domain.pddl").write_text(text, encoding="utf-8")
        (tmp_path / "problem.pddl").write_text(problems[problem], encoding="utf-8")
        return PddlEnv(tmp_path / "domain.pddl", tmp_path / "problem.pddl", **more)

    return make


def number(env, action):
    return [str(each) for each in env.ground_actions].index(action)


@pytest.mark.parametrize(
    ("domain", "problem"),
    [("blocks", "three"), ("ferry", "two"), ("odd", "names"), ("lamp", "dark")],
)
def test_gymnasium_finds_no_fault(make, tmp_path, domain, problem):
    make(domain, problem)
    paths = {"domain": tmp_path / "domain.pddl", "problem": tmp_path / "problem.pddl"}
    # The checker makes further environments from the specification, one for each render mode.
    spec = EnvSpec("Pddl-v0", entry_point=PddlEnv, kwargs=paths, disable_env_checker=True)
    check_env(spec.make().unwrapped)


def test_the_plan_of_three_blocks_ends_an_episode(make):
    env = make("blocks", "three", horizon=9)
    _, info = env.reset()
    assert [str(env.ground_actions[i]) for i in info["action_mask"].nonzero()[0]] == [
        "(pick-up c)",
        "(unstack a b)",
    ]
    plan = ["(unstack a b)", "(put-down a)", "(pick-up b)", "(stack b c)"]
    ends = [env.step(number(env, action))[1:4] for action in plan]
    assert ends == [(-1.0, False, False)] * 3 + [(-1.0, True, False)]


def test_an_observation_says_which_atoms_hold(make):
    env = make("blocks", "three")
    observation, _ = env.reset()
    names = [str(env.atoms[i]) for i in observation.nonzero()[0]]
    assert names == [
        "(clear a)",
        "(clear c)",
        "(handempty)",
        "(on a b)",
        "(ontable b)",
        "(ontable c)",
    ]


def test_an_action_that_is_not_applicable_only_takes_a_step(make):
    env = make("blocks", "three", horizon=2)
    before, info = env.reset()
    stack = number(env, "(stack a c)")
    assert info["action_mask"][stack] == 0
    after, reward, terminated, truncated, _ = env.step(stack)
    assert (after == before).all()
    assert (reward, terminated, truncated) == (-1.0, False, False)
    assert env.step(stack)[2:4] == (False, True)


def test_only_the_dummy_is_applicable_in_a_dead_end(make):
    env = make("roads", "fork")
    env.reset()
    observation, _, _, _, info = env.step(number(env, "(go a b)"))
    assert info["action_mask"].nonzero()[0].tolist() == [env.action_space.n - 1]
    after, _, terminated, truncated, _ = env.step(env.action_space.n - 1)
    assert (after == observation).all()
    assert (terminated, truncated) == (False, False)


def test_masked_random_walks_take_every_action_that_they_choose(make):
    env = make("ferry", "two", horizon=60)
    env.action_space.seed(3)
    observation, info = env.reset()
    for _ in range(60):
        before, chosen = env.state, env.action_space.sample(info["action_mask"])
        assert env.ground_actions[chosen] in env.task.applicable_actions(before)
        observation, _, terminated, _, info = env.step(chosen)
        assert env.observation_space.contains(observation)
        assert {env.atoms[i] for i in np.flatnonzero(observation)} == set(env.state.fluent_atoms)
        if terminated:
            break


def test_memory_is_freed_between_episodes(make, monkeypatch):
    monkeypatch.setattr(gym, "MOST_STATES", 1)
    env = make("blocks", "three")
    first, _ = env.reset()
    for action in ("(unstack a b)", "(put-down a)"):
        env.step(number(env, action))
    problem = env.task.library_problem
    again, info = env.reset()
    assert env.task.library_problem is not problem
    assert (first == again).all()
    assert env.step(int(info["action_mask"].argmax()))[1] == -1.0


def test_faults_are_named(make):
    with pytest.raises(UsageError, match="horizon"):
        make("blocks", "three", horizon=0)
    with pytest.raises(UsageError, match="holds initially"):
        make("roads", "done")
