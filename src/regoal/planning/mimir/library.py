"""What the PDDL library holds of one problem, as one object that can be let go."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import pymimir

from regoal.planning.actions import GroundAction
from regoal.planning.goals import Atom


class Library:
    """A problem as the library has it, and the atoms and actions met, under its own numbers.

    The library keeps every state, atom and action that it was ever asked for, until this goes.
    """

    def __init__(self, domain: pymimir.Domain, text: str) -> None:
        self.problem = pymimir.Problem(domain, text)
        self.actions: dict[int, GroundAction] = {}
        """Those converted, by the library's number."""
        self._fluent: dict[int, Atom | None] = {}
        self._derived: dict[int, Atom | None] = {}

    @cached_property
    def _repositories(self) -> Any:
        return self.problem._advanced_problem.get_repositories()

    @cached_property
    def initial(self) -> Any:
        """The initial state."""
        return self.problem.get_initial_state()._advanced_state

    @cached_property
    def states(self) -> Any:
        """All states met, the initial one first."""
        self.problem.get_initial_state()
        return self.problem._search_context.get_state_repository()

    @cached_property
    def generator(self) -> Any:
        """Lists applicable actions."""
        return self.problem._search_context.get_applicable_action_generator()

    @cached_property
    def objects(self) -> dict[str, Any]:
        """Constants and objects under the library's names."""
        domain = self.problem.get_domain()
        known = (*domain.get_constants(), *self.problem.get_objects())
        return {o.get_name(): o._advanced_object for o in known}

    def atoms_of(self, state: Any, convert: Callable[[Any], Atom | None]) -> tuple[Atom, ...]:
        """The changeable and derived atoms of a state, each converted once.

        Those that `convert` makes nothing of are left out.
        """
        fluent = self._known(self._fluent, "fluent", state.get_fluent_atoms(), convert)
        derived = self._known(self._derived, "derived", state.get_derived_atoms(), convert)
        return (*fluent, *derived)

    def _known(
        self,
        table: dict[int, Atom | None],
        kind: str,
        indices: Iterable[int],
        convert: Callable[[Any], Atom | None],
    ) -> list[Atom]:
        found = []
        for index in indices:
            if index not in table:
                lookup = getattr(self._repositories, f"get_{kind}_ground_atoms_from_indices")
                table[index] = convert(pymimir.GroundAtom(lookup([index])[0]))
            if (atom := table[index]) is not None:
                found.append(atom)
        return found
