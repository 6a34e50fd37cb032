"""Odd PDDL that users really bring, one test a kind, through the command line where it decides."""

import resource
import time

import pytest
import torch

from regoal import cli
from regoal.networks.encoder import Encoder
from regoal.networks.policy_file import Policy, save_policy
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.planning.goals import Atom, Goal
from regoal.planning.lifting.lifted_goals import lifted_goals
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of

GARDEN = """(define (domain garden)
  (:requirements :strips :typing)
  (:types bed gardener)
  (:predicates (at ?g - gardener ?b - bed) (path ?a ?b - bed) (wet ?b - bed))
  (:action walk :parameters (?g - gardener ?a ?b - bed)
    :precondition (and (at ?g ?a) (path ?a ?b))
    :effect (and (at ?g ?b) (not (at ?g ?a))))
  (:action water :parameters (?g - gardener ?b - bed)
    :precondition (at ?g ?b)
    :effect (wet ?b)))
"""
TASK = """(define (problem one) (:domain garden)
  (:objects g - gardener a b c - bed)
  (:init (at g a) (path a b) (path b c))
  (:goal (and (wet b))))
"""
WATER_B = "(walk g a b)\n(water g b)\n"


@pytest.fixture
def case(tmp_path):
    return Case(tmp_path)


class Case:
    """One domain and problem on disk, and what regoal does with them."""

    def __init__(self, folder):
        self.folder = folder
        self.domain, self.problem = folder / "domain.pddl", folder / "problem.pddl"
        self.plan = folder / "sas_plan"

    def write(self, domain=GARDEN, problem=TASK):
        for path, text in ((self.domain, domain), (self.problem, problem)):
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self

    def task(self):
        return load_task(load_domain(self.domain), self.problem)

    def actions(self):
        """How many actions are applicable at first, the dummy action aside."""
        task = self.task()
        if task.is_dead_end(task.initial_state):
            return 0
        return len(task.applicable_actions(task.initial_state))

    def validate(self, plan):
        path = self.folder / "plan.txt"
        path.write_text(plan)
        return cli.run(["validate", str(self.domain), str(self.problem), str(path)])

    def refused(self, code, *words, capsys):
        """The command line refuses the files in one line with these words."""
        assert self.validate("") == code
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "Internal" not in said
        for word in words:
            assert word in said, said

    def policy(self):
        """A policy with random weights for this domain."""
        schema = schema_of(load_domain(self.domain))
        network = QNetwork(relations_of(schema), 16, seed=0)
        with torch.no_grad():
            network.weights.uniform_(-0.3, 0.3, generator=torch.Generator().manual_seed(1))
        path = self.folder / "policy.safetensors"
        save_policy(path, Policy(network.to_function(), schema, 2, {}))
        return path

    def run_plan(self, *options):
        words = ["plan", self.policy(), self.domain, self.problem, "--out", self.plan, *options]
        return cli.run([str(word) for word in words])

    def train(self):
        words = ["train", self.domain, "--problems", self.problem, "--validation", self.problem]
        words += ["--out", self.folder / "run", "--episodes", 1, "--layers", 2, "--updates", 1]
        words += ["--embedding-size", 16, "--horizon", 4, "--threads", 1]
        return cli.run([str(word) for word in words])

    def q_values(self, *states):
        """Q-values of all actions in each state."""
        relations = relations_of(schema_of(load_domain(self.domain)))
        network = QNetwork(relations, 16, seed=0)
        with torch.no_grad():
            network.weights.uniform_(-0.3, 0.3, generator=torch.Generator().manual_seed(1))
        encoder = Encoder(relations)
        return network.q_values(encoder.batch([(s, s.task.goal) for s in states]), 3)


def test_plain_strips_with_typing(case):
    assert case.write().actions() == 2
    assert case.validate(WATER_B) == 0
    assert case.train() == 0


def test_names_in_different_case(case):
    case.write(problem=TASK.replace("(at g a)", "(AT G A)").replace("(wet b)", "(Wet B)"))
    assert case.actions() == 2
    task = case.task()
    assert str(task.applicable_actions(task.initial_state)[0]) == "(walk g a b)"
    assert case.validate(WATER_B.upper()) == 0


