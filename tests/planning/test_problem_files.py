"""Problems and domains are found in the order of other planners."""

from pathlib import Path

import pytest

from regoal.errors import UsageError
from regoal.planning.problem_files import domain_file, problem_files


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def test_problems_come_in_natural_order_without_domains_and_other_files(tmp_path):
    touch(tmp_path, "p10.pddl", "p2.pddl", "p1.PDDL", "domain.pddl", "p1-domain.pddl", "notes.txt")
    touch(tmp_path, "sub.pddl/p3.pddl")
    assert [path.name for path in problem_files(tmp_path)] == ["p1.PDDL", "p2.pddl", "p10.pddl"]


def test_a_file_is_one_problem_whatever_its_name(tmp_path):
    touch(tmp_path, "my-domain-problem.txt")
    path = tmp_path / "my-domain-problem.txt"
    assert problem_files(path) == [path]


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_no_problems_is_an_error_that_names_the_folder(tmp_path, name):
    touch(tmp_path, "empty/domain.pddl")
    with pytest.raises(UsageError, match=name):
        problem_files(tmp_path / name)


def test_the_domain_beside_a_problem_in_fast_downwards_order(tmp_path):
    names = ["domain.pddl", "p01-ab-domain.pddl", "p01-domain.pddl", "domain_p01-ab.pddl",
             "domain-p01-ab.pddl"]  # fmt: skip
    touch(tmp_path, "p01-ab.pddl", *names)
    for name in names:
        assert domain_file(tmp_path / "p01-ab.pddl").name == name
        (tmp_path / name).unlink()
    with pytest.raises(UsageError, match="p01-ab"):
        domain_file(tmp_path / "p01-ab.pddl")


def test_the_domain_above_a_problem(tmp_path, monkeypatch):
    touch(tmp_path, "domain.pddl", "testing/easy/p01.pddl")
    assert domain_file(tmp_path / "testing/easy/p01.pddl") == tmp_path / "domain.pddl"
    monkeypatch.chdir(tmp_path / "testing" / "easy")
    assert domain_file(Path("p01.pddl")).samefile(tmp_path / "domain.pddl")
