"""Tasks compared with answers worked by hand, a direct reading of PDDL, and another planner."""

import gc
import random
import re
import weakref
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pymimir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.errors import PddlError, UnsupportedPddlError
from regoal.planning.actions import DUMMY_ACTION
from regoal.planning.goals import Atom, Goal
from regoal.planning.load import load_domain, load_task
from regoal.planning.task import State, Task


def task_of(folder: Path, domain: str, problem: str) -> Task:
    (folder / "domain.pddl").write_text(domain, encoding="utf-8")
    (folder / "p1.pddl").write_text(problem, encoding="utf-8")
    return load_task(load_domain(folder / "domain.pddl"), folder / "p1.pddl")


def listed(task: Task, state: State) -> list[str]:
    return [str(action) for action in task.applicable_actions(state)]


def after(task: Task, *steps: str) -> State:
    state = task.initial_state
    for step in steps:
        found = {str(action): action for action in task.applicable_actions(state)}
        state = task.successor(state, found[step])
    return state


# Domains for all readers

FERRY = (
    """(define (domain ferry) (:requirements :strips :typing :equality :negative-preconditions)
  (:types place car) (:constants depot - place)
  (:predicates (at-ferry ?p - place) (at ?c - car ?p - place) (on ?c - car) (full)
    (number ?c - car))
  (:action sail :parameters (?a ?b - place) :precondition (and (at-ferry ?a) (not (= ?a ?b)))
    :effect (and (at-ferry ?b) (not (at-ferry ?a))))
  (:action home :parameters () :effect (and (at-ferry depot) (forall (?p - place)
    (when (not (= ?p depot)) (not (at-ferry ?p))))))
  (:action board :parameters (?c - car ?p - place)
    :precondition (and (at ?c ?p) (at-ferry ?p) (not (full)))
    :effect (and (on ?c) (full) (not (at ?c ?p))))
  (:action leave :parameters (?c - car ?p - place) :precondition (and (on ?c) (at-ferry ?p))
    :effect (and (at ?c ?p) (not (on ?c)) (not (full)))))""",
    """(define (problem two-cars) (:domain ferry) (:objects p q - place a b - car)
  (:init (at-ferry p) (at a p) (at b q) (number a))
  (:goal (and (at a q) (at b depot) (not (full)))))""",
)
LIGHTS = (
    """(define (domain lights) (:requirements :adl) (:types bulb - lamp lamp room)
  (:predicates (lit ?l - lamp) (in ?l - lamp ?r - room) (broken ?l - lamp) (dark) (lamp ?l - lamp))
  (:action flip :parameters (?r - room)
    :precondition (exists (?l - lamp) (and (in ?l ?r) (not (broken ?l))))
    :effect (and (forall (?l - lamp) (and (when (and (in ?l ?r) (lit ?l)) (not (lit ?l)))
                                          (when (and (in ?l ?r) (not (lit ?l))) (lit ?l))))
                 (dark) (not (dark))))
  (:action smash :parameters (?l - bulb) :precondition (or (lit ?l) (not (broken ?l)))
    :effect (and (broken ?l) (not (lit ?l)) (when (forall (?m - lamp) (broken ?m)) (dark))))
  (:action sleep :parameters (?l - (either bulb room)) :precondition (forall (?m - lamp)
      (imply (lit ?m) (broken ?m))) :effect (dark)))""",
    """(define (problem house) (:domain lights) (:objects l - lamp b c - bulb r s - room)
  (:init (lit l) (lit b) (in l r) (in b r) (in c s) (broken c) (lamp b))
  (:goal (forall (?l - lamp) (not (lit ?l)))))""",
)
ROADS = (
    """(define (domain roads) (:requirements :strips :typing :derived-predicates)
  (:types city) (:predicates (road ?a ?b - city) (linked ?a ?b - city) (here ?a - city) (lost))
  (:derived (linked ?a ?b) (or (road ?a ?b) (exists (?c - city) (and (road ?a ?c) (linked ?c ?b)))))
  (:derived (lost) (forall (?a ?b - city) (or (not (here ?a)) (not (linked ?a ?b)))))
  (:action jump :parameters (?a ?b - city) :precondition (and (here ?a) (linked ?a ?b))
    :effect (and (here ?b) (not (here ?a))))
  (:action dig :parameters (?a ?b - city) :precondition (here ?a)
    :effect (and (not (road ?a ?b)) (when (lost) (road ?a ?b)))))""",
    """(define (problem three) (:domain roads) (:objects x y z - city)
  (:init (here x) (road x y) (road y z)) (:goal (and (here z) (lost))))""",
)
DOMAINS = {"ferry": FERRY, "lights": LIGHTS, "roads": ROADS}


