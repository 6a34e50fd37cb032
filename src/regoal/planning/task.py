"""Domains and problems behind regoal's own small types; the only door to the PDDL library.

A `Task` is one problem of a domain. Its states, actions and atoms are values of regoal's own:
equal by content, in a fixed order, with names in lower case.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import pymimir
from pymimir.advanced.formalism import (
    DerivedPredicate,
    FluentGroundAtomList,
    FluentPredicate,
    ObjectList,
)

from regoal.errors import PddlError
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.goals import Atom, Goal
from regoal.planning.mimir.action_bound import Width
from regoal.planning.mimir.crash_isolation import crash_of
from regoal.planning.mimir.library import Library
from regoal.planning.pddl import library_text as pddl_text
from regoal.planning.pddl.domain import PddlAction
from regoal.system.cancellation import checked


class State:
    """A state of one task; states are equal where the same atoms hold, whatever led there."""

    __slots__ = ("__dict__", "_hash", "_library", "_native", "index", "task")

    def __init__(self, task: "Task", native: Any) -> None:
        self.task = task
        self._native = native
        self._library = task.native
        self.index: int = native.get_index()
        self._hash = hash((task.salt, self.index))

    @property
    def wrapped(self) -> pymimir.State:
        """The library's own value for this state."""
        return pymimir.State(self._native, self._library)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, State)
            and self._library is other._library
            and self.index == other.index
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        """The state's changeable atoms in PDDL."""
        return f"State({' '.join(str(atom) for atom in sorted(self.fluent_atoms))})"

    @cached_property
    def fluent_atoms(self) -> tuple[Atom, ...]:
        """Atoms that hold and that actions can change, derived ones included."""
        return self.task.atoms_of(self._native)

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        """Every atom that holds: changeable, derived and static. Types are not atoms."""
        return self.task.static_atoms.union(self.fluent_atoms)

    def holds(self, atom: Atom) -> bool:
        """Whether an atom, changeable or static, is true here."""
        return atom in self._changeable or atom in self.task.static_atoms

    def satisfies(self, goal: Goal) -> bool:
        """Whether this is a goal state, i.e. every literal of `goal` holds."""
        missing = goal.atoms - self._changeable
        if missing and not missing <= self.task.static_atoms:
            return False
        return not any(self.holds(atom) for atom in goal.negative)

    @cached_property
    def _changeable(self) -> frozenset[Atom]:
        return frozenset(self.fluent_atoms)


@dataclass(frozen=True)
class Domain:
    """A domain that has been read: the text behind it and the library's view of it."""

    path: Path
    text: pddl_text.DomainText = field(repr=False)
    native: Any = field(repr=False)

    @property
    def name(self) -> str:
        """The domain's name in PDDL, lower case."""
        return self.text.content.name

    @cached_property
    def has_copies(self) -> bool:
        """Whether the library has several schemas, or longer ones, of an action of the file.

        A precondition with `or` or `exists` is given to it in that way (see `pddl_normal`).
        """
        made = [(self.text.actions[a.get_name()], a.get_arity()) for a in self.native.get_actions()]
        return tuple(sorted(made)) != self.actions

    @property
    def predicates(self) -> tuple[tuple[str, int], ...]:
        """Name and arity of every predicate, derived ones included, in alphabetical order."""
        declared = self.text.content.symbols.predicates
        return tuple(sorted((name, len(arguments)) for name, arguments in declared.items()))

    @property
    def types(self) -> tuple[str, ...]:
        """Every type, the universal one aside, in alphabetical order."""
        return tuple(sorted(self.text.types.values()))

    @property
    def constants(self) -> frozenset[str]:
        """The domain's constants; each is an object of every problem."""
        return frozenset(self.text.constants.values())

    @property
    def actions(self) -> tuple[tuple[str, int], ...]:
        """Name and number of parameters of every action schema, in alphabetical order."""
        return tuple(sorted((a.name, len(a.parameters)) for a in self.text.content.actions))


