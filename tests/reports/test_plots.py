import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from regoal.errors import UsageError
from regoal.records.run_record import RunRecord
from regoal.reports import plots


def made_up_run(tmp_path, method="lifted", seed=0, episodes=30, solved=(0, 5, 3, 10)):
    return RunRecord(
        tmp_path,
        {"domain": "blocks", "hindsight": method, "seed": seed},
        episodes=[
            {
                "episode": e,
                "goal_size": None if e % 7 == 0 else 1 + e / 10,
                "trajectory_length": None if e % 7 == 0 else 2.0 + e,
            }
            for e in range(episodes)
        ],
        validation=[
            {"episode": 5 * i, "solved": s, "problems": 10, "plan_length": 40, "best": True}
            for i, s in enumerate(solved)
        ],
    )


def is_drawn(paths):
    png, svg = paths
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()
    return True


def test_one_run_is_drawn_the_same_each_time(tmp_path):
    run = made_up_run(tmp_path)
    first = plots.plot_run(run, tmp_path / "figures" / "run.seed0")
    assert [p.name for p in first] == ["run.seed0.png", "run.seed0.svg"]
    assert is_drawn(first)
    again = plots.plot_run(run, tmp_path / "again")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in again]


@pytest.mark.parametrize("episodes", [1, 2])
def test_a_run_that_has_just_begun_can_be_drawn(tmp_path, episodes):
    run = made_up_run(tmp_path, episodes=episodes, solved=())
    assert is_drawn(plots.plot_run(run, tmp_path / "run"))
    assert is_drawn(plots.plot_methods([run], tmp_path / "methods"))


def test_methods_are_drawn_with_seeds_of_different_length(tmp_path):
    runs = [
        made_up_run(tmp_path, method, seed, episodes=30 - seed)
        for method in ("lifted", "propositional", "novel")
        for seed in range(2)
    ]
    lama = RunRecord(tmp_path, {"domain": "blocks", "method": "lama"})
    assert is_drawn(plots.plot_methods([*runs, lama], tmp_path / "methods"))


def test_without_episodes_there_is_nothing_to_draw(tmp_path):
    run = made_up_run(tmp_path, episodes=0)
    with pytest.raises(UsageError, match="no episode has been recorded in"):
        plots.plot_run(run, tmp_path / "run")
    with pytest.raises(UsageError, match="Nothing to draw"):
        plots.plot_methods([run], tmp_path / "run")


def test_best_so_far_never_falls_and_starts_at_zero(tmp_path):
    run = made_up_run(tmp_path, solved=(2, 5, 3, 10))  # at episodes 0, 5, 10, 15
    at = np.array([-1, 0, 4, 5, 12, 15, 29], dtype=float)
    expected = [0.0, 0.2, 0.2, 0.5, 0.5, 1.0, 1.0]
    assert plots.best_so_far(run, at).tolist() == expected


def test_the_test_curve_is_drawn_if_all_runs_have_one(tmp_path):
    run = made_up_run(tmp_path)
    curve = [{"episode": e, "solved": s, "problems": 10} for e, s in [(5, 4), (10, 3), (20, 10)]]
    run = replace(run, test_curve=curve)
    at = np.array([0, 5, 9, 10, 19, 29], dtype=float)
    assert plots.tested_so_far(run, at).tolist() == [0.0, 0.4, 0.4, 0.3, 0.3, 1.0]
    assert is_drawn(plots.plot_methods([run], tmp_path / "tested"))


def test_rolling_mean_leaves_missing_values_out():
    missing = math.nan
    values = np.array([missing, 2.0, missing, 4.0, 6.0, missing, missing])
    found = plots.rolling_mean(values, 2)
    np.testing.assert_allclose(found, [missing, 2, 2, 4, 5, 6, missing])


def test_matplotlib_is_loaded_only_to_draw():
    code = (
        "import sys, regoal.reports.plots\n"
        "bad = {'torch', 'pymimir', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'loaded {bad}' if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_validation_that_ended_early_has_no_coverage():
    records = [
        {"solved": 2, "problems": 10, "tried": 5},
        {"solved": 5, "problems": 10, "tried": 10},
        {"solved": 4, "problems": 10},
    ]
    np.testing.assert_array_equal(plots.whole_coverage_of(records), [np.nan, 0.5, 0.4])
    assert plots.coverage_of(records).tolist() == [0.2, 0.5, 0.4]