# A direct reading of PDDL: nested lists, no parser library, nothing rewritten


def _lists(text: str) -> Any:
    stack: list[list[Any]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", text.lower()):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    return stack[0][0]


def _typed(words: list[Any]) -> list[tuple[str, set[str]]]:
    found: list[tuple[str, set[str]]] = []
    waiting: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "-":
            kind = next(rest)
            types = set(kind[1:]) if isinstance(kind, list) else {kind}
            found += [(name, types) for name in waiting]
            waiting = []
        else:
            waiting.append(word)
    return found + [(name, {"object"}) for name in waiting]


class DirectReading:
    """States are frozensets of tuples of words."""

    def __init__(self, domain: str, problem: str) -> None:
        self._domain, self._problem = _lists(domain), _lists(problem)
        self._parents = dict(t for s in self._sections(":types") for t in _typed(s))
        typed = [*self._sections(":constants"), *self._sections(":objects")]
        self._types = {
            name: set().union(*map(self._above, of)) for s in typed for name, of in _typed(s)
        }
        self._rules = self._sections(":derived")
        init = self._sections(":init")[0]
        self.initial = self._derive({tuple(atom) for atom in init})

    def successors(self, state: frozenset[tuple[str, ...]]) -> dict[tuple[str, ...], Any]:
        found = {}
        for name, *parts in self._sections(":action"):
            action = dict(zip(parts[::2], parts[1::2], strict=True))
            for binding in self._bindings(action[":parameters"]):
                if self._holds(action.get(":precondition", []), state, binding):
                    changes = list(self._changes(action[":effect"], state, binding))
                    gone = {atom for sign, atom in changes if not sign}
                    new = {atom for sign, atom in changes if sign}
                    found[(name, *binding.values())] = self._derive((state - gone) | new)
        return found

    def _sections(self, word: str) -> list[Any]:
        both = [*self._domain[2:], *self._problem[2:]]
        return [section[1:] for section in both if section[0] == word]

    def _above(self, name: str) -> set[str]:
        if name == "object":
            return {"object"}
        return {name}.union(*map(self._above, self._parents[name]))

    def _bindings(self, variables: list[Any]) -> Iterator[dict[str, str]]:
        names = [name for name, _ in _typed(variables)]
        ranges = [
            [o for o, types in self._types.items() if types & of] for _, of in _typed(variables)
        ]
        for objects in product(*ranges):
            yield dict(zip(names, objects, strict=True))

    def _holds(self, formula: Any, state: Any, binding: dict[str, str]) -> bool:  # noqa: PLR0911
        match formula:
            case []:
                return True
            case ["and", *parts]:
                return all(self._holds(part, state, binding) for part in parts)
            case ["or", *parts]:
                return any(self._holds(part, state, binding) for part in parts)
            case ["not", part]:
                return not self._holds(part, state, binding)
            case ["imply", premise, part]:
                return not self._holds(premise, state, binding) or self._holds(part, state, binding)
            case ["forall", variables, part]:
                inner = self._bindings(variables)
                return all(self._holds(part, state, binding | more) for more in inner)
            case ["exists", variables, part]:
                inner = self._bindings(variables)
                return any(self._holds(part, state, binding | more) for more in inner)
        atom = tuple(binding.get(word, word) for word in formula)
        return atom[1] == atom[2] if atom[0] == "=" else atom in state

    def _changes(  # noqa: C901
        self, effect: Any, state: Any, binding: dict[str, str]
    ) -> Iterator[Any]:
        match effect:
            case []:
                return
            case ["and", *parts]:
                for part in parts:
                    yield from self._changes(part, state, binding)
            case ["forall", variables, part]:
                for more in self._bindings(variables):
                    yield from self._changes(part, state, binding | more)
            case ["when", premise, part]:
                if self._holds(premise, state, binding):
                    yield from self._changes(part, state, binding)
            case ["not", atom]:
                yield False, tuple(binding.get(word, word) for word in atom)
            case _:
                yield True, tuple(binding.get(word, word) for word in effect)

    def _derive(self, atoms: Any) -> frozenset[tuple[str, ...]]:
        """Apply the rules in file order, each until nothing changes before the next."""
        state = {atom for atom in atoms if atom[0] not in {rule[0][0] for rule in self._rules}}
        for (predicate, *variables), body in self._rules:
            size = -1
            while size < len(state):
                size = len(state)
                bindings = list(self._bindings(variables))
                state |= {(predicate, *b.values()) for b in bindings if self._holds(body, state, b)}
        return frozenset(state)


def walk_beside(task: Task, reading: DirectReading, seed: int, steps: int = 8) -> None:
    """Compare states, applicable actions and all successors along one random walk."""
    rng = random.Random(seed)
    state, expected = task.initial_state, reading.initial
    for _ in range(steps):
        assert {(a.predicate, *a.objects) for a in state.atoms} == expected
        successors = reading.successors(expected)
        actions = task.applicable_actions(state)
        if not successors:
            assert actions == (DUMMY_ACTION,)
            return
        assert [(a.name, *a.objects) for a in actions] == sorted(successors)
        for action in actions:
            reached = task.successor(state, action).atoms
            assert {(a.predicate, *a.objects) for a in reached} == successors[
                (action.name, *action.objects)
            ]
        chosen = rng.choice(actions)
        state = task.successor(state, chosen)
        expected = successors[(chosen.name, *chosen.objects)]


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("seed", range(5))
def test_walks_agree_with_a_direct_reading(tmp_path, name, seed):
    walk_beside(task_of(tmp_path, *DOMAINS[name]), DirectReading(*DOMAINS[name]), seed)


@st.composite
def formulas(draw: st.DrawFn, variables: tuple[str, ...], depth: int = 3) -> str:
    """Draw a condition of any shape over the predicates of `RANDOM_DOMAIN`."""
    shapes = ["atom", "atom", "not", "and", "or", "imply", "forall", "exists"]
    shape = draw(st.sampled_from(shapes)) if depth else "atom"
    below = formulas(variables, max(depth - 1, 0))
    if shape == "atom":
        name, arity = draw(st.sampled_from([("p", 0), ("q", 1), ("r", 2), ("=", 2), ("s", 1)]))
        terms = draw(st.lists(st.sampled_from([*variables, "c"]), min_size=arity, max_size=arity))
        return f"({' '.join([name, *terms])})"
    if shape in ("and", "or"):
        return f"({shape} {' '.join(draw(st.lists(below, max_size=3)))})"
    if shape in ("forall", "exists"):
        new = draw(st.sampled_from(["?x", "?y", "?z"]))
        of = draw(st.sampled_from(["t", "u", "object", "(either t v)"]))
        inner = draw(formulas((*variables, new), depth - 1))
        return f"({shape} ({new} - {of}) {inner})"
    parts = [draw(below) for _ in range(2 if shape == "imply" else 1)]
    return f"({shape} {' '.join(parts)})"


RANDOM_DOMAIN = """(define (domain random) (:requirements :adl)
  (:types u - t t v) (:constants c - t) (:predicates (p) (q ?x) (r ?x ?y) (s ?x))
  (:action one :parameters (?x - t ?y) :precondition {0} :effect (and (q ?x) (not (r ?y ?x))))
  (:action two :parameters (?x - (either u v)) :precondition ()
    :effect (and (when {1} (and (r ?x c) (not (q c)))) (forall (?y - t) (when {2} (not (p)))) (p)))
)"""
RANDOM_PROBLEM = """(define (problem random) (:domain random) (:objects a - t b - u d - v)
  (:init (q a) (r c b) (r d d) (s b) (s d)) (:goal (p)))"""


@given(formulas(("?x", "?y")), formulas(("?x",)), formulas(("?x", "?y")))
@settings(deadline=None, max_examples=60)
def test_conditions_of_any_shape_agree_with_a_direct_reading(tmp_path_factory, one, two, three):
    domain = RANDOM_DOMAIN.format(one, two, three)
    task = task_of(tmp_path_factory.mktemp("random"), domain, RANDOM_PROBLEM)
    walk_beside(task, DirectReading(domain, RANDOM_PROBLEM), seed=0, steps=3)


@pytest.mark.parametrize("name", ["ferry", "lights"])
def test_walks_agree_with_plado(tmp_path, name):
    """Compare with the reader of another planner, which needs all preconditions and no `either`."""
    parser = pytest.importorskip("plado.parser")
    from plado.semantics.applicable_actions_generator import ApplicableActionsGenerator
    from plado.semantics.successor_generator import SuccessorGenerator
    from plado.semantics.task import Task as PladoTask

    domain, problem = DOMAINS[name]
    domain = domain.replace("(either bulb room)", "bulb")
    domain = domain.replace(":parameters () :effect", ":parameters () :precondition (and) :effect")
    task = task_of(tmp_path, domain, problem)
    other = PladoTask(*parser.parse_and_normalize(str(task.domain.path), str(task.path)))
    applicable, successors = ApplicableActionsGenerator(other), SuccessorGenerator(other)
    arity = dict(task.domain.actions)

    def named(reference: tuple[int, tuple[int, ...]]) -> tuple[str, tuple[str, ...]]:
        schema = other.actions[reference[0]].name
        return schema, tuple(other.objects[i] for i in reference[1][: arity[schema]])

    def changeable(state: Any) -> set[tuple[str, ...]]:
        return {
            (other.predicates[i].name, *(other.objects[o] for o in objects))
            for i in range(other.num_fluent_predicates)
            for objects in state.atoms[i]
        }

    rng = random.Random(1)
    state, theirs = task.initial_state, other.initial_state
    for _ in range(12):
        assert {(a.predicate, *a.objects) for a in state.fluent_atoms} == changeable(theirs)
        references = {named(reference): reference for reference in applicable(theirs)}
        actions = task.applicable_actions(state)
        assert [(a.name, a.objects) for a in actions] == sorted(references)
        action = rng.choice(actions)
        state = task.successor(state, action)
        theirs = successors(theirs, references[action.name, action.objects])[0][0]


# Worked by hand


def test_the_view_of_a_domain(tmp_path):
    domain = task_of(tmp_path, *FERRY).domain
    assert domain.name == "ferry"
    assert domain.types == ("car", "place")
    assert domain.actions == (("board", 2), ("home", 0), ("leave", 2), ("sail", 2))
    assert domain.predicates == (
        ("at", 2),
        ("at-ferry", 1),
        ("full", 0),
        ("number", 1),
        ("on", 1),
    )


def test_the_view_of_a_task(tmp_path):
    task = task_of(tmp_path, *FERRY)
    assert task.name == "p1"
    assert task.objects == ("depot", "p", "q", "a", "b")
    assert task.object_index["a"] == 3
    assert task.types_of == {
        "depot": ("place",),
        "p": ("place",),
        "q": ("place",),
        "a": ("car",),
        "b": ("car",),
    }
    assert task.static_atoms == {Atom("number", ("a",))}
    assert task.goal == Goal.of(
        [Atom("at", ("a", "q")), Atom("at", ("b", "depot"))], [Atom("full", ())]
    )


def test_actions_come_sorted_and_named_as_in_plans(tmp_path):
    task = task_of(tmp_path, *FERRY)
    assert listed(task, task.initial_state) == [
        "(board a p)",
        "(home)",
        "(sail p depot)",
        "(sail p q)",
    ]


def test_names_that_meet_stay_apart(tmp_path):
    """`lamp` is a type and a predicate: only what the file states is an atom."""
    task = task_of(tmp_path, *LIGHTS)
    assert task.static_atoms >= {Atom("lamp", ("b",))}
    assert Atom("lamp", ("l",)) not in task.initial_state.atoms
    assert task.types_of["b"] == ("bulb", "lamp")


def test_states_are_equal_by_content_within_their_task(tmp_path):
    task = task_of(tmp_path, *FERRY)
    there_and_back = after(task, "(sail p q)", "(sail q p)")
    assert there_and_back == task.initial_state
    assert hash(there_and_back) == hash(task.initial_state)
    assert after(task, "(sail p q)") != task.initial_state
    assert task_of(tmp_path, *FERRY).initial_state != task.initial_state


def test_states_of_different_tasks_share_no_place_in_a_dictionary(ways):
    # A training looks up states of all its tasks in one dictionary.
    tasks = [ways(["ab"], "b", "abcdefghijkl"[:count]) for count in range(2, 12)]
    states = [state for task in tasks for state in (task.initial_state, after(task, "(go a b)"))]
    assert len({hash(state) for state in states}) == len(states) == 20
    assert hash(tasks[0].renewed().initial_state) == hash(tasks[0].initial_state)


def test_states_that_differ_in_an_atom_without_arguments_differ(tmp_path):
    task = task_of(
        tmp_path,
        """(define (domain switch) (:predicates (on))
        (:action press :parameters () :effect (on)))""",
        "(define (problem p) (:domain switch) (:init) (:goal (and (on))))",
    )
    pressed = after(task, "(press)")
    assert pressed != task.initial_state
    assert pressed.atoms == {Atom("on", ())}
    assert pressed.satisfies(task.goal)
    assert not task.initial_state.satisfies(task.goal)


def test_an_action_that_several_cases_allow_is_listed_once(tmp_path):
    task = task_of(tmp_path, *LIGHTS)
    assert task.domain.has_copies
    assert task.domain.actions == (("flip", 1), ("sleep", 1), ("smash", 1))
    assert listed(task, task.initial_state) == ["(flip r)", "(smash b)"]


def test_derived_atoms_are_part_of_the_state(tmp_path):
    task = task_of(tmp_path, *ROADS)
    assert Atom("linked", ("x", "z")) in task.initial_state.atoms
    at_z = after(task, "(jump x z)")
    assert Atom("lost", ()) in at_z.atoms
    assert at_z.satisfies(task.goal)
    assert {a.predicate for a in at_z.atoms} == {"here", "road", "linked", "lost"}


def test_a_dead_end_offers_the_dummy_action_only(tmp_path):
    task = task_of(tmp_path, *ROADS)
    dug = after(task, "(dig x y)", "(dig x z)")
    assert "(jump x y)" not in listed(task, dug)
    stuck = task_of(
        tmp_path,
        "(define (domain d) (:predicates (p) (q)) (:action a :precondition (p) :effect (q)))",
        "(define (problem p) (:domain d) (:init) (:goal (q)))",
    )
    assert stuck.applicable_actions(stuck.initial_state) == (DUMMY_ACTION,)
    assert stuck.successor(stuck.initial_state, DUMMY_ACTION) == stuck.initial_state
    assert stuck.cost(stuck.initial_state, DUMMY_ACTION) == 1.0


def test_an_action_that_can_never_happen_may_stand_in_the_domain(tmp_path):
    task = task_of(
        tmp_path,
        """(define (domain d) (:predicates (p) (q)) (:action a :precondition (not ()) :effect (q))
        (:action b :parameters (?x) :precondition (and (p) (not (p))) :effect (q))
        (:action c :effect (and (p) (when (or) (q)))))""",
        "(define (problem p) (:domain d) (:objects o) (:init) (:goal (q)))",
    )
    assert task.domain.actions == (("a", 0), ("b", 1), ("c", 0))
    assert listed(task, task.initial_state) == ["(c)"]
    assert after(task, "(c)").atoms == {Atom("p", ())}


def test_an_added_atom_outlasts_its_deletion_by_the_same_action(tmp_path):
    task = task_of(
        tmp_path,
        """(define (domain d) (:predicates (p ?x) (q ?x)) (:action a :parameters (?x ?y)
        :precondition (p ?x) :effect (and (p ?y) (not (p ?x)) (q ?x))))""",
        "(define (problem p) (:domain d) (:objects o) (:init (p o)) (:goal (q o)))",
    )
    assert after(task, "(a o o)").atoms == {Atom("p", ("o",)), Atom("q", ("o",))}


def test_an_inner_variable_hides_an_outer_one_of_its_name(tmp_path):
    task = task_of(
        tmp_path,
        """(define (domain d) (:predicates (p ?x) (q ?x)) (:action a :parameters (?x)
        :precondition (and (p ?x) (exists (?x) (q ?x))) :effect (forall (?x) (p ?x))))""",
        "(define (problem p) (:domain d) (:objects n o) (:init (p n) (q o)) (:goal (p o)))",
    )
    assert listed(task, task.initial_state) == ["(a n)"]
    assert after(task, "(a n)").satisfies(task.goal)


COSTS = (
    """(define (domain toll) (:types city) (:predicates (at ?c - city) (road ?a ?b - city))
  (:functions (total-cost) - number (toll ?a ?b - city) - number)
  (:action drive :parameters (?a ?b - city) :precondition (and (at ?a) (road ?a ?b))
    :effect (and (at ?b) (not (at ?a)) (increase (total-cost) (toll ?a ?b))))
  (:action rest :parameters () :effect (and (increase (total-cost) 2) (increase (total-cost) 0.5)))
  (:action wait :parameters () :effect ()))""",
    """(define (problem way) (:domain toll) (:objects x y z - city) (:init (at x) (road x y)
  (road x z) (= (total-cost) 0) (= (toll x y) 7)) (:goal (at y))
  (:metric minimize (total-cost)))""",
)


def test_costs_are_those_of_the_file(tmp_path):
    task = task_of(tmp_path, COSTS[0], COSTS[1].replace("(road x z)", ""))
    assert task.has_costs
    actions = task.applicable_actions(task.initial_state)
    costs = {str(action): task.cost(task.initial_state, action) for action in actions}
    assert costs == {"(drive x y)": 7.0, "(rest)": 2.5, "(wait)": 0.0}


def test_an_applicable_action_without_a_cost_is_an_error(tmp_path):
    """By PDDL 2.1 (drive x z) would not be applicable, which nobody intends."""
    task = task_of(tmp_path, *COSTS)
    with pytest.raises(PddlError, match=r"\.pddl: :init gives the cost of \(drive x z\) no value"):
        task.applicable_actions(task.initial_state)


@pytest.mark.parametrize("cost", ["-7", "1e400", "1e13"])
def test_costs_that_nobody_can_mean_are_refused(tmp_path, cost):
    with pytest.raises(UnsupportedPddlError, match=r"pddl, line 2: .*costs") as error:
        task_of(tmp_path, COSTS[0], COSTS[1].replace(" 7)", f" {cost})"))
    assert cost in str(error.value)
    with pytest.raises(UnsupportedPddlError, match=r"pddl, line 5: .*costs"):
        task_of(tmp_path, COSTS[0].replace("0.5", cost), COSTS[1])


def test_total_cost_needs_no_declaration(tmp_path):
    domain = "(define (domain d) (:predicates (p)) (:action a :effect (increase (total-cost) 3)))"
    problem = """(define (problem p) (:domain d) (:init (= (total-cost) 0)) (:goal (p))
        (:metric minimize (total-cost)))"""
    task = task_of(tmp_path, domain, problem)
    [action] = task.applicable_actions(task.initial_state)
    assert task.cost(task.initial_state, action) == 3.0


def test_without_a_metric_every_action_costs_one(tmp_path):
    task = task_of(tmp_path, COSTS[0], COSTS[1].replace("(:metric minimize (total-cost))", ""))
    assert not task.has_costs
    actions = task.applicable_actions(task.initial_state)
    assert [task.cost(task.initial_state, action) for action in actions] == [1.0] * 4


def test_a_wide_task_loads_and_its_states_are_cheap(tmp_path):
    """A 60x60 grid has 14160 static atoms."""
    size = 60
    near = [
        f"(next c{i}-{j} c{i + a}-{j + b})"
        for i, j in product(range(size), repeat=2)
        for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0))
        if 0 <= i + a < size and 0 <= j + b < size
    ]
    cells = " ".join(f"c{i}-{j}" for i, j in product(range(size), repeat=2))
    task = task_of(
        tmp_path,
        """(define (domain grid) (:predicates (at ?c) (next ?a ?b)) (:action move
        :parameters (?a ?b) :precondition (and (at ?a) (next ?a ?b))
        :effect (and (at ?b) (not (at ?a)))))""",
        f"""(define (problem big) (:domain grid) (:objects {cells})
        (:init (at c0-0) {" ".join(near)}) (:goal (at c1-1)))""",
    )
    assert len(task.static_atoms) == 14160
    assert listed(task, task.initial_state) == ["(move c0-0 c0-1)", "(move c0-0 c1-0)"]
    assert after(task, "(move c0-0 c0-1)", "(move c0-1 c1-1)").satisfies(task.goal)


