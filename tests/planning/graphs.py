"""All states of a small task, and those from which its goal can be reached."""


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
