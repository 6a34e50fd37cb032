"""Small domains, tasks and random walks that several folders of tests share."""

import random
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import torch

from regoal.networks.encoder import Encoder
from regoal.networks.kernels.cpu import kernel as cpu_kernel
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import Relation, relations_of
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.task import State, Task

# A shell that starts a job in the background lets it ignore interrupts, and so would the programs
# that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

torch.set_num_threads(1)  # these tests' matrices are small: threads cost more than they give

BLOCKS = """(define (domain blocks) (:requirements :strips)
  (:predicates (on ?x ?y) (ontable ?x) (clear ?x) (handempty) (holding ?x))
  (:action pick-up :parameters (?x) :precondition (and (clear ?x) (ontable ?x) (handempty))
    :effect (and (holding ?x) (not (ontable ?x)) (not (clear ?x)) (not (handempty))))
  (:action put-down :parameters (?x) :precondition (holding ?x)
    :effect (and (clear ?x) (handempty) (ontable ?x) (not (holding ?x))))
  (:action stack :parameters (?x ?y) :precondition (and (holding ?x) (clear ?y))
    :effect (and (not (holding ?x)) (not (clear ?y)) (clear ?x) (handempty) (on ?x ?y)))
  (:action unstack :parameters (?x ?y) :precondition (and (on ?x ?y) (clear ?x) (handempty))
    :effect (and (holding ?x) (clear ?y) (not (clear ?x)) (not (handempty)) (not (on ?x ?y)))))"""

TOWER = """(define (problem tower) (:domain blocks) (:objects b1 b2 b3 b4)
  (:init (ontable b1) (ontable b2) (ontable b3) (ontable b4)
    (clear b1) (clear b2) (clear b3) (clear b4) (handempty))
  (:goal (and (on b1 b2) (on b2 b3) (on b3 b4))))"""

THREE = """(define (problem three) (:domain blocks) (:objects a b c)
  (:init (on a b) (ontable b) (ontable c) (clear a) (clear c) (handempty))
  (:goal (and (on b c))))"""

# Types above types, a constant, static atoms, negative literals, a 0-ary predicate.
FERRY = """(define (domain ferry) (:requirements :strips :typing :equality :negative-preconditions)
  (:types car bus - vehicle vehicle place - object) (:constants depot - place)
  (:predicates (at-ferry ?p - place) (at ?c - vehicle ?p - place) (on ?c - vehicle) (full)
    (route ?a ?b - place) (fee ?p - place))
  (:action sail :parameters (?a ?b - place)
    :precondition (and (at-ferry ?a) (route ?a ?b) (not (= ?a ?b)))
    :effect (and (at-ferry ?b) (not (at-ferry ?a))))
  (:action home :parameters (?a - place) :precondition (and (at-ferry ?a) (fee ?a))
    :effect (and (not (at-ferry ?a)) (at-ferry depot)))
  (:action board :parameters (?c - vehicle ?p - place)
    :precondition (and (at ?c ?p) (at-ferry ?p) (not (full)))
    :effect (and (on ?c) (full) (not (at ?c ?p))))
  (:action leave :parameters (?c - car ?p - place) :precondition (and (on ?c) (at-ferry ?p))
    :effect (and (at ?c ?p) (not (on ?c)) (not (full)))))"""

FERRY_TWO = """(define (problem two) (:domain ferry) (:objects p q - place a - car b - bus)
  (:init (at-ferry p) (at a p) (at b q) (route p q) (route q p) (route depot p) (fee q))
  (:goal (and (at a q) (not (full)) (at-ferry depot))))"""

FERRY_ONE = """(define (problem one) (:domain ferry) (:objects p - place a c - car)
  (:init (at-ferry depot) (at a p) (at c depot) (route depot p) (route p depot))
  (:goal (and (at a depot) (not (at c depot)))))"""

