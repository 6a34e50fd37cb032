"""Fingerprints and matchings of domains, for small PDDL files and random structures."""

import itertools
import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.errors import EXIT_USAGE, UsageError
from regoal.planning.load import load_domain
from regoal.planning.matching import schema as schema_module
from regoal.planning.matching.dynamics import Axiom, SchemaEffect, SchemaLiteral
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.matching.renaming import Budget
from regoal.planning.matching.schema import ActionSchema, Schema, Symbol, match

# Parcels in towers: a hoist lifts one and puts it on the floor or on another.
TOWERS = """
(define (domain towers) (:requirements :strips)
  (:predicates (upon ?x ?y) (floored ?x) (free ?x) (idle) (lifted ?x))
  (:action lift :parameters (?x) :precondition (and (free ?x) (floored ?x) (idle))
    :effect (and (lifted ?x) (not (floored ?x)) (not (free ?x)) (not (idle))))
  (:action drop :parameters (?x) :precondition (lifted ?x)
    :effect (and (floored ?x) (free ?x) (idle) (not (lifted ?x))))
  (:action pile :parameters (?x ?y) :precondition (and (lifted ?x) (free ?y))
    :effect (and (upon ?x ?y) (free ?x) (idle) (not (lifted ?x)) (not (free ?y))))
  (:action unpile :parameters (?x ?y) :precondition (and (upon ?x ?y) (free ?x) (idle))
    :effect (and (lifted ?x) (free ?y) (not (upon ?x ?y)) (not (free ?x)) (not (idle)))))
"""

COURIER = """
(define (domain courier) (:requirements :strips :typing)
  (:types place parcel)
  (:predicates (here ?p - place) (lies ?x - parcel ?p - place) (held ?x - parcel)
    (road ?p ?q - place))
  (:action walk :parameters (?p ?q - place) :precondition (and (here ?p) (road ?p ?q))
    :effect (and (here ?q) (not (here ?p))))
  (:action grab :parameters (?x - parcel ?p - place) :precondition (and (here ?p) (lies ?x ?p))
    :effect (and (held ?x) (not (lies ?x ?p))))
  (:action leave :parameters (?x - parcel ?p - place) :precondition (and (here ?p) (held ?x))
    :effect (and (lies ?x ?p) (not (held ?x)))))
"""

COURIER_UNTYPED = """
(define (domain post) (:requirements :strips :negative-preconditions :equality)
  (:predicates (place ?p) (parcel ?x) (here ?p) (lies ?x ?p) (held ?x) (road ?p ?q) (spare ?x))
  (:action leave :parameters (?a ?b)
    :precondition (and (parcel ?a) (held ?a) (place ?b) (here ?b))
    :effect (and (not (held ?a)) (lies ?a ?b)))
  (:action walk :parameters (?a ?b)
    :precondition (and (not (= ?a ?b)) (place ?a) (place ?b) (here ?a) (road ?a ?b))
    :effect (and (not (here ?a)) (here ?b)))
  (:action grab :parameters (?a ?b)
    :precondition (and (lies ?a ?b) (here ?b) (place ?b) (parcel ?a))
    :effect (and (not (lies ?a ?b)) (held ?a))))
"""


@pytest.fixture
def read(tmp_path):
    def read(text: str) -> Schema:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.pddl"
        path.write_text(text.strip() + "\n", encoding="utf-8")
        return schema_of(load_domain(path))

    return read


def renamed(text: str, **names: str) -> str:
    for old, new in names.items():
        for end in (" ", ")", "\n"):
            text = text.replace(f"({old}{end}", f"({new}{end}")
            text = text.replace(f" {old}{end}", f" {new}{end}")
    return text


