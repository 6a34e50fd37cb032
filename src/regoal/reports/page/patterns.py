"""Patterns of facts with variables, as declared drawings use them."""

from collections.abc import Iterable, Iterator

Fact = tuple[str, ...]
Pattern = tuple[str, ...]
"""A predicate and its arguments: objects, or variables that begin with `?`."""
Alternative = tuple[Pattern, ...]
"""Patterns that must hold together."""


def read_alternative(text: str) -> Alternative:
    """Read patterns that are joined by `&`. Raises `ValueError` if one is empty.

    >>> read_alternative("served ?thing & destin ?thing ?place")
    (('served', '?thing'), ('destin', '?thing', '?place'))
    """
    patterns = tuple(tuple(part.lower().split()) for part in text.split("&"))
    if not all(patterns):
        raise ValueError(f"a pattern is a predicate with its arguments, got {text!r}")
    return patterns


def match_pattern(pattern: Pattern, fact: Fact) -> dict[str, str] | None:
    """Return the objects for the variables of a pattern, or None if the fact does not match it.

    >>> match_pattern(("at", "?thing", "room-a"), ("at", "ball", "room-a"))
    {'?thing': 'ball'}
    """
    if len(pattern) != len(fact) or pattern[0] != fact[0]:
        return None
    found: dict[str, str] = {}
    for word, value in zip(pattern[1:], fact[1:], strict=True):
        if word.startswith("?"):
            if found.setdefault(word, value) != value:
                return None
        elif word != value:
            return None
    return found


def match_facts(pattern: Pattern, facts: Iterable[Fact]) -> Iterator[dict[str, str]]:
    """Yield the objects for the variables of a pattern, for each fact that matches it."""
    for fact in facts:
        found = match_pattern(pattern, fact)
        if found is not None:
            yield found
