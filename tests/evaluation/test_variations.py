from regoal.evaluation.evaluate import TestSettings
from regoal.evaluation.variations import NOISES, vary
from regoal.networks.encoder import Encoder
from regoal.networks.policy_file import Policy
from regoal.networks.relations import relations_of
from regoal.planning.matching.library_schema import schema_of


def test_every_variation_is_a_plan_of_at_most_so_many_steps(ways, policy):
    task = ways(["ab", "bd", "ac", "ce", "ed"], "d", "abcde")
    schema = schema_of(task.domain)
    relations = relations_of(schema, achieved_goals=True)
    any_policy = Policy(policy(relations), schema, 2, {})

    def find(most_steps):
        settings = TestSettings(layers=2)
        plans = vary(any_policy, Encoder(relations), task, settings, most_steps)
        return [" ".join(action.objects[1] for action in plan) for plan in plans]

    found = find(3)  # both ways lead to the goal
    assert len(found) == len(NOISES)
    assert set(found) <= {"b d", "c e d"}
    assert set(find(2)) <= {"b d"}
    assert find(1) == []