def test_schema_says_what_the_file_says(read):
    schema = read(COURIER)
    place, parcel = Symbol("type", "place", 1), Symbol("type", "parcel", 1)
    here, held, lies = (
        Symbol("predicate", name, arity) for name, arity in [("here", 1), ("held", 1), ("lies", 2)]
    )
    road = Symbol("predicate", "road", 2)
    assert schema.name == "courier"
    assert schema.symbols == (held, here, lies, road, parcel, place) == schema.used_symbols
    assert [action.name for action in schema.actions] == ["grab", "leave", "walk"]
    assert schema.actions[0] == ActionSchema(
        "grab",
        2,
        (
            SchemaLiteral(here, (1,)),
            SchemaLiteral(lies, (0, 1)),
            SchemaLiteral(parcel, (0,)),
            SchemaLiteral(place, (1,)),
        ),
        (SchemaEffect(SchemaLiteral(held, (0,))), SchemaEffect(SchemaLiteral(lies, (0, 1), False))),
    )
    assert schema.constants == ()


def test_json_keeps_everything(read):
    constants = COURIER.replace("(:predicates", "(:constants depot - place) (:predicates")
    constants = constants.replace("(and (here ?p) (held ?x))", "(and (here depot) (held ?x))")
    for text in (TOWERS, COURIER, COURIER_UNTYPED, constants, DERIVED, QUANTIFIED):
        schema = read(text)
        again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
        assert again == schema
        assert again.fingerprint() == schema.fingerprint()
    assert read(constants).constants == ("depot",)


@pytest.mark.parametrize("values", [None, [], {}, {"name": "x", "symbols": [["type"]]}, "x"])
def test_damaged_json_is_a_usage_error(values):
    with pytest.raises(UsageError, match="damaged"):
        Schema.from_json(values)


def test_damaged_literal_is_a_usage_error(read):
    values = read(TOWERS).to_json()
    for literal in ([99, [0], True], [0, [None], True], [0, [0]]):
        values["actions"][0]["preconditions"] = [literal]
        with pytest.raises(UsageError, match="damaged"):
            Schema.from_json(values)


def test_equal_names_match_without_notes(read):
    schema = read(COURIER)
    matching = match(schema, schema)
    assert matching.symbols == {symbol: symbol for symbol in schema.symbols}
    assert matching.actions == {"grab": "grab", "leave": "leave", "walk": "walk"}
    assert matching.parameters == {"grab": (0, 1), "leave": (0, 1), "walk": (0, 1)}
    assert matching.notes == ()


def test_types_may_be_predicates_and_back(read):
    typed, untyped = read(COURIER), read(COURIER_UNTYPED)
    assert typed.fingerprint() == untyped.fingerprint()
    there, back = match(typed, untyped), match(untyped, typed)
    assert there.notes == back.notes == ()
    assert there.symbols[Symbol("type", "place", 1)] == Symbol("predicate", "place", 1)
    assert back.symbols == {b: a for a, b in there.symbols.items()}
    assert Symbol("predicate", "spare", 1) not in back.symbols


def test_a_type_is_no_changing_predicate(read):
    changing = COURIER_UNTYPED.replace("(not (lies ?a ?b)) (held", "(not (parcel ?a)) (held")
    with pytest.raises(UsageError):
        match(read(COURIER), read(changing))


def test_supertypes_do_not_take_part(read):
    deep = COURIER.replace("(:types place parcel)", "(:types place thing - object parcel - thing)")
    assert read(deep).fingerprint() == read(COURIER).fingerprint()
    assert Symbol("type", "thing", 1) in read(deep).symbols
    assert Symbol("type", "thing", 1) not in read(deep).used_symbols
    assert match(read(deep), read(COURIER_UNTYPED)).notes == ()


def test_names_decide_even_if_effects_differ(read):
    other = COURIER.replace("(and (held ?x) (not (lies ?x ?p)))", "(held ?x)")
    other = other.replace("(and (here ?p) (road ?p ?q))", "(here ?p)")
    policy, domain = read(COURIER), read(other.replace("(road ?p ?q - place)", "(road ?p ?q)"))
    assert policy.fingerprint() != domain.fingerprint()
    matching = match(policy, domain)
    (note,) = matching.notes
    assert "grab has other effects" in note
    assert "walk has other preconditions" in note
    assert "leave" not in note
    assert Symbol("predicate", "road", 2) in matching.symbols


