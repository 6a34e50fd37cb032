"""PDDL files as nested brackets: encodings, words, lines. What the words mean is checked elsewhere.

Errors raised here and by the other modules of this package begin with the line; `naming` puts the
file in front.
"""

import logging
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from regoal.errors import PddlError, RegoalError, UnsupportedPddlError
from regoal.planning.text import is_undecoded, read_text

MAX_WORD = 1000
"""Most characters of a name; messages name names."""

MAX_DEPTH = 200
"""Deepest nesting of brackets that is read: far beyond real files, below Python's own limit."""

_NAME_CHARACTERS = r"[\w\-.@#+*/<>=!$%&~^|:]"
_TOKEN = re.compile(rf"[()]|-(?=[^\W\d])|\?{_NAME_CHARACTERS}*|{_NAME_CHARACTERS}+|(?P<odd>\S)")


class Word(NamedTuple):
    """A word in lower case, and the line it stands on (from 1)."""

    text: str
    line: int


class Form(NamedTuple):
    """A bracket: what stands in it, and the line it opens on (from 1)."""

    items: "tuple[Word | Form, ...]"
    line: int


Node = Word | Form


def bad(where: Node | int, message: str) -> PddlError:
    """The error for wrong PDDL at a word, bracket or line."""
    return PddlError(f"line {where if isinstance(where, int) else where.line}: {message}")


def unsupported(where: Node, what: str) -> UnsupportedPddlError:
    """The error for a `what` of correct PDDL that regoal does not take, at a word or bracket."""
    return UnsupportedPddlError(f"line {where.line}: regoal does not support {what}")


