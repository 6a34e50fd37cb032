"""Derived predicates with negation, worked by hand: the order of rules does not matter."""

from itertools import permutations

import pytest

from regoal.planning.goals import Atom
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of

DOMAIN = """(define (domain garden) (:requirements :adl :derived-predicates)
  (:types pot) (:predicates (dry ?p - pot) (dead ?p - pot) (next ?p ?q - pot) (thirsty ?p - pot)
    (fine ?p - pot) (quiet))
  {rules}
  (:action pour :parameters (?p - pot) :precondition (not (fine ?p)) :effect (not (dry ?p)))
  (:action sun :parameters (?p - pot) :precondition (fine ?p)
    :effect (and (dry ?p) (forall (?q - pot) (when (not (fine ?q)) (dead ?q))))))
"""
PROBLEM = """(define (problem three) (:domain garden) (:objects a b c - pot)
  (:init (dry a) (next a b) (dead a)) (:goal {goal}))
"""

# `thirsty` spreads from `a` to `b`. `c` is fine, because it is not thirsty, and `a`, which is dead.
SPREAD = [
    "(:derived (thirsty ?p) (dry ?p))",
    "(:derived (thirsty ?p) (exists (?q - pot) (and (next ?q ?p) (thirsty ?q))))",
]
APART = [
    "(:derived (fine ?p) (not (thirsty ?p)))",
    "(:derived (fine ?p) (and (thirsty ?p) (dead ?p)))",
]
TOGETHER = ["(:derived (fine ?p) (or (not (thirsty ?p)) (and (thirsty ?p) (dead ?p))))"]
TURNED = ["(:derived (fine ?p) (or (and (thirsty ?p) (dead ?p)) (not (thirsty ?p))))"]
IN_ONE = [
    "(:derived (fine ?p) (exists (?q - pot) (and (thirsty ?q) (dry ?q) (not (thirsty ?p)))))",
    "(:derived (fine ?p) (and (dead ?p) (imply (not (thirsty ?p)) (dead ?p))))",
]
QUIET = "(:derived (quiet) (forall (?p - pot) (or (fine ?p) (thirsty ?p))))"


@pytest.fixture
def read(tmp_path):
    def read(rules, goal="(quiet)"):
        (tmp_path / "domain.pddl").write_text(DOMAIN.format(rules="\n  ".join(rules)))
        (tmp_path / "p1.pddl").write_text(PROBLEM.format(goal=goal))
        return load_task(load_domain(tmp_path / "domain.pddl"), tmp_path / "p1.pddl")

    return read


def derived(state):
    return {str(atom) for atom in state.atoms if atom.predicate in ("thirsty", "fine", "quiet")}


@pytest.mark.parametrize("fine", [APART, TOGETHER, TURNED, IN_ONE])
def test_strata_decide_whatever_the_order_of_rules(read, fine):
    for rules in permutations([SPREAD[0], *fine]):
        task = read([SPREAD[1], *rules, QUIET])
        assert derived(task.initial_state) == {
            "(thirsty a)", "(thirsty b)", "(fine a)", "(fine c)", "(quiet)",
        }  # fmt: skip
        actions = {str(action): action for action in task.applicable_actions(task.initial_state)}
        assert list(actions) == ["(pour b)", "(sun a)", "(sun c)"]
        after = task.successor(task.initial_state, actions["(sun c)"])
        # Before the action only b is not fine, so b dies. Then all are thirsty, but only c lives.
        assert {atom for atom in after.atoms if atom.predicate == "dead"} == {
            Atom("dead", ("a",)), Atom("dead", ("b",)),
        }  # fmt: skip
        assert derived(after) == {
            "(thirsty a)", "(thirsty b)", "(thirsty c)", "(fine a)", "(fine b)", "(quiet)",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("goal", "holds"),
    [
        ("(and (fine c) (not (fine b)))", True),
        ("(and (quiet) (not (thirsty c)))", True),
        ("(fine b)", False),
        ("(not (quiet))", False),
        ("(forall (?p - pot) (not (fine ?p)))", False),
    ],
)
def test_goals_about_derived_predicates(read, goal, holds):
    task = read([*reversed(APART), *SPREAD, QUIET], goal)
    assert task.initial_state.satisfies(task.goal) is holds


def test_what_is_made_for_the_parser_stays_hidden(read):
    task = read([*SPREAD, *APART, QUIET])
    assert "equal-0" in task.domain.text.text
    assert {name for name, _ in task.domain.predicates} == {
        "dry", "dead", "next", "thirsty", "fine", "quiet",
    }  # fmt: skip
    assert {atom.predicate for atom in task.initial_state.atoms} <= dict(
        task.domain.predicates
    ).keys()
    symbols = {s.name for s in schema_of(task.domain).used_symbols if s.kind == "predicate"}
    assert symbols == dict(task.domain.predicates).keys()


def test_rules_that_need_no_twin_are_printed_unchanged(read):
    assert (
        "equal-"
        not in read(
            [*SPREAD, APART[0], QUIET.replace("(thirsty ?p)", "(dead ?p)")]
        ).domain.text.text
    )
