"""In random domains, no state from which the goal can be reached is called dead.

All that the definition of the relaxation finds dead is found so.
"""

from hypothesis import HealthCheck, given, settings

from planning.growing import Growing
from planning.relaxation_domains import domains, problems
from regoal.planning.load import load_domain, load_task
from regoal.planning.relaxation import Relaxation


def graph(task):
    """Return all states, and the states from which a goal state can be reached."""
    states, edges = [task.initial_state], []
    seen = set(states)
    for state in states:
        for action in task.applicable_actions(state):
            after = task.successor(state, action)
            edges.append((state, after))
            if after not in seen:
                seen.add(after)
                states.append(after)
    alive = {state for state in states if state.satisfies(task.goal)}
    while more := {state for state, after in edges if after in alive} - alive:
        alive |= more
    return states, alive


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(domain=domains(), problem=problems())
def test_random_domains(tmp_path, domain, problem):
    (tmp_path / "domain.pddl").write_text(domain)
    (tmp_path / "p1.pddl").write_text(problem)
    task = load_task(load_domain(tmp_path / "domain.pddl"), tmp_path / "p1.pddl")
    relaxation = Relaxation(task)
    states, alive = graph(task)
    assert all(relaxation.reaches(state, task.goal) for state in alive)
    for state in {states[0], states[-1]}:
        expected = Growing(task, state).reaches(task.goal)
        assert relaxation.reaches(state, task.goal) == expected