def suggestion(name: str, known: Iterable[str]) -> str:
    """` Did you mean ...?` where a known name is close to `name`, else nothing."""
    near = get_close_matches(name, sorted(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


_log = logging.getLogger(__name__)
_warned: ContextVar[dict[str, list[str]] | None] = ContextVar("warned", default=None)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file's name in front of every error of regoal's own raised inside, and of warnings.

    Of each kind of warning a file gets one line.
    """
    found: dict[str, list[str]] = {}
    token = _warned.set(found)
    try:
        yield
    except RegoalError as error:
        raise type(error)(f"{path}, {error}") from error
    finally:
        _warned.reset(token)
    for first, *others in found.values():
        more = f" (and in {len(others)} more place{'s' * (len(others) > 1)})" if others else ""
        _log.warning("warning: %s, %s%s", path, first, more)


def warn(where: Node, kind: str, message: str) -> None:
    """Tell the user, once a file and `kind`, what is odd at a word or bracket, but read."""
    found = _warned.get()
    if found is not None:
        found.setdefault(kind, []).append(f"line {where.line}: {message}")


def head(node: Node) -> str:
    """The first word in a bracket; empty for anything else."""
    if isinstance(node, Form) and node.items and isinstance(node.items[0], Word):
        return node.items[0].text
    return ""


def shown(node: Node) -> str:
    """The node as PDDL text, shortened for messages."""
    return shorten(_shown(node))


def shorten(text: str) -> str:
    """At most 60 characters of a text."""
    return text if len(text) <= 60 else f"{text[:56]} ..."  # noqa: PLR2004


def _shown(node: Node) -> str:
    return node.text if isinstance(node, Word) else f"({' '.join(map(_shown, node.items))})"


def parse(text: str) -> tuple[Form, ...]:
    """All brackets of a text. Comments are dropped, words are in lower case.

    Raises `PddlError` for brackets that do not match and characters that no name may have.
    """
    done: list[Node] = []
    open_forms: list[tuple[int, list[Node]]] = [(1, done)]
    for token, line in _tokens(text):
        if token == "(":
            open_forms.append((line, []))
            if len(open_forms) > MAX_DEPTH:
                raise bad(line, f"brackets are nested deeper than {MAX_DEPTH}.")
        elif token == ")":
            opened, items = open_forms.pop()
            if not open_forms:
                raise bad(line, "this ')' closes nothing; remove it or add the missing '('.")
            open_forms[-1][1].append(Form(tuple(items), opened))
        else:
            open_forms[-1][1].append(Word(token.lower(), line))
    if len(open_forms) > 1:
        raise _unclosed(open_forms, text.rstrip().count("\n") + 1)
    return tuple(map(_outermost, done))


def _outermost(node: Node) -> Form:
    if isinstance(node, Word):
        raise bad(node, f"'{node.text}' stands outside all brackets; is this a PDDL file?")
    return node


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Brackets and words with their lines, comments left out."""
    for line, row in enumerate(text.split("\n"), start=1):
        for match in _TOKEN.finditer(row.split(";", 1)[0]):
            if match["odd"]:
                raise bad(line, _odd_character(match["odd"]))
            if len(match.group()) > MAX_WORD:
                start = shorten(match.group())
                raise bad(line, f"'{start}' has more than {MAX_WORD} characters; shorten the name.")
            yield match.group(), line


def _odd_character(character: str) -> str:
    if is_undecoded(character):
        return "a byte that is not UTF-8 stands in a name; save the file as UTF-8."
    name = unicodedata.name(character, "a control character")
    printable = f"'{character}' " if character.isprintable() else ""
    return (
        f"{printable}(U+{ord(character):04X}, {name}) cannot stand here; "
        "names have letters, digits, '-' and '_'."
    )


def _unclosed(open_forms: list[tuple[int, list[Node]]], last_line: int) -> PddlError:
    """The error for a file that ends too early, with the likeliest place of a forgotten ')'."""
    opened, items = open_forms[-1]
    inside = f"'({items[0].text}'" if items and isinstance(items[0], Word) else "a bracket"
    missing = len(open_forms) - 1
    buried = [s for _, found in open_forms[2:] for node in found for s in _sections_in(node)]
    buried += [s for node in open_forms[1][1] for s in _sections_in(node) if s is not node]
    if buried:
        first = min(buried, key=lambda section: section.line)
        likely = f"before line {first.line}, where '({head(first)}' begins inside another bracket"
    else:
        likely = f"or the file be cut off; the innermost ({inside}) opens on line {opened}"
    return bad(
        last_line,
        f"the file ends while {missing} bracket{'s are' if missing > 1 else ' is'} still open: "
        f"a ')' may be missing {likely}.",
    )


def _sections_in(node: Node) -> Iterator[Form]:
    """Every bracket at or below a node that begins with a word such as `:action`."""
    if isinstance(node, Form):
        if head(node).startswith(":"):
            yield node
        for item in node.items:
            yield from _sections_in(item)


def read_define(path: Path, kind: str) -> tuple[Word, tuple[Form, ...], str]:
    """Name, sections and text of a file that reads `(define (KIND NAME) SECTION ...)`.

    `kind` is `domain` or `problem`. Raises as `read_text` and `parse`, and `PddlError` where the
    file is something else.
    """
    text = read_text(path)
    with naming(path):
        forms = parse(text)
        if not forms:
            raise bad(1, f"the file is empty; a {kind} begins with (define ({kind} NAME).")
        define = forms[0]
        items = define.items
        if head(define) != "define" or len(items) < 2:  # noqa: PLR2004
            raise bad(define, f"this is no PDDL {kind}: it must begin with (define ({kind} NAME).")
        other = {"domain": "problem", "problem": "domain"}[kind]
        if head(items[1]) == other:
            raise bad(define, f"this is a {other} file where a {kind} is expected.")
        title = items[1].items if isinstance(items[1], Form) else ()
        if head(items[1]) != kind or len(title) != 2 or not isinstance(title[1], Word):  # noqa: PLR2004
            raise bad(items[1], f"expected ({kind} NAME) here, not {shown(items[1])}.")
        if len(forms) > 1:
            raise bad(
                forms[1],
                f"{shown(forms[1])} follows after the last bracket of the {kind}; "
                "a file holds one domain or one problem, and a ')' too many ends it early.",
            )
        return title[1], tuple(_section(node) for node in items[2:]), text


def _section(node: Node) -> Form:
    if isinstance(node, Form) and head(node).startswith(":"):
        return node
    raise bad(node, f"expected a section such as (:predicates ...) here, not {shown(node)}.")
