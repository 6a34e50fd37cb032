"""Read PDDL files as nested brackets of words. Other modules check what the words mean.

Errors of this package begin with the line. `name_file` puts the file's name in front.
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
"""Most characters of a name, because messages show names."""

MAX_DEPTH = 200
"""Deepest nesting of brackets: far more than in real files, and below Python's recursion limit."""

_NAME_CHARACTERS = r"[\w\-.@#+*/<>=!$%&~^|:]"
_TOKEN = re.compile(rf"[()]|-(?=[^\W\d])|\?{_NAME_CHARACTERS}*|{_NAME_CHARACTERS}+|(?P<odd>\S)")


class Word(NamedTuple):
    """A word in lower case, and the line it stands on (from 1)."""

    text: str
    line: int


class Bracket(NamedTuple):
    """The words and brackets inside one pair of brackets, and the line it opens on (from 1)."""

    items: "tuple[Word | Bracket, ...]"
    line: int


Node = Word | Bracket


def bad(where: Node | int, message: str) -> PddlError:
    """Return the error for wrong PDDL at a word, bracket or line."""
    return PddlError(f"line {where if isinstance(where, int) else where.line}: {message}")


def unsupported(where: Node, what: str) -> UnsupportedPddlError:
    """Return the error for correct PDDL that regoal does not support, at a word or bracket."""
    return UnsupportedPddlError(f"line {where.line}: regoal does not support {what}")


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean ...?` if a known name is close to `name`, else an empty string."""
    near = get_close_matches(name, sorted(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


_log = logging.getLogger(__name__)
_warned: ContextVar[dict[str, list[str]] | None] = ContextVar("warned", default=None)


@contextmanager
def name_file(path: Path) -> Iterator[None]:
    """Put the file's name in front of every `RegoalError` raised inside, and of every warning.

    All warnings of one kind share one line per file.
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
    """Warn the user of odd PDDL that is read all the same, once per file and `kind`."""
    found = _warned.get()
    if found is not None:
        found.setdefault(kind, []).append(f"line {where.line}: {message}")


def head(node: Node) -> str:
    """Return the first word in a bracket, or an empty string if there is none."""
    if isinstance(node, Bracket) and node.items and isinstance(node.items[0], Word):
        return node.items[0].text
    return ""


def show(node: Node) -> str:
    """Write a node as PDDL text, shortened for messages."""
    return shorten(_join_words(node))


def shorten(text: str) -> str:
    """Cut a text to at most 60 characters."""
    return text if len(text) <= 60 else f"{text[:56]} ..."  # noqa: PLR2004


def _join_words(node: Node) -> str:
    return node.text if isinstance(node, Word) else f"({' '.join(map(_join_words, node.items))})"


def parse(text: str) -> tuple[Bracket, ...]:
    """Return all outermost brackets of a text, without comments and in lower case.

    Raises `PddlError` if brackets do not match, or if a character cannot be part of a name.
    """
    done: list[Node] = []
    open_brackets: list[tuple[int, list[Node]]] = [(1, done)]
    for token, line in _split_tokens(text):
        if token == "(":
            open_brackets.append((line, []))
            if len(open_brackets) > MAX_DEPTH:
                raise bad(line, f"brackets are nested deeper than {MAX_DEPTH}.")
        elif token == ")":
            opened, items = open_brackets.pop()
            if not open_brackets:
                raise bad(line, "this ')' closes nothing; remove it or add the missing '('.")
            open_brackets[-1][1].append(Bracket(tuple(items), opened))
        else:
            open_brackets[-1][1].append(Word(token.lower(), line))
    if len(open_brackets) > 1:
        raise _explain_unclosed(open_brackets, text.rstrip().count("\n") + 1)
    return tuple(map(_require_bracket, done))


def _require_bracket(node: Node) -> Bracket:
    if isinstance(node, Word):
        raise bad(node, f"'{node.text}' stands outside all brackets; is this a PDDL file?")
    return node


def _split_tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield brackets and words with their lines, without comments."""
    for line, row in enumerate(text.split("\n"), start=1):
        for match in _TOKEN.finditer(row.split(";", 1)[0]):
            if match["odd"]:
                raise bad(line, _describe_odd_character(match["odd"]))
            if len(match.group()) > MAX_WORD:
                start = shorten(match.group())
                raise bad(line, f"'{start}' has more than {MAX_WORD} characters; shorten the name.")
            yield match.group(), line


def _describe_odd_character(character: str) -> str:
    if is_undecoded(character):
        return "a byte that is not UTF-8 stands in a name; save the file as UTF-8."
    name = unicodedata.name(character, "a control character")
    printable = f"'{character}' " if character.isprintable() else ""
    return (
        f"{printable}(U+{ord(character):04X}, {name}) cannot stand here; "
        "names have letters, digits, '-' and '_'."
    )


def _explain_unclosed(open_brackets: list[tuple[int, list[Node]]], last_line: int) -> PddlError:
    """Return the error for a file that ends too early, with the likely place of a missing ')'."""
    opened, items = open_brackets[-1]
    inside = f"'({items[0].text}'" if items and isinstance(items[0], Word) else "a bracket"
    missing = len(open_brackets) - 1
    # A section inside another bracket shows that a ')' is missing before it.
    buried = [s for _, found in open_brackets[2:] for node in found for s in _find_sections(node)]
    buried += [s for node in open_brackets[1][1] for s in _find_sections(node) if s is not node]
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


def _find_sections(node: Node) -> Iterator[Bracket]:
    """Yield every bracket at or below a node that begins with a word such as `:action`."""
    if isinstance(node, Bracket):
        if head(node).startswith(":"):
            yield node
        for item in node.items:
            yield from _find_sections(item)


def read_define(path: Path, kind: str) -> tuple[Word, tuple[Bracket, ...], str]:
    """Return name, sections and text of a file of the form `(define (KIND NAME) SECTION ...)`.

    `kind` is `domain` or `problem`. Raises `PddlError` if the file has another form, and every
    error of `read_text` and `parse`.
    """
    text = read_text(path)
    with name_file(path):
        brackets = parse(text)
        if not brackets:
            raise bad(1, f"the file is empty; a {kind} begins with (define ({kind} NAME).")
        define = brackets[0]
        items = define.items
        if head(define) != "define" or len(items) < 2:  # noqa: PLR2004
            raise bad(define, f"this is no PDDL {kind}: it must begin with (define ({kind} NAME).")
        other = {"domain": "problem", "problem": "domain"}[kind]
        if head(items[1]) == other:
            raise bad(define, f"this is a {other} file where a {kind} is expected.")
        title = items[1].items if isinstance(items[1], Bracket) else ()
        if head(items[1]) != kind or len(title) != 2 or not isinstance(title[1], Word):  # noqa: PLR2004
            raise bad(items[1], f"expected ({kind} NAME) here, not {show(items[1])}.")
        if len(brackets) > 1:
            raise bad(
                brackets[1],
                f"{show(brackets[1])} follows after the last bracket of the {kind}; "
                "a file holds one domain or one problem, and a ')' too many ends it early.",
            )
        return title[1], tuple(_require_section(node) for node in items[2:]), text


def _require_section(node: Node) -> Bracket:
    if isinstance(node, Bracket) and head(node).startswith(":"):
        return node
    raise bad(node, f"expected a section such as (:predicates ...) here, not {show(node)}.")
