"""Small random domains of plain literals, with a constant and equality, and their problems."""

from hypothesis import strategies as st

ARITIES = {"p": 0, "q": 1, "r": 1, "link": 2}
NAMES = ("a", "t", "c")
TYPES = st.sampled_from(("thing", "tool"))


@st.composite
def literals(draw, terms, names=tuple(ARITIES)):
    name = draw(st.sampled_from(names))
    chosen = [draw(st.sampled_from(terms)) for _ in range(ARITIES[name])]
    atom = f"({' '.join((name, *chosen))})"
    return atom if draw(st.booleans()) else f"(not {atom})"


@st.composite
def actions(draw, number):
    terms = ("?x", "?y")[: draw(st.integers(0, 2))]
    typed = " ".join(f"{term} - {draw(TYPES)}" for term in terms)
    terms = (*terms, "c")
    conditions = draw(st.lists(literals(terms), max_size=3))
    if draw(st.booleans()):
        equal = f"(= {terms[0]} {draw(st.sampled_from(terms))})"
        conditions.append(draw(st.sampled_from((equal, f"(not {equal})"))))
    changes = draw(st.lists(literals(terms, ("p", "q", "r")), min_size=1, max_size=3))
    return (
        f"(:action act{number} :parameters ({typed}) :precondition (and {' '.join(conditions)})"
        f" :effect (and {' '.join(changes)}))"
    )


@st.composite
def domains(draw):
    """A domain `d` in which `link` never changes."""
    found = [draw(actions(i)) for i in range(draw(st.integers(1, 4)))]
    return f"""(define (domain d)
      (:requirements :strips :typing :negative-preconditions :equality) (:types tool - thing)
      (:constants c - thing)
      (:predicates (p) (q ?x - thing) (r ?x - thing) (link ?x ?y - thing))
      {" ".join(found)})"""


@st.composite
def problems(draw):
    """A problem of `d` whose goal is a conjunction of literals that do not contradict."""
    atoms = ["(p)", *(f"({name} {x})" for name in "qr" for x in NAMES)]
    atoms += [f"(link {x} {y})" for x in NAMES for y in NAMES]
    init = draw(st.lists(st.sampled_from(atoms), unique=True))
    goal = draw(st.lists(literals(NAMES), min_size=2, max_size=4, unique_by=_atom_of))
    return f"""(define (problem one) (:domain d) (:objects a - thing t - tool)
      (:init {" ".join(init)}) (:goal (and {" ".join(goal)})))"""


def _atom_of(literal):
    return literal.removeprefix("(not ").rstrip(")")
