"""List the atoms and ground actions that a task may ever have, by delete relaxation.

In the relaxation a possible atom stays possible. So the lists have every atom and action that some
reachable state has, and may have more.
"""

import math
from dataclasses import replace
from typing import NamedTuple

from regoal.errors import UsageError
from regoal.planning.actions import GroundAction
from regoal.planning.datalog.grounding import TooManyRulesError, ground
from regoal.planning.datalog.rules import write_rules
from regoal.planning.goals import Atom
from regoal.planning.pddl.model import TRUE, Effect, Literal, PddlAction, PddlDomain
from regoal.planning.task import Task

MARK = "apply "
"""The beginning of a predicate that stands for an action. PDDL cannot write it."""


class Reachable(NamedTuple):
    """The changeable atoms and the ground actions of a task, each in alphabetical order."""

    atoms: tuple[Atom, ...]
    actions: tuple[GroundAction, ...]


def list_reachable(task: Task, most_rules: float = math.inf) -> Reachable:
    """List the changeable and derived atoms, and the actions, that are relaxed reachable.

    Equal files give equal lists. Raises `UsageError` if they take too long to find: more than
    `most_rules` ground rules, which are a few for each action, or more steps than `ground` allows.
    """
    domain = task.domain.text.content
    rules = write_rules(_mark_actions(domain))
    static = {atom for atom in task.static_atoms if atom.predicate not in rules.changing}
    initial = (*(task.static_atoms - static), *task.initial_state.fluent_atoms)
    try:
        _, found = ground(rules, static, initial, task.types_of, most_rules)
    except TooManyRulesError:
        raise UsageError(
            f"{task.path} has too many ground actions to list them; take a smaller problem."
        ) from None
    predicates = domain.symbols.predicates
    marked = (atom for atom in found if atom.predicate.startswith(MARK))
    return Reachable(
        tuple(sorted(x for x in found - task.static_atoms if x.predicate in predicates)),
        tuple(sorted(GroundAction(a.predicate.removeprefix(MARK), a.objects) for a in marked)),
    )


def _mark_actions(domain: PddlDomain) -> PddlDomain:
    """Give each action one more effect: an atom that names the action and its objects."""

    def mark(action: PddlAction) -> PddlAction:
        atom = Literal(MARK + action.name, tuple(v.name for v in action.parameters))
        return replace(action, effects=(*action.effects, Effect((), TRUE, (atom,))))

    return replace(domain, actions=tuple(map(mark, domain.actions)))
