import json

from regoal.reports.page.watch import count_bytes, describe_plan, fit_plans
from reports.page.plans import DRAWING, make_replay


def decode(plan):
    """The states that the player goes through."""
    true = set(range(plan["initial"]))
    states = [{plan["facts"][n] for n in true}]
    for _, *numbers in plan["steps"]:
        true |= {n - 1 for n in numbers if n > 0}
        true -= {-n - 1 for n in numbers if n < 0}
        states.append({plan["facts"][n] for n in true})
    return states


def test_a_plan_by_hand():
    plan = describe_plan(make_replay(), DRAWING, 7)
    assert plan["facts"] == [
        "at ann room0", "at ann room1", "lit room1", "at ann room2", "lit room2",
    ]  # fmt: skip
    assert plan["initial"] == 1
    assert plan["steps"] == [["walk ann room0 room1", -1, 2, 3], ["walk ann room1 room2", -2, 4]]
    assert plan["goal"] == [4, -5]
    assert plan["things"] == [["ann", 0]]
    assert plan["places"] == ["room0", "room1", "room2"]
    assert plan["drawing"] == 7


def test_states_survive_the_encoding():
    replay = make_replay(steps=50)
    for drawing in (DRAWING, None):
        states = [{" ".join(fact) for fact in replay.initial if fact[0] != "room"}]
        for change in replay.changes:
            removed = {" ".join(fact) for fact in change.removed}
            states.append((states[-1] - removed) | {" ".join(fact) for fact in change.added})
        assert decode(json.loads(json.dumps(describe_plan(replay, drawing, 0)))) == states


def test_large_plans_are_left_out_first():
    replays = [make_replay("long", steps=90), make_replay("a"), make_replay("b", domain="other")]
    everything = fit_plans(replays, [DRAWING], 10**6)
    assert [plan["problem"] for plan in everything.plans] == ["long", "a", "b"]
    assert everything.left_out == ()
    whole = count_bytes(everything.plans) + count_bytes(everything.drawings)
    less = fit_plans(replays, [DRAWING], whole - 100)
    assert [plan["problem"] for plan in less.plans] == ["a", "b"]
    assert less.left_out == ("house long",)
    assert fit_plans(replays, [DRAWING], 0).plans == ()


def test_domains_without_a_drawing_have_none():
    watched = fit_plans([make_replay()], [], 10**6)
    assert watched.drawings == ()
    assert watched.plans[0]["drawing"] == -1
    assert "things" not in watched.plans[0]
