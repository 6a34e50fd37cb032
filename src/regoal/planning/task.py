"""Tasks and their states with small types of regoal, computed by the PDDL library.

A `Task` is one problem of a domain. Its states, actions and atoms are values: equal by content,
in a fixed order, with names in lower case.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Any

from pymimir.advanced.formalism import (
    DerivedPredicate,
    FluentGroundAtomList,
    FluentPredicate,
    ObjectList,
)

from regoal.errors import PddlError
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.applicable import ApplicableActions
from regoal.planning.domain import Domain
from regoal.planning.goals import Atom, Goal
from regoal.planning.mimir.action_bound import ActionBound
from regoal.planning.mimir.library import Library
from regoal.planning.pddl.library_text import ProblemText
from regoal.planning.pddl.model import PddlAction
from regoal.system.cancellation import checked


class State:
    """A state of one task; two states are equal if equal atoms hold, on whatever path they lie."""

    __slots__ = ("__dict__", "_hash", "_library_problem", "_library_state", "index", "task")

    def __init__(self, task: "Task", library_state: Any) -> None:
        self.task = task
        self._library_state = library_state
        self._library_problem = task.library_problem
        self.index: int = library_state.get_index()
        self._hash = hash((task.salt, self.index))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, State)
            and self._library_problem is other._library_problem
            and self.index == other.index
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        """Write the state's changeable atoms in PDDL."""
        return f"State({' '.join(str(atom) for atom in sorted(self.fluent_atoms))})"

    @cached_property
    def fluent_atoms(self) -> tuple[Atom, ...]:
        """The atoms that hold and that actions can change, derived ones included."""
        return self.task.atoms_of(self._library_state)

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        """Every atom that holds: changeable, derived and static. Types are not atoms."""
        return self.task.static_atoms.union(self.fluent_atoms)

    def holds(self, atom: Atom) -> bool:
        """Return whether an atom, changeable or static, is true in this state."""
        return atom in self._changeable or atom in self.task.static_atoms

    def satisfies(self, goal: Goal) -> bool:
        """Return whether this is a goal state, i.e. whether every literal of `goal` holds."""
        missing = goal.atoms - self._changeable
        if missing and not missing <= self.task.static_atoms:
            return False
        return not any(self.holds(atom) for atom in goal.negative)

    def forget_atoms(self) -> None:
        """Free the memory of the listed atoms; they are listed again if they are asked for."""
        self.__dict__.clear()

    @cached_property
    def _changeable(self) -> frozenset[Atom]:
        return frozenset(self.fluent_atoms)


