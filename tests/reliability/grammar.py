"""Hypothesis grammars: PDDL (valid and broken), plans, descriptions of policies, sweep files."""

import json
import re

from hypothesis import strategies as st

PREDICATES = {"p": 0, "q": 1, "r": 1, "link": 2}
TYPES = ("object", "thing", "tool")
CONSTANTS = ("c0",)
OBJECTS = ("a", "b", "t")
_TOKEN = re.compile(r"[()]|[^\s()]+|\n")


@st.composite
def atoms(draw, terms):
    """One atom over `terms`, an equation now and then."""
    names = [name for name, arity in PREDICATES.items() if terms or arity == 0]
    name = draw(st.sampled_from(names))
    arguments = [draw(st.sampled_from(terms)) for _ in range(PREDICATES[name])]
    return f"({' '.join((name, *arguments))})"


@st.composite
def conditions(draw, terms, depth=2):
    """A condition of any shape that PDDL has, over `terms`."""
    kinds = ["atom", "atom", "not", "and"]
    if depth:
        kinds += ["or", "imply", "exists", "forall", "and", "nothing", "equal"]
    kind = draw(st.sampled_from(kinds))
    if kind == "equal" and terms:
        return f"(= {draw(st.sampled_from(terms))} {draw(st.sampled_from(terms))})"
    if kind in ("exists", "forall"):
        variable = f"?v{depth}"
        body = draw(conditions((*terms, variable), depth - 1))
        return f"({kind} ({variable} - {draw(st.sampled_from(TYPES))}) {body})"
    if kind in ("and", "or", "imply", "not"):
        if depth == 0:
            return f"(not {draw(atoms(terms))})" if kind == "not" else draw(atoms(terms))
        count = {"not": 1, "imply": 2}.get(kind) or draw(st.integers(1, 3))
        return f"({' '.join((kind, *(draw(conditions(terms, depth - 1)) for _ in range(count))))})"
    return "()" if kind == "nothing" else draw(atoms(terms))


@st.composite
def literals(draw, terms):
    """An atom or its negation."""
    found = draw(atoms(terms))
    return found if draw(st.booleans()) else f"(not {found})"