def test_the_only_renaming_is_used_and_reported(read):
    policy = read(TOWERS)
    names = {"floored": "on-floor", "idle": "hoist-idle", "lift": "lift-up", "drop": "put"}
    domain = read(renamed(TOWERS, **names))
    assert policy.fingerprint() == domain.fingerprint()
    matching = match(policy, domain)
    assert matching.symbols[Symbol("predicate", "floored", 1)].name == "on-floor"
    assert matching.actions == {
        "lift": "lift-up",
        "drop": "put",
        "pile": "pile",
        "unpile": "unpile",
    }
    (note,) = matching.notes
    assert note.endswith("floored = on-floor, idle = hoist-idle, drop = put, lift = lift-up")


def test_every_name_may_differ(read):
    domain = read(
        renamed(
            TOWERS, upon="a", floored="b", free="c", idle="d", lifted="e",
            lift="f", drop="g", pile="h", unpile="i",
        )
    )  # fmt: skip
    matching = match(read(TOWERS), domain)
    found = {a.name: b.name for a, b in matching.symbols.items()}
    assert found == {"upon": "a", "floored": "b", "free": "c", "idle": "d", "lifted": "e"}
    assert matching.actions == {"lift": "f", "drop": "g", "pile": "h", "unpile": "i"}


def test_another_parameter_order_is_followed_and_reported(read):
    other = COURIER.replace(
        ":parameters (?x - parcel ?p - place)", ":parameters (?p - place ?x - parcel)"
    )
    policy, domain = read(COURIER), read(other)
    assert policy.fingerprint() == domain.fingerprint()
    matching = match(policy, domain)
    assert matching.parameters == {"grab": (1, 0), "leave": (1, 0), "walk": (0, 1)}
    assert matching.notes == ("parameters have another order: grab, leave",)
    renamed_too = match(policy, read(renamed(other, walk="go")))
    assert renamed_too.parameters["grab"] == (1, 0)
    assert len(renamed_too.notes) == 2


def test_another_domain_is_refused_with_both_shown(read):
    policy, domain = read(TOWERS), read(COURIER)
    with pytest.raises(UsageError) as caught:
        match(policy, domain)
    assert caught.value.exit_code == EXIT_USAGE
    message = str(caught.value)
    for schema in (policy, domain):
        assert schema.fingerprint() in message
    for part in ("upon/2", "unpile/2", "lies/2", "types parcel place", "grab/2"):
        assert part in message


def test_a_used_symbol_must_be_there(read):
    without = COURIER_UNTYPED.replace("(place ?p)", "").replace("(place ?b)", "")
    without = without.replace("(place ?a)", "")
    with pytest.raises(UsageError, match="no renaming"):
        match(read(COURIER), read(without))


TWINS = """
(define (domain twins) (:requirements :strips)
  (:predicates (red ?x) (blue ?x) (lit ?x))
  (:action ring :parameters (?x) :precondition (red ?x) :effect (lit ?x))
  (:action toll :parameters (?x) :precondition (blue ?x) :effect (lit ?x)))
"""


def test_interchangeable_names_are_refused(read):
    domain = read(renamed(TWINS, red="green", blue="grey", ring="strike", toll="hit"))
    with pytest.raises(UsageError, match=r"several renamings .*\(blue is (green|grey) or"):
        match(read(TWINS), domain)


def test_a_kept_name_decides_between_interchangeable_ones(read):
    matching = match(read(TWINS), read(renamed(TWINS, red="green", ring="strike")))
    assert {a.name: b.name for a, b in matching.symbols.items()} == {
        "red": "green",
        "blue": "blue",
        "lit": "lit",
    }
    swapped = match(read(TWINS), read(renamed(TWINS, red="green", ring="strike", toll="hit")))
    assert swapped.actions == {"ring": "strike", "toll": "hit"}


def test_shared_names_are_given_up_if_only_that_fits(read):
    # `free` exists on both sides, but stands for another predicate in the domain.
    domain = read(renamed(TOWERS, idle="free0", free="upright", floored="free", free0="floored"))
    matching = match(read(TOWERS), domain)
    assert {a.name: b.name for a, b in matching.symbols.items()} == {
        "free": "upright",
        "floored": "free",
        "idle": "floored",
        "lifted": "lifted",
        "upon": "upon",
    }


