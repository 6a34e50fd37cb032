import pytest


def test_unified_planning_judges_plans_as_we_do():
    pytest.importorskip("unified_planning")
    from reliability.plans import judge_plans

    found = judge_plans(seed=1, right=15)
    assert found.faults == []
    assert (found.right, found.mutated) == (15, 60)
    assert sum(n for (_, valid), n in found.counts.items() if not valid) > 10
