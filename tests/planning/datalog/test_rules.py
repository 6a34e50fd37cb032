"""Rules of domains worked by hand: what each effect needs, and how rules are split."""

import pytest

from regoal.planning.datalog.rules import BodyLiteral, write_rules
from regoal.planning.pddl.domain import parse_domain
from regoal.planning.pddl.model import Literal, Variable

DOMAIN = """(define (domain d) (:requirements :adl) (:predicates (p ?x) (q ?x) (r ?x ?y) (s ?x))
  (:action make :parameters (?x ?y ?z) :precondition BEFORE :effect AFTER))"""


@pytest.fixture
def rules(tmp_path):
    """A function that returns the rules of a domain with one action, and its deleted predicates."""

    def make(before, after, negative=()):
        path = tmp_path / "domain.pddl"
        path.write_text(DOMAIN.replace("BEFORE", before).replace("AFTER", after))
        found = write_rules(parse_domain(path), negative)
        return found.rules, found.deleted

    return make


def body(rule):
    return [(c.literal.predicate, c.literal.terms) for c in rule.body]


def test_each_variable_that_an_effect_does_not_name_has_a_rule(rules):
    (y, z, head), deleted = rules("(and (p ?x) (q ?y) (s ?z))", "(and (s ?x) (not (q ?y)))")
    assert (body(y), body(z)) == ([("q", ("?y",))], [("s", ("?z",))])
    assert y.head.terms == z.head.terms == ()
    assert head.head == Literal("s", ("?x",))
    assert body(head) == [("p", ("?x",)), (y.head.predicate, ()), (z.head.predicate, ())]
    assert not deleted


def test_a_variable_that_meets_all_others_stays(rules):
    (z, head), _ = rules("(and (r ?x ?y) (p ?z))", "(s ?x)")
    assert (z.head.terms, [v.name for v in head.variables]) == ((), ["?x", "?y"])


def test_deletes_have_rules_if_a_condition_or_the_goal_asks_for_them(rules):
    after = "(and (not (p ?x)) (not (q ?x)))"
    assert rules("(p ?x)", after) == ((), frozenset())
    assert rules("(not (p ?x))", after)[1] == {"p"}
    found, deleted = rules("(p ?x)", after, {"q"})
    assert deleted == {"q"}
    assert found[-1].head == Literal("q", ("?x",), positive=False)


def test_a_universal_condition_binds_no_variable(rules):
    found, _ = rules("(forall (?v) (and (r ?x ?v) (not (= ?v ?x))))", "(p ?x)")
    every = (Variable("?v", ("object",)),)
    assert found[-1].body[:2] == (
        BodyLiteral(Literal("r", ("?x", "?v")), every),
        BodyLiteral(Literal("=", ("?v", "?x"), positive=False), every),
    )


def test_the_cases_of_a_disjunction_have_rules_for_one_auxiliary_atom(rules):
    found, _ = rules("(or (p ?x) (q ?x))", "(and (s ?x) (r ?x ?x))")
    cases = [rule for rule in found if rule.head.predicate.startswith("case")]
    assert [body(rule) for rule in cases] == [[("p", ("?x",))], [("q", ("?x",))]]
    assert len({rule.head for rule in cases}) == 1
