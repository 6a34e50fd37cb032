"""Read declared drawings: small TOML files that say how the states of a domain look.

docs/reference/drawings.md explains every key.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from regoal.errors import UsageError
from regoal.reports.page.patterns import Alternative, read_alternative
from regoal.system.files import natural_key, read_bytes

SHAPES = frozenset(
    ("robot", "truck", "box", "ball", "person", "lift", "ferry", "car", "spanner", "nut", "disc")
)
LOOKS = frozenset(("dot", "star", "wall", "paint"))
LAYOUTS = frozenset(("grid", "row", "column", "path"))
TOWERS = ("on", "table", "held")

_NEED = re.compile(r"([^\s/]+)/(\d+)")

_Allowed = Mapping[str, tuple[type, str]]
"""The keys of a table, each with the type of its value and that type's name."""
_TEXT = (str, "a text")
_LIST = (list, "a list of texts")
_SWITCH = (bool, "true or false")
_TOP: _Allowed = {
    "needs": _LIST,
    "towers": (dict, "a table"),
    "places": (dict, "a table"),
    "things": (list, "tables [[things]]"),
    "marks": (list, "tables [[marks]]"),
    "counters": (list, "tables [[counters]]"),
}
_PLACES: _Allowed = {
    **dict.fromkeys(("layout", "are", "links", "order", "up", "right"), _TEXT),
    "names": _LIST,
}
_THING: _Allowed = {
    **dict.fromkeys(("shape", "type", "is", "name", "holds", "note", "done"), _TEXT),
    "at": _LIST,
    "trail": _SWITCH,
}
_MARK: _Allowed = dict.fromkeys(("look", "label", "on", "unless"), _TEXT)
_COUNTER: _Allowed = dict.fromkeys(("label", "count"), _TEXT)


@dataclass(frozen=True)
class Thing:
    """Objects that are drawn at places, or one mover that is no object."""

    shape: str
    at: tuple[Alternative, ...]
    type: str = ""
    """Only objects of this type; empty for objects of all types."""
    is_: Alternative = ()
    """A condition in the initial state on `?thing`; empty if there is none."""
    name: str = ""
    """The name of a mover that is no object."""
    holds: Alternative = ()
    note: Alternative = ()
    done: Alternative = ()
    trail: bool = False


@dataclass(frozen=True)
class Mark:
    """A look of the places for which a pattern holds, or does not hold."""

    look: str
    label: str
    pattern: Alternative
    unless: bool


@dataclass(frozen=True)
class Places:
    """How places are arranged."""

    layout: str
    names: tuple[str, ...] = ()
    """Patterns of names with `{row}` and `{column}`."""
    are: Alternative = ()
    links: Alternative = ()
    order: Alternative = ()
    up: Alternative = ()
    right: Alternative = ()


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How the states of a domain are drawn: as towers, or as things at places."""

    source: str
    """The file's name, for messages."""
    needs: tuple[tuple[str, int], ...]
    """Predicates with their numbers of arguments; only domains with all of them are drawn so."""
    towers: Mapping[str, Alternative] | None = None
    places: Places | None = None
    things: tuple[Thing, ...] = ()
    marks: tuple[Mark, ...] = ()
    counters: tuple[tuple[str, Alternative], ...] = ()
    """Labels, and patterns whose matches are counted."""

    def fits(self, predicates: Mapping[str, int]) -> bool:
        """Return whether a domain has all the predicates that the drawing needs."""
        return all(predicates.get(name) == arity for name, arity in self.needs)


def shipped_drawings() -> list[Drawing]:
    """Return the drawings that come with regoal, those that need most predicates first."""
    folder = files("regoal.reports.page") / "drawings"
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}
    found = [parse_drawing(texts[name], name) for name in sorted(texts, key=natural_key)]
    return sorted(found, key=lambda drawing: -len(drawing.needs))


