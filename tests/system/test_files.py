"""Files are written whole; links and pipes stay what they are."""

import os
import stat
import threading
from pathlib import Path

import pytest

from regoal.config import LAPTOP, Decay
from regoal.errors import PddlError, UsageError
from regoal.planning.plans import prepare_plan_file, read_plan
from regoal.planning.text import read_text
from regoal.system.files import read_bytes, write_text_atomically


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
        Decay(start=float("inf"), end=0.1, episodes=3)


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/urandom", "sparse"])
@pytest.mark.parametrize("read", [read_text, read_plan])
def test_files_without_an_end_are_refused_soon(tmp_path, read, name):
    path = tmp_path / name
    if name == "sparse":
        path.touch()
        os.truncate(path, 20 * 2**30)
    with pytest.raises(UsageError, match=f"{name}.*it has more than 64 MiB"):
        read(path)


def test_a_pipe_is_read_to_its_end(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"(a)\n" * 100_000))
    writer.start()
    assert read_bytes(path) == b"(a)\n" * 100_000
    writer.join()


def test_a_nul_byte_is_named_with_its_line(tmp_path):
    path = tmp_path / "domain.pddl"
    path.write_bytes(b"(define (domain d)\n" * 20 + b"\0)")
    with pytest.raises(PddlError, match=r"domain\.pddl, line 21: a NUL byte"):
        read_text(path)
    path.write_bytes("(define (domain d))".encode("utf-16-le"))
    with pytest.raises(PddlError, match="UTF-16"):
        read_text(path)


def test_an_error_names_no_temporary_file(tmp_path, monkeypatch):
    def read_only(*of, **options):
        raise OSError(30, "Read-only file system", ".a.tmp")

    monkeypatch.setattr(os, "fsync", read_only)
    monkeypatch.setattr(Path, "unlink", read_only)
    with pytest.raises(OSError, match="Read-only") as error:
        write_text_atomically(tmp_path / "a", "text")
    assert error.value.filename == str(tmp_path / "a")
