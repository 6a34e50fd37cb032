"""Read the typed lists of PDDL: types, objects and variables."""

from collections.abc import Iterable, Iterator, Mapping

from regoal.planning.pddl.model import Ancestors, Types
from regoal.planning.pddl.syntax import (
    Bracket,
    Node,
    Word,
    bad,
    head,
    show,
    suggest,
    unsupported,
    warn,
)

MAX_TYPES = 2000
"""Most types of a domain and most variables of a list.

The PDDL library reads the groups of a typed list recursively. Thousands of groups overflow its
stack.
"""


def read_name(node: Node, what: str) -> str:
    """Return the name that a word gives to `what`, e.g. "an object", after checking its form."""
    if isinstance(node, Bracket):
        raise bad(node, f"expected the name of {what} here, not {show(node)}.")
    if node.text[0] in "?:":
        raise bad(node, f"'{node.text}' cannot be the name of {what}; names begin with a letter.")
    if node.text[0] == "-":
        raise bad(node, f"'{node.text}' begins with '-': put a blank behind the '-' before a type.")
    return node.text


def read_typed_list(nodes: Iterable[Node]) -> Iterator[tuple[Word, tuple[Word, ...] | None]]:
    """Yield the names of a list such as `a b - t c`, each with the words of its type.

    The type is None if none is written. An `either` gives a type of several words. A type without
    names before it, as in `a - t - t`, is ignored with a warning.
    """
    waiting: list[Word] = []
    rest = iter(nodes)
    for node in rest:
        if isinstance(node, Bracket):
            raise bad(node, f"{show(node)} cannot stand in a list of names; is a ')' missing?")
        if node.text != "-":
            waiting.append(node)
            continue
        kind = next(rest, None)
        if kind is None:
            raise bad(node, "no type follows this '-'.")
        words = _read_type(kind)
        if not waiting:
            warn_of_empty_group(node, kind)
        yield from ((word, words) for word in waiting)
        waiting = []
    yield from ((word, None) for word in waiting)


def warn_of_empty_group(dash: Node, kind: Node) -> None:
    """Warn the user that no name stands before the type at `dash`."""
    warn(dash, "empty group", f"no name stands before '- {show(kind)}'; it is ignored.")


def _read_type(kind: Node) -> tuple[Word, ...]:
    if isinstance(kind, Word):
        read_name(kind, "a type")
        return (kind,)
    words = kind.items[1:]
    if head(kind) != "either" or not words:
        raise bad(kind, f"expected a type or (either TYPE ...) here, not {show(kind)}.")
    for word in words:
        read_name(word, "a type")
    return tuple(word for word in words if isinstance(word, Word))


def read_variables(node: Node, types: Ancestors, place: str) -> list[tuple[Word, Types]]:
    """Read the variables of a bracket such as `(?a ?b - place)`; without a type it is `object`."""
    if isinstance(node, Word):
        raise bad(node, f"expected a list of variables in brackets here, not '{node.text}'.")
    listed = []
    for word, kind in read_typed_list(node.items):
        if word.text[0] != "?" or word.text == "?":
            raise bad(word, f"'{word.text}' in {place} is no variable; variables begin with '?'.")
        listed.append((word, find_types(kind, types)))
    if len(listed) > MAX_TYPES:
        raise unsupported(node, f"more than {MAX_TYPES} variables in one list ({place}).")
    return listed


def find_types(kind: tuple[Word, ...] | None, types: Ancestors) -> Types:
    """Return the types that these words name, without any type below another of them."""
    if kind is None:
        return ("object",)
    for word in kind:
        if word.text not in types:
            hint = suggest(word.text, types) or " Declare it in (:types ...)."
            raise bad(word, f"there is no type '{word.text}'.{hint}")
    names = {word.text for word in kind}
    return tuple(sorted(n for n in names if types[n].isdisjoint(names - {n})))


def read_objects(
    nodes: Iterable[Node], types: Ancestors, earlier: Mapping[str, str]
) -> dict[str, str]:
    """Read the type of each object in a typed list, in file order; `earlier` has the constants."""
    objects: dict[str, str] = {}
    lines: dict[str, int] = {}
    for word, kind in read_typed_list(nodes):
        name = read_name(word, "an object")
        if name in objects:
            raise bad(
                word,
                f"the object '{name}' is declared twice, first on line {lines[name]}; remove one.",
            )
        if name in earlier:
            raise bad(
                word, f"the object '{name}' is a constant of the domain already; remove it here."
            )
        of = find_types(kind, types)
        if len(of) > 1:
            raise unsupported(
                word, f"'either' as the type of an object ('{name}'); give it one type."
            )
        objects[name], lines[name] = of[0], word.line
    return objects


def read_parents(nodes: Iterable[Node]) -> dict[str, tuple[str, ...]]:
    """Read the types right above each type. A type named only as a parent lies below `object`."""
    parents: dict[str, tuple[str, ...]] = {}
    for word, kind in read_typed_list(nodes):
        name = read_name(word, "a type")
        if kind is not None and len(kind) > 1:
            raise unsupported(word, f"'either' in (:types ...), for '{name}'; name one type.")
        above = kind[0].text if kind else "object"
        if name == "object":
            if above != "object":
                raise bad(word, f"'object' is above all types and cannot lie below '{above}'.")
            continue
        older = parents.get(name, ())
        parents[name] = older if above in older else (*older, above)
        if above != "object":
            parents.setdefault(above, ())
        if len(parents) > MAX_TYPES:
            raise unsupported(word, f"more than {MAX_TYPES} types.")
    return {name: above or ("object",) for name, above in parents.items()}


def collect_ancestors(
    parents: Mapping[str, tuple[str, ...]], section: tuple[Node, ...]
) -> dict[str, frozenset[str]]:
    """Map each type to itself and all types above it. Raises `PddlError` if types form a cycle."""
    types: dict[str, frozenset[str]] = {"object": frozenset(("object",))}
    waiting = dict(parents)
    while waiting:
        ready = [name for name, above in waiting.items() if all(a in types for a in above)]
        if not ready:
            raise bad(
                section[0],
                f"the type '{_find_type_on_cycle(waiting)}' lies below itself; "
                "each '- type' holds for all names before it, so list the topmost types last.",
            )
        for name in ready:
            types[name] = frozenset((name,)).union(*(types[a] for a in waiting.pop(name)))
    return types


def _find_type_on_cycle(parents: Mapping[str, tuple[str, ...]]) -> str:
    """Return a type on a cycle; each of the given types lies on a cycle or below one."""
    name, seen = min(parents), set()
    while name not in seen:
        seen.add(name)
        name = min(above for above in parents[name] if above in parents)
    return name
