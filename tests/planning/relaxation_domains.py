"""Small random domains with all conditions and effects of PDDL, and their problems."""

from hypothesis import strategies as st

ARITIES = {"p": 0, "q": 1, "r": 1, "link": 2}
CHANGED = {"p": 0, "q": 1, "r": 1}
ALL = ARITIES | {"linked": 1, "odd": 0}
NAMES = ("a", "b", "t")
TYPES = st.sampled_from(("thing", "tool"))


@st.composite
def literals(draw, terms, arities):
    name = draw(st.sampled_from([n for n, arity in arities.items() if terms or not arity]))
    chosen = [draw(st.sampled_from(terms)) for _ in range(arities[name])]
    atom = f"({' '.join((name, *chosen))})"
    return atom if draw(st.booleans()) else f"(not {atom})"


@st.composite
def conditions(draw, terms, arities, depth=2):
    kinds = ["and", "or", "imply", "not", "exists", "forall", "="] if depth else []
    kind = draw(st.sampled_from(["literal", *kinds]))
    if kind == "=" and terms:
        return f"(= {draw(st.sampled_from(terms))} {draw(st.sampled_from(terms))})"
    if kind in ("literal", "="):
        return draw(literals(terms, arities))
    if kind in ("exists", "forall"):
        inner = draw(conditions((*terms, f"?v{depth}"), arities, depth - 1))
        return f"({kind} (?v{depth} - {draw(TYPES)}) {inner})"
    count = {"not": 1, "imply": 2}.get(kind) or draw(st.integers(1, 3))
    parts = [draw(conditions(terms, arities, depth - 1)) for _ in range(count)]
    return f"({kind} {' '.join(parts)})"


@st.composite
def effects(draw, terms):
    kind = draw(st.sampled_from(["literal", "literal", "when", "forall"]))
    if kind == "literal":
        return draw(literals(terms, CHANGED))
    inner = (*terms, "?e") if kind == "forall" else terms
    when = f"(when {draw(conditions(inner, ALL, 1))} {draw(literals(inner, CHANGED))})"
    return f"(forall (?e - {draw(TYPES)}) {when})" if kind == "forall" else when


@st.composite
def actions(draw, number):
    terms = ("?x", "?y", "?z")[: draw(st.integers(0, 3))]
    typed = " ".join(f"{term} - {draw(TYPES)}" for term in terms)
    changes = draw(st.lists(effects(terms), min_size=1, max_size=3))
    return (
        f"(:action act{number} :parameters ({typed}) :precondition {draw(conditions(terms, ALL))}"
        f" :effect (and {' '.join(changes)}))"
    )


@st.composite
def domains(draw):
    """A domain `d`; `linked` is derived with recursion, `odd` from it, and `link` never changes."""
    found = [draw(actions(i)) for i in range(draw(st.integers(1, 3)))]
    return f"""(define (domain d) (:requirements :adl :derived-predicates) (:types tool - thing)
      (:predicates (p) (q ?x - thing) (r ?x - thing) (link ?x ?y - thing) (linked ?x - thing) (odd))
      (:derived (linked ?x - thing) (or {draw(conditions(("?x",), ARITIES))}
        (exists (?z - thing) (and (link ?x ?z) (linked ?z)))))
      (:derived (odd) {draw(conditions((), ARITIES | {"linked": 1}))})
      {" ".join(found)})"""


@st.composite
def problems(draw):
    """A problem of `d` whose goal is a conjunction of literals that do not contradict."""
    atoms = ["(p)", *(f"({name} {x})" for name in "qr" for x in NAMES)]
    atoms += [f"(link {x} {y})" for x in NAMES for y in NAMES]
    init = draw(st.lists(st.sampled_from(atoms), unique=True))
    goal = draw(st.lists(literals(NAMES, ALL), min_size=1, max_size=3, unique_by=_atom_of))
    return f"""(define (problem one) (:domain d) (:objects a b - thing t - tool)
      (:init {" ".join(init)}) (:goal (and {" ".join(goal)})))"""


def _atom_of(literal):
    return literal.removeprefix("(not ").rstrip(")")
