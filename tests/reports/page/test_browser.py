"""The page in a real Chromium, opened from disk; skipped if there is none."""

import shutil
from dataclasses import replace

import pytest

from regoal import cli
from regoal.errors import EXIT_DONE, EXIT_USAGE
from regoal.reports.page.page import render_page
from reports.page.plans import DRAWING, ROOMS, make_replay
from reports.page.test_page import EVIL, make_run

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens a page at 390 pixels; at the end, checks that nothing failed or was asked for."""
    opened, faults, asked = [], [], []

    def open_page(text, **settings):
        (tmp_path / "report.html").write_text(text, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": 390, "height": 800}, reduced_motion="reduce", **settings
        )
        opened.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text))
        page.on("dialog", lambda dialog: faults.append("a dialog opened"))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "report.html").as_uri())
        return page

    yield open_page
    for context in opened:
        context.close()
    assert faults == []
    assert all(url.endswith("report.html") for url in asked)


def texts(page, selector):
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def test_a_plan_plays_to_its_end(show):
    page = show(render_page([], [make_replay(steps=5)], [DRAWING]))
    assert "5 steps follow" in page.inner_text("#say")
    page.select_option("#speed", "10")
    page.get_by_role("button", name="Play", exact=True).click()
    playwright.expect(page.locator("#count")).to_have_text("5 / 5")
    assert page.inner_text("#say") == "Step 5 of 5: (walk ann room1 room2), the goal is reached"
    assert page.get_by_role("button", name="Play", exact=True).is_visible()
    assert page.locator(".place", has_text="room2").locator(".token").count() == 1
    assert "2 of 2 facts hold" in page.inner_text("#goal")
    assert texts(page, "#changes li") == ["\N{MINUS SIGN} (at ann room1)", "+ (at ann room2)"]


def test_keys_step_and_jump(show):
    page = show(render_page([], [make_replay(steps=5)], [DRAWING]))
    page.focus("#scene")
    for key, count in (
        ("ArrowRight", "1 / 5"), ("ArrowRight", "2 / 5"), ("ArrowLeft", "1 / 5"), ("End", "5 / 5"),
        ("ArrowRight", "5 / 5"), ("Home", "0 / 5"), ("ArrowLeft", "0 / 5"),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert page.inner_text("#count") == count, key
    page.keyboard.press("Space")
    playwright.expect(page.locator("#count")).to_have_text("1 / 5")
    assert page.get_by_role("button", name="Stop").is_visible()
    page.keyboard.press("Space")
    assert page.get_by_role("button", name="Play", exact=True).is_visible()


def test_going_back_restores_every_state(show):
    page = show(render_page([], [make_replay(steps=7)], [DRAWING]))
    page.focus("#scene")
    pictures = []
    for key in ["ArrowRight"] * 7 + ["ArrowLeft"] * 7:
        pictures.append(page.inner_html("#scene"))
        page.keyboard.press(key)
    pictures.append(page.inner_html("#scene"))
    assert pictures == pictures[::-1]
    assert len(set(pictures)) > 3


def test_tables_sort_and_filter(show, tmp_path):
    names = ["p2", "p10", "p1"]
    runs = [make_run(tmp_path, names), make_run(tmp_path, names[:2], domain="zoo", method="lama")]
    page = show(render_page(runs, [], []))
    problems = "#problem-table tbody th"
    page.locator("#problem-table").get_by_role("button", name="Problem").click()
    assert texts(page, problems) == ["p1", "p2", "p2", "p10", "p10"]
    assert page.get_attribute("#problem-table th:nth-child(4)", "aria-sort") == "ascending"
    page.locator("#problem-table").get_by_role("button", name="Problem").click()
    assert texts(page, problems) == ["p10", "p10", "p2", "p2", "p1"]
    page.get_by_label("Outcome").select_option("step_limit")
    assert texts(page, problems) == ["p10", "p10"]
    page.get_by_label("Search").fill("zoo")
    assert page.inner_text("#problem-count") == "1 of 5 results, 0 solved"
    table = page.locator("#t-seeds")
    page.locator("summary", has_text="Test coverage over seeds").click()
    before = texts(page, "#t-seeds tbody th")
    for _ in range(2):
        table.get_by_role("button", name="Domain").click()
    assert texts(page, "#t-seeds tbody th") == before[::-1] == ["Zoo", "House"]


def test_a_problem_leads_to_its_plan(show, tmp_path):
    replays = [make_replay("p1"), make_replay("p2", steps=3), make_replay("p3")]
    run = make_run(tmp_path, ["p1", "p2", "p3"])
    long = replace(run.results[2], plan_length=9, short_length=2)
    run = replace(run, results=[*run.results[:2], long])
    page = show(render_page([run], replays, [DRAWING]))
    buttons = page.get_by_role("button", name="Watch the plan of")
    assert buttons.count() == 2  # p2 is not solved
    buttons.nth(1).click()
    assert page.locator("#plan option:checked").inner_text() == "house p3 (2 steps)"
    assert page.evaluate("document.activeElement.id") == "scene"


def test_names_are_shown_and_not_run(show, tmp_path):
    runs = [make_run(tmp_path, [EVIL], domain=EVIL, method=EVIL, episodes=2)]
    replay = make_replay(EVIL, person="<img/src=x/onerror=alert(1)>", domain=EVIL, fault=EVIL)
    page = show(render_page(runs, [replay], [DRAWING]))
    page.focus("#scene")
    page.keyboard.press("End")
    assert EVIL in page.inner_text("#problem-table")
    assert page.locator("#scene img").count() == 0
    assert f"This plan is invalid: {EVIL}" in page.inner_text("#goal")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_small_screens_need_no_sideways_scrolling(show, tmp_path, scheme):
    runs = [make_run(tmp_path, ["p" * 200, "p1"], episodes=3)]
    page = show(render_page(runs, [make_replay(person="a" * 90)], [DRAWING]), color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, background.removeprefix("rgb(").removesuffix(")").split(", ")))
    assert (brightness < 200) == (scheme == "dark")


def test_the_theme_can_be_chosen(show):
    page = show(render_page([], [make_replay()], [DRAWING]), color_scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    for _ in range(2):
        page.click("#theme")
    assert page.inner_text("#theme") == "Theme: dark"
    assert page.evaluate(colour) != light


BLOCKS = """(define (problem p) (:domain blocks) (:objects a b c)
  (:init (on-table a) (on b a) (clear b) (on-table c) (clear c) (arm-empty))
  (:goal (and (on b c) (on-table c))))"""
BLOCKS_PLAN = "(unstack b a)\n(stack b c)\n"
MAZE = """(define (problem p) (:domain maze) (:objects c_0_0 c_0_1 c_1_0 c_1_1 - cell)
  (:init (at c_0_0) (connected c_0_0 c_1_0) (connected c_1_0 c_0_0)
    (connected c_1_0 c_1_1) (connected c_1_1 c_1_0) (connected c_1_1 c_0_1) (connected c_0_1 c_1_1))
  (:goal (at c_0_1)))"""
MAZE_PLAN = "(move c_0_0 c_1_0)\n(move c_1_0 c_1_1)\n(move c_1_1 c_0_1)\n"
HIKE = """(define (problem p) (:domain hiking) (:objects c - car t - tent x - person p q - place)
  (:init (at_car c p) (at_tent t p) (at_person x p) (down t)) (:goal (up t)))"""
LIFT = """(define (problem p) (:domain miconic) (:objects a b - passenger f1 f2 - floor)
  (:init (lift-at f1) (above f1 f2) (origin a f1) (destin a f2) (origin b f2) (destin b f1))
  (:goal (served a)))"""


@pytest.fixture
def watch(show, tmp_path):
    """Makes a report on one plan of a built-in domain by the command, and opens it."""

    def make(domain, problem, plan, *options):
        cli.run(["generate", domain, "--out", str(tmp_path / "all")])
        (tmp_path / "domain.pddl").write_bytes((tmp_path / "all" / "domain.pddl").read_bytes())
        (tmp_path / "p.pddl").write_text(problem)
        (tmp_path / "p.plan").write_text(plan)
        files = ["--plans", str(tmp_path / "p.plan"), "--problems", str(tmp_path / "p.pddl")]
        code = cli.run(["report", "--html", str(tmp_path / "r.html"), *files, *options])
        assert code == EXIT_DONE
        return show((tmp_path / "r.html").read_text(encoding="utf-8"))

    return make


def test_blocks_stand_in_towers(watch):
    page = watch("blocks", BLOCKS, BLOCKS_PLAN)
    towers = "#scene .now .tower"
    assert texts(page, towers) == ["b\na", "c"] or texts(page, towers) == ["a\nb", "c"]
    page.click("#next")
    assert page.inner_text(".arm").split() == ["Arm", "b"]
    page.click("#next")
    assert sorted(texts(page, f"{towers}:nth-child(2) .token")) == ["b", "c"]
    assert page.locator("#scene .now .done").count() == 2
    assert texts(page, ".goal-towers .tower .name") == ["c", "b"]


def test_a_maze_has_walls(watch):
    page = watch("maze", MAZE, MAZE_PLAN)
    cells = page.locator(".cell")
    assert cells.count() == 4
    assert page.locator(".cell.wall-r").get_attribute("title") == "c_0_0"
    assert page.locator(".cell.wall-b").count() == 0
    page.click("#last")
    assert page.locator(".cell:has(.token)").get_attribute("title") == "c_0_1"
    assert page.locator(".cell.trail").count() == 3


def test_a_lift_carries_passengers(watch):
    page = watch("miconic", LIFT, "(board f1 a)\n(up f1 f2)\n(depart f2 a)\n")
    assert texts(page, ".place-name") == ["f2", "f1"]
    page.click("#next")
    assert (
        page.locator(".place:has-text('f1') .shaft .held .token").get_attribute("title") == "a: f2"
    )
    page.click("#last")
    assert page.locator(".place").nth(0).locator(".place-body .token.done").count() == 1
    assert texts(page, "#counters li") == ["1 waiting", "0 in the lift", "1 served"]


def test_other_domains_show_the_facts_that_change(watch):
    page = watch("hiking", HIKE, "(drive x p q c)\n(drive x q p c)\n(put_up x p t)\n")
    assert page.locator(".facts h4").count() == 3
    page.click("#next")
    assert texts(page, ".facts .added") == ["+ c q", "+ x q"]
    assert texts(page, ".facts .removed") == ["\N{MINUS SIGN} c p", "\N{MINUS SIGN} x p"]


def test_a_drawing_of_ones_own_comes_first(watch, tmp_path):
    own = ROOMS.replace('"at/2", "lit/1"', '"at_person/2"').replace("at ?thing", "at_person ?thing")
    (tmp_path / "own.toml").write_text(own)
    page = watch("hiking", HIKE, "(put_up x p t)\n", "--drawings", str(tmp_path / "own.toml"))
    assert page.locator(".place:has-text('p') .token").get_attribute("title") == "x"


def test_options_of_the_page_need_it(tmp_path, capsys):
    assert cli.run(["report", "--plans", str(tmp_path)]) == EXIT_USAGE
    assert "need --html" in capsys.readouterr().err
