"""A domain with small types of regoal, and its value in the PDDL library."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pymimir

from regoal.planning.mimir.library import make_library_value
from regoal.planning.pddl.library_text import DomainText, print_effects


@dataclass(frozen=True)
class Domain:
    """A domain that has been read: its text, and its value in the library."""

    path: Path
    text: DomainText = field(repr=False)
    library_domain: Any = field(repr=False)

    @property
    def name(self) -> str:
        """The domain's name in PDDL, lower case."""
        return self.text.content.name

    @cached_property
    def library_effects(self) -> Any:
        """The domain in the library without preconditions, for large problems."""
        text = print_effects(self.text)
        return make_library_value(self.path, text, lambda: pymimir.Domain(text))

    @cached_property
    def has_copies(self) -> bool:
        """Whether some action of the file has several or longer schemas in the library.

        A precondition with `or` or `exists` needs them (see `pddl/normal_form`).
        """
        made = [
            (self.text.actions[a.get_name()], a.get_arity())
            for a in self.library_domain.get_actions()
        ]
        return tuple(sorted(made)) != self.actions

    @property
    def predicates(self) -> tuple[tuple[str, int], ...]:
        """Name and arity of every predicate, derived ones included, in alphabetical order."""
        declared = self.text.content.symbols.predicates
        return tuple(sorted((name, len(arguments)) for name, arguments in declared.items()))

    @property
    def types(self) -> tuple[str, ...]:
        """Every type except `object`, in alphabetical order."""
        return tuple(sorted(self.text.types.values()))

    @property
    def constants(self) -> frozenset[str]:
        """The domain's constants; each is an object of every problem."""
        return frozenset(self.text.constants.values())

    @property
    def actions(self) -> tuple[tuple[str, int], ...]:
        """Name and number of parameters of every action schema, in alphabetical order."""
        return tuple(sorted((a.name, len(a.parameters)) for a in self.text.content.actions))