def test_what_the_library_still_refuses_names_the_file(tmp_path, monkeypatch):
    def refuse(text: str) -> None:
        raise RuntimeError("\x1b[31mno\x1b[0m\n  such thing")

    monkeypatch.setattr(pymimir, "Domain", refuse)
    path = tmp_path / "domain.pddl"
    path.write_text(FERRY[0])
    with pytest.raises(PddlError, match=r"domain\.pddl: .* this file: no such thing$"):
        load_domain(path)


# States from their atoms


@pytest.mark.parametrize("name", DOMAINS)
def test_a_state_is_rebuilt_from_its_atoms(tmp_path, name):
    task = task_of(tmp_path, *DOMAINS[name])
    other = load_task(task.domain, task.path)
    rng, state = random.Random(name), task.initial_state
    for _ in range(30):
        assert task.state_of(reversed(state.fluent_atoms)) == state
        twin = other.state_of(state.fluent_atoms)
        assert sorted(twin.fluent_atoms) == sorted(state.fluent_atoms)
        assert listed(other, twin) == listed(task, state)
        state = task.successor(state, rng.choice(task.applicable_actions(state)))


@pytest.mark.parametrize(
    "atom",
    [
        Atom("at", ("a",)),
        Atom("at", ("a", "nowhere")),
        Atom("number", ("a",)),
        Atom("flying", ()),
    ],
)
def test_no_state_from_atoms_that_do_not_fit(tmp_path, atom):
    task = task_of(tmp_path, *FERRY)
    with pytest.raises(ValueError, match=atom.predicate):
        task.state_of([atom])


def test_nothing_of_the_library_is_kept_of_a_task_that_has_forgotten(tasks):
    task = tasks["blocks"]["three"].renewed()
    (pick_up, _) = task.applicable_actions(task.initial_state)
    task.state_of(task.successor(task.initial_state, pick_up).fluent_atoms)
    left = weakref.ref(task.library_problem)
    task.forget_states()
    del pick_up, _
    gc.collect()
    assert left() is None
    assert len(task.applicable_actions(task.initial_state)) == 2


def test_actions_by_name_and_objects(tasks):
    task = tasks["blocks"]["three"].renewed()
    (pick_up, unstack) = task.applicable_actions(task.initial_state)
    assert task.ground("pick-up", ("c",)) is pick_up
    assert task.ground("stack", ["c", "a"]).library_action is not None
    task.forget_states()
    again = task.ground("unstack", ("a", "b"))
    assert again == unstack
    assert task.successor(task.initial_state, again).holds(Atom("holding", ("a",)))
