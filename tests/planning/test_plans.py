"""Plan files and validation, compared with a replay by hand and an independent validator."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unified_planning.engines import SequentialPlanValidator, ValidationResultStatus
from unified_planning.io import PDDLReader

from regoal.errors import EXIT_BAD_PDDL, EXIT_INTERNAL, PddlError, RegoalError, UsageError
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.load import load_domain, load_task
from regoal.planning.plans import (
    PlanStep,
    format_plan,
    parse_plan,
    read_plan,
    validate_plan,
    write_plan,
)

DOMAIN = """(define (domain courier)
  (:requirements :strips :typing :negative-preconditions :equality)
  (:types place parcel - object)
  (:constants depot - place)
  (:predicates (here ?p - place) (lies ?x - parcel ?p - place) (held ?x - parcel) (busy))
  (:action walk :parameters (?p ?q - place) :precondition (and (here ?p) (not (= ?p ?q)))
    :effect (and (here ?q) (not (here ?p))))
  (:action grab :parameters (?x - parcel ?p - place)
    :precondition (and (here ?p) (lies ?x ?p) (not (busy)))
    :effect (and (held ?x) (busy) (not (lies ?x ?p))))
  (:action leave :parameters (?x - parcel ?p - place) :precondition (and (here ?p) (held ?x))
    :effect (and (lies ?x ?p) (not (held ?x)) (not (busy))))
  (:action rest :parameters () :precondition (here depot) :effect (not (busy))))
"""

PROBLEM = """(define (problem courier-1) (:domain courier)
  (:objects shop - place b1 b2 - parcel)
  (:init (here depot) (lies b1 depot) (lies b2 depot))
  (:goal (and (lies b1 shop) (lies b2 shop) (not (here shop)))))
"""

STEPS = [
    ("grab", "b1", "depot"),
    ("walk", "depot", "shop"),
    ("leave", "b1", "shop"),
    ("walk", "shop", "depot"),
    ("grab", "b2", "depot"),
    ("rest",),
    ("walk", "depot", "shop"),
    ("leave", "b2", "shop"),
    ("walk", "shop", "depot"),
]

TYPES = {"depot": "place", "shop": "place", "b1": "parcel", "b2": "parcel"}
SIGNATURE = {"walk": ("place",) * 2, "grab": ("parcel", "place"), "leave": ("parcel", "place")}
SIGNATURE["rest"] = ()


def plan(steps):
    return [PlanStep(name, tuple(objects)) for name, *objects in steps]


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    def load(domain=DOMAIN, problem=PROBLEM):
        folder = tmp_path_factory.mktemp("pddl")
        (folder / "domain.pddl").write_text(domain, encoding="utf-8")
        (folder / "problem.pddl").write_text(problem, encoding="utf-8")
        return load_task(load_domain(folder / "domain.pddl"), folder / "problem.pddl")

    return load


@pytest.fixture(scope="module")
def courier(load):
    return load()


@pytest.fixture(scope="module")
def independent(courier):
    """A function that returns whether another library accepts a plan of the courier."""
    reader = PDDLReader()
    problem = reader.parse_problem(str(courier.path.with_name("domain.pddl")), str(courier.path))

    def valid(steps):
        text = "\n".join(f"({' '.join(step)})" for step in steps)
        sequence = reader.parse_plan_string(problem, text)
        with SequentialPlanValidator() as validator:
            return validator.validate(problem, sequence).status is ValidationResultStatus.VALID

    return valid


def replay(steps):
    """Return (valid, first failing step or None) by the domain's rules, written in Python."""
    here, lies, held, busy = {"depot"}, {("b1", "depot"), ("b2", "depot")}, set(), False
    for number, (name, *objects) in enumerate(steps, start=1):
        if SIGNATURE.get(name) != tuple(TYPES.get(o) for o in objects):
            return False, number
        if name == "walk" and objects[0] in here and objects[0] != objects[1]:
            here = here - {objects[0]} | {objects[1]}
        elif name == "grab" and objects[1] in here and tuple(objects) in lies and not busy:
            held, busy, lies = held | {objects[0]}, True, lies - {tuple(objects)}
        elif name == "leave" and objects[1] in here and objects[0] in held:
            held, busy, lies = held - {objects[0]}, False, lies | {tuple(objects)}
        elif name == "rest" and "depot" in here:
            busy = False
        else:
            return False, number
    return {("b1", "shop"), ("b2", "shop")} <= lies and "shop" not in here, None


