import pytest

from regoal.errors import UsageError
from regoal.system.numbered_files import numbered_files, remove_numbered_files, write_next


def test_numbers_go_up_and_sort_as_numbers(tmp_path):
    prefix = tmp_path / "dk"
    for number in range(1, 12):
        assert write_next(prefix, b"%d" % number) == tmp_path / f"dk.{number}"
    assert [int(path.read_bytes()) for path in numbered_files(prefix)] == list(range(1, 12))


def test_other_files_are_left_alone(tmp_path):
    names = ["dk", "dk.x", "dk.1.tmp", "dk2.1", "other.1", ".dk.1"]
    for name in names:
        (tmp_path / name).touch()
    write_next(tmp_path / "dk", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "dk.1"])
    remove_numbered_files(tmp_path / "dk", ())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"there is no folder .*nowhere"):
        remove_numbered_files(tmp_path / "nowhere" / "dk", ())


def test_no_input_is_removed(tmp_path):
    for number in (1, 2):
        write_next(tmp_path / "dk", b"%d" % number)
    with pytest.raises(UsageError, match=r"dk\.2 is an input; give the results another prefix"):
        remove_numbered_files(tmp_path / "dk", (tmp_path / "dk.3", tmp_path / "dk.2"))
    assert len(numbered_files(tmp_path / "dk")) == 2


def test_numbers_may_begin_with_zeros(tmp_path):
    (tmp_path / "dk.007").touch()
    assert numbered_files(tmp_path / "dk") == [tmp_path / "dk.007"]
    assert write_next(tmp_path / "dk", b"").name == "dk.8"
    remove_numbered_files(tmp_path / "dk", ())
    assert not list(tmp_path.iterdir())
