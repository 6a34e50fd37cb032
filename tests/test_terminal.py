from dataclasses import replace

import pytest

from regoal import terminal
from regoal.records.results import Outcome, PlanResult
from regoal.records.validation import Validation
from regoal.runs.news import Progress, RunSummary


def progress(coverage):
    return Progress(
        episode=7,
        episodes=600,
        coverage=coverage,
        best_coverage=coverage and 0.75,
        goal_size=2.25,
        trajectory_length=14.0,
        loss=0.01234,
        elapsed_s=30.0,
        left_s=75.0,
    )


def result(outcome, length):
    return PlanResult(
        problem="p07",
        domain="lamps",
        method="lifted",
        outcome=outcome,
        plan_length=length,
        plan_cost=length,
        seconds=0.25,
        steps=34,
    )


def test_a_line_of_progress():
    rest = "goal 2.2  length 14.0  loss 0.012  1:15 left"
    assert terminal.progress_line(progress(None)) == f"episode 7/600  {rest}"
    assert terminal.progress_line(progress(0.5)) == (
        f"episode 7/600  coverage 50%, best 75%  {rest}"
    )


def test_a_line_for_a_result():
    assert terminal.result_line(result(Outcome.SOLVED, 34)) == "p07: 34 steps, 0.2 s"
    assert terminal.result_line(result(Outcome.STEP_LIMIT, None)) == "p07: step limit reached"
    short = replace(result(Outcome.SOLVED, 34), short_length=21)
    assert terminal.result_line(short) == "p07: 34 steps, shortened to 21, 0.2 s"
    same = replace(short, short_length=34)
    assert terminal.result_line(same) == "p07: 34 steps, 0.2 s"


def test_elsewhere_than_on_a_terminal_states_are_rare_and_notes_are_kept(capsys):
    with terminal.live_line() as show:
        for i in range(50):
            show(f"state {i}", False)
        show("a note", True)
        terminal.show_news("news", show)
        terminal.show_news(progress(None), show)
    assert capsys.readouterr().out == "state 0\na note\nnews\n"


@pytest.mark.parametrize(
    ("best", "told"),
    [
        (None, "no policy was validated yet"),
        (Validation(5, 3, 4, 60, 4), "best policy, on validation 3/4 solved, 60 actions in all: "),
    ],
)
def test_the_end_of_a_training(best, told, tmp_path):
    summary = RunSummary(tmp_path, "budget", 6, best, 61.0)
    first, second = terminal.summary_lines(summary)
    assert first == "the budget is spent after 6 episodes and 1:01"
    assert second.startswith(told)


def test_every_way_to_end_is_told():
    from typing import get_args

    from regoal.runs.news import Ending

    assert set(terminal.ENDINGS) == set(get_args(Ending))
