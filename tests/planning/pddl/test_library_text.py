"""Which files are read or refused, with which messages, and which text the library gets."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.errors import PddlError, RegoalError, UnsupportedPddlError, UsageError
from regoal.planning.goals import Atom, Goal
from regoal.planning.load import read_domain, read_problem
from regoal.planning.pddl.library_text import DomainText, ProblemText
from regoal.planning.pddl.syntax import Bracket, Word, parse

DOMAIN = """
(define (domain boats)
  (:requirements :strips :typing)
  (:types harbour vessel - object tug - vessel)
  (:constants home - harbour)
  (:predicates (in ?v - vessel ?h - harbour) (sea ?a ?b - harbour) (calm))
  (:action sail :parameters (?v - vessel ?a ?b - harbour)
    :precondition (and (in ?v ?a) (sea ?a ?b))
    :effect (and (in ?v ?b) (not (in ?v ?a)))))
"""
PROBLEM = """
(define (problem two)
  (:domain boats)
  (:objects north - harbour tim - tug)
  (:init (in tim home) (sea home north))
  (:goal (and (in tim north))))
"""


@pytest.fixture
def read(tmp_path: Path):
    """Reads a domain and a problem given as text."""

    def read_both(domain: str = DOMAIN, problem: str = PROBLEM) -> tuple[DomainText, ProblemText]:
        domain_path, problem_path = tmp_path / "domain.pddl", tmp_path / "p1.pddl"
        domain_path.write_text(domain, encoding="utf-8", newline="")
        problem_path.write_text(problem, encoding="utf-8", newline="")
        text = read_domain(domain_path)
        return text, read_problem(problem_path, text)

    return read_both


def refused(read, kind: type[RegoalError], domain: str, problem: str, *words: str) -> None:
    """Check the kind of error, that it names the file, and that all words are in it."""
    with pytest.raises(kind) as caught:
        read(domain, problem)
    assert type(caught.value) is kind
    message = str(caught.value)
    assert "domain.pddl" in message or "p1.pddl" in message
    assert "\n" not in message
    for word in words:
        assert word in message, message


# Syntax


def test_words_keep_their_lines_and_lose_comments_and_case():
    assert parse("(Define ; (not read)\n (a?b)\t)") == (
        Bracket((Word("define", 1), Bracket((Word("a", 2), Word("?b", 2)), 2)), 1),
    )


def test_no_blank_is_needed_before_a_variable_or_a_type():
    assert [word.text for word in parse("(?a?b -place - x-y)")[0].items] == [
        "?a",
        "?b",
        "-",
        "place",
        "-",
        "x-y",
    ]


@pytest.mark.parametrize(
    "blank", ["\t", "\r\n", "\r", "\f", "\v", "\N{NO-BREAK SPACE}", "\N{EM SPACE}"]
)
def test_all_white_space_separates_words(read, blank):
    _, problem = read(DOMAIN.replace(" ", blank), PROBLEM.replace(" ", blank))
    assert problem.goal == Goal.of([Atom("in", ("tim", "north"))])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_comment_ends_with_its_line(read, end):
    domain, _ = read(DOMAIN.replace("\n", f" ; a ) comment{end}"))
    assert domain.content.name == "boats"


def test_a_byte_order_mark_is_skipped(read):
    assert read("\N{BYTE ORDER MARK}" + DOMAIN, "\N{BYTE ORDER MARK}" + PROBLEM)


def test_bytes_of_another_encoding_are_harmless_in_comments_only(tmp_path):
    path = tmp_path / "domain.pddl"
    path.write_bytes(DOMAIN.encode() + b"; J\xf6rg\n")
    assert read_domain(path).content.name == "boats"
    path.write_bytes(DOMAIN.replace("calm", "c\xe4lm").encode("latin-1"))
    with pytest.raises(PddlError, match=r"line 6: a byte that is not UTF-8"):
        read_domain(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_are_refused_with_the_remedy(tmp_path, encoding):
    path = tmp_path / "domain.pddl"
    path.write_bytes(DOMAIN.encode(encoding))
    with pytest.raises(PddlError, match="save it as UTF-8"):
        read_domain(path)


@pytest.mark.parametrize(
    ("character", "name"),
    [("\N{ZERO WIDTH SPACE}", "ZERO WIDTH SPACE"), ("\N{EN DASH}", "EN DASH"), ('"', "QUOTATION")],
)
def test_strange_characters_are_named_with_their_line(read, character, name):
    refused(
        read, PddlError, DOMAIN.replace("(calm)", f"({character}calm)"), PROBLEM, "line 6", name
    )


@given(st.text(alphabet="()?-:;= \nab1", max_size=60))
@settings(deadline=None, max_examples=200)
def test_any_text_parses_or_is_refused_with_a_line(text):
    message = "line "
    try:
        parse(text)
    except PddlError as error:
        message = str(error)
    assert message.startswith("line ")


def test_deep_nesting_is_refused(read):
    deep = "(and " * 5000 + ")" * 5000
    refused(read, PddlError, DOMAIN, PROBLEM.replace("(and (in tim north))", deep), "nested")


def test_endless_names_are_refused_in_few_words(read):
    with pytest.raises(PddlError, match="has more than 1000 characters; shorten") as found:
        read(DOMAIN, PROBLEM.replace("tim", "t" * 1001))
    assert len(str(found.value)) < 300
    read(DOMAIN, PROBLEM.replace("tim", "t" * 1000))


# Files that are not what they should be


def test_missing_files_and_folders_are_bad_usage(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        read_domain(tmp_path / "none.pddl")
    with pytest.raises(UsageError, match="folder"):
        read_domain(tmp_path)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        (" \n; only a comment\n", "empty"),
        ("walk a b", "outside all brackets"),
        ("(sail tim home north)", "must begin with (define (domain"),
        (PROBLEM, "is a problem file where a domain is expected"),
        ("(define (domain))", "(domain NAME)"),
        (DOMAIN + PROBLEM, "a file holds one"),
        (DOMAIN + ")", "closes nothing"),
        (DOMAIN.rstrip()[:-1], "bracket is still open"),
        (DOMAIN[:200], "cut off"),
        (DOMAIN.replace("(:action", "(:acton"), "Did you mean ':action'?"),
        (DOMAIN.replace("(:action", "(:types a) (:action"), "again, first on line 4"),
        (DOMAIN.replace("(:action", "action ("), "expected a section"),
    ],
)
def test_a_domain_file_that_is_none_is_refused(read, text, word):
    refused(read, PddlError, text, PROBLEM, "line", word)


def test_a_forgotten_bracket_is_placed_before_the_next_section(read):
    domain = DOMAIN.replace("(calm))", "(calm)")
    refused(read, PddlError, domain, PROBLEM, "before line 7", "'(:action'")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("(:domain boats)", "(:domain ships)", ("'ships'", "'boats'")),
        ("(:domain boats)", "", ("add (:domain boats)",)),
        ("(:init (in tim home) (sea home north))", "", ("no section (:init",)),
        ("(:goal (and (in tim north)))", "", ("no section (:goal",)),
        ("(:goal (and (in tim north)))", "(:goal (calm) (calm))", ("one condition",)),
        (PROBLEM, DOMAIN, ("is a domain file where a problem is expected",)),
        ("(:init", "(:inti", ("Did you mean ':init'?",)),
    ],
)
def test_a_problem_that_does_not_fit_is_refused(read, old, new, words):
    refused(read, PddlError, DOMAIN, PROBLEM.replace(old, new), *words)


# Names


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("tim - tug", "tim tim - tug", ("line 4", "'tim' is declared twice")),
        ("tim - tug", "tim - tug home - harbour", ("'home' is a constant",)),
        ("tim - tug", "tim - tub", ("no type 'tub'", "Did you mean 'tug'?")),
        ("(in tim home)", "(in tom home)", ("line 5", "no object 'tom'", "Did you mean 'tim'?")),
        ("(in tim home)", "(at tim home)", ("line 5", "no predicate 'at'")),
        ("(in tim home)", "(in tim)", ("'in' takes 2 arguments", "has 1")),
        ("(in tim home)", "(in home tim)", ("'home' is of type harbour", "needs vessel")),
        ("(in tim home)", "(in ?x home)", ("?x is free in :init",)),
        ("(in tim home)", "tim", ("in brackets",)),
        ("(in tim home)", "(and (in tim home))", ("one after the other",)),
        ("(in tim home)", "(calm) (not (calm))", ("both true (line 5) and false",)),
        ("(in tim home)", "(= home home)", ("give a function a value",)),
        ("(in tim north)", "(in tim south)", ("line 6", "no object 'south'")),
        ("(in tim north)", "(in north tim)", ("needs vessel",)),
        ("(in tim north)", "(calm) (not (calm))", ("both true and false",)),
        ("(in tim north)", "(= home north)", ("can never hold",)),
    ],
)
def test_wrong_names_in_a_problem_are_refused(read, old, new, words):
    refused(read, PddlError, DOMAIN, PROBLEM.replace(old, new), *words)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("(in ?v ?b)", "(in ?v ?c)", ("line 9", "?c is free in the effect of action sail")),
        ("(sea ?a ?b))\n", "(sea ?a ?c))\n", ("?c is free in the precondition of action sail",)),
        ("(sea ?a ?b))\n", "(see ?a ?b))\n", ("no predicate 'see'", "Did you mean 'sea'?")),
        ("(sea ?a ?b))\n", "(sea ?a))\n", ("takes 2 arguments",)),
        ("(sea ?a ?b))\n", "(sea ?a ?v))\n", ("'?v' is of type vessel", "needs harbour")),
        ("(sea ?a ?b))\n", "sea)\n", ("in brackets",)),
        ("?a ?b - harbour)\n", "?a ?a - harbour)\n", ("?a is listed twice",)),
        ("?a ?b - harbour)\n", "?a b - harbour)\n", ("'b' in", "begin with '?'")),
        ("?a ?b - harbour)\n", "?a ?b - harbor)\n", ("no type 'harbor'", "'harbour'")),
        ("?a ?b - harbour)\n", "?a ?b -)\n", ("no type follows",)),
        (":precondition", ":preconditions", ("Did you mean ':precondition'?",)),
        (":precondition", ":effect () :effect", ("has :effect twice",)),
        (":effect (and (in ?v ?b) (not (in ?v ?a)))", ":effect", ("nothing follows :effect",)),
        ("(in ?v ?b)", "(or (in ?v ?b) (calm))", ("cannot be an effect",)),
        ("(in ?v ?b)", "(not (in ?v ?b) (calm))", ("'not' needs 1 part",)),
        ("(calm)", "(calm) (calm ?x)", ("'calm' is declared twice",)),
        ("(calm)", "(not ?x)", ("'not' is a word of PDDL",)),
        ("(calm)", "calm", ("expected a predicate",)),
        ("tug - vessel", "tug - vessel vessel - tug", ("'tug' lies below itself",)),
        ("tug - vessel", "object - vessel", ("above all types",)),
        ("(:action", "(:action sail) (:action", ("'sail' is defined twice",)),
        ("(:action", "(:derived (cam) (calm)) (:action", ("'cam' to derive", "'calm'")),
        ("(:action", "(:derived (in ?x ?y) (calm)) (:action", ("'in' cannot be changed",)),
        ("(:action", "(:derived (calm) (not (calm))) (:action", ("its own negation",)),
    ],
)
def test_wrong_names_in_a_domain_are_refused(read, old, new, words):
    assert old in DOMAIN
    refused(read, PddlError, DOMAIN.replace(old, new), PROBLEM, *words)


def test_a_derived_predicate_cannot_stand_in_init(read):
    domain = DOMAIN.replace(
        "(:action", "(:derived (calm) (exists (?h - harbour) (sea ?h ?h))) (:action"
    )
    refused(read, PddlError, domain, PROBLEM.replace("(:init", "(:init (calm)"), "is derived")


# Beyond classical planning


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("(sea ?a ?b))\n", "(> (fuel) 1))\n", ("numeric fluents", "precondition of action sail")),
        ("(sea ?a ?b))\n", "(= (fuel) 1))\n", ("numeric fluents",)),
        ("(in ?v ?b)", "(decrease (fuel) 1)", ("numeric fluents", "effect of action sail")),
        ("(in ?v ?b)", "(increase (fuel) 1)", ("numeric fluents",)),
        ("(in ?v ?b)", "(when (calm) (increase (total-cost) 1))", ("costs inside when",)),
        ("(in ?v ?b)", "(increase (total-cost) (+ 1 (fuel)))", ("calculated action costs",)),
        ("(in ?v ?b)", "(increase (total-cost) -1)", ("negative action costs",)),
        ("(in ?v ?b)", "(probabilistic 0.5 (calm))", ("probabilistic effects",)),
        ("(in ?v ?b)", "(oneof (calm) (not (calm)))", ("non-deterministic effects",)),
        ("(sea ?a ?b))\n", "(preference one (calm)))\n", ("preferences",)),
        ("(:action", "(:durative-action glide) (:action", ("durative actions",)),
        ("(:action", "(:constraints (always (calm))) (:action", ("trajectory constraints",)),
        ("(:functions", "(:functions (flag ?v) - harbour", ("object fluents",)),
        ("tug - vessel", "tug - (either vessel harbour)", ("'either' in (:types",)),
        (
            "(:action",
            "(:derived (calm) (forall (?h - harbour) (calm))) (:action",
            ("'calm'", "inside a forall"),
        ),
    ],
)
def test_unsupported_parts_of_a_domain_are_named(read, old, new, words):
    domain = DOMAIN.replace("(:action", "(:functions (total-cost) (fuel) - number)\n  (:action")
    assert old in domain
    refused(read, UnsupportedPddlError, domain.replace(old, new), PROBLEM, "line", *words)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("(in tim home)", "(at 5 (calm))", ("timed initial literals",)),
        ("(in tim home)", "(oneof (calm) (not (calm)))", ("incomplete knowledge",)),
        ("tim - tug", "tim - (either tug harbour)", ("'either'", "'tim'")),
        ("(in tim north)", "(or (in tim home) (in tim north))", ("leaves a choice",)),
        ("(in tim north)", "(exists (?h - harbour) (in tim ?h))", ("leaves a choice",)),
        ("(in tim north)", "(preference p (in tim north))", ("preferences",)),
        ("(:goal", "(:constraints (always (calm))) (:goal", ("trajectory constraints",)),
        ("(:goal", "(:metric maximize (fuel)) (:goal", ("the metric maximize (fuel)",)),
    ],
)
def test_unsupported_parts_of_a_problem_are_named(read, old, new, words):
    refused(read, UnsupportedPddlError, DOMAIN, PROBLEM.replace(old, new), "line", *words)


def test_a_condition_with_very_many_cases_is_refused(read):
    choice = "(or (calm) (in ?v ?a) (sea ?b ?a))"
    domain = DOMAIN.replace(
        "(sea ?a ?b))\n",
        " ".join(
            f"(or (in ?v ?b) (exists (?h{i} - harbour) (and {choice} (sea ?h{i} ?a))))"
            for i in range(9)
        )
        + ")\n",
    )
    refused(read, UnsupportedPddlError, domain, PROBLEM, "action sail", "conjunctions")


# Forgiven faults, and the text that the library gets


def test_requirements_are_completed(read):
    domain, _ = read(DOMAIN.replace("(:requirements :strips :typing)", ""))
    assert ":typing" in domain.text
    assert ":negative-preconditions" in domain.text


def test_sections_may_stand_in_any_order(read):
    types = "(:types harbour vessel - object tug - vessel)"
    domain, _ = read(DOMAIN.replace(types, "").rstrip()[:-1] + types + ")")
    assert domain.text.index(":types") < domain.text.index(":predicates")


def test_types_and_predicates_of_one_name_get_different_names(read):
    domain = DOMAIN.replace("(calm)", "(calm) (tug ?v - tug) (number) (object ?x)")
    text, _ = read(domain)
    assert not set(text.types) & set(text.predicates)
    assert {"tug", "number", "object"} < set(text.predicates.values())
    assert set(text.types.values()) == {"harbour", "vessel", "tug"}


def test_object_may_stand_among_the_types_and_parents_need_no_declaration(read):
    text, problem = read(
        DOMAIN.replace(
            "harbour vessel - object tug - vessel", "harbour - vessel tug - vessel object"
        )
    )
    assert text.content.parents == {
        "harbour": ("vessel",),
        "vessel": ("object",),
        "tug": ("vessel",),
    }
    assert problem.types_of["tim"] == ("tug", "vessel")


def test_a_type_may_lie_below_two_others(read):
    _, problem = read(DOMAIN.replace("tug - vessel", "machine tug - vessel tug - machine"))
    assert problem.types_of["tim"] == ("machine", "tug", "vessel")


def test_negated_atoms_and_repeated_atoms_add_nothing_to_init(read):
    _, plain = read()
    _, problem = read(
        problem=PROBLEM.replace("(in tim home)", "(in tim home) (in tim home) (not (calm))")
    )
    assert problem.text == plain.text


def test_an_empty_precondition_is_written_out(read):
    """The library crashes on `()`, and on a missing precondition if there are no parameters."""
    actions = (
        "(:action wait) (:action rest :parameters () :precondition () :effect (calm)) (:action"
    )
    text, _ = read(DOMAIN.replace("(:action", actions))
    assert text.text.count(":precondition (and)") == 2
    assert [action.name for action in text.content.actions] == ["wait", "rest", "sail"]


def test_either_becomes_a_separate_type(read):
    text, _ = read(DOMAIN.replace("?v - vessel ?a", "?v - (either tug harbour) ?a"))
    assert "of-harbour of-tug - either-0" in text.text
    assert "either-0" not in text.types


@pytest.mark.parametrize(
    ("goal", "literals"),
    [
        ("()", "(and)"),
        ("(and)", "(and)"),
        ("(calm)", "(and (calm))"),
        ("(not (calm))", "(and (not (calm)))"),
        (
            "(and (and (calm)) (not (or (in tim home) (in tim north))))",
            "(and (calm) (not (in tim home)) (not (in tim north)))",
        ),
        ("(forall (?h - harbour) (in tim ?h))", "(and (in tim home) (in tim north))"),
        ("(forall (?h - harbour) (imply (sea home ?h) (in tim ?h)))", "(and (in tim north))"),
        (
            "(not (exists (?h - harbour) (in tim ?h)))",
            "(and (not (in tim home)) (not (in tim north)))",
        ),
        ("(exists (?v - tug) (in ?v north))", "(and (in tim north))"),
        ("(and (= home home) (not (= home north)))", "(and)"),
        ("(sea north home)", "(and (sea north home))"),
    ],
)
def test_goals_come_down_to_literals(read, goal, literals):
    _, problem = read(problem=PROBLEM.replace("(and (in tim north))", goal))
    assert str(problem.goal) == literals


def test_names_the_parser_does_not_know_are_replaced_in_its_text_only(read):
    domain, problem = read(
        DOMAIN.replace("sail", "4.sail"), PROBLEM.replace("tim", "1-été").replace("north", "n.1")
    )
    assert list(domain.actions.values()) == ["4.sail"]
    assert list(problem.objects.values()) == ["home", "n.1", "1-été"]
    assert problem.text.isascii()


def test_costs_are_read_with_a_metric_only(read):
    domain = DOMAIN.replace(
        "(:action", "(:functions (total-cost) (miles ?a ?b - harbour) - number) (:action"
    ).replace("(in ?v ?b)", "(in ?v ?b) (increase (total-cost) (miles ?a ?b))")
    values = PROBLEM.replace("(:init", "(:init (= (total-cost) 0) (= (miles home north) 2.5)")
    _, problem = read(domain, values)
    assert not problem.has_costs
    _, problem = read(domain, values.replace("(:goal", "(:metric minimize (total-cost)) (:goal"))
    assert problem.has_costs
    assert problem.values["miles", "home", "north"] == 2.5
    refused(
        read,
        PddlError,
        domain,
        values.replace("(:init", "(:init (= (miles home north) 3)"),
        "two values",
    )


@pytest.mark.parametrize(
    "word", ["(not (not (on a)))", "(forall (?x) (on ?x))", "(when (on a) (on b))"]
)
def test_formulas_cannot_stand_in_init(tmp_path, word):
    domain, problem = tmp_path / "domain.pddl", tmp_path / "p.pddl"
    domain.write_text("(define (domain d) (:predicates (on ?x)))")
    problem.write_text(
        f"(define (problem p) (:domain d) (:objects a b)\n(:init {word}) (:goal (on a)))"
    )
    with pytest.raises(PddlError, match=r"p\.pddl, line 2: '[a-z]+' cannot stand here in :init"):
        read_problem(problem, read_domain(domain))


def test_a_conditional_effect_cannot_be_a_condition(tmp_path):
    domain = tmp_path / "domain.pddl"
    domain.write_text(
        "(define (domain d) (:predicates (p))\n"
        "(:action a :parameters () :precondition (when (p) (p)) :effect (p)))"
    )
    with pytest.raises(PddlError, match="line 2: 'when' can stand in effects only, not in the pre"):
        read_domain(domain)
