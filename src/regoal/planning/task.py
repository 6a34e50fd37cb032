"""Domains and problems behind regoal's own small types; the only door to the PDDL library.

A `Task` is one problem of a domain. Its states, actions and atoms are values of regoal's own:
equal by content, in a fixed order, with names in lower case.
"""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pymimir

from regoal.errors import PddlError
from regoal.planning import pddl_text
from regoal.planning.goals import Atom, Goal


@dataclass(frozen=True, order=True)
class GroundAction:
    """An action schema applied to objects; ordered and equal by schema name and objects."""

    name: str
    objects: tuple[str, ...]
    native: Any = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """The action as a plan file writes it, e.g. `(stack a b)`."""
        return f"({' '.join((self.name, *self.objects))})"


DUMMY_ACTION = GroundAction("<dummy>", ())
"""Stands for "nothing is applicable" and leaves the state unchanged (paper, "Goal-Conditioned RL").

Its name cannot be written in PDDL, so it never meets an action of a domain.
"""


class State:
    """A state of one task. Equal states of a task are equal and hash alike, across all paths to them."""

    __slots__ = ("__dict__", "_native", "index", "task")

    def __init__(self, task: "Task", native: Any) -> None:
        self.task = task
        self._native = native
        self.index: int = native.get_index()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.task is other.task and self.index == other.index

    def __hash__(self) -> int:
        return self.index

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
        return all(self.holds(atom) for atom in goal.atoms) and not any(
            self.holds(atom) for atom in goal.negative
        )

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
        return str(self.native.get_name()).lower()

    @property
    def predicates(self) -> tuple[tuple[str, int], ...]:
        """Name and arity of every predicate, derived ones included, in alphabetical order."""
        return tuple(sorted((p.get_name(), p.get_arity()) for p in self._own_predicates()))

    @property
    def types(self) -> tuple[str, ...]:
        """Every type, the universal one aside, in alphabetical order."""
        return tuple(sorted(self.text.types.values()))

    @property
    def actions(self) -> tuple[tuple[str, int], ...]:
        """Name and number of parameters of every action schema, in alphabetical order."""
        return tuple(sorted((a.get_name(), a.get_arity()) for a in self.native.get_actions()))

    def _own_predicates(self) -> list[Any]:
        hidden = {"object", "number", *self.text.types}
        return [p for p in self.native.get_predicates() if p.get_name() not in hidden]


class Task:
    """One problem: its objects, initial state, goal, and the dynamics of its domain."""

    def __init__(self, domain: Domain, path: Path, native: Any) -> None:
        self.domain = domain
        self.path = path
        self.name = path.stem
        self._native = native
        self._repositories = native._advanced_problem.get_repositories()
        self._fluent: dict[int, Atom] = {}
        self._derived: dict[int, Atom] = {}
        constants = [o.get_name() for o in domain.native.get_constants()]
        self.objects: tuple[str, ...] = (*constants, *(o.get_name() for o in native.get_objects()))
        """Constants of the domain, then objects of the problem, in the order of the files."""
        self.types_of, self.static_atoms = self._read_static_atoms()
        self.goal = self._read_goal()
        self.initial_state = State(self, native.get_initial_state())

    def __repr__(self) -> str:
        return f"Task({self.path})"

    @cached_property
    def object_index(self) -> dict[str, int]:
        """Position of each object in `objects`."""
        return {name: i for i, name in enumerate(self.objects)}

    def applicable_actions(self, state: State) -> tuple[GroundAction, ...]:
        """All applicable ground actions in a fixed order, or the dummy action where there is none."""
        found = [
            GroundAction(
                native.get_action().get_name(),
                tuple(o.get_name() for o in native.get_objects()),
                native,
            )
            for native in state._native.generate_applicable_actions(False)
        ]
        return tuple(sorted(found)) or (DUMMY_ACTION,)

    def successor(self, state: State, action: GroundAction) -> State:
        """The state after `action`, which must be applicable in `state`."""
        if action.native is None:
            return state
        return State(self, action.native.apply(state._native))

    def atoms_of(self, native_state: Any) -> tuple[Atom, ...]:
        """The changeable and derived atoms of a state of the library, each converted once a task."""
        state = native_state._advanced_state
        fluent = [
            self._fluent.get(i) or self._remember(self._fluent, "fluent", i)
            for i in state.get_fluent_atoms()
        ]
        derived = [
            self._derived.get(i) or self._remember(self._derived, "derived", i)
            for i in state.get_derived_atoms()
        ]
        return (*fluent, *derived)

    def _remember(self, table: dict[int, Atom], kind: str, index: int) -> Atom:
        lookup = getattr(self._repositories, f"get_{kind}_ground_atoms_from_indices")
        table[index] = _atom(pymimir.GroundAtom(lookup([index])[0]))
        return table[index]

    def _read_static_atoms(self) -> tuple[dict[str, tuple[str, ...]], frozenset[Atom]]:
        types: dict[str, list[str]] = {name: [] for name in self.objects}
        atoms = set()
        for native in self._native.get_initial_atoms(ignore_fluent=True, ignore_derived=True):
            atom = _atom(native)
            if atom.predicate in self.domain.text.types:
                types[atom.objects[0]].append(self.domain.text.types[atom.predicate])
            elif atom.predicate not in ("object", "number"):
                atoms.add(atom)
        return {name: tuple(sorted(of)) for name, of in types.items()}, frozenset(atoms)

    def _read_goal(self) -> Goal:
        literals = self._native.get_goal_condition().get_literals()
        positive = [_atom(x.get_atom()) for x in literals if x.get_polarity()]
        negative = [_atom(x.get_atom()) for x in literals if not x.get_polarity()]
        return Goal.of(positive, negative)


def _atom(native: Any) -> Atom:
    return Atom(native.get_predicate().get_name(), tuple(o.get_name() for o in native.get_terms()))


def load_domain(path: Path) -> Domain:
    """Read a domain file.

    Raises `PddlError` or `UnsupportedPddlError`, with file, line and remedy in the message.
    """
    text = pddl_text.read_domain(path)
    try:
        return Domain(path, text, pymimir.Domain(text.text))
    except RuntimeError as error:
        raise PddlError(f"{path}: {error}") from error


def load_task(domain: Domain, path: Path) -> Task:
    """Read a problem file of `domain`. Raises as `load_domain` does."""
    text = pddl_text.read_problem(path, domain.text)
    try:
        return Task(domain, path, pymimir.Problem(domain.native, text))
    except RuntimeError as error:
        raise PddlError(f"{path}: {error}") from error
