"""In random domains, no state from which the goal can be reached is called dead.

All that the definition of the relaxation finds dead is found so.
"""

from hypothesis import HealthCheck, given, settings

from planning.graphs import graph
from planning.growing import Growing
from planning.relaxation_domains import domains, problems
from regoal.planning.relaxation import Relaxation


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(domain=domains(), problem=problems())
def test_random_domains(read_task, domain, problem):
    task = read_task(domain, problem)
    relaxation = Relaxation(task)
    states, alive = graph(task)
    assert all(relaxation.reaches(state, task.goal) for state in alive)
    for state in {states[0], states[-1]}:
        expected = Growing(task, state).reaches(task.goal)
        assert relaxation.reaches(state, task.goal) == expected
