"""Dead ends that show when actions delete nothing: not even then is the goal reached.

Only some dead ends show in this way, but no state is called dead wrongly (delete relaxation; Bonet
and Geffner, AIJ 2001).
"""

from collections.abc import Iterator, Sequence

from regoal.errors import RegoalError
from regoal.planning.goals import Atom, Goal
from regoal.planning.pddl.domain import PddlDomain
from regoal.planning.pddl.formulas import Junction
from regoal.planning.symmetry import is_plain, literals
from regoal.planning.task import DUMMY_ACTION, GroundAction, State, Task

MOST_ACTIONS = 5_000
"""Where more actions become applicable at once nothing is called dead: to see it takes long."""


def first_dead_end(states: Sequence[State], goal: Goal) -> int | None:
    """Position of the first state of a walk from which the goal cannot be reached any more.

    None where none shows. What can be reached later can be reached from the start too, so that
    halving the walk finds it. In domains with derived predicates, conditional effects, `or`,
    quantifiers or negative preconditions a state is dead where no action is applicable.
    """
    task = states[0].task
    if not _can_be_relaxed(task.domain.text.content):
        return len(states) - 1 if task.is_dead_end(states[-1]) else None
    if _reaches(task, states[-1], goal):
        return None
    alive, dead = -1, len(states) - 1
    while dead - alive > 1:
        middle = (alive + dead) // 2
        alive, dead = (middle, dead) if _reaches(task, states[middle], goal) else (alive, middle)
    return dead


def _reaches(task: Task, state: State, goal: Goal) -> bool:
    """Whether the goal's atoms hold after enough actions that delete nothing.

    True too where that is not told: states of so many atoms may be too wide to be expanded, and
    actions that are applicable in no other state may lack a cost.
    """
    wanted = goal.atoms - task.static_atoms
    reached, tried = set(state.fluent_atoms), {DUMMY_ACTION}
    while not wanted <= reached:
        try:
            new = set(task.applicable_actions(task.state_of(reached))) - tried
        except RegoalError:
            return True
        if len(new) > MOST_ACTIONS:
            return True
        added = {atom for action in new for atom in _added(task, action)}
        if added <= reached:
            return False
        reached |= added
        tried |= new
    return True


def _added(task: Task, action: GroundAction) -> Iterator[Atom]:
    """The atoms that an action makes true."""
    schema = task.definition(action)
    binding = schema.binding(action.objects)
    for effect in schema.effects:
        for literal in effect.literals:
            if literal.positive:
                yield literal.ground(binding)


def _can_be_relaxed(domain: PddlDomain) -> bool:
    """Whether more atoms never make an action inapplicable, and effects are plain literals."""
    effects = [effect for action in domain.actions for effect in action.effects]
    return (
        is_plain(domain)
        and all(e.condition == Junction("and", ()) and not e.variables for e in effects)
        and all(
            literal.positive or literal.predicate not in domain.changing
            for action in domain.actions
            for literal in literals(action.precondition)
        )
    )