DERIVED = """
(define (domain reach) (:requirements :strips :typing :derived-predicates :disjunctive-preconditions
    :existential-preconditions)
  (:types spot)
  (:predicates (here ?p - spot) (road ?a ?b - spot) (linked ?a ?b - spot))
  (:derived (linked ?a ?b - spot)
    (or (road ?a ?b) (exists (?c - spot) (and (road ?a ?c) (linked ?c ?b)))))
  (:action jump :parameters (?a ?b - spot) :precondition (and (here ?a) (linked ?a ?b))
    :effect (and (here ?b) (not (here ?a)))))
"""

QUANTIFIED = """
(define (domain sweep) (:requirements :adl)
  (:types room item)
  (:predicates (in ?r - room) (at ?i - item ?r - room) (kept ?i - item) (shut ?r - room) (done))
  (:action sweep :parameters (?r - room)
    :precondition (and (in ?r) (exists (?i - item) (at ?i ?r)) (or (done) (shut ?r)))
    :effect (forall (?i - item) (when (and (at ?i ?r) (not (kept ?i))) (not (at ?i ?r)))))
  (:action finish :parameters () :precondition (forall (?r - room) (shut ?r)) :effect (done)))
"""


def test_axioms_take_part(read):
    policy = read(DERIVED)
    assert len(policy.axioms) == 2
    assert Symbol("predicate", "road", 2) in policy.used_symbols
    turned = DERIVED.replace(
        "(and (road ?a ?c) (linked ?c ?b))", "(and (linked ?c ?b) (road ?a ?c))"
    )
    domain = read(renamed(turned, linked="reached", road="path"))
    assert policy.fingerprint() == domain.fingerprint()
    matching = match(policy, domain)
    assert {a.name: b.name for a, b in matching.symbols.items() if a.name != b.name} == {
        "linked": "reached",
        "road": "path",
    }
    other = read(DERIVED.replace("(road ?a ?c)", "(road ?c ?a)"))
    assert policy.fingerprint() != other.fingerprint()
    assert "derived predicates" in match(policy, other).notes[0]
    with pytest.raises(UsageError):
        match(policy, read(renamed(DERIVED.replace("(road ?a ?c)", "(road ?c ?a)"), road="path")))


def test_quantified_and_disjunctive_actions(read):
    policy = read(QUANTIFIED)
    assert [action.name for action in policy.actions] == ["finish", "sweep", "sweep"]
    effect = policy.actions[1].effects[0]
    assert not effect.literal.positive
    assert {literal.symbol.name for literal in effect.condition} == {"at", "kept", "item"}
    matching = match(policy, read(renamed(QUANTIFIED, sweep="clean", kept="fixed", done="over")))
    assert matching.actions == {"sweep": "clean", "finish": "finish"}
    assert {a.name: b.name for a, b in matching.symbols.items() if a.name != b.name} == {
        "kept": "fixed",
        "done": "over",
    }
    other = QUANTIFIED.replace("(not (kept ?i))) (not (at ?i ?r))", "(kept ?i)) (not (at ?i ?r))")
    assert "sweep has other effects" in match(policy, read(other)).notes[0]


def test_fingerprints_of_different_domains_differ(read):
    texts = [TOWERS, COURIER, TWINS, DERIVED, QUANTIFIED]
    texts.append(COURIER.replace("(road ?p ?q))", "(road ?q ?p))"))  # arguments swapped
    texts.append(COURIER.replace("(and (held ?x) (not (lies ?x ?p)))", "(held ?x)"))
    texts.append(TOWERS.replace("(not (idle))", "(idle)"))
    assert len({read(text).fingerprint() for text in texts}) == len(texts)


# Random structures: what matching finds is compared with trying every bijection.

P = [Symbol("predicate", f"p{i}", i % 3) for i in range(4)] + [Symbol("predicate", "u", 1)]


