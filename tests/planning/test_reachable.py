"""The atoms and actions that delete relaxation reaches."""

import pytest
from hypothesis import HealthCheck, given, settings

from planning.relaxation_domains import domains, problems
from regoal.errors import UsageError
from regoal.planning.actions import DUMMY_ACTION
from regoal.planning.datalog import grounding
from regoal.planning.reachable import list_reachable


def explore(task, most=500):
    """Return the atoms and actions of the reachable states, the nearest ones first."""
    states = [task.initial_state]
    seen, atoms, actions = set(states), set(), set()
    for state in states:
        atoms.update(state.fluent_atoms)
        for action in task.applicable_actions(state):
            actions.add(action)
            after = task.successor(state, action)
            if after not in seen and len(seen) < most:
                seen.add(after)
                states.append(after)
    return atoms, actions - {DUMMY_ACTION}


def test_three_blocks(tasks):
    reachable = list_reachable(tasks["blocks"]["three"])
    # on 3 x 3 (a block may seem to be on itself), ontable, clear, holding 3 each, handempty
    assert len(reachable.atoms) == 9 + 3 + 3 + 3 + 1
    # pick-up and put-down 3 each, stack and unstack 3 x 3 each
    assert len(reachable.actions) == 3 + 3 + 9 + 9


def test_roads_of_one_direction_leave_out_what_lies_behind(tasks):
    reachable = list_reachable(tasks["roads"]["end"])
    assert [str(atom) for atom in reachable.atoms] == ["(here b)"]
    assert reachable.actions == ()


@pytest.mark.parametrize("domain", ["blocks", "ferry", "odd", "lamp", "roads"])
def test_whatever_is_reachable_is_listed(tasks, domain):
    for task in tasks[domain].values():
        atoms, actions = explore(task)
        reachable = list_reachable(task)
        assert atoms <= set(reachable.atoms)
        assert actions <= set(reachable.actions)
        assert list(reachable.actions) == sorted(set(reachable.actions))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(domain=domains(), problem=problems())
def test_random_domains(read_task, domain, problem):
    task = read_task(domain, problem)
    atoms, actions = explore(task)
    reachable = list_reachable(task)
    assert atoms <= set(reachable.atoms)
    assert actions <= set(reachable.actions)


def test_too_many_are_refused(tasks, monkeypatch):
    monkeypatch.setattr(grounding, "MOST_STEPS", 3)
    with pytest.raises(UsageError, match="too many ground actions"):
        list_reachable(tasks["blocks"]["three"])
