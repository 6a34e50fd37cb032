import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.records.results import Outcome, PlanResult

SOLVED = PlanResult(
    problem="p01",
    domain="blocks",
    method="lifted",
    outcome=Outcome.SOLVED,
    plan_length=6,
    plan_cost=6.0,
    seconds=0.25,
    steps=6,
)


def test_json_has_exactly_the_fields_in_plain_values():
    record = SOLVED.to_json()
    assert list(record) == [f.name for f in dataclasses.fields(PlanResult)]
    assert record["outcome"] == "solved"
    assert json.loads(json.dumps(record)) == record


@settings(deadline=None, max_examples=50)
@given(
    outcome=st.sampled_from(Outcome),
    length=st.integers(0, 10**6),
    cost=st.floats(0, 1e9),
    seconds=st.floats(0, 1e5),
)
def test_json_round_trip(outcome, length, cost, seconds):
    solved = outcome is Outcome.SOLVED
    result = dataclasses.replace(
        SOLVED,
        outcome=outcome,
        plan_length=length if solved else None,
        plan_cost=cost if solved else None,
        seconds=seconds,
        steps=length,
    )
    assert PlanResult.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_shortened_plans_and_records_from_before_they_existed():
    short = dataclasses.replace(SOLVED, short_length=4, short_cost=2.5)
    record = short.to_json()
    assert PlanResult.from_json(record) == short
    assert PlanResult.from_json(record | {"short_length": None, "short_cost": None}) == SOLVED
    del record["short_length"], record["short_cost"]
    assert PlanResult.from_json(record) == SOLVED


def test_records_of_before_search_are_read():
    old = SOLVED.to_json()
    for key in ("found_by", "evaluations", "expansions"):
        del old[key]
    assert PlanResult.from_json(old) == SOLVED
    found = dataclasses.replace(SOLVED, found_by="search", evaluations=7, expansions=9)
    assert PlanResult.from_json(found.to_json()) == found


def test_keys_of_a_later_version_are_ignored():
    assert PlanResult.from_json(SOLVED.to_json() | {"memory_mib": 12}) == SOLVED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcome": "impossible"}, "outcome must be one of"),
        ({"outcome": {}}, "outcome must be one of"),
        ({"steps": float("inf")}, "steps must be a whole number"),
        ({"seconds": 10**400}, "seconds must be at most"),
        ({"policy": 1}, "policy must be a text"),
        ({"plan_length": None}, "plan_length must be given exactly if"),
        ({"outcome": "dead_end"}, "plan_length must be given exactly if"),
        ({"problem": 3}, "problem must be a text, got 3"),
        ({"seconds": True}, "seconds must be a number, got True"),
        ({"steps": None}, "steps must be a number, got None"),
    ],
)
def test_bad_records_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        PlanResult.from_json(SOLVED.to_json() | change)


def test_only_a_rejected_plan_and_an_error_are_unexpected():
    assert {o for o in Outcome if not o.expected} == {Outcome.INVALID_PLAN, Outcome.ERROR}
    assert len({o.text for o in Outcome}) == len(Outcome)