class Task:
    """One problem: its objects, initial state, goal, and the dynamics of its domain."""

    def __init__(self, domain: Domain, text: ProblemText, library: Library | None = None) -> None:
        self.domain = domain
        self.path = text.path
        self.name = text.path.stem
        self.goal = text.goal
        self.types_of = text.types_of
        """The types of each object, sorted: its own and those above it, without `object`."""
        self.has_costs = text.has_costs
        """Whether the problem asks for plans of small total cost; if not, each action costs 1."""
        self.objects: tuple[str, ...] = tuple(text.types_of)
        """Constants of the domain, then objects of the problem, in the order of the files."""
        self.salt = zlib.crc32(text.text.encode(), len(text.static or ()))
        """Part of the hash of a state, different in other tasks and equal in every process."""
        self._text = text
        self._schemas = {a.name: a for a in domain.text.content.actions}
        if library is not None:
            self._library = library
        self.static_atoms = self._read_static_atoms()

    @cached_property
    def _library(self) -> Library:
        return make_library(self.domain, self._text)

    @property
    def library_problem(self) -> Any:
        """The task's problem in the library; a new one after `forget_states`."""
        return self._library.problem

    @property
    def sources(self) -> tuple[str, str]:
        """The texts of the domain file and the problem file, decoded."""
        return self.domain.text.content.source, self._text.source

    @cached_property
    def initial_state(self) -> "State":
        """The initial state of the problem."""
        return State(self, self._library.initial)

    def __repr__(self) -> str:
        return f"Task({self.path})"

    def renewed(self) -> "Task":
        """Return a copy of the task that has not met any states.

        The library keeps every state that a task ever met; the copy starts with none. States of
        the two tasks never equal each other.
        """
        return Task(self.domain, self._text)

    def forget_states(self) -> None:
        """Delete every state from the library, which reads the problem again at the next use.

        Earlier states and actions must not be used again. `state_of` makes a new state from atoms.
        """
        for name in ("_library", "_joined", "initial_state"):
            self.__dict__.pop(name, None)

    @cached_property
    def object_index(self) -> dict[str, int]:
        """The position of each object in `objects`."""
        return {name: i for i, name in enumerate(self.objects)}

    def applicable_actions(self, state: State) -> tuple[GroundAction, ...]:
        """Return all applicable ground actions in a fixed order, or the dummy action if none is.

        Raises `TooWideError` if there are too many to list, `PddlError` if one has no cost, and
        `StoppedError` if `regoal.system.cancellation` ends the work.
        """
        if self._text.static is not None:
            return self._join_actions(set(state._library_state.get_fluent_atoms()))
        known = self._library.actions
        found = []
        self._check_width(state)
        for library_action in checked(self._list_library_actions(state)):
            index = library_action.get_index()
            if index not in known:
                known[index] = self._convert_action(library_action)
            found.append(known[index])
        found.sort(key=_NAME_AND_OBJECTS)
        if self.domain.has_copies:
            found = list(dict.fromkeys(found))
        return tuple(found) or (DUMMY_ACTION,)

    def applicable_with(
        self, state: State, keeps: Callable[[Atom], bool]
    ) -> tuple[GroundAction, ...]:
        """Return the applicable actions of a state with only those changeable atoms that it keeps.

        `state` itself need not have them. Raises the errors of `applicable_actions`.
        """
        if self._text.static is None:
            return self.applicable_actions(self.state_of(filter(keeps, state.fluent_atoms)))
        numbers = state._library_state.get_fluent_atoms()
        kept = zip(numbers, state.fluent_atoms, strict=True)
        return self._join_actions({number for number, atom in kept if keeps(atom)})

    def _join_actions(self, numbers: set[int]) -> tuple[GroundAction, ...]:
        """Return the applicable actions if the atoms with these numbers hold.

        The library gets to know an action in `successor` only.
        """
        library = self._library
        keys = self._joined.list_keys(
            numbers, lambda indices: library.fluent_atoms(indices, self._convert_atom)
        )
        known = library.joined
        for key in keys:
            if key not in known:
                if self.has_costs:
                    self._compute_cost(*key)
                known[key] = GroundAction(*key)
        return tuple(map(known.__getitem__, keys)) or (DUMMY_ACTION,)

    @cached_property
    def _joined(self) -> ApplicableActions:
        return ApplicableActions(
            self.path, self._schemas.values(), self.types_of, self.static_atoms
        )

    def _check_width(self, state: State) -> None:
        """Raise `TooWideError` if a state has too many applicable actions to list them."""
        if not self._action_bound.never_exceeded:
            names = (atom.predicate for atom in state.fluent_atoms)
            self._action_bound.check(self.path, names, lambda: self._list_library_actions(state))

    def _list_library_actions(self, state: State) -> Any:
        return self._library.generator.generate_applicable_actions(state._library_state)

    @cached_property
    def _action_bound(self) -> ActionBound:
        return ActionBound(
            self.domain.library_domain, self.library_problem, self.domain.text.predicates
        )

    def is_dead_end(self, state: State) -> bool:
        """Return whether no action is applicable; other dead ends are not recognised."""
        return self.applicable_actions(state) == (DUMMY_ACTION,)

    def definition(self, action: GroundAction) -> PddlAction:
        """Return the action's schema as read from the file. Raises `KeyError` for the dummy."""
        return self._schemas[action.name]

    def successor(self, state: State, action: GroundAction) -> State:
        """Return the state after `action`, which must be applicable in `state`."""
        if action is DUMMY_ACTION:
            return state
        if action.library_action is None:
            action = self.ground(action.name, action.objects)
        states = self._library.states
        after, _ = states.get_or_create_successor_state(
            state._library_state, action.library_action, 0.0
        )
        return State(self, after)

    def state_of(self, atoms: Iterable[Atom]) -> State:
        """Return the state with these changeable atoms; derived atoms among them are ignored.

        It equals a state with these atoms that actions have reached. Raises `ValueError` if no
        state of this task can have one of the atoms.
        """
        kinds, found = self._library_predicates, FluentGroundAtomList()
        for atom in atoms:
            predicate = kinds.get(atom.predicate)
            if isinstance(predicate, DerivedPredicate):
                continue
            terms = self._find_objects(atom.objects)
            if not isinstance(predicate, FluentPredicate) or any(t is None for t in terms):
                raise ValueError(f"{atom} is no changeable atom of {self.path}")
            if predicate.get_arity() != len(terms):
                raise ValueError(f"{atom} has another number of objects in {self.path}")
            found.append(
                self.library_problem._advanced_problem.get_or_create_ground_atom(
                    predicate, ObjectList(terms)
                )
            )
        return State(self, self._library.states.get_or_create_state(found, [])[0])

    def _find_objects(self, objects: Iterable[str]) -> list[Any]:
        """Return the library's objects with these names, None for names that the task lacks."""
        return [self._library.objects.get(self._library_objects.get(name, "")) for name in objects]

    @cached_property
    def _library_objects(self) -> dict[str, str]:
        """The library's names of objects by the names in the files."""
        return {name: library_name for library_name, name in self._text.objects.items()}

    @cached_property
    def _library_predicates(self) -> dict[str, Any]:
        """The library's predicates by the names in the file."""
        names = self.domain.text.predicates
        found = {
            p.get_name(): p._advanced_predicate
            for p in self.library_problem.get_domain().get_predicates()
        }
        return {names[name]: predicate for name, predicate in found.items() if name in names}

    def ground(self, name: str, objects: Iterable[str]) -> GroundAction:
        """Return an action schema applied to these objects, whether applicable or not.

        The domain must not have `has_copies`, so that the library has one schema of each name.
        Raises `PddlError` if the action's cost is undefined.
        """
        library_action = self.library_problem._advanced_problem.ground(
            self._library_actions[name], ObjectList(self._find_objects(objects))
        )
        known, index = self._library.actions, library_action.get_index()
        if index not in known:
            known[index] = self._convert_action(library_action)
        return known[index]

    @cached_property
    def _library_actions(self) -> dict[str, Any]:
        """The library's action schemas by the names in the file."""
        names = self.domain.text.actions
        return {
            names[a.get_name()]: a._advanced_action
            for a in self.library_problem.get_domain().get_actions()
        }

    @property
    def cost_values(self) -> Mapping[tuple[str, ...], float]:
        """Maps (function, object, ...) to its number in `:init`; empty if costs do not count."""
        return self._text.values if self.has_costs else {}

    def cost(self, state: State, action: GroundAction) -> float:
        """Return what `action` adds to the plan's cost: 1 if the problem has no costs.

        `state` does not matter at present, because costs depend on objects only.
        """
        del state
        if action is DUMMY_ACTION or not self.has_costs:
            return 1.0
        return self._compute_cost(action.name, action.objects)

    def atoms_of(self, state: Any) -> tuple[Atom, ...]:
        """Return the changeable and derived atoms of a library state; convert each atom once."""
        return self._library.atoms_of(state, self._convert_atom)

    def _convert_atom(self, library_atom: Any) -> Atom | None:
        """Convert a library atom; return None for a predicate that the file does not have."""
        predicate = self.domain.text.predicates.get(library_atom.get_predicate().get_name())
        if predicate is None:
            return None
        names = self._text.objects
        return Atom(predicate, tuple(names[o.get_name()] for o in library_atom.get_terms()))

    def _convert_action(self, library_action: Any) -> GroundAction:
        """Convert a library action. Raises `PddlError` if it has no cost.

        Objects that must exist for a precondition come after the file's parameters; they are
        omitted.
        """
        name = self.domain.text.actions[library_action.get_action().get_name()]
        arity = len(self._schemas[name].parameters)
        names = self._text.objects
        objects = tuple(names[o.get_name()] for o in islice(library_action.get_objects(), arity))
        if self.has_costs:
            self._compute_cost(name, objects)
        return GroundAction(name, objects, library_action)

    def _compute_cost(self, name: str, objects: tuple[str, ...]) -> float:
        schema = self._schemas[name]
        binding = schema.bind(objects)
        costs = [cost.value(binding, self._text.values) for cost in schema.costs]
        if None in costs:
            action = GroundAction(name, objects)
            raise PddlError(f"{self.path}: :init gives the cost of {action} no value; add it.")
        return float(sum(c for c in costs if c is not None))

    def _read_static_atoms(self) -> frozenset[Atom]:
        if self._text.static is not None:
            return frozenset(self._text.static)
        found = self.library_problem.get_initial_atoms(ignore_fluent=True, ignore_derived=True)
        return frozenset(atom for x in found if (atom := self._convert_atom(x)) is not None)


_NAME_AND_OBJECTS = attrgetter("name", "objects")


def make_library(domain: Domain, text: ProblemText) -> Library:
    """Let the library read a problem; of a large one, only what successors need."""
    large = text.static is not None
    read = domain.library_effects if large else domain.library_domain
    return Library(read, text.text, lists_actions=not large)