@st.composite
def effects(draw, terms):
    """A conjunction of literals, conditional and universal ones among them."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        part = draw(literals(terms))
        if draw(st.integers(0, 3)) == 0:
            part = f"(when {draw(conditions(terms, 1))} {part})"
        if draw(st.integers(0, 3)) == 0:
            part = (
                f"(forall (?e - {draw(st.sampled_from(TYPES))}) {draw(literals(('?e', *terms)))})"
            )
        parts.append(part)
    return f"(and {' '.join(parts)})"


@st.composite
def actions(draw, number):
    """One action with up to two parameters, its sections sometimes left out."""
    names = ("?x", "?y")[: draw(st.integers(0, 2))]
    typed = " ".join(f"{name} - {draw(st.sampled_from(TYPES))}" for name in names)
    terms = (*names, *CONSTANTS)
    condition = draw(st.none() | conditions(terms))
    before = "" if condition is None else f":precondition {condition}\n    "
    return (
        f"(:action act{number} :parameters ({typed})\n    {before}:effect {draw(effects(terms))})"
    )


@st.composite
def domains(draw):
    """A valid domain `d`; its requirements may be incomplete."""
    requirements = draw(st.sampled_from(("", "(:requirements :strips)", "(:requirements :adl)")))
    found = [draw(actions(i)) for i in range(draw(st.integers(1, 3)))]
    return (
        "\n  ".join(
            [
                f"(define (domain d) {requirements}",
                "(:types thing - object tool - thing)",
                "(:constants c0 - thing)",
                "(:predicates (p) (q ?x) (r ?x - thing) (link ?x ?y - object))",
                *found,
            ]
        )
        + ")\n"
    )


@st.composite
def problems(draw):
    """A problem of `d` whose goal is a conjunction of literals."""
    terms = (*OBJECTS, *CONSTANTS)
    init = draw(st.lists(atoms(("a", "t", "c0")), max_size=8, unique=True))
    wanted = draw(st.lists(atoms(terms), max_size=4, unique=True))
    signs = [draw(st.booleans()) for _ in wanted]
    goal = [atom if sign else f"(not {atom})" for atom, sign in zip(wanted, signs, strict=True)]
    return (
        "(define (problem one) (:domain d) (:objects a b - thing t - tool)\n"
        f"  (:init {' '.join(init)})\n  (:goal (and {' '.join(goal)})))\n"
    )


@st.composite
def broken(draw, texts):
    """A text with one to three tokens dropped, doubled, exchanged or replaced."""
    tokens = _TOKEN.findall(draw(texts))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(tokens) - 1))
        kind = draw(st.sampled_from(("drop", "double", "exchange", "replace")))
        if kind == "drop" and len(tokens) > 1:
            del tokens[at]
        elif kind == "double":
            tokens.insert(at, tokens[at])
        elif kind == "exchange":
            tokens[at] = tokens[draw(st.integers(0, len(tokens) - 1))]
        else:
            odd = ("?z", "-", "either", "not", "object", ":precondition", "1", "é", "\x00", "=")
            tokens[at] = draw(st.sampled_from(odd))
    return " ".join(tokens)


@st.composite
def plans(draw):
    """A plan file, often in the loose forms that others write, sometimes wrong."""
    lines = []
    for number in range(draw(st.integers(0, 5))):
        name = draw(st.sampled_from(("act0", "ACT1", "act2", "act", "p")))
        arguments = draw(st.lists(st.sampled_from((*OBJECTS, "c0", "z")), max_size=3))
        step = f"({' '.join((name, *arguments))})"
        before = draw(
            st.sampled_from(("", "", f"{number}: ", f"{number}.000: ", "9: ", "; ", "\t"))
        )
        lines.append(before + step + draw(st.sampled_from(("", "", " [1]", " ; why", ")", "\x85"))))
    lines.append(draw(st.sampled_from(("; cost = 2 (unit cost)", "", "cost = 2", ";"))))
    return draw(st.sampled_from(("\n", "\r\n", "\r"))).join(lines)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(("policy", "regoal", "state", "on", "lifted", "solved", "p1")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def changed_json(draw, value):
    """A JSON value with one part, drawn at random, replaced, left out or doubled."""
    parents = list(_parents(json.loads(json.dumps(value))))
    whole = parents[0][0] if parents else value
    if not parents:
        return draw(json_values)
    parent, key = parents[draw(st.integers(0, len(parents) - 1))]
    kind = draw(st.sampled_from(("replace", "replace", "drop", "double")))
    if kind == "replace":
        parent[key] = draw(json_values)
    elif kind == "drop":
        del parent[key]
    elif isinstance(parent, list):
        parent.append(parent[key])
    else:
        parent[draw(st.text(max_size=4))] = parent[key]
    return whole


def _parents(value):
    """Every (container, key) in a JSON value, the outermost container first."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in list(items):
        yield value, key
        yield from _parents(inner)


@st.composite
def sweep_files(draw):
    """A sweep file in TOML; most keys are right, most values too."""
    words = st.sampled_from(('"blocks"', '"gripper"', '"lifted"', '"nowhere"', '""', "3", "true"))
    values = {
        "out": st.sampled_from(('"runs"', '""', '"/"', "1")),
        "domains": st.lists(words, max_size=3).map(lambda x: f"[{', '.join(x)}]"),
        "hindsight": st.sampled_from(('["lifted"]', '["state", "lifted"]', "[]", '"lifted"')),
        "seeds": st.sampled_from(("[0]", "[0, 1]", "[-1]", "[1.5]", '["a"]', "[true]")),
        "preset": st.sampled_from(('"laptop"', '"paper"', '"desktop"', "{}")),
        "budget_minutes": st.sampled_from(("1", "0.5", "-1", "inf", "nan", '"2m"', "1e400")),
        "instances_seed": st.sampled_from(("0", "-1", "1.5", "[]")),
        "overrides": st.sampled_from(
            ("{}", "{layers = 3}", "{layers = [1]}", '{"a b" = 1}', "{x = {y = 1}}", "1")
        ),
        "other": st.just("1"),
    }
    left_out = draw(st.sets(st.sampled_from(sorted(values)), max_size=3)) | (
        set() if draw(st.integers(0, 5)) == 0 else {"other"}
    )
    return "\n".join(f"{k} = {draw(v)}" for k, v in values.items() if k not in left_out)