def test_a_negative_literal_in_the_goal(case):
    case.write(problem=TASK.replace("(wet b)", "(not (at g a)) (wet a)"))
    assert case.actions() == 2
    assert case.task().goal == Goal.of([Atom("wet", ("a",))], [Atom("at", ("g", "a"))])
    assert case.validate("(water g a)\n(walk g a b)\n") == 0
    task = case.task()
    positive = Goal.of([Atom("wet", ("a",))])
    relations = relations_of(schema_of(task.domain))
    network, encoder = QNetwork(relations, 16, seed=0), Encoder(relations)
    with torch.no_grad():
        network.weights.uniform_(-0.3, 0.3, generator=torch.Generator().manual_seed(1))
    pairs = [(task.initial_state, goal) for goal in (task.goal, positive)]
    one, other = network.q_values(encoder.batch(pairs), 3)
    assert not torch.equal(one, other)


def test_a_goal_that_holds_at_the_start(case, capsys):
    case.write(problem=TASK.replace("(wet b)", "(at g a)"))
    assert case.run_plan() == 0
    assert case.plan.read_text() == "; cost = 0 (unit cost)\n"
    assert case.validate(case.plan.read_text()) == 0
    second = case.folder / "problems"
    second.mkdir()
    (second / "p1.pddl").write_text(case.problem.read_text())
    (second / "p2.pddl").write_text(TASK)
    case.problem = second
    capsys.readouterr()
    assert case.train() == 0
    assert "left out of training, as their goals hold initially: p1" in capsys.readouterr().out


def test_constants_in_preconditions_effects_and_goal(case):
    domain = GARDEN.replace("(:predicates", "(:constants shed - bed)\n  (:predicates").replace(
        "(:action water",
        "(:action home :parameters (?g - gardener) :precondition (not (at ?g shed))\n"
        "    :effect (and (at ?g shed) (wet shed)))\n  (:action water",
    )
    case.write(domain, TASK.replace("(wet b)", "(at g shed)"))
    assert case.actions() == 3
    assert "shed" in case.task().objects
    assert case.validate("(home g)\n(water g shed)\n") == 0


def test_either_on_an_action_parameter(case):
    domain = GARDEN.replace("(:types bed gardener)", "(:types bed pot stone gardener)")
    domain = domain.replace(
        "?b - bed)\n    :precondition (at", "?b - (either bed pot))\n    :precondition (at"
    )
    domain = domain.replace(
        "(at ?g - gardener ?b - bed)", "(at ?g - gardener ?b - (either bed pot))"
    )
    domain = domain.replace("(wet ?b - bed)", "(wet ?b)")
    problem = TASK.replace("c - bed)", "c - bed p - pot s - stone)")
    case.write(
        domain,
        problem.replace("(at g a)", "(at g a) (at g p)").replace("(wet b)", "(wet p) (wet a)"),
    )
    assert case.actions() == 3
    assert case.validate("(water g p)\n(water g a)\n") == 0
    assert case.validate("(water g p)\n(water g s)\n") == 1


def test_no_applicable_action(case, capsys):
    case.write(problem=TASK.replace("(at g a) ", ""))
    assert case.actions() == 0
    case.plan.write_text("of an earlier call")
    assert case.run_plan() == 11
    assert not case.plan.exists()
    assert "has seen every state from which" in capsys.readouterr().out


def test_only_predicates_without_arguments(case):
    case.write(
        "(define (domain lamp) (:predicates (off) (on) (warm)) "
        "(:action light :parameters () :precondition (off) :effect (and (on) (not (off)))) "
        "(:action heat :parameters () :precondition (on) :effect (warm)))",
        "(define (problem p) (:domain lamp) (:init (off)) (:goal (warm)))",
    )
    assert case.actions() == 1
    assert case.validate("(light)\n(heat)\n") == 0
    assert case.train() == 0


