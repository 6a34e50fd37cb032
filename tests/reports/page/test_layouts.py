from hypothesis import given
from hypothesis import strategies as st

from regoal.reports.page.declarations import Places
from regoal.reports.page.layouts import find_walls, order_places, place_cells
from regoal.reports.page.patterns import read_alternative

LINK = read_alternative("link ?from ?to")
STEPS = Places(
    "grid", up=read_alternative("up ?to ?from"), right=read_alternative("right ?to ?from")
)


@given(st.sets(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=20))
def test_names_give_positions(cells):
    names = [f"c_{row}_{column}" for column, row in cells]
    found = place_cells(Places("grid", names=("x{row}{column}", "*_{row}_{column}")), names, [])
    left, top = min(x for x, _ in cells), min(y for _, y in cells)
    assert found == {f"c_{y}_{x}": (x - left, y - top) for x, y in cells}


def test_names_that_do_not_fit_give_no_positions():
    places = Places("grid", names=("c_{row}_{column}",))
    assert place_cells(places, ["c_1_1", "hall"], []) == {}
    assert place_cells(Places("grid", names=("*c_{row}_{column}",)), ["c_1_1", "cc_1_1"], []) == {}


def test_steps_give_positions_and_parts_stand_side_by_side():
    facts = [("up", "b", "a"), ("right", "c", "a"), ("up", "e", "d")]
    found = place_cells(STEPS, ["a", "b", "c", "d", "e"], facts)
    assert found == {"a": (0, 1), "b": (0, 0), "c": (1, 1), "d": (3, 1), "e": (3, 0)}


def test_steps_that_contradict_each_other_give_no_positions():
    assert place_cells(STEPS, ["a", "b", "c"], [("up", "b", "a"), ("up", "c", "a")]) == {}


def test_walls_stand_between_neighbours_without_a_link():
    #  a | b
    #  -   .     c has no link at all, and d none to a
    #  d   c
    cells = {"a": (0, 0), "b": (1, 0), "c": (1, 1), "d": (0, 1)}
    links = frozenset([("b", "b2"), ("d", "d2"), ("a", "a2")])
    assert find_walls(cells, links) == [(0, 0, "r"), (0, 0, "b")]
    assert find_walls(cells, frozenset([("b", "a"), ("a", "d")])) == []


def test_places_in_order():
    facts = [("link", "shed", "l2"), ("link", "l2", "l10"), ("link", "l10", "gate")]
    assert order_places(LINK, ["gate", "l10", "l2", "shed"], facts) == ["shed", "l2", "l10", "gate"]
    assert order_places((), ["p10", "p2"], facts) == ["p2", "p10"]


def test_places_in_a_circle_are_in_order_of_names():
    facts = [("link", "b", "a"), ("link", "a", "b")]
    assert order_places(LINK, ["b", "a"], facts) == ["a", "b"]