# Names that collide with what programs like to call their own things; arities up to five.
ODD = """(define (domain odd) (:requirements :strips :typing) (:types type keys)
  (:predicates (clear ?a - type) (type ?a - type) (keys ?k - keys) (train) (to ?a ?b - type)
    (pop ?a ?b - type ?k - keys) (items ?a ?b ?c - type ?k - keys) (forward) (args ?k - keys))
  (:action items :parameters (?a ?b ?c - type ?k - keys)
    :precondition (and (clear ?a) (to ?a ?b) (to ?b ?c) (keys ?k) (train))
    :effect (and (items ?a ?b ?c ?k) (pop ?a ?c ?k) (not (clear ?a)) (type ?c)))
  (:action pop :parameters (?a ?b - type ?k - keys)
    :precondition (and (pop ?a ?b ?k) (type ?b))
    :effect (and (not (pop ?a ?b ?k)) (clear ?a) (not (keys ?k))))
  (:action train :parameters () :precondition (forward) :effect (and (train) (not (forward))))
  (:action keys :parameters (?k - keys) :precondition (args ?k)
    :effect (and (keys ?k) (forward))))"""

ODD_ONE = """(define (problem names) (:domain odd) (:objects self x y z - type k l - keys)
  (:init (clear self) (clear x) (to self x) (to x y) (to y z) (to x z) (args k) (args l) (keys l)
    (forward)) (:goal (and (pop self y k) (items x y z l) (train))))"""

ODD_TWO = """(define (problem more) (:domain odd) (:objects type keys - type to - keys)
  (:init (clear type) (to type keys) (to keys type) (args to) (train) (forward))
  (:goal (and (type type) (forward))))"""

# No objects at all.
LAMP = """(define (domain lamp) (:requirements :strips :negative-preconditions)
  (:predicates (lit) (warm))
  (:action light :parameters () :precondition (not (lit)) :effect (lit))
  (:action wait :parameters () :precondition (lit) :effect (and (warm) (not (lit)))))"""

LAMP_ONE = """(define (problem dark) (:domain lamp) (:init ) (:goal (and (lit) (warm))))"""

# Roads in one direction: a wrong turn ends where nothing is applicable.
ROADS = """(define (domain roads) (:requirements :strips)
  (:predicates (here ?a) (road ?a ?b))
  (:action go :parameters (?a ?b) :precondition (and (here ?a) (road ?a ?b))
    :effect (and (here ?b) (not (here ?a)))))"""

ROADS_FORK = """(define (problem fork) (:domain roads) (:objects a b c d)
  (:init (here a) (road a b) (road a c) (road c d) (road d c)) (:goal (here d)))"""

ROADS_END = """(define (problem end) (:domain roads) (:objects a b)
  (:init (here b) (road a b)) (:goal (here a)))"""

ROADS_DONE = """(define (problem done) (:domain roads) (:objects a b)
  (:init (here a) (road a b)) (:goal (here a)))"""

# A ring of three with a spur that leads nowhere new.
ROADS_RING = """(define (problem ring) (:domain roads) (:objects a b c d)
  (:init (here a) (road a b) (road b c) (road c a) (road c b) (road d a)) (:goal (here d)))"""

TEXTS = {
    "blocks": (BLOCKS, {"tower": TOWER, "three": THREE}),
    "ferry": (FERRY, {"two": FERRY_TWO, "one": FERRY_ONE}),
    "odd": (ODD, {"names": ODD_ONE, "more": ODD_TWO}),
    "lamp": (LAMP, {"dark": LAMP_ONE}),
    "roads": (
        ROADS,
        {"fork": ROADS_FORK, "end": ROADS_END, "done": ROADS_DONE, "ring": ROADS_RING},
    ),
}

ReadTask = Callable[[str, str], Task]


