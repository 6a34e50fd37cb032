"""Lifted goals against the paper's example and against a brute force twin."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from regoal.planning.goals import Atom, Goal
from regoal.planning.lifting import GoalLifter, LiftedGoal, LiftedLiteral, ground, lifted_goals

NO_CONSTANTS: frozenset[str] = frozenset()


def chain(*names):
    return [Atom("on", pair) for pair in itertools.pairwise(names)]


# The brute force twin: Algorithm 1 and the arg max word by word, for small goals and states.


def share_an_object(literals):
    """The literals are connected: each is reached from the first through shared objects."""
    reached, left = {literals[0]}, set(literals[1:])
    while True:
        near = {x for x in left if any(set(x[0].objects) & set(y[0].objects) for y in reached)}
        if not near:
            return not left
        reached |= near
        left -= near


def components_of(goal):
    left = list(goal.literals())
    while left:
        component = [left.pop(0)]
        for literal in component:
            near = [x for x in left if set(x[0].objects) & set(literal[0].objects)]
            left = [x for x in left if x not in near]
            component += near
        yield component


def subgoals(goal):
    choices = []
    for component in components_of(goal):
        subsets = [
            list(subset)
            for size in range(1, len(component) + 1)
            for subset in itertools.combinations(component, size)
        ]
        choices.append([[], *(subset for subset in subsets if share_an_object(subset))])
    for combination in itertools.product(*choices):
        if literals := [literal for part in combination for literal in part]:
            yield literals


def least_renaming(literals, types_of, constants):
    """The same for subgoals that differ only in the names of objects that are not constants."""
    names = sorted({o for atom, _ in literals for o in atom.objects} - constants)
    forms = []
    for order in itertools.permutations(range(len(names))):
        number = dict(zip(names, order, strict=True))
        terms = [
            (x.predicate, tuple(f"?{number[o]}" if o in number else o for o in x.objects), sign)
            for x, sign in literals
        ]
        types = tuple(types_of.get(o, ()) for o in sorted(names, key=number.__getitem__))
        forms.append((types, tuple(sorted(terms))))
    return min(forms)


def least_renaming_of(lifted):
    def name(term):
        return f"?{term}" if isinstance(term, int) else term

    literals = [(Atom(x.predicate, tuple(map(name, x.terms))), x.positive) for x in lifted.literals]
    constants = frozenset(t for x in lifted.literals for t in x.terms if isinstance(t, str))
    types = {f"?{i}": types for i, types in enumerate(lifted.types)}
    return least_renaming(literals, types, constants)


def groundings(literals, atoms, types_of, constants):
    """Every grounding that holds of the lifted form of some literals."""
    names = sorted({o for atom, _ in literals for o in atom.objects} - constants)
    kept = {o for atom, _ in literals for o in atom.objects} & constants
    for objects in itertools.permutations(sorted(set(types_of) - kept), len(names)):
        value = dict(zip(names, objects, strict=True)) | {name: name for name in kept}
        if all(set(types_of[name]) <= set(types_of[value[name]]) for name in names):
            mapped = [
                (Atom(x.predicate, tuple(value[o] for o in x.objects)), s) for x, s in literals
            ]
            if all((atom in atoms) == sign for atom, sign in mapped):
                yield Goal.of((a for a, s in mapped if s), (a for a, s in mapped if not s))


def largest_by_brute_force(goal, atoms, types_of, constants):
    for literals in sorted(subgoals(goal), key=len, reverse=True):
        if any(True for _ in groundings(literals, atoms, types_of, constants)):
            return len(literals)
    return 0


OBJECTS = ["a", "b", "c", "d", "e"]
ARITIES = {"flag": 0, "p": 1, "q": 1, "on": 2, "at": 2, "t": 3}
ATOMS = st.sampled_from(sorted(ARITIES)).flatmap(
    lambda predicate: st.builds(
        lambda objects: Atom(predicate, tuple(objects)),
        st.lists(
            st.sampled_from(OBJECTS), min_size=ARITIES[predicate], max_size=ARITIES[predicate]
        ),
    )
)
GOALS = st.builds(
    Goal.of, st.lists(ATOMS, min_size=1, max_size=4), st.lists(ATOMS, max_size=1)
) | st.builds(Goal.of, st.lists(ATOMS, min_size=1, max_size=5))
STATES = st.frozensets(ATOMS, max_size=10)
TYPES = st.just(dict.fromkeys(OBJECTS, ())) | st.fixed_dictionaries(
    dict.fromkeys(OBJECTS, st.sampled_from([(), ("u",), ("u", "v"), ("w",)]))
)
CONSTANTS = st.just(NO_CONSTANTS) | st.frozensets(st.sampled_from(OBJECTS[:2]))


def test_the_papers_example():
    tower = Goal.of(chain("b1", "b2", "b3", "b4"))
    assert [str(lifted) for lifted in lifted_goals(tower, {})] == [
        "on(X0,X1) & on(X1,X2) & on(X2,X3)",
        "on(X0,X1) & on(X1,X2)",
        "on(X0,X1)",
    ]


def test_components_meet_only_in_all_different():
    goal = Goal.of([*chain("a", "b", "c"), Atom("on", ("d", "e"))])
    assert [str(lifted) for lifted in lifted_goals(goal, {})] == [
        "on(X0,X1) & on(X1,X2) & on(X3,X4)",
        "on(X0,X1) & on(X2,X3)",
        "on(X0,X1) & on(X1,X2)",
        "on(X0,X1)",
    ]


def test_constants_stay_and_join_atoms():
    goal = Goal.of([Atom("at", ("t1", "kitchen")), Atom("at", ("t2", "kitchen"))])
    assert [str(lifted) for lifted in lifted_goals(goal, {}, frozenset(["kitchen"]))] == [
        "at(X0,kitchen) & at(X1,kitchen)",
        "at(X0,kitchen)",
    ]
    state = frozenset([Atom("at", ("t1", "hall")), Atom("at", ("t2", "kitchen"))])
    lifter = GoalLifter(goal, {}, frozenset(["kitchen"]))
    assert lifter.hindsight(state) == Goal.of([Atom("at", ("t2", "kitchen"))])


def test_negative_and_nullary_literals():
    goal = Goal.of([Atom("ready", ())], [Atom("at", ("a", "b")), Atom("broken", ())])
    largest = next(lifted_goals(goal, {}))
    assert str(largest) == "not broken() & ready() & not at(X0,X1)"
    types_of = {"a": (), "b": ()}
    state = frozenset([Atom("at", ("a", "b")), Atom("broken", ())])
    lifter = GoalLifter(goal, types_of)
    assert lifter.hindsight(state) == Goal.of([], [Atom("at", ("b", "a"))])


def test_types_are_respected():
    goal = Goal.of([Atom("at", ("parcel", "home"))])
    types_of = {"parcel": ("item", "parcel"), "home": ("place",), "van": ("item", "van")}
    assert GoalLifter(goal, types_of).hindsight(frozenset([Atom("at", ("van", "home"))])) is None
    general = types_of | {"parcel": ("item",)}
    found = GoalLifter(goal, general).hindsight(frozenset([Atom("at", ("van", "home"))]))
    assert found == Goal.of([Atom("at", ("van", "home"))])


def test_nothing_of_the_goal_holds():
    assert (
        GoalLifter(Goal.of(chain("a", "b")), {}).hindsight(frozenset([Atom("p", ("a",))])) is None
    )
    assert GoalLifter(Goal.of([]), {}).hindsight(frozenset([Atom("p", ("a",))])) is None


@settings(deadline=None, max_examples=150)
@given(GOALS, TYPES, CONSTANTS)
def test_lifted_goals_are_those_of_brute_force(goal, types_of, constants):
    lifted = list(lifted_goals(goal, types_of, constants))
    expected = {least_renaming(literals, types_of, constants) for literals in subgoals(goal)}
    found = [least_renaming_of(one) for one in lifted]
    assert set(found) == expected
    assert len(found) == len(expected)
    assert [len(one) for one in lifted] == sorted(map(len, lifted), reverse=True)


@settings(deadline=None, max_examples=250)
@given(GOALS, STATES, TYPES, CONSTANTS, st.none() | st.integers(0, 99))
def test_hindsight_is_the_largest_of_brute_force(goal, atoms, types_of, constants, seed):
    lifter = GoalLifter(goal, types_of, constants)
    found = lifter.hindsight(atoms, None if seed is None else np.random.default_rng(seed))
    assert lifter.unproven == 0
    size = largest_by_brute_force(goal, atoms, types_of, constants)
    assert size == (0 if found is None else len(found))
    if found is not None:
        assert found.holds_in(atoms)
        fitting = (literals for literals in subgoals(goal) if len(literals) == size)
        assert any(found in set(groundings(x, atoms, types_of, constants)) for x in fitting)


@settings(deadline=None, max_examples=100)
@given(GOALS, STATES, TYPES, CONSTANTS, st.none() | st.integers(0, 99))
def test_ground_finds_one_of_the_groundings(goal, atoms, types_of, constants, seed):
    for literals in itertools.islice(subgoals(goal), 6):
        form = least_renaming(literals, types_of, constants)
        number = {f"?{i}": i for i in range(len(form[0]))}
        lifted = LiftedGoal(
            tuple(LiftedLiteral(p, tuple(number.get(t, t) for t in ts), s) for p, ts, s in form[1]),
            form[0],
        )
        rng = None if seed is None else np.random.default_rng(seed)
        found = ground(lifted, atoms, types_of, rng)
        expected = set(groundings(literals, atoms, types_of, constants))
        assert found in expected or (found is None and not expected)