def test_an_object_declared_twice(case, capsys):
    case.write(problem=TASK.replace("c - bed", "c a - bed"))
    case.refused(31, "problem.pddl, line 2", "'a'", capsys=capsys)


def test_incomplete_requirements(case):
    domain = GARDEN.replace("  (:requirements :strips :typing)\n", "")
    case.write(domain.replace("(at ?g ?b)\n", "(and (at ?g ?b) (not (wet ?b)))\n"))
    assert case.actions() == 2


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_other_line_ends(case, end):
    case.write(GARDEN.replace("\n", end), TASK.replace("\n", f" ; comment{end}"))
    assert case.actions() == 2


def test_a_byte_order_mark(case):
    mark = b"\xef\xbb\xbf"
    assert case.write(mark + GARDEN.encode(), mark + TASK.encode()).actions() == 2


def test_a_negated_atom_in_init(case):
    case.write(problem=TASK.replace("(:init", "(:init (not (wet a)) (not (at g c))"))
    assert case.actions() == 2


def test_no_blank_before_a_variable(case):
    case.write(GARDEN.replace("(path ?a ?b)", "(path?a?b)"))
    assert case.actions() == 2


@pytest.mark.parametrize("goal", ["(and)", "()", "(and (and))"])
def test_an_empty_goal(case, goal):
    case.write(problem=TASK.replace("(and (wet b))", goal))
    assert case.run_plan() == 0
    assert case.plan.read_text() == "; cost = 0 (unit cost)\n"


def test_conditional_and_universal_effects(case):
    case.write(
        GARDEN.replace(
            ":effect (wet ?b)",
            ":effect (and (wet ?b) (forall (?c - bed) (when (path ?b ?c) (wet ?c))))",
        ),
        TASK.replace("(and (wet b))", "(forall (?x - bed) (wet ?x))"),
    )
    assert case.actions() == 2
    assert case.validate("(water g a)\n") == 1
    assert case.validate("(water g a)\n(walk g a b)\n(water g b)\n") == 0


def test_an_undeclared_object_in_init(case, capsys):
    case.write(problem=TASK.replace("(path b c)", "(path b d)"))
    case.refused(31, "problem.pddl, line 3", "'d'", capsys=capsys)


def test_one_word_as_type_predicate_and_object(case):
    domain = GARDEN.replace("(wet ?b - bed)", "(bed ?b - bed)").replace("(wet ?b)", "(bed ?b)")
    problem = TASK.replace("a b c - bed", "bed - bed").replace("(at g a)", "(at g bed)")
    case.write(domain, problem.replace("(path a b) (path b c)", "").replace("(wet b)", "(bed bed)"))
    assert case.actions() == 1
    assert case.validate("(water g bed)\n") == 0
    task = case.task()
    state = task.initial_state
    after = task.successor(state, task.applicable_actions(state)[0])
    one, other = case.q_values(state, after)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("condition", ["", ":precondition ()", ":precondition (and)"])
def test_an_action_without_parameters_and_precondition(case, condition):
    action = f"(:action rain :parameters () {condition} :effect (forall (?b - bed) (wet ?b)))"
    case.write(GARDEN.replace("(:action water", f"{action}\n  (:action water"))
    assert case.actions() == 3
    assert case.validate("(rain)\n") == 0


def test_object_among_the_types(case):
    case.write(GARDEN.replace("(:types bed", "(:types object bed"))
    assert case.actions() == 2


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_file_that_is_cut_off(case, share, capsys):
    case.write(domain=GARDEN[: int(share * len(GARDEN))])
    case.refused(31, "domain.pddl, line ", "still open", capsys=capsys)