@pytest.fixture(scope="session")
def read_task(tmp_path_factory: pytest.TempPathFactory) -> ReadTask:
    """The task of a domain's and a problem's text; the same texts give the same task."""
    domains: dict[str, Path] = {}
    loaded = {}
    tasks: dict[tuple[str, str], Task] = {}

    def read(domain: str, problem: str) -> Task:
        if domain not in domains:
            folder = domains[domain] = tmp_path_factory.mktemp("pddl")
            (folder / "domain.pddl").write_text(domain, encoding="utf-8")
            loaded[domain] = load_domain(folder / "domain.pddl")
        if (domain, problem) not in tasks:
            path = domains[domain] / f"p{len(tasks)}.pddl"
            path.write_text(problem, encoding="utf-8")
            tasks[domain, problem] = load_task(loaded[domain], path)
        return tasks[domain, problem]

    return read


@pytest.fixture(scope="session")
def tasks(read_task: ReadTask) -> dict[str, dict[str, Task]]:
    """All tasks of `TEXTS`, by domain and problem."""
    return {
        name: {problem: read_task(domain, text) for problem, text in problems.items()}
        for name, (domain, problems) in TEXTS.items()
    }


WAYS = """(define (domain ways) (:predicates (at ?x) (next ?x ?y))
  (:action go :parameters (?x ?y) :precondition (and (at ?x) (next ?x ?y))
    :effect (and (at ?y) (not (at ?x)))))"""


@pytest.fixture(scope="session")
def ways(read_task: ReadTask) -> Callable[[Iterable[str], str, str], Task]:
    """The task to go from a to a goal, over ways such as `ab` from a to b."""

    def build(pairs: Iterable[str], goal: str, cells: str) -> Task:
        listed = " ".join(f"(next {x} {y})" for x, y in pairs)
        return read_task(
            WAYS,
            f"(define (problem p) (:domain ways) (:objects {' '.join(cells)})"
            f" (:init (at a) {listed}) (:goal (at {goal})))",
        )

    return build


@pytest.fixture(scope="session")
def walk() -> Callable[[Task, int, int], tuple[list[State], list[int]]]:
    """A random walk: its states, and the positions of its actions among the applicable ones."""

    def run(task: Task, steps: int, seed: int) -> tuple[list[State], list[int]]:
        rng = random.Random(seed)
        states, actions = [task.initial_state], []
        for _ in range(steps):
            applicable = task.applicable_actions(states[-1])
            actions.append(rng.randrange(len(applicable)))
            states.append(task.successor(states[-1], applicable[actions[-1]]))
        return states, actions

    return run


@pytest.fixture(scope="session")
def policy() -> Callable[..., QNetwork]:
    """A network with weights drawn at random, whatever fresh networks begin with."""

    def build(relations: tuple[Relation, ...], size: int = 16, seed: int = 0) -> QNetwork:
        network = QNetwork(relations, size, seed=0)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            network.weights.uniform_(-0.3, 0.3, generator=generator)
        return network

    return build


@pytest.fixture(scope="session")
def relations(tasks: dict[str, dict[str, Task]]) -> dict[str, tuple[Relation, ...]]:
    """The relations of each domain."""
    return {
        name: relations_of(schema_of(next(iter(problems.values())).domain), achieved_goals=True)
        for name, problems in tasks.items()
    }


@pytest.fixture
def encoders(relations: dict[str, tuple[Relation, ...]]) -> dict[str, Encoder]:
    """A fresh encoder of each domain."""
    return {name: Encoder(of) for name, of in relations.items()}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Each test begins with one thread, whatever the commands of the one before have set."""
    cpu_kernel.use_threads(1)


@pytest.fixture
def threads() -> Callable[[int], None]:
    """Sets how many threads the kernel uses in this test."""
    return cpu_kernel.use_threads


def walked(task: Task, names: Iterable[str]) -> list[State]:
    """Return the states of a walk, given by action names such as "(walk a b)"."""
    states = [task.initial_state]
    for name in names:
        (action,) = (a for a in task.applicable_actions(states[-1]) if str(a) == name)
        states.append(task.successor(states[-1], action))
    return states


def reachable(task: Task) -> set[State]:
    """Return all states that can be reached, by breadth-first search without any pruning."""
    seen, waiting = {task.initial_state}, [task.initial_state]
    for state in waiting:
        for action in task.applicable_actions(state):
            after = task.successor(state, action)
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return seen