names = st.sampled_from(["walk", "grab", "leave", "rest", "fly"])
objects = st.lists(st.sampled_from(["depot", "shop", "b1", "b2", "b3"]), max_size=3)
steps_of_any_kind = st.tuples(names, objects).map(lambda step: (step[0], *step[1]))
well_formed = st.sampled_from(
    [*sorted(set(STEPS)), ("grab", "b2", "shop"), ("walk", "shop", "shop")]
)


@st.composite
def mutated(draw):
    steps = list(STEPS)
    for _ in range(draw(st.integers(0, 3))):
        if not steps:
            break
        kind = draw(st.sampled_from(["drop", "swap", "change", "repeat", "cut"]))
        i, j = (draw(st.integers(0, len(steps) - 1)) for _ in range(2))
        if kind == "drop":
            del steps[i]
        elif kind == "swap":
            steps[i], steps[j] = steps[j], steps[i]
        elif kind == "change":
            steps[i] = draw(steps_of_any_kind | well_formed)
        elif kind == "repeat":
            steps.insert(i, steps[j])
        else:
            steps = steps[: i + 1]
    return steps


@given(mutated())
@settings(max_examples=200, deadline=None)
def test_verdict_equals_a_replay_by_hand(courier, steps):
    verdict = validate_plan(courier, plan(steps))
    assert (verdict.valid, verdict.step) == replay(steps)
    executed = len(steps) if verdict.step is None else verdict.step - 1
    assert verdict.cost == executed


@pytest.mark.parametrize(
    "steps",
    [
        STEPS,
        STEPS[:-1],
        STEPS[:5] + STEPS[6:],
        STEPS[1:],
        [*STEPS, ("rest",)],
        [STEPS[1], STEPS[0], *STEPS[2:]],
        [("walk", "depot", "depot"), *STEPS],
        [("grab", "b2", "depot"), ("rest",), *STEPS[:4], *STEPS[6:]],
        [("grab", "b2", "depot"), *STEPS],
    ],
)
def test_verdict_equals_an_independent_validator(courier, independent, steps):
    assert validate_plan(courier, plan(steps)).valid == independent(steps)


@pytest.mark.parametrize(
    ("steps", "number", "parts"),
    [
        (
            [("grab", "b1", "shop")],
            1,
            ["(grab b1 shop)", "(here shop) does not hold; (lies b1 shop) does not hold"],
        ),
        ([("grab", "b1", "depot"), ("grab", "b2", "depot")], 2, ["(busy) holds but must not"]),
        ([("walk", "depot", "depot")], 1, ["depot and depot must differ"]),
        ([("walk", "b1", "shop")], 1, ["b1 is not of type place"]),
        ([("grb", "b1", "depot")], 1, ["no such action", "did you mean grab?"]),
        ([("xyzzy",)], 1, ["the domain has no such action"]),
        ([("grab", "b1")], 1, ["grab takes 2 object(s), the plan gives 1"]),
        ([("rest", "depot")], 1, ["rest takes 0 object(s), the plan gives 1"]),
        ([("grab", "b7", "moon")], 1, ["no object b7, moon"]),
        (STEPS[:7], None, ["goal is missed: (here shop) holds but must not, (lies b2 shop)"]),
        (STEPS[:-1], None, ["the goal is missed: (here shop) holds but must not"]),
        ([], None, ["(lies b1 shop) does not hold, (lies b2 shop) does not hold"]),
    ],
)
def test_reasons_name_what_is_wrong(courier, steps, number, parts):
    verdict = validate_plan(courier, plan(steps))
    assert not verdict.valid
    assert verdict.step == number
    for part in parts:
        assert part in verdict.reason