def test_derived_predicates(case):
    domain = GARDEN.replace(
        "(:action walk",
        "(:derived (near ?a ?b - bed) (or (path ?a ?b) (exists (?c - bed) "
        "(and (path ?a ?c) (near ?c ?b)))))\n  (:action walk",
    ).replace("(wet ?b - bed))", "(wet ?b - bed) (near ?a ?b - bed))")
    case.write(domain.replace("(at ?g ?a) (path ?a ?b)", "(at ?g ?a) (near ?a ?b)"))
    assert case.actions() == 3
    assert case.task().initial_state.holds(Atom("near", ("a", "c")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(at ?g ?b)\n", "(and (at ?g ?b) (> (can ?g) 0))\n"),
        (":effect (wet ?b)", ":effect (and (wet ?b) (decrease (can ?g) 1))"),
    ],
)
def test_numeric_fluents(case, old, new, capsys):
    domain = GARDEN.replace("(:action walk", "(:functions (can ?g - gardener))\n  (:action walk")
    case.write(domain.replace(old, new), TASK.replace("(:init", "(:init (= (can g) 2)"))
    case.refused(34, "domain.pddl", "numeric fluents", capsys=capsys)


def test_a_goal_of_many_unconnected_atoms():
    goal = Goal.of([Atom("wet", (f"b{i}",)) for i in range(24)])
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
    found = list(lifted_goals(goal, types_of={f"b{i}": ("bed",) for i in range(24)}))
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert len(found) == 24
    assert time.process_time() - start < 1
    assert after.ru_maxrss - before.ru_maxrss < 100 * 1024


def test_static_atoms_in_the_goal(case, capsys):
    case.write(problem=TASK.replace("(wet b)", "(wet b) (path a b)"))
    assert case.validate(WATER_B) == 0
    case.write(problem=TASK.replace("(wet b)", "(wet b) (path c a)"))
    assert case.run_plan() == 11
    assert "(path c a), which no action brings about" in capsys.readouterr().out
    assert not case.plan.exists()


def test_non_breaking_spaces(case):
    case.write(
        GARDEN.replace("(at ?g ?b)", "(at\u00a0?g\u00a0?b)"), TASK.replace(" a b c", "\u00a0a b c")
    )
    assert case.actions() == 2


def test_a_free_variable_in_an_effect(case, capsys):
    case.write(GARDEN.replace(":effect (wet ?b)", ":effect (wet ?c)"))
    case.refused(31, "domain.pddl, line 10", "?c", "water", capsys=capsys)


def test_ninety_thousand_applicable_actions(case):
    names = [f"x{i}" for i in range(300)]
    case.write(
        "(define (domain wide) (:predicates (linked ?a ?b) (done)) "
        "(:action link :parameters (?a ?b) :effect (and (linked ?a ?b) (done))))",
        f"(define (problem p) (:domain wide) (:objects {' '.join(names)}) (:init) (:goal (done)))",
    )
    assert case.actions() == 90_000
    start = time.monotonic()
    assert case.run_plan("--max-steps", "1", "--layers", "30") == 0
    assert time.monotonic() - start < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20


def test_names_that_programs_use_for_themselves(case):
    old = ("garden", "bed", "gardener", "at", "path", "wet", "walk", "water", "one")
    new = ("pop", "type", "keys", "clear", "to", "items", "train", "update", "self")
    domain, problem = GARDEN, TASK
    for a, b in sorted(zip(old, new, strict=True), key=lambda pair: -len(pair[0])):
        for before in "( :-":
            for after in " )\n":
                domain = domain.replace(f"{before}{a}{after}", f"{before}{b}{after}")
                problem = problem.replace(f"{before}{a}{after}", f"{before}{b}{after}")
    case.write(domain, problem)
    assert case.actions() == 2
    assert case.validate("(train g a b)\n(update g b)\n") == 0
    assert case.train() == 0


def test_states_that_differ_in_an_atom_without_arguments(case):
    domain = GARDEN.replace("(wet ?b - bed))", "(wet ?b - bed) (night))")
    domain = domain.replace(
        "(:action water",
        "(:action wait :parameters () :precondition (night) :effect (not (night)))\n"
        "  (:action sleep :parameters () :precondition (not (night)) :effect (night))\n"
        "  (:action water",
    )
    task = case.write(domain).task()
    day = task.initial_state
    sleep = next(a for a in task.applicable_actions(day) if a.name == "sleep")
    one, other = case.q_values(day, task.successor(day, sleep))
    assert one.shape == other.shape
    assert not torch.allclose(one, other)
