"""Files are written whole; links and pipes stay what they are."""

import os
import stat
import threading

import pytest

from regoal.config import LAPTOP, LinearDecay
from regoal.files import write_text_atomically
from regoal.planning.plans import prepare_plan_file


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "a.txt"
    write_text_atomically(path, "old")
    write_text_atomically(path, "new\n")
    assert path.read_bytes() == b"new\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_and_its_target_is_written(tmp_path):
    target, link = tmp_path / "target.plan", tmp_path / "link.plan"
    target.write_text("old")
    link.symlink_to(target)
    prepare_plan_file(link, ())
    assert not target.exists()
    write_text_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path):
    pipe, seen = tmp_path / "pipe", []
    os.mkfifo(pipe)
    prepare_plan_file(pipe, ())
    reader = threading.Thread(target=lambda: seen.append(pipe.read_text()))
    reader.start()
    write_text_atomically(pipe, "plan")
    reader.join(timeout=10)
    assert seen == ["plan"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_text_atomically(path, "old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        write_text_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "values",
    [{"seed": -1}, {"seed": 2**32}, {"huber_delta": float("inf")}, {"layers": 0}],
)
def test_impossible_settings_are_refused_by_name(values):
    import dataclasses

    (name,) = values
    with pytest.raises(ValueError, match=name):
        dataclasses.replace(LAPTOP, **values)


def test_a_decay_is_finite():
    with pytest.raises(ValueError, match="finite"):
        LinearDecay(start=float("inf"), end=0.1, episodes=3)