def read_drawing(path: Path) -> Drawing:
    """Read one declared drawing. Raises `UsageError` if it cannot be read, or has a fault."""
    try:
        text = read_bytes(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read as a drawing: {reason}.") from error
    return parse_drawing(text, str(path))


def choose_drawing(drawings: Sequence[Drawing], predicates: Mapping[str, int]) -> Drawing | None:
    """Return the first drawing that fits a domain with these predicates, or None."""
    return next((drawing for drawing in drawings if drawing.fits(predicates)), None)


def parse_drawing(text: str, source: str) -> Drawing:
    """Read the text of a declared drawing; `source` names it in messages. Raises `UsageError`."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} is not TOML: {error}.") from error
    try:
        return _read(content, source)
    except ValueError as error:
        raise UsageError(f"{source}: {error}.") from error


def _read(content: Mapping[str, object], source: str) -> Drawing:
    top = _Table(content, _TOP, "")
    if top.has("towers") == top.has("places"):
        raise ValueError("it must have either [towers] or [places]")
    towers = None
    if top.has("towers"):
        table = _Table(content["towers"], dict.fromkeys(TOWERS, _TEXT), "[towers]")
        towers = {key: table.pattern(key, required=True) for key in TOWERS}
    return Drawing(
        source=source,
        needs=tuple(_read_need(word) for word in top.texts("needs", required=True)),
        towers=towers,
        places=_read_places(content["places"]) if top.has("places") else None,
        things=tuple(map(_read_thing, top.tables("things"))),
        marks=tuple(map(_read_mark, top.tables("marks"))),
        counters=tuple(map(_read_counter, top.tables("counters"))),
    )


def _read_need(word: str) -> tuple[str, int]:
    found = _NEED.fullmatch(word)
    if found is None:
        raise ValueError(f'needs must list predicates such as "on/2", got {word!r}')
    return found[1].lower(), int(found[2])


def _read_places(value: object) -> Places:
    table = _Table(value, _PLACES, "[places]")
    names = table.texts("names")
    if faulty := [name for name in names if "{row}" not in name or "{column}" not in name]:
        raise ValueError(f"[places]: names must have {{row}} and {{column}}, got {faulty[0]!r}")
    patterns = {key: table.pattern(key) for key in ("are", "links", "order", "up", "right")}
    return Places(table.one_of("layout", LAYOUTS), names, **patterns)


def _read_thing(value: object) -> Thing:
    table = _Table(value, _THING, "[[things]]")
    return Thing(
        table.one_of("shape", SHAPES),
        tuple(map(read_alternative, table.texts("at", required=True))),
        type=table.text("type").lower(),
        is_=table.pattern("is"),
        name=table.text("name"),
        holds=table.pattern("holds"),
        note=table.pattern("note"),
        done=table.pattern("done"),
        trail=table.has("trail") and bool(table.content["trail"]),
    )


def _read_mark(value: object) -> Mark:
    table = _Table(value, _MARK, "[[marks]]")
    if table.has("on") == table.has("unless"):
        raise ValueError("[[marks]]: it must have either on or unless")
    key = "unless" if table.has("unless") else "on"
    return Mark(
        table.one_of("look", LOOKS), table.text("label"), table.pattern(key), key == "unless"
    )


def _read_counter(value: object) -> tuple[str, Alternative]:
    table = _Table(value, _COUNTER, "[[counters]]")
    return table.text("label"), table.pattern("count", required=True)


class _Table:
    """A table of a declaration. Raises `ValueError` for unknown keys and wrong types."""

    def __init__(self, content: object, allowed: _Allowed, where: str) -> None:
        self.where = f"{where}: " if where else ""
        if not isinstance(content, dict):
            raise ValueError(f"{where} must be a table")
        for key, value in content.items():
            if key not in allowed:
                raise ValueError(f"{self.where}unknown key {key!r}; known: {', '.join(allowed)}")
            if not isinstance(value, allowed[key][0]):
                raise ValueError(f"{self.where}{key} must be {allowed[key][1]}, got {value!r}")
        self.content: dict[str, object] = content

    def has(self, key: str) -> bool:
        return key in self.content

    def text(self, key: str) -> str:
        return str(self.content.get(key, ""))

    def one_of(self, key: str, allowed: frozenset[str]) -> str:
        if self.text(key) not in allowed:
            names = ", ".join(sorted(allowed))
            raise ValueError(f"{self.where}{key} must be one of {names}, got {self.text(key)!r}")
        return self.text(key)

    def pattern(self, key: str, *, required: bool = False) -> Alternative:
        if not self.has(key):
            if required:
                raise ValueError(f"{self.where}{key} is missing")
            return ()
        return read_alternative(self.text(key))

    def texts(self, key: str, *, required: bool = False) -> tuple[str, ...]:
        values = self.content.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError(f"{self.where}{key} must be a list of texts, got {values!r}")
        if required and not values:
            raise ValueError(f"{self.where}{key} is missing")
        return tuple(values)

    def tables(self, key: str) -> list[object]:
        values = self.content.get(key, [])
        return list(values) if isinstance(values, list) else []
