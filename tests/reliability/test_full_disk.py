import errno

import pytest

from reliability import kills
from reliability.disk import Disk
from reliability.full_disk import fill_others, fill_trainings, run_on


def test_a_disk_that_fails_leaves_nothing_broken(tmp_path):
    found = fill_trainings(tmp_path / "runs", most=4)
    assert found.faults == []
    assert found.calls["train"] > 20
    assert found.runs == found.resumes == 12
    run, files = tmp_path / "runs" / "whole", tmp_path / "runs" / "files"
    found = fill_others(tmp_path / "others", run, files, most=2, left_out="report")
    assert found.faults == []
    assert found.runs == 18


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS])
def test_without_a_place_for_the_run_nothing_begins(tmp_path, error):
    files, out = kills.write_problems(tmp_path / "files"), tmp_path / "run"
    words = kills.command(files, out, seed=0, episodes=1)
    assert run_on(Disk(out, 1, error, stays=True), words, tmp_path / "log") == 36
    assert "run cannot be written: " in (tmp_path / "log").read_text()
    assert not out.exists()
