"""A generated problem as a value, and its PDDL text."""

from dataclasses import dataclass

Atom = tuple[str, ...]
"""A ground atom: the predicate, then its objects, e.g. `("on", "b1", "b2")`."""


@dataclass(frozen=True)
class Instance:
    """One problem of a benchmark domain. Its goal is never empty and never true from the start.

    `ValueError` otherwise: a problem that is already solved teaches nothing.
    """

    name: str
    """The problem's name in PDDL."""
    domain: str
    """The domain's name in PDDL."""
    objects: tuple[tuple[str, tuple[str, ...]], ...]
    """(type, names) in the order of the file; the type is empty where the domain has no types."""
    init: tuple[Atom, ...]
    goal: tuple[Atom, ...]

    def __post_init__(self) -> None:
        if set(self.goal) <= set(self.init):
            raise ValueError(f"{self.name}: the goal already holds in the initial state")

    def of_type(self, kind: str) -> tuple[str, ...]:
        """The objects declared with this type, in the order of the file."""
        return tuple(name for type_, names in self.objects if type_ == kind for name in names)

    def to_pddl(self) -> str:
        """The problem file: equal instances give equal text."""
        objects = [
            " ".join(names) + (f" - {kind}" if kind else "")
            for kind, names in self.objects
            if names
        ]
        return "\n".join(
            (
                f"(define (problem {self.name})",
                f"  (:domain {self.domain})",
                *_section("(:objects", objects, ")"),
                *_section("(:init", [_written(atom) for atom in self.init], ")"),
                *_section("(:goal (and", [_written(atom) for atom in self.goal], "))"),
                ")\n",
            )
        )


def numbered(prefix: str, count: int) -> tuple[str, ...]:
    """The names `prefix1` to `prefix<count>`."""
    return tuple(f"{prefix}{i}" for i in range(1, count + 1))


def require(condition: bool, message: str) -> None:
    """Raise `ValueError` with `message` unless `condition` holds: sizes no instance can have."""
    if not condition:
        raise ValueError(message)


def _section(head: str, lines: list[str], end: str) -> list[str]:
    return [f"  {head}", *(f"    {line}" for line in lines), f"  {end}"]


def _written(atom: Atom) -> str:
    return f"({' '.join(atom)})"