def test_the_line_of_a_file_is_named(courier):
    verdict = validate_plan(courier, parse_plan("; a comment\n\n(rest)\n(leave b1 depot)\n"))
    assert verdict.step == 2
    assert verdict.reason.startswith("step 2 (line 4), (leave b1 depot): (held b1) does not hold")


def test_actions_of_a_task_are_steps(courier):
    state, steps = courier.initial_state, []
    for name, *names_of in STEPS:
        wanted = GroundAction(name, tuple(names_of))
        steps += [a for a in courier.applicable_actions(state) if a == wanted]
        state = courier.successor(state, steps[-1])
    assert validate_plan(courier, steps).valid
    assert not validate_plan(courier, [DUMMY_ACTION, *steps]).valid


def test_the_empty_plan_is_valid_if_the_goal_holds(load):
    done = load(problem=PROBLEM.replace("(lies b1 shop) (lies b2 shop) (not", "(here depot) (not"))
    verdict = validate_plan(done, [])
    assert verdict.valid
    assert verdict.cost == 0
    assert format_plan([], verdict.cost, verdict.unit_cost) == "; cost = 0 (unit cost)\n"


CHOICE = """(define (domain choice)
  (:requirements :strips :typing :disjunctive-preconditions :existential-preconditions
    :universal-preconditions :negative-preconditions :conditional-effects)
  (:types room key)
  (:predicates (in ?r - room) (fits ?k - key ?r - room) (have ?k - key) (open ?r - room) (calm))
  (:action unlock :parameters (?r - room)
    :precondition (and (in ?r) (exists (?k - key) (and (fits ?k ?r) (have ?k))))
    :effect (open ?r))
  (:action push :parameters (?r - room) :precondition (or (open ?r) (calm)) :effect (in ?r))
  (:action relax :parameters () :precondition (forall (?r - room) (open ?r)) :effect (calm))
  (:action drop :parameters () :precondition (and)
    :effect (forall (?k - key) (when (have ?k) (not (have ?k))))))
"""

CHOICE_PROBLEM = """(define (problem choice-1) (:domain choice)
  (:objects r1 r2 - room k1 k2 k3 - key)
  (:init (in r1) (fits k1 r1) (fits k3 r1) (fits k1 r2) (have k2) (have k3))
  (:goal (open r1)))
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(drop)", "the goal is missed: (open r1) does not hold"),
        ("(push r2)", "(open r2) does not hold, or (calm) does not hold"),
        ("(relax)", "(forall (?r) (open ?r)) fails for ?r = r1: (open r1) does not hold"),
    ],
)
def test_disjunctions_and_universal_preconditions(load, text, reason):
    verdict = validate_plan(load(CHOICE, CHOICE_PROBLEM), parse_plan(text))
    assert not verdict.valid
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(unlock r1)", "valid"),
        ("(unlock r1)\n(push r1)", "valid"),
        (
            "(drop)\n(unlock r1)",
            "no object fulfils (exists (?k) (and (fits ?k r1) (have ?k)))",
        ),
        ("(unlock r2)", "(in r2) does not hold"),
        ("(unlock r1 k3)", "unlock takes 1 object(s), the plan gives 2"),
        ("(unlock r1)\n(relax)", "(forall (?r) (open ?r)) fails for ?r = r2: (open r2)"),
    ],
)
def test_existential_preconditions(load, text, reason):
    verdict = validate_plan(load(CHOICE, CHOICE_PROBLEM), parse_plan(text))
    assert verdict.valid == (reason == "valid")
    assert verdict.valid or reason in verdict.reason


ODD = """(define (domain odd) (:requirements :adl)
  (:types one two three) (:predicates (p ?x) (q ?x) (r))
  (:action never :parameters (?x) :precondition (and (p ?x) (not (p ?x))) :effect (r))
  (:action differ :parameters (?x) :precondition (not (= ?x ?x)) :effect (r))
  (:action nothing :precondition (or) :effect (r))
  (:action either :parameters (?x - (either one two)) :effect (r))
  (:action all :precondition (not (exists (?x) (p ?x))) :effect (r))
  (:action some :precondition (not (forall (?x - one) (p ?x))) :effect (r))
  (:action given :parameters (?x) :precondition (imply (p ?x) (or (q ?x) (r))) :effect (r)))
