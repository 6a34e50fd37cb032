"""Which actions and atoms mention all objects of a literal."""

from hypothesis import given
from hypothesis import strategies as st

from regoal.networks.mentions import Mentions
from regoal.planning.goals import Atom

NAMES = st.lists(st.sampled_from("abcd"), max_size=4)


def test_literals_of_two_objects_and_more():
    mentions = Mentions(
        [
            (Atom("at", ("a", "b")), True),
            (Atom("at", ("b", "a")), False),
            (Atom("on", ("a", "a")), True),
            (Atom("free", ("a",)), True),
            (Atom("go", ()), True),
        ]
    )
    found = {(m.predicate, m.positive) for m in mentions.among(("b", "c", "a"))}
    assert found == {("at", True), ("at", False)}
    assert not list(mentions.among(("a", "c")))
    assert not Mentions([(Atom("free", ("a",)), True)])
    assert mentions


@given(st.lists(st.tuples(NAMES, st.booleans()), max_size=6), NAMES)
def test_each_literal_whose_objects_all_occur_is_found_once(literals, objects):
    atoms = [(Atom("p", tuple(names)), positive) for names, positive in literals]
    found = sorted((m.positive, sorted(m.objects)) for m in Mentions(atoms).among(objects))
    wanted = sorted(
        (positive, sorted(set(names)))
        for names, positive in literals
        if len(set(names)) > 1 and set(names) <= set(objects)
    )
    assert found == wanted