class Task:
    """One problem: its objects, initial state, goal, and the dynamics of its domain."""

    def __init__(
        self, domain: Domain, text: pddl_text.ProblemText, library: Library | None = None
    ) -> None:
        self.domain = domain
        self.path = text.path
        self.name = text.path.stem
        self.goal = text.goal
        self.types_of = text.types_of
        """The types of each object, those above its own included and `object` aside, sorted."""
        self.has_costs = text.has_costs
        """Whether the problem asks for plans of small total cost; else each action counts 1."""
        self.objects: tuple[str, ...] = tuple(text.types_of)
        """Constants of the domain, then objects of the problem, in the order of the files."""
        self.salt = zlib.crc32(text.text.encode())
        """Tells states of different tasks apart in a dictionary; the same in every process."""
        self._text = text
        self._schemas = {a.name: a for a in domain.text.content.actions}
        if library is not None:
            self._library = library
        self.static_atoms = self._read_static_atoms()

    @cached_property
    def _library(self) -> Library:
        return Library(self.domain.native, self._text.text)

    @property
    def native(self) -> Any:
        """The library's view of the task, until its states are forgotten."""
        return self._library.problem

    @property
    def sources(self) -> tuple[str, str]:
        """The texts of the domain file and the problem file, decoded."""
        return self.domain.text.content.source, self._text.source

    @cached_property
    def initial_state(self) -> "State":
        """The state that the problem begins in."""
        return State(self, self._library.initial)

    def __repr__(self) -> str:
        return f"Task({self.path})"

    def renewed(self) -> "Task":
        """The same task afresh. The library keeps every state that a task ever met, this one none.

        States of the two never equal each other.
        """
        return Task(self.domain, self._text)

    def forget_states(self) -> None:
        """Let the library drop every state; it reads the problem again when that is next used.

        States and actions from before must not be used again; `state_of` makes a state anew from
        its atoms.
        """
        for name in ("_library", "initial_state"):
            self.__dict__.pop(name, None)

    @cached_property
    def object_index(self) -> dict[str, int]:
        """Position of each object in `objects`."""
        return {name: i for i, name in enumerate(self.objects)}

    def applicable_actions(self, state: State) -> tuple[GroundAction, ...]:
        """All applicable ground actions in a fixed order; the dummy action where there is none.

        Raises `TooWideError` where there are too many to list, `PddlError` where one has no cost,
        and `StoppedError` where `regoal.system.cancellation` says so.
        """
        known = self._library.actions
        found = []
        self.check_width(state)
        for native in checked(self._natives(state)):
            index = native.get_index()
            if index not in known:
                known[index] = self._converted(native)
            found.append(known[index])
        found.sort(key=_NAME_AND_OBJECTS)
        if self.domain.has_copies:
            found = list(dict.fromkeys(found))
        return tuple(found) or (DUMMY_ACTION,)

    def check_width(self, state: State) -> None:
        """Raise `TooWideError` where a state has too many applicable actions to list them."""
        if not self._width.narrow:
            names = (atom.predicate for atom in state.fluent_atoms)
            self._width.check(self.path, names, lambda: self._natives(state))

    def _natives(self, state: State) -> Any:
        return self._library.generator.generate_applicable_actions(state._native)

    @cached_property
    def _width(self) -> Width:
        return Width(self.domain.native, self.native, self.domain.text.predicates)

    def is_dead_end(self, state: State) -> bool:
        """Whether no action is applicable; other dead ends are not told."""
        return self.applicable_actions(state) == (DUMMY_ACTION,)

    def definition(self, action: GroundAction) -> PddlAction:
        """The action's schema as the file has it; the dummy action has none (`KeyError`)."""
        return self._schemas[action.name]

    def successor(self, state: State, action: GroundAction) -> State:
        """The state after `action`, which must be applicable in `state`."""
        if action.native is None:
            return state
        states = self._library.states
        after, _ = states.get_or_create_successor_state(state._native, action.native, 0.0)
        return State(self, after)

    def state_of(self, atoms: Iterable[Atom]) -> State:
        """The state with these changeable atoms; derived ones among them do not count.

        It equals the state that was reached by actions. Raises `ValueError` for an atom that no
        state of this task can have.
        """
        kinds, found = self._native_predicates, FluentGroundAtomList()
        for atom in atoms:
            predicate = kinds.get(atom.predicate)
            if isinstance(predicate, DerivedPredicate):
                continue
            terms = self._terms(atom.objects)
            if not isinstance(predicate, FluentPredicate) or any(t is None for t in terms):
                raise ValueError(f"{atom} is no changeable atom of {self.path}")
            if predicate.get_arity() != len(terms):
                raise ValueError(f"{atom} has another number of objects in {self.path}")
            found.append(
                self.native._advanced_problem.get_or_create_ground_atom(
                    predicate, ObjectList(terms)
                )
            )
        return State(self, self._library.states.get_or_create_state(found, [])[0])

    def _terms(self, objects: Iterable[str]) -> list[Any]:
        """The library's objects; None for what is none of this task's."""
        return [self._library.objects.get(self._native_objects.get(name, "")) for name in objects]

    @cached_property
    def _native_objects(self) -> dict[str, str]:
        """The library's names of objects by those of the files."""
        return {name: native for native, name in self._text.objects.items()}

    @cached_property
    def _native_predicates(self) -> dict[str, Any]:
        """The library's predicates under the names of the file."""
        names = self.domain.text.predicates
        natives = {p.get_name(): p._advanced_predicate for p in self.domain.native.get_predicates()}
        return {names[name]: native for name, native in natives.items() if name in names}

    def ground(self, name: str, objects: Iterable[str]) -> GroundAction:
        """An action schema applied to these objects, applicable in some state or not.

        Only for domains without `has_copies`: there the library has one schema of each name. Raises
        `PddlError` where the action's cost is undefined.
        """
        native = self.native._advanced_problem.ground(
            self._native_actions[name], ObjectList(self._terms(objects))
        )
        known, index = self._library.actions, native.get_index()
        if index not in known:
            known[index] = self._converted(native)
        return known[index]

    @cached_property
    def _native_actions(self) -> dict[str, Any]:
        """The library's action schemas under the names of the file."""
        names = self.domain.text.actions
        return {names[a.get_name()]: a._advanced_action for a in self.domain.native.get_actions()}

    @property
    def cost_values(self) -> Mapping[tuple[str, ...], float]:
        """(function, object, ...) to its number in `:init`; none where costs do not count."""
        return self._text.values if self.has_costs else {}

    def cost(self, state: State, action: GroundAction) -> float:
        """What `action` adds to the plan's total cost in `state`: 1 where there are no costs."""
        del state
        if action is DUMMY_ACTION or not self.has_costs:
            return 1.0
        return self._cost(action.name, action.objects)

    def atoms_of(self, state: Any) -> tuple[Atom, ...]:
        """The changeable and derived atoms of a library state, each converted once a task."""
        return self._library.atoms_of(state, self._atom)

    def _atom(self, native: Any) -> Atom | None:
        """Under the file's names; None for a predicate that was made for the library."""
        predicate = self.domain.text.predicates.get(native.get_predicate().get_name())
        if predicate is None:
            return None
        names = self._text.objects
        return Atom(predicate, tuple(names[o.get_name()] for o in native.get_terms()))

    def _converted(self, native: Any) -> GroundAction:
        """The library's action under the file's names. Raises `PddlError` where it has no cost.

        What must exist for a precondition stands behind the file's parameters, and is left off.
        """
        name = self.domain.text.actions[native.get_action().get_name()]
        arity = len(self._schemas[name].parameters)
        names = self._text.objects
        objects = tuple(names[o.get_name()] for o in islice(native.get_objects(), arity))
        if self.has_costs:
            self._cost(name, objects)
        return GroundAction(name, objects, native)

    def _cost(self, name: str, objects: tuple[str, ...]) -> float:
        schema = self._schemas[name]
        binding = schema.binding(objects)
        costs = [cost.value(binding, self._text.values) for cost in schema.costs]
        if None in costs:
            action = GroundAction(name, objects)
            raise PddlError(f"{self.path}: :init gives the cost of {action} no value; add it.")
        return float(sum(c for c in costs if c is not None))

    def _read_static_atoms(self) -> frozenset[Atom]:
        found = self.native.get_initial_atoms(ignore_fluent=True, ignore_derived=True)
        return frozenset(atom for native in found if (atom := self._atom(native)) is not None)


