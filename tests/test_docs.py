"""The site: it builds without a warning, its commands and examples run, the paths in it exist."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
import yaml

from regoal import cli, errors
from regoal.learning import hindsight
from regoal.networks.policy_file import shipped_policies
from regoal.planning.goals import Goal
from regoal.records.results import Outcome, PlanResult
from regoal.reports import attributes, tables
from regoal.reports.page.declarations import LAYOUTS, LOOKS, SHAPES, parse_drawing
from tools import reference_pages

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "dev" not in path.parts)
TUTORIAL = DOCS / "tutorial" / "first-policy.md"
KEPT = 2
LESS = {
    "train": "--layers 2 --embedding-size 16 --episodes 1 --updates 1 --validation-steps 3 "
    "--horizon 10 --threads 1",
}
PLACES = ("src", "tests", "benchmarks", "reproduction", "docs", "tools")


def text(path):
    return path.read_text(encoding="utf-8")


def console(path):
    """Every command of a page as its words, without `regoal`, and the lines that follow it."""
    blocks = re.findall(r"```console\n(.*?)```", text(path), flags=re.DOTALL)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    commands = [part.rstrip("\n").split("\n") for part in parts]
    assert all(line.startswith("regoal ") for line, *_ in commands)
    return [(shlex.split(line)[1:], shown) for line, *shown in commands]


def python_blocks(page):
    """The Python examples of a page; those of a list are indented."""
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", text(page), flags=re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in blocks]


def navigation(entries):
    """Every page of the navigation."""
    for entry in entries:
        for target in entry.values():
            yield from [target] if isinstance(target, str) else navigation(target)


def test_the_site_builds_without_a_warning(tmp_path):
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "src").symlink_to(ROOT / "src")
    words = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "build" / "site" / "tutorial" / "first-policy.html").is_file()


def test_the_navigation_has_every_page():
    found = navigation(yaml.safe_load(text(ROOT / "mkdocs.yml"))["nav"])
    assert sorted(found) == sorted(path.relative_to(DOCS).as_posix() for path in PAGES)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_images_exist(page):
    for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text(page)):
        assert (page.parent / target).resolve().is_relative_to(DOCS), target
        assert (page.parent / target).is_file(), target


def test_generated_pages_are_current():
    for path, expected in reference_pages.pages().items():
        assert text(path) == expected, f"run python -m tools.reference_pages: {path.name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_can_be_read(page):
    for words, _ in console(page):
        assert not isinstance(cli.parse(words), int), words


def test_the_tutorial_runs_and_shows_what_one_sees(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words, shown in console(TUTORIAL):
        code = cli.run([*words, *LESS.get(words[0], "").split()])
        printed = capsys.readouterr()
        assert code == errors.EXIT_DONE, (words, printed)
        if words[0] in ("generate", "validate", "plan"):
            lines = [line for line in printed.out.splitlines() if " time: " not in line]
            assert not shown or lines == [line for line in shown if " time: " not in line]
        if words[0] == "generate":
            keep_few(Path(words[words.index("--out") + 1]))
        if words[0] == "train":  # one episode teaches nothing: go on with a policy that is good
            shutil.copy(shipped_policies()["gripper"], "runs/gripper/policy.safetensors")
    assert (tmp_path / "report" / "coverage.md").is_file()


def keep_few(problems):
    for surplus in sorted(problems.glob("p*.pddl"))[KEPT:]:
        surplus.unlink()


def test_the_example_of_the_api_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    [example] = python_blocks(DOCS / "reference" / "api.md")
    exec(example, {})
    assert f"prints `{capsys.readouterr().out.strip()}`" in text(DOCS / "reference" / "api.md")


def test_the_example_of_unified_planning_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("unified_planning", reason="Unified Planning is not installed")
    from unified_planning.environment import get_environment

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(get_environment(), "_credits_stream", None)
    cli.run(["generate", "gripper", "--split", "test", "--out", "problems/test"])
    capsys.readouterr()
    page = DOCS / "how-to" / "unified-planning.md"
    [example] = python_blocks(page)
    exec(example, {})
    assert f"prints `{capsys.readouterr().out.strip()}`" in text(page)


def test_the_example_of_a_domain_runs():
    example, _ = python_blocks(DOCS / "how-to" / "add-a-domain.md")
    space = {}
    exec(example, space)
    assert "(painted b3)" in space["generate"](Random(0), blocks=3).to_pddl()


def test_the_example_of_a_drawing_is_read():
    [example] = re.findall(
        r"```toml\n(.*?)```", text(DOCS / "how-to" / "watch-plans.md"), re.DOTALL
    )
    drawing = parse_drawing(example, "depots.toml")
    assert drawing.fits({"in-depot": 2, "truck-at": 2, "loaded": 2})


def test_every_shape_layout_and_look_is_documented():
    page = text(DOCS / "reference" / "drawings.md")
    for word in SHAPES | LAYOUTS | LOOKS:
        assert f"`{word}`" in page, word


def test_the_example_of_a_goal_variant_runs(tasks):
    example, _ = python_blocks(DOCS / "how-to" / "add-a-goal-variant.md")
    space = dict(vars(hindsight))
    exec(example, space)
    state = tasks["blocks"]["tower"].initial_state
    goal = Goal(frozenset(sorted(state.atoms)[:3]))
    assert space["single_goal"](state, goal) == Goal(frozenset(sorted(state.atoms)[:1]))
    assert space["single_goal"](state, Goal(tasks["blocks"]["tower"].goal.atoms)) is None


def test_the_example_of_a_column_adds_one(monkeypatch):
    [example] = python_blocks(DOCS / "how-to" / "add-a-column.md")
    space = dict(vars(attributes))
    exec(example, space)
    run = reference_run()
    before = tables.common_table([run])
    monkeypatch.setattr(tables, "COMPARED", (*tables.COMPARED, space["RETURNS"]))
    after = tables.common_table([run])
    assert after.header == (*before.header, "Returns")
    assert [row[-1].text for row in after.rows] == ["3.0"]


def reference_run():
    """A run with one solved problem, whose plan returned three times."""
    result = PlanResult(
        problem="p001",
        domain="blocks",
        method="lifted",
        outcome=Outcome.SOLVED,
        plan_length=9,
        plan_cost=9.0,
        seconds=1.0,
        steps=9,
        returns=3,
    )
    config = {"domain": "blocks", "hindsight": "lifted"}
    return tables.RunRecord(Path(), config, results=[result])


def test_the_table_of_exit_codes_is_complete():
    rows = re.findall(r"^\| ([\d, ]+) \|", text(DOCS / "reference" / "exit-codes.md"), re.MULTILINE)
    listed = {int(code) for row in rows for code in row.split(",")}
    defined = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert listed == defined | {cli.EXIT_INTERRUPTED, cli.EXIT_TERMINATED}


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", *DOCS.glob("dev/[!l]*.md")], ids=lambda p: p.stem
)
def test_named_places_exist(page):
    package = ROOT / "src" / "regoal"
    folders = {path.name for path in package.iterdir() if path.is_dir()}
    for place in re.findall(r"`([\w./-]+/[\w./-]*|\w+\.py)`", text(page)):
        first = place.split("/")[0]
        made = first == "runs" and not place.endswith((".py", "runs/"))  # by a training
        if made or "towers" in place:  # an example
            continue
        if first in PLACES:
            assert (ROOT / place).exists(), place
        elif first in folders:
            assert (package / place).exists(), place
        elif "/" not in place:
            found = [*ROOT.glob(place), *package.rglob(place), *(ROOT / "tests").rglob(place)]
            assert found, place


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_private_functions_exist(page):
    """A page that names a private function is wrong as soon as that function has another name."""
    sources = "\n".join(text(path) for path in (ROOT / "src").rglob("*.py"))
    for name in re.findall(r"`(?:[A-Za-z]\w*\.)?(_[a-z]\w+)`", text(page)):
        assert re.search(rf"def {name}\b|^{name} = ", sources, flags=re.MULTILINE), name


def test_named_methods_exist():
    sources = [text(path) for path in (ROOT / "src").rglob("*.py")]
    for page in PAGES:
        for owner, member in re.findall(r"`([A-Z][a-z]\w+)\.(\w+)`", text(page)):
            assert any(f"class {owner}" in s and member in s for s in sources), (owner, member)
