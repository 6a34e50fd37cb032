import json
import re
from html.parser import HTMLParser

import pytest

from regoal.errors import UsageError
from regoal.records.results import Outcome, PlanResult
from regoal.records.run_record import RunRecord
from regoal.reports.page.page import embed_json, list_rows, render_page, write_page
from reports.page.plans import DRAWING, make_replay

EVIL = "<script>alert(1)</script>"


def make_run(tmp_path, names, domain="house", method="lifted", episodes=0):
    results = [
        PlanResult(
            problem=name,
            domain=domain,
            method=method,
            outcome=Outcome.SOLVED if i % 2 == 0 else Outcome.STEP_LIMIT,
            plan_length=2 if i % 2 == 0 else None,
            plan_cost=2.0 if i % 2 == 0 else None,
            seconds=0.25,
            steps=2,
        )
        for i, name in enumerate(names)
    ]
    config = {"domain": domain, "hindsight": method, "seed": 3}
    trained = range(1, episodes + 1)
    return RunRecord(
        tmp_path,
        config,
        [{"episode": e} for e in trained],
        [{"episode": e, "solved": e, "problems": episodes} for e in trained],
        results,
    )


class _Reader(HTMLParser):
    """Collects the elements of a page, and the texts of its scripts."""

    def __init__(self):
        super().__init__()
        self.tags, self.scripts, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        (self.scripts if self.tags and self.tags[-1][0] == "script" else self.texts).append(data)


def read(page):
    reader = _Reader()
    reader.feed(page)
    return reader


def test_names_do_no_harm(tmp_path):
    runs = [make_run(tmp_path, [EVIL, "p2"], domain=EVIL, method=EVIL, episodes=3)]
    reader = read(render_page(runs, [make_replay(EVIL, person="<b>", domain=EVIL)], [DRAWING]))
    assert sum(tag == "script" for tag, _ in reader.tags) == 3
    assert all("alert(1)" not in text for text in reader.scripts[1:])
    data = json.loads(reader.scripts[0])
    assert data["rows"][0][3] == EVIL
    assert data["watched"]["plans"][0]["problem"] == EVIL
    assert any(EVIL.lower() in text.lower() for text in reader.texts)


def test_json_cannot_end_its_element():
    text = embed_json({"a": "</script><!-- & 'é\u2028"})
    assert not re.search("[<>&'\u2028]", text)
    assert json.loads(text) == {"a": "</script><!-- & 'é\u2028"}


def test_the_page_asks_for_nothing(tmp_path):
    page = render_page([make_run(tmp_path, ["p1"], episodes=2)], [make_replay()], [DRAWING])
    reader = read(page)
    assert not [tag for tag, _ in reader.tags if tag in ("link", "img", "iframe", "object")]
    for tag, attributes in reader.tags:
        assert "src" not in attributes, tag
        assert (attributes.get("href") or "#").startswith("#"), tag
    assert not re.findall(r"url\((?!#)|@import|fetch\(|XMLHttpRequest", page)
    assert "default-src 'none'" in page


def test_references_inside_the_page_have_their_targets(tmp_path):
    reader = read(render_page([make_run(tmp_path, ["p1"], episodes=2)], [make_replay()], [DRAWING]))
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for _, attributes in reader.tags:
        if (attributes.get("href") or "").startswith("#"):
            assert attributes["href"][1:] in ids
        for key in ("aria-labelledby", "for", "data-table"):
            assert attributes.get(key, ids[0]) in ids


def test_rows_by_hand(tmp_path):
    rows = list_rows([make_run(tmp_path, ["p1", "p2"], domain="blocks-l")])
    assert rows == [
        ["Blocks-L", "lifted", 3, "p1", "solved", 2, 2.0, 2, 0, 0.25, "blocks-l", None],
        ["Blocks-L", "lifted", 3, "p2", "step_limit", None, None, 2, 0, 0.25, "blocks-l", None],
    ]


def test_every_outcome_has_a_sign(tmp_path):
    page = render_page([make_run(tmp_path, ["p1"])], [], [])
    signs = re.search(r"const SIGNS = \{([^}]*)\}", page)
    assert set(re.findall(r"(\w+):", signs[1])) == {outcome.key for outcome in Outcome}


@pytest.mark.parametrize("most", [200_000, 120_000])
def test_what_does_not_fit_is_left_out_and_said(tmp_path, most):
    runs = [make_run(tmp_path, [f"p{i:05}" for i in range(3000)])]
    replays = [make_replay(f"p{i:05}", steps=30) for i in range(300)]
    page = render_page(runs, replays, [DRAWING], most)
    assert most / 2 < len(page.encode()) <= most
    data = json.loads(read(page).scripts[0])
    rows, plans = len(data["rows"]), len(data["watched"]["plans"])
    assert 0 < rows < 3000
    assert 0 < plans < 300
    assert f"{3000 - rows} more results are left out" in page
    assert f"{300 - plans} plans are left out" in page


def test_coverage_is_drawn_by_method(tmp_path):
    runs = [make_run(tmp_path, ["p1", "p2", "p3"], method=m) for m in ("lifted", "lama")]
    page = render_page(runs, [], [])
    assert 'aria-label="House, lifted: 2 of 3 solved"' in page
    assert 'aria-label="House, lama: 2 of 3 solved"' in page


def test_curves_end_where_training_did(tmp_path):
    page = render_page([make_run(tmp_path, [], episodes=4)], [], [])
    assert 'aria-label="House: lifted ends at 100 per cent"' in page
    assert "4 episodes" in page


def test_plans_need_no_runs():
    page = render_page([], [make_replay()], [])
    assert "walk ann room0 room1" in page


def test_what_cannot_be_written_is_said(tmp_path):
    with pytest.raises(UsageError, match="nothing to show"):
        write_page([make_run(tmp_path, [])], [], [], tmp_path / "r.html")
    with pytest.raises(UsageError, match="folder that exists"):
        write_page([make_run(tmp_path, ["p1"])], [], [], tmp_path / "none" / "r.html")
    write_page([make_run(tmp_path, ["p1"])], [], [], tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
