"""Everything that the PDDL library holds for one problem, as one object that can be deleted."""

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import pymimir
from pymimir.advanced.formalism import ParserOptions
from pymimir.advanced.search import (
    LiftedExhaustiveOptions,
    LiftedOptions,
    SearchContext,
    SearchContextOptions,
)

from regoal.errors import PddlError
from regoal.planning.actions import GroundAction
from regoal.planning.goals import Atom
from regoal.planning.mimir.crash_isolation import find_crash


class _ProblemWithoutActions(pymimir.Problem):  # type: ignore[misc]
    """A problem in the library without the tables of which objects an action can take together.

    These grow with the square of the number of objects: 350 MB for 10,000 places of Sokoban.
    """

    def __init__(self, domain: pymimir.Domain, text: str) -> None:
        self._domain, self._mode = domain, "lifted"
        self._advanced_problem = domain._advanced_parser.parse_problem(text, "", ParserOptions())
        options = LiftedOptions(LiftedExhaustiveOptions())
        self._search_context = SearchContext.create(
            self._advanced_problem, SearchContextOptions(options)
        )
        self._static_ground_atom_indices = {
            atom.get_index() for atom in self._advanced_problem.get_static_initial_atoms()
        }


class Library:
    """A problem in the library, with the atoms and actions converted so far by library number.

    The library keeps every state, atom and action that it has ever returned, as long as this
    object exists.
    """

    def __init__(self, domain: pymimir.Domain, text: str, *, lists_actions: bool) -> None:
        """Read a problem. Without `lists_actions`, `generator` must not be used."""
        self.problem = (pymimir.Problem if lists_actions else _ProblemWithoutActions)(domain, text)
        self.actions: dict[int, GroundAction] = {}
        """The converted actions by the library's number."""
        self.joined: dict[tuple[str, tuple[str, ...]], GroundAction] = {}
        """The actions found without the library, by name and objects."""
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
        """All states met so far; the initial one is the first."""
        self.problem.get_initial_state()
        return self.problem._search_context.get_state_repository()

    @cached_property
    def generator(self) -> Any:
        """The library's generator of applicable actions."""
        return self.problem._search_context.get_applicable_action_generator()

    @cached_property
    def objects(self) -> dict[str, Any]:
        """Constants and objects by the library's names."""
        domain = self.problem.get_domain()
        known = (*domain.get_constants(), *self.problem.get_objects())
        return {o.get_name(): o._advanced_object for o in known}

    def fluent_atoms(
        self, indices: Iterable[int], convert: Callable[[Any], Atom | None]
    ) -> list[Atom]:
        """Return the changeable atoms with these numbers; convert each atom once."""
        return self._convert_once(self._fluent, "fluent", indices, convert)

    def atoms_of(self, state: Any, convert: Callable[[Any], Atom | None]) -> tuple[Atom, ...]:
        """Return the changeable and derived atoms of a library state; convert each atom once.

        Atoms for which `convert` returns None are omitted.
        """
        fluent = self.fluent_atoms(state.get_fluent_atoms(), convert)
        derived = self._convert_once(self._derived, "derived", state.get_derived_atoms(), convert)
        return (*fluent, *derived)

    def _convert_once(
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


LARGEST_TRIED = 2_500_000
"""Most characters of a text that the library reads directly; none so short has crashed it."""


def make_library_value(path: Path, text: str, make: Callable[[], Any]) -> Any:
    """Make the library's value for a file.

    A text above `LARGEST_TRIED` is first read in a copy of this process, which doubles the time
    (docs/dev/reliability.md). Raises `PddlError` if the library refuses the text or crashes.
    """
    if len(text) > LARGEST_TRIED and (crash := find_crash(make)):
        raise PddlError(
            f"{path}: the PDDL library crashes on this file ({crash}); "
            f"please report it, and simplify the file."
        )
    try:
        return make()
    except RuntimeError as error:
        raise _make_library_error(path, error) from error


def _make_library_error(path: Path, error: RuntimeError) -> PddlError:
    """Return the library's error as one of regoal's, on one line and without terminal colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    reason = " ".join(plain.split()) or "it gives no reason"
    return PddlError(f"{path}: the PDDL library does not take this file: {reason[:300]}")