@st.composite
def literals(draw, arity):
    symbol = draw(st.sampled_from([s for s in P if arity or not s.arity]))
    terms = st.integers(0, arity - 1) if arity else st.nothing()
    positions = draw(st.lists(terms, min_size=symbol.arity, max_size=symbol.arity))
    return SchemaLiteral(symbol, tuple(positions), draw(st.booleans()))


@st.composite
def schemas(draw):
    actions = []
    for i in range(draw(st.integers(1, 3))):
        arity = draw(st.integers(0, 3))
        few = st.lists(literals(arity), min_size=1, max_size=3, unique=True)
        preconditions = tuple(sorted(draw(few), key=SchemaLiteral.key))
        effects = tuple(SchemaEffect(x) for x in sorted(draw(few), key=SchemaLiteral.key))
        actions.append(ActionSchema(f"a{i}", arity, preconditions, effects))
    return Schema("random", tuple(sorted(P)), tuple(actions), ())


def apply(schema, symbols, actions, orders):
    """Rename a schema, with parameter i of action a moved to orders[a][i]."""

    def moved(literal, order):
        return SchemaLiteral(
            symbols[literal.symbol], tuple(order[t] for t in literal.terms), literal[2]
        )

    renamed_actions = []
    for action in schema.actions:
        order = orders[action.name]
        preconditions = sorted(
            (moved(x, order) for x in action.preconditions), key=SchemaLiteral.key
        )
        effects = sorted((moved(e.literal, order) for e in action.effects), key=SchemaLiteral.key)
        renamed_actions.append(
            ActionSchema(
                actions[action.name],
                action.arity,
                tuple(preconditions),
                tuple(map(SchemaEffect, effects)),
            )
        )
    renamed_actions.sort(key=lambda a: a.name)
    return Schema("renamed", tuple(sorted(symbols.values())), tuple(renamed_actions), ())


def every_renaming(one, other):
    """Find all pairs (symbols, actions) under which two schemas coincide, by trying all."""
    ours, theirs = one.used_symbols, other.used_symbols
    if len(ours) != len(theirs) or len(one.actions) != len(other.actions):
        return []
    found = []
    for images in itertools.permutations(theirs):
        if any(a.arity != b.arity for a, b in zip(ours, images, strict=True)):
            continue
        symbols = dict(zip(ours, images, strict=True))
        for goal in itertools.permutations(other.actions):
            pairs = list(zip(one.actions, goal, strict=True))
            if all(coincide(a, b, symbols) for a, b in pairs):
                found.append((symbols, {a.name: b.name for a, b in pairs}))
    return found


def coincide(one, other, symbols):
    alone = Schema("one", (), (one,), ())
    if one.arity != other.arity:
        return False
    return any(
        apply(alone, symbols, {one.name: other.name}, {one.name: order}).actions[0] == other
        for order in itertools.permutations(range(one.arity))
    )


def shuffled(schema, rng):
    symbols = [Symbol("predicate", f"q{i}", 0) for i in range(len(P))]
    rng.shuffle(symbols)
    symbols = [
        Symbol("predicate", new.name, old.arity) for old, new in zip(P, symbols, strict=True)
    ]
    names = [f"b{i}" for i in range(len(schema.actions))]
    rng.shuffle(names)
    orders = {a.name: rng.sample(range(a.arity), a.arity) for a in schema.actions}
    return apply(
        schema,
        dict(zip(P, symbols, strict=True)),
        {a.name: name for a, name in zip(schema.actions, names, strict=True)},
        orders,
    )


def check_against_trial(policy, domain):
    expected = every_renaming(policy, domain)
    if len(expected) != 1:
        with pytest.raises(UsageError, match="several" if expected else "no renaming"):
            match(policy, domain)
        return expected
    matching = match(policy, domain)
    assert expected == [(matching.symbols, matching.actions)]
    moved = apply(policy, matching.symbols, matching.actions, matching.parameters)
    assert moved.actions == domain.actions
    return expected


