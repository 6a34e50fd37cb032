"""Canonical forms and twins against permutation of the vertices."""

import itertools
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.planning.lifting.structures import Structure, canonical, reordered, twins

PLAIN = ((), "")
LABELS = st.sampled_from([PLAIN, (("u",), ""), ((), "kitchen")])


@st.composite
def structures(draw):
    size = draw(st.integers(1, 6))
    vertex = st.integers(0, size - 1)
    literal = st.tuples(st.just("e"), st.tuples(vertex, vertex), st.booleans()) | st.tuples(
        st.just("t"), st.tuples(vertex, vertex, vertex), st.just(True)
    )
    literals = draw(st.sets(literal, max_size=8))
    labels = draw(st.lists(LABELS, min_size=size, max_size=size))
    return Structure(tuple(labels), tuple(sorted(literals)))


def shuffled(structure, seed):
    order = list(range(len(structure.labels)))
    random.Random(seed).shuffle(order)
    return reordered(structure, order, structure.literals)


@settings(deadline=None, max_examples=200)
@given(structures(), st.integers(0, 99))
def test_canonical_forms_do_not_depend_on_the_numbering(structure, seed):
    result = canonical(structure)
    assert result.structure == reordered(structure, result.order, structure.literals)
    other = canonical(shuffled(structure, seed))
    assert result.structure == other.structure
    assert result.cells == other.cells


@settings(deadline=None, max_examples=100)
@given(structures())
def test_twins_are_the_swaps_that_change_nothing(structure):
    form, _, cells = canonical(structure)
    leaders = twins(form, cells)
    for one, other in itertools.combinations(range(len(cells)), 2):
        order = list(range(len(cells)))
        order[one], order[other] = other, one
        same = reordered(form, order, form.literals) == form
        assert same == (leaders[one] == leaders[other])


def star_of_chains(chains, length):
    """Many equal chains that start from one vertex."""
    literals = []
    for i in range(chains):
        path = [0, *range(1 + i * length, 1 + (i + 1) * length)]
        literals += [("e", pair, True) for pair in itertools.pairwise(path)]
    return literals


CUBE = [(v, v ^ bit) for v in range(8) for bit in (1, 2, 4)]


@pytest.mark.parametrize(
    "literals",
    [
        star_of_chains(40, 3),
        [("e", pair, True) for pair in itertools.permutations(range(12), 2)],
        [("e", pair, True) for pair in CUBE],
        [("e", (i, (i + 1) % 30), True) for i in range(30)],
    ],
    ids=["star of chains", "clique", "cube", "ring"],
)
def test_symmetric_structures_are_quick(literals):
    size = 1 + max(max(args) for _, args, _ in literals)
    structure = Structure((PLAIN,) * size, tuple(sorted(literals)))
    start = time.process_time()
    forms = {canonical(shuffled(structure, seed)).structure for seed in range(3)}
    assert len(forms) == 1
    assert time.process_time() - start < 2
