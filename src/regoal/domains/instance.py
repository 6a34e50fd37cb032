"""Generated problems as values, and their PDDL text."""

from dataclasses import dataclass

Atom = tuple[str, ...]
"""A ground atom: the predicate, then its objects, e.g. `("on", "b1", "b2")`."""


@dataclass(frozen=True)
class Instance:
    """One problem of a benchmark domain.

    Raises `ValueError` if the goal is empty or holds initially: such a problem teaches nothing.
    """

    name: str
    """The problem's name in PDDL."""
    domain: str
    """The domain's name in PDDL."""
    objects: tuple[tuple[str, tuple[str, ...]], ...]
    """(type, names) in the order of the file; the type is empty if the domain has no types."""
    init: tuple[Atom, ...]
    goal: tuple[Atom, ...]

    def __post_init__(self) -> None:
        if set(self.goal) <= set(self.init):
            raise ValueError(f"{self.name}: the goal already holds in the initial state")

    def of_type(self, kind: str) -> tuple[str, ...]:
        """Return the objects declared with this type, in the order of the file."""
        return tuple(name for type_, names in self.objects if type_ == kind for name in names)

    def to_pddl(self) -> str:
        """Return the text of the problem file; equal instances give equal texts."""
        objects = [
            " ".join(names) + (f" - {kind}" if kind else "")
            for kind, names in self.objects
            if names
        ]
        return "\n".join(
            (
                f"(define (problem {self.name})",
                f"  (:domain {self.domain})",
                *_format_section("(:objects", objects, ")"),
                *_format_section("(:init", [_format_atom(atom) for atom in self.init], ")"),
                *_format_section("(:goal (and", [_format_atom(atom) for atom in self.goal], "))"),
                ")\n",
            )
        )


def numbered(prefix: str, count: int) -> tuple[str, ...]:
    """Return the names `prefix1` to `prefix<count>`."""
    return tuple(f"{prefix}{i}" for i in range(1, count + 1))


def require(condition: bool, message: str) -> None:
    """Raise `ValueError` with `message` if `condition` fails, e.g. for impossible sizes."""
    if not condition:
        raise ValueError(message)


def _format_section(head: str, lines: list[str], end: str) -> list[str]:
    return [f"  {head}", *(f"    {line}" for line in lines), f"  {end}"]


def _format_atom(atom: Atom) -> str:
    return f"({' '.join(atom)})"
