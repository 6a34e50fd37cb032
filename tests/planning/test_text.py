"""Domains, problems and plans are read in every encoding."""

import unicodedata

import pytest

from regoal import cli
from regoal.errors import PddlError, UsageError
from regoal.planning.plans import read_plan
from regoal.planning.text import read_text

DOMAIN = """(define (domain caf\u00e9) (:predicates (ge\u00f6ffnet ?x))
  (:action \u00f6ffne :parameters (?x) :effect (ge\u00f6ffnet ?x)))"""
PROBLEM = """(define (problem p) (:domain caf\u00e9) (:objects t\u00fcr) (:init)
  (:goal (ge\u00f6ffnet t\u00fcr)))"""
PLAN = "(\u00f6ffne t\u00fcr)\n"


@pytest.mark.parametrize("plan_form", ["NFC", "NFD"])
@pytest.mark.parametrize("problem_form", ["NFC", "NFD"])
def test_composed_and_decomposed_names_are_equal(tmp_path, problem_form, plan_form):
    texts = {"d": DOMAIN, "p": unicodedata.normalize(problem_form, PROBLEM)}
    texts["plan"] = unicodedata.normalize(plan_form, PLAN)
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert cli.run(["validate", *(str(tmp_path / name) for name in ("d", "p", "plan"))]) == 0


def test_a_byte_that_is_not_utf8_may_stand_in_a_comment_of_a_plan(tmp_path):
    path = tmp_path / "plan"
    path.write_bytes(b"; pl\xe4ne\n(go a) ; na\xefve\n")
    [step] = read_plan(path)
    assert (step.name, step.objects) == ("go", ("a",))


def test_such_a_byte_in_a_step_is_an_error_with_its_line(tmp_path):
    path = tmp_path / "plan"
    path.write_bytes(b"(go a)\n(go t\xfcr)\n")
    with pytest.raises(PddlError, match="plan, line 2: a byte that is not UTF-8 stands in a name"):
        read_plan(path)


@pytest.mark.parametrize("read", [read_text, read_plan])
@pytest.mark.parametrize(
    ("encoding", "named"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16LE"),
        ("utf-16-be", "UTF-16BE"),
        ("utf-32", "UTF-32"),
        ("utf-32-le", "UTF-32LE"),
        ("utf-32-be", "UTF-32BE"),
    ],
)
def test_wide_encodings_are_named_as_iconv_names_them(tmp_path, read, encoding, named):
    path = tmp_path / "file"
    path.write_bytes("(go a)\n".encode(encoding))
    with pytest.raises(PddlError, match=f"iconv -f {named} -t UTF-8`"):
        read(path)


@pytest.mark.parametrize(("read", "kind"), [(read_text, "PDDL"), (read_plan, "plan")])
def test_a_folder_is_refused_by_kind(tmp_path, read, kind):
    with pytest.raises(UsageError, match=f"is a folder; give a {kind} file"):
        read(tmp_path)
