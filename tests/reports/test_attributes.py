import pytest

from regoal.records.results import Outcome, PlanResult
from regoal.reports import attributes as at


def result(problem, length, seconds=1.0):
    return PlanResult(
        problem=problem,
        domain="blocks",
        method="lifted",
        outcome=Outcome.STEP_LIMIT if length is None else Outcome.SOLVED,
        plan_length=length,
        plan_cost=length,
        seconds=seconds,
        steps=1000 if length is None else length,
    )


def test_aggregates_by_hand():
    results = [
        result("a", 4, 1.0),
        result("b", None, 9.0),
        result("c", 10, 2.0),
        result("d", 7, 6.0),
    ]
    assert at.COVERAGE.of(results) == 3
    assert at.TOTAL_LENGTH.of(results) == 21
    assert at.MEDIAN_LENGTH.of(results) == 7
    assert at.MEAN_LENGTH.of(results) == 7
    assert at.SECONDS.of(results) == 3.0  # failures run into a limit, so their time says nothing
    assert at.MEDIAN_LENGTH.of(results[:3]) == 7.0  # the mean of 4 and 10


def test_what_has_no_value_is_missing_and_never_best():
    failures = [result("a", None)]
    assert at.COVERAGE.of(failures) == 0
    assert at.TOTAL_LENGTH.of(failures) is None
    assert at.TOTAL_LENGTH.text(None) == "-"
    assert at.MEAN_LENGTH.text(2.25) == "2.2"
    assert at.TOTAL_LENGTH.best([None, 5.0, 3.0]) == 3.0
    assert at.COVERAGE.best([None, 5.0, 3.0]) == 5.0
    assert at.COVERAGE.best([None]) is None


def test_an_empty_plan_has_length_zero_and_counts():
    assert at.MEAN_LENGTH.of([result("a", 0), result("b", 4)]) == 2.0


def test_lengths_are_compared_only_over_common_problems():
    lifted = [result("a", 4), result("b", None), result("c", 10)]
    lama = [result("a", 8), result("b", 6), result("c", 12), result("d", 1)]
    first, second = at.solved_by_all([lifted, lama])
    assert [r.problem for r in first] == [r.problem for r in second] == ["a", "c"]
    assert (at.TOTAL_LENGTH.of(first), at.TOTAL_LENGTH.of(second)) == (14, 20)
    assert at.solved_by_all([]) == []
    assert at.solved_by_all([lifted, []]) == [[], []]


def test_bootstrap_interval_is_repeatable_and_holds_the_mean():
    values = [80.0, 90.0, 100.0, 70.0, 60.0]
    low, high = at.bootstrap_interval(values)
    assert at.bootstrap_interval(values) == (low, high)
    assert 60 <= low < 80 < high <= 100
    # normal approximation: 80 ± 1.96 · 14.14 / √5
    assert (low, high) == pytest.approx((67.6, 92.4), abs=1.5)


def test_bootstrap_interval_of_equal_values_is_a_point_and_of_one_value_nothing():
    assert at.bootstrap_interval([50.0, 50.0]) == (50.0, 50.0)
    assert at.bootstrap_interval([50.0]) is None
    assert at.bootstrap_interval([]) is None