"""

ODD_PROBLEM = """(define (problem odd-1) (:domain odd) (:objects a - one b - two c - three)
  (:init (p a) (q c)) (:goal (r)))
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(never a)", "(p a) holds but must not"),
        ("(never b)", "(p b) does not hold"),
        ("(differ a)", "a and a must differ"),
        ("(nothing)", "(or) can never be true"),
        ("(either c)", "c is not of type one or two"),
        ("(all)", "(exists (?x) (p ?x)) holds but must not for ?x = a: (p a) holds but must not"),
        ("(some)", "(forall (?x) (p ?x)) holds but must not"),
        ("(given a)", "(p a) holds but must not, or (q a) does not hold, or (r) does not hold"),
    ],
)
def test_every_kind_of_condition_says_why_it_fails(load, text, reason):
    verdict = validate_plan(load(ODD, ODD_PROBLEM), parse_plan(text))
    assert verdict.reason == f"step 1 (line 1), {text}: {reason}"


COSTS = """(define (domain tolls) (:requirements :strips :typing :action-costs)
  (:types place)
  (:predicates (here ?p - place))
  (:functions (total-cost) - number (toll ?p ?q - place) - number)
  (:action walk :parameters (?p ?q - place) :precondition (here ?p)
    :effect (and (here ?q) (not (here ?p)) (increase (total-cost) (toll ?p ?q)))))
"""

COSTS_PROBLEM = """(define (problem tolls-1) (:domain tolls)
  (:objects a b c - place)
  (:init (here a) (= (total-cost) 0) (= (toll a b) 1) (= (toll b c) 5) (= (toll c b) 1)
    (= (toll a a) 0) (= (toll b b) 0) (= (toll c c) 0) (= (toll a c) 9) (= (toll b a) 1)
    (= (toll c a) 1))
  (:goal (here c)) (:metric minimize (total-cost)))
"""


def test_costs_are_summed_if_the_problem_asks_for_it(load, tmp_path):
    priced = load(COSTS, COSTS_PROBLEM)
    steps = parse_plan("(walk a b)\n(walk b c)")
    verdict = validate_plan(priced, steps)
    assert (verdict.valid, verdict.cost, verdict.unit_cost) == (True, 6.0, False)
    cheap = validate_plan(priced, steps[:1])
    assert (cheap.valid, cheap.cost, cheap.unit_cost) == (False, 1.0, True)
    write_plan(tmp_path / "plan", priced, steps)
    assert (tmp_path / "plan").read_bytes() == (
        b"(walk a b)\n(walk b c)\n; cost = 6 (general cost)\n"
    )
    free = load(COSTS, COSTS_PROBLEM.replace("(:metric minimize (total-cost))", ""))
    assert validate_plan(free, steps).cost == 2.0


def test_written_to_the_byte(courier, tmp_path):
    path = tmp_path / "sas_plan"
    verdict = write_plan(path, courier, plan(STEPS))
    assert verdict.valid
    assert path.read_bytes() == (
        b"(grab b1 depot)\n(walk depot shop)\n(leave b1 shop)\n(walk shop depot)\n"
        b"(grab b2 depot)\n(rest)\n(walk depot shop)\n(leave b2 shop)\n(walk shop depot)\n"
        b"; cost = 9 (unit cost)\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["sas_plan"]
    assert [(s.name, *s.objects) for s in read_plan(path)] == STEPS


def test_an_invalid_plan_is_never_written(courier, tmp_path):
    path = tmp_path / "sas_plan"
    for steps in (STEPS[1:], STEPS[:-1]):
        with pytest.raises(RegoalError, match="internal error") as caught:
            write_plan(path, courier, plan(steps))
        assert caught.value.exit_code == EXIT_INTERNAL
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("cost", "lines"),
    [
        (1.5, ["; exact cost = 1.5", "; cost = 2 (general cost)"]),
        (0.1 + 0.2, ["; exact cost = 0.3", "; cost = 1 (general cost)"]),
        (0.1 * 3 + 0.7, ["; cost = 1 (general cost)"]),
        (1e15, ["; cost = 1000000000000000 (general cost)"]),
    ],
)
def test_the_last_line_has_the_form_of_fast_downward(cost, lines):
    assert format_plan([], cost, False).splitlines() == lines