@given(schemas(), st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_renaming_is_undone(schema, seed):
    domain = shuffled(schema, random.Random(seed))
    assert schema.fingerprint() == domain.fingerprint()
    assert check_against_trial(schema, domain)


@given(schemas(), schemas(), st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_unlike_schemas_are_refused(one, other, seed):
    domain = shuffled(other, random.Random(seed))
    if check_against_trial(one, domain):
        assert one.fingerprint() == domain.fingerprint()


# Very regular structures: the search must give up instead of running for long.


def graph(edges, prefix):
    """A structure whose predicates are the nodes of a graph and whose actions are its edges."""
    actions = []
    for i, pair in enumerate(edges):
        nodes = sorted(Symbol("predicate", f"{prefix}{node}", 1) for node in pair)
        preconditions = tuple(SchemaLiteral(node, (0,)) for node in nodes)
        actions.append(ActionSchema(f"{prefix}-edge{i}", 1, preconditions, ()))
    return Schema(prefix, (), tuple(actions), ())


def circulant(n, steps):
    return {frozenset((i, (i + step) % n)) for i in range(n) for step in steps}


def test_graphs_that_refinement_cannot_tell_apart():
    ring = circulant(12, [1])
    two = {frozenset(x + 6 * half for x in edge) for edge in circulant(6, [1]) for half in (0, 1)}
    assert Counter(map(len, ring)) == Counter(map(len, two))
    with pytest.raises(UsageError, match="no renaming"):
        match(graph(sorted(ring, key=sorted), "a"), graph(sorted(two, key=sorted), "b"))


def test_regular_structures_take_seconds_at_most():
    start = time.monotonic()
    rook = [
        {(a, b), (c, d)}
        for (a, b), (c, d) in itertools.combinations(itertools.product(range(4), repeat=2), 2)
        if a == c or b == d
    ]
    near = [(0, 1), (1, 0), (1, 1)]
    torus = {
        frozenset(((a, b), ((a + x) % 4, (b + y) % 4)))
        for a, b in itertools.product(range(4), repeat=2)
        for x, y in near
    }
    one, other, copy = (
        graph(sorted(sorted(f"{a}{b}" for a, b in edge) for edge in edges), prefix)
        for edges, prefix in ((rook, "a"), (torus, "b"), (rook, "c"))
    )
    assert one.fingerprint() == other.fingerprint()  # both strongly regular, and not isomorphic
    for domain in (other, copy):
        with pytest.raises(UsageError):
            match(one, domain)
    assert time.monotonic() - start < 20


def test_a_spent_budget_is_a_refusal(monkeypatch):
    monkeypatch.setattr(schema_module, "Budget", lambda: Budget(10))
    ring = sorted(circulant(12, [1]), key=sorted)
    with pytest.raises(UsageError, match="too regular"):
        match(graph(ring, "a"), graph(ring, "b"))


def test_interchangeable_constants_are_no_ambiguity():
    lit = Symbol("predicate", "lit", 1)

    def lamps(prefix):
        names = tuple(f"{prefix}{i}" for i in range(30))
        effects = tuple(SchemaEffect(SchemaLiteral(lit, (name,))) for name in names)
        return Schema("lamps", (lit,), (ActionSchema(prefix, 0, (), effects),), names)

    assert match(lamps("a"), lamps("b")).actions == {"a": "b"}


def test_order_of_axiom_variables_does_not_matter():
    far, road = Symbol("predicate", "far", 1), Symbol("predicate", "road", 2)

    def rule(*body):
        axiom = Axiom(SchemaLiteral(far, (0,)), tuple(SchemaLiteral(road, terms) for terms in body))
        return Schema("far", (far, road), (), (), (axiom,))

    one, other = rule((0, 1), (1, 2)), rule((0, 2), (2, 1))
    assert one.fingerprint() == other.fingerprint()
    assert match(one, other).notes == ()
    assert match(one, rule((0, 1), (2, 1))).notes != ()


def test_paths_are_not_needed(tmp_path):
    path = Path(tmp_path / "domain.pddl")
    path.write_text(TOWERS.strip() + "\n", encoding="utf-8")
    before = schema_of(load_domain(path))
    path.unlink()
    assert match(before, Schema.from_json(before.to_json())).notes == ()
