import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.errors import UsageError
from regoal.records.json_lines import append_json_line, as_float, read_jsonl


def test_lines_come_back_in_order(tmp_path):
    path = tmp_path / "episodes.jsonl"
    for episode in range(3):
        append_json_line(path, {"episode": episode, "note": "ä\nb"})
    assert [r["episode"] for r in read_jsonl(path)] == [0, 1, 2]
    assert path.read_bytes().count(b"\n") == 3


def test_numbers_that_are_not_finite_become_null(tmp_path):
    path = tmp_path / "episodes.jsonl"
    append_json_line(path, {"loss": math.nan, "sizes": [1.0, math.inf]})
    assert read_jsonl(path) == [{"loss": None, "sizes": [1.0, None]}]
    assert math.isnan(as_float(None))


@settings(deadline=None, max_examples=40)
@given(cut=st.integers(0, 60))
def test_a_kill_at_any_byte_costs_at_most_the_last_record(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("run") / "episodes.jsonl"
    for episode in range(4):
        append_json_line(path, {"episode": episode, "x": "}"})
    data = path.read_bytes()
    cut = min(cut, len(data))
    path.write_bytes(data[:cut])
    whole = data[:cut].count(b"\n") + data[:cut].endswith(b'"}"}')  # cut just before a line end
    assert len(read_jsonl(path)) == whole
    append_json_line(path, {"episode": 9})
    episodes = [record["episode"] for record in read_jsonl(path)]
    assert episodes == [*range(whole), 9]


def test_a_bad_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "episodes.jsonl"
    path.write_text('{"episode": 0}\n{"epis\n{"episode": 2}\n')
    with pytest.raises(UsageError, match=r"episodes\.jsonl, line 2 is not JSON"):
        read_jsonl(path)
    path.write_text("[" * 5000 + "\n")
    with pytest.raises(UsageError, match="line 1 is not JSON: it is nested too deeply"):
        read_jsonl(path)
    path.write_text("3\n")
    with pytest.raises(UsageError, match="line 1 must hold a JSON object"):
        read_jsonl(path)