@pytest.mark.parametrize(
    "text",
    [
        "(walk a b)\n(rest)",
        "(WALK A b)\r\n(Rest)\r\n",
        "\ufeff(walk a b)\n(rest)\n",
        "\n\n  ( walk   a\tb )  \n\n( rest )\n\n",
        "; head\n(walk a b) ; why (rest)\n(rest);done\n; cost = 7 (unit cost)\n",
        "0: (walk a b)\n1: (rest)\n",
        "0.000: (walk a b) [1]\n1.000: (rest) [1.000]\n",
        "0:(walk a b)[ 1 ]\r1 : (rest)\r",
    ],
)
def test_loose_forms_are_read(text):
    assert [(s.name, s.objects) for s in parse_plan(text)] == [("walk", ("a", "b")), ("rest", ())]


def test_an_empty_file_is_the_empty_plan():
    for text in ("", "\n", "; cost = 0 (unit cost)\n", "\ufeff"):
        assert parse_plan(text) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("walk a b", 1),
        ("(rest)\n(walk a b", 2),
        ("(rest)\n\nwalk a b)", 3),
        ("(rest) (rest)", 1),
        ("()", 1),
        ("; ok\n((rest))", 2),
        ("(rest) [x]", 1),
        ("step 1: (rest)", 1),
        ("1: (rest)\n0: (rest)", 2),
        ("Solution found!\n(rest)", 1),
    ],
)
def test_anything_else_is_an_error_with_its_line(text, line):
    with pytest.raises(PddlError, match=f"plan.txt, line {line}: ") as caught:
        parse_plan(text, "plan.txt")
    assert caught.value.exit_code == EXIT_BAD_PDDL


@given(st.text("(); :[]01.aB\n\r\t\ufeff\xa0", max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text):
    try:
        steps = parse_plan(text)
    except PddlError:
        return
    again = parse_plan(format_plan(steps, len(steps), True))
    assert [(s.name, s.objects) for s in again] == [(s.name, s.objects) for s in steps]


def test_files_that_are_no_plan(tmp_path):
    with pytest.raises(UsageError, match="there is no such file"):
        read_plan(tmp_path / "missing")
    with pytest.raises(UsageError, match="is a folder; give a plan file"):
        read_plan(tmp_path)
    (tmp_path / "wide").write_bytes("(rest)".encode("utf-16"))
    with pytest.raises(PddlError, match="UTF-8"):
        read_plan(tmp_path / "wide")
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbf(rest)\r\n")
    assert read_plan(tmp_path / "marked") == [PlanStep("rest", (), 1)]


def test_names_of_any_length_give_short_messages(courier):
    verdict = validate_plan(courier, parse_plan(f"({'x' * 10**6} {'y' * 10**6})"))
    assert not verdict.valid
    assert len(verdict.reason) < 2100


EITHER = """(define (domain d) (:requirements :typing) (:types cat dog bird - object)
  (:predicates (fed ?x) (fed-well ?x))
  (:action feed :parameters (?x - (either cat dog)) :effect (fed ?x)))
"""
EITHER_PROBLEM = """(define (problem p) (:domain d) (:objects tom - cat jay - bird)
  (:init) (:goal (fed tom)))
"""


def test_the_types_asked_for_are_named(load):
    verdict = validate_plan(load(EITHER, EITHER_PROBLEM), parse_plan("(feed jay)"))
    assert "jay is not of type cat or dog" in verdict.reason


def test_costs_are_printed_whole(load):
    dear = load(COSTS, COSTS_PROBLEM.replace("(toll b c) 5", "(toll b c) 1234567"))
    steps = parse_plan("(walk a b)\n(walk b c)")
    verdict = validate_plan(dear, steps)
    assert str(verdict.cost) == "1234568.0"
    assert "cost 1234568" in verdict.reason
