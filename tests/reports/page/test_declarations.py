from importlib.resources import files

import pytest

from regoal.errors import UsageError
from regoal.planning.pddl.domain import parse_domain
from regoal.planning.plain.problem import read_problem
from regoal.reports.page.declarations import (
    choose_drawing,
    parse_drawing,
    read_drawing,
    shipped_drawings,
)

EMPTY = "(define (problem p) (:domain d) (:init) (:goal (and)))"
BUILT_IN = sorted(files("regoal.domains").joinpath("pddl").iterdir(), key=lambda path: path.name)
DRAWN = {
    *("blocks", "delivery", "gripper", "maze", "miconic", "reward", "spanner", "visitall"),
}
TOWERS = '[towers]\non = "on ?thing ?below"\ntable = "table ?thing"\nheld = "held ?thing"\n'
ROOM = 'needs = ["at/2"]\n[places]\nlayout = "row"\n'


@pytest.mark.parametrize("path", BUILT_IN, ids=lambda path: path.name)
def test_built_in_domains_have_their_own_drawing(path):
    predicates = read_problem(parse_domain(path).source, EMPTY).predicates
    drawing = choose_drawing(shipped_drawings(), predicates)
    name = path.name.removesuffix(".pddl")
    assert (drawing.source if drawing else None) == (f"{name}.toml" if name in DRAWN else None)


def test_a_drawing_is_read_completely():
    drawing = parse_drawing(
        'needs = ["At/2"]\n[places]\nlayout = "grid"\nnames = ["c{row}-{column}"]\n'
        'up = "up ?to ?from"\n[[things]]\nshape = "car"\ntype = "Car"\n'
        'at = ["at ?thing ?place", "served ?thing & goal ?thing ?place"]\n'
        '[[marks]]\nlook = "wall"\nlabel = "shut"\nunless = "open ?place"\n'
        '[[counters]]\nlabel = "cars"\ncount = "at ?thing ?place"\n',
        "d.toml",
    )
    assert drawing.fits({"at": 2, "more": 1})
    assert not drawing.fits({"at": 1})
    assert drawing.places.up == (("up", "?to", "?from"),)
    [car] = drawing.things
    assert car.type == "car"
    assert car.at == (
        (("at", "?thing", "?place"),),
        (("served", "?thing"), ("goal", "?thing", "?place")),
    )
    assert drawing.marks[0].unless
    assert drawing.counters == (("cars", (("at", "?thing", "?place"),)),)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("needs = [", "not TOML"),
        (ROOM + TOWERS, "either"),
        ('needs = ["at/2"]\n', "either"),
        (TOWERS, "needs is missing"),
        ('needs = ["at"]\n' + TOWERS, "on/2"),
        (ROOM + 'colour = "red"\n', "unknown key 'colour'"),
        (ROOM.replace("row", "heap"), "layout must be one of"),
        (ROOM + 'names = ["c_{row}"]\n', "column"),
        (ROOM + "links = 3\n", "links must be a text"),
        (ROOM + '[[things]]\nshape = "box"\n', "at is missing"),
        (ROOM + '[[things]]\nshape = "cat"\nat = ["at ?thing ?place"]\n', "shape must be one of"),
        (ROOM + '[[things]]\nshape = "box"\nat = ["at ?thing & "]\n', "pattern"),
        (ROOM + '[[marks]]\nlook = "dot"\n', "either on or unless"),
        ("needs = [1]\n" + TOWERS, "list of texts"),
        ('needs = ["at/2"]\nthings = [3]\n[places]\nlayout = "row"\n', "must be a table"),
    ],
)
def test_faults_are_named(text, fault):
    with pytest.raises(UsageError, match=fault) as error:
        parse_drawing(text, "mine.toml")
    assert str(error.value).startswith("mine.toml")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match="cannot be read as a drawing"):
        read_drawing(tmp_path / "none.toml")
    (tmp_path / "wide.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot be read as a drawing"):
        read_drawing(tmp_path / "wide.toml")
