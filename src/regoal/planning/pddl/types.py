"""Typed lists of PDDL: types, objects, variables."""

from collections.abc import Iterable, Iterator, Mapping

from regoal.planning.pddl.syntax import (
    Form,
    Node,
    Word,
    bad,
    head,
    shown,
    suggestion,
    unsupported,
    warn,
)

Types = tuple[str, ...]
"""Types of which one must hold, sorted: more than one only where the file says `either`."""

MAX_TYPES = 2000
"""Most types of a domain and most variables of a list.

The PDDL library reads a typed list group inside group, and thousands of them overflow its stack.
"""

Above = Mapping[str, frozenset[str]]
"""Each type with itself and all types above it; `object` is above all."""


def name_of(node: Node, what: str) -> str:
    """The name a word gives to a `what` ("an object"), checked to look like one."""
    if isinstance(node, Form):
        raise bad(node, f"expected the name of {what} here, not {shown(node)}.")
    if node.text[0] in "?:":
        raise bad(node, f"'{node.text}' cannot be the name of {what}; names begin with a letter.")
    if node.text[0] == "-":
        raise bad(node, f"'{node.text}' begins with '-': put a blank behind the '-' before a type.")
    return node.text


def typed_list(nodes: Iterable[Node]) -> Iterator[tuple[Word, tuple[Word, ...] | None]]:
    """The words of a list such as `a b - t c`, each with the words of its type.

    The type is None where none is written and has several words where it is an `either`. A type
    without names before it, as in `a - t - t`, is passed over with a warning.
    """
    waiting: list[Word] = []
    rest = iter(nodes)
    for node in rest:
        if isinstance(node, Form):
            raise bad(node, f"{shown(node)} cannot stand in a list of names; is a ')' missing?")
        if node.text != "-":
            waiting.append(node)
            continue
        kind = next(rest, None)
        if kind is None:
            raise bad(node, "no type follows this '-'.")
        words = _type_words(kind)
        if not waiting:
            warn_of_empty_group(node, kind)
        yield from ((word, words) for word in waiting)
        waiting = []
    yield from ((word, None) for word in waiting)


def warn_of_empty_group(dash: Node, kind: Node) -> None:
    """Tell that a typed list has a type at `dash` that no name stands before."""
    warn(dash, "empty group", f"no name stands before '- {shown(kind)}'; it is passed over.")


def _type_words(kind: Node) -> tuple[Word, ...]:
    if isinstance(kind, Word):
        name_of(kind, "a type")
        return (kind,)
    words = kind.items[1:]
    if head(kind) != "either" or not words:
        raise bad(kind, f"expected a type or (either TYPE ...) here, not {shown(kind)}.")
    for word in words:
        name_of(word, "a type")
    return tuple(word for word in words if isinstance(word, Word))


def variables(node: Node, types: Above, place: str) -> list[tuple[Word, Types]]:
    """The variables of a bracket such as `(?a ?b - place)`; untyped ones are objects."""
    if isinstance(node, Word):
        raise bad(node, f"expected a list of variables in brackets here, not '{node.text}'.")
    listed = []
    for word, kind in typed_list(node.items):
        if word.text[0] != "?" or word.text == "?":
            raise bad(word, f"'{word.text}' in {place} is no variable; variables begin with '?'.")
        listed.append((word, known_types(kind, types)))
    if len(listed) > MAX_TYPES:
        raise unsupported(node, f"more than {MAX_TYPES} variables in one list ({place}).")
    return listed


def known_types(kind: tuple[Word, ...] | None, types: Above) -> Types:
    """The declared types that these words name, without those that lie below another of them."""
    if kind is None:
        return ("object",)
    for word in kind:
        if word.text not in types:
            hint = suggestion(word.text, types) or " Declare it in (:types ...)."
            raise bad(word, f"there is no type '{word.text}'.{hint}")
    names = {word.text for word in kind}
    return tuple(sorted(n for n in names if types[n].isdisjoint(names - {n})))


def objects_of(nodes: Iterable[Node], types: Above, earlier: Mapping[str, str]) -> dict[str, str]:
    """The type of each object in a typed list, in file order; `earlier` are the constants."""
    objects: dict[str, str] = {}
    lines: dict[str, int] = {}
    for word, kind in typed_list(nodes):
        name = name_of(word, "an object")
        if name in objects:
            raise bad(
                word,
                f"the object '{name}' is declared twice, first on line {lines[name]}; remove one.",
            )
        if name in earlier:
            raise bad(
                word, f"the object '{name}' is a constant of the domain already; remove it here."
            )
        of = known_types(kind, types)
        if len(of) > 1:
            raise unsupported(
                word, f"'either' as the type of an object ('{name}'); give it one type."
            )
        objects[name], lines[name] = of[0], word.line
    return objects


def parents_of(nodes: Iterable[Node]) -> dict[str, tuple[str, ...]]:
    """Types right above each type; a type that is only named as a parent lies below `object`."""
    parents: dict[str, tuple[str, ...]] = {}
    for word, kind in typed_list(nodes):
        name = name_of(word, "a type")
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


def closure(
    parents: Mapping[str, tuple[str, ...]], section: tuple[Node, ...]
) -> dict[str, frozenset[str]]:
    """Each type with itself and all types above it."""
    types: dict[str, frozenset[str]] = {"object": frozenset(("object",))}
    waiting = dict(parents)
    while waiting:
        ready = [name for name, above in waiting.items() if all(a in types for a in above)]
        if not ready:
            raise bad(
                section[0],
                f"the type '{_in_circle(waiting)}' lies below itself; each '- type' holds for all "
                "names before it, so list the topmost types last.",
            )
        for name in ready:
            types[name] = frozenset((name,)).union(*(types[a] for a in waiting.pop(name)))
    return types


def _in_circle(parents: Mapping[str, tuple[str, ...]]) -> str:
    """A type on a circle, where each of these lies on one or below one."""
    name, seen = min(parents), set()
    while name not in seen:
        seen.add(name)
        name = min(above for above in parents[name] if above in parents)
    return name