_NAME_AND_OBJECTS = attrgetter("name", "objects")


def load_domain(path: Path) -> Domain:
    """Read a domain file.

    Raises `PddlError` or `UnsupportedPddlError`, with file, line and remedy in the message, and
    `UsageError` where there is no readable file.
    """
    text = pddl_text.read_domain(path)
    return Domain(path, text, _native(path, text.text, lambda: pymimir.Domain(text.text)))


def load_task(domain: Domain, path: Path) -> Task:
    """Read a problem file of `domain`. Raises as `load_domain` does."""
    text = pddl_text.read_problem(path, domain.text)
    return Task(domain, text, _native(path, text.text, lambda: Library(domain.native, text.text)))


LARGEST_TRIED = 2_500_000
"""Characters of a text; of those up to this size none is known to crash the library."""


def _native(path: Path, text: str, make: Callable[[], Any]) -> Any:
    """The library's object for a file. Raises `PddlError` if it refuses the text or crashes on it.

    Only a larger text than any that was tried is first given to a copy of this process, as that
    doubles the time of reading (docs/reliability.md).
    """
    if len(text) > LARGEST_TRIED and (crash := crash_of(make)):
        raise PddlError(
            f"{path}: the PDDL library crashes on this file ({crash}); "
            f"please report it, and simplify the file."
        )
    try:
        return make()
    except RuntimeError as error:
        raise _library_error(path, error) from error


def _library_error(path: Path, error: RuntimeError) -> PddlError:
    """What the library still finds wrong, on one line and without terminal colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    reason = " ".join(plain.split()) or "it gives no reason"
    return PddlError(f"{path}: the PDDL library does not take this file: {reason[:300]}")
