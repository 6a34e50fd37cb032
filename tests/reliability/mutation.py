"""Byte-level mutations of files: what a bad disk, a bad editor and a bad day do to them."""

import random
import re
from collections.abc import Sequence

_TOKEN = re.compile(rb"[A-Za-z0-9_?:\-.]+|[^\sA-Za-z0-9_?:\-.]")
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")

PDDL_WORDS = (
    b"(", b")", b"()", b"(and)", b"(not", b"(or", b"(imply", b"(forall (?x)", b"(exists (?x - t)",
    b"(when", b"(either", b"- object", b" - ", b"?", b"?x", b":parameters ()", b":precondition",
    b":effect", b"(:action a", b"(:derived (p)", b"(:constants c)", b"(:types t - t)",
    b"(:predicates)", b"(:requirements :fluents)", b"(:durative-action d", b"(= a b)", b"(= (f) 1)",
    b"(increase (total-cost) 1)", b"(probabilistic 0.5", b"(:metric minimize (total-cost))",
    b"(preference p", b"(at 5 (p))", b"(:domain", b"(:init", b"(:goal", b"object", b"number",
    b"=", b"<dummy>", b"; ", b"\n", b"(" * 300, b")" * 20, b"\xc2\xa0", b"\xef\xbb\xbf", b"\xff",
    b"\0", b"\r", "é".encode(), "\u0301".encode(), "ß".encode(), b"x" * 5000,
)  # fmt: skip
PLAN_WORDS = (
    b"(", b")", b"0:", b"99999999999999999999:", b"[1]", b"; cost = -1 (unit cost)", b"(go)", b"()",
    b"\xef\xbb\xbf", b"\xff", b"\0", b"\r\n", b"( go k )", b"nan:", b"1e9:", b"(<dummy>)",
    b" " * 999,
)  # fmt: skip
DATA_WORDS = (
    b"{", b"}", b"[", b"]", b"[" * 2000, b'{"a":' * 2000, b"null", b"true", b"NaN", b"Infinity",
    b"-Infinity", b"1e999", b"-1", b"1" * 500, b'""', b'"a"', b"\\ud800", b"\xff", b"\0", b"\n",
    b"'''", b'"""', b"a.b.c = 1", b"[[x]]", b"1979-05-27", b"0x7fffffffffffffff", b"inf", b"nan",
    b'"\\u0000"', b"../", b"{}", b"[]", b"0.0",
)  # fmt: skip
NUMBERS = (
    b"0", b"-1", b"1", b"2147483648", b"-9223372036854775809", b"18446744073709551616", b"1e308",
    b"1e-400", b"0.1", b"1.5", b"999999999999999999999999999999",
)  # fmt: skip


def mutated(
    data: bytes, words: Sequence[bytes], others: Sequence[bytes], rng: random.Random
) -> bytes:
    """`data` after one to six random changes; `others` are files to splice from."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 6))):
        data = rng.choice(_CHANGES)(data, words, others, rng)
    return data


def _span(data: bytes, rng: random.Random, most: int = 64) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    length = rng.choice((1, 2, 8, most, len(data)))
    return start, min(len(data), start + rng.randrange(length + 1))


def _flip(data, words, others, rng):
    if not data:
        return b"\x01"
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _byte(data, words, others, rng):
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _delete(data, words, others, rng):
    start, end = _span(data, rng)
    return data[:start] + data[end:]


def _double(data, words, others, rng):
    start, end = _span(data, rng)
    return data[:end] + data[start:end] * rng.choice((1, 1, 2, 20)) + data[end:]


def _move(data, words, others, rng):
    start, end = _span(data, rng)
    rest = data[:start] + data[end:]
    at = rng.randrange(len(rest) + 1)
    return rest[:at] + data[start:end] + rest[at:]


def _insert(data, words, others, rng):
    at = rng.randrange(len(data) + 1)
    return data[:at] + b" " * rng.randrange(2) + rng.choice(words) + data[at:]


def _cut(data, words, others, rng):
    return data[: rng.randrange(len(data) + 1)]


def _splice(data, words, others, rng):
    other = rng.choice(others)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _token(data, words, others, rng):
    """One token of the text in place of another."""
    found = list(_TOKEN.finditer(data))
    if not found:
        return rng.choice(words)
    old, new = rng.choice(found), rng.choice(found)
    return data[: old.start()] + new.group() + data[old.end() :]


def _drop_token(data, words, others, rng):
    found = list(_TOKEN.finditer(data))
    if not found:
        return data
    old = rng.choice(found)
    return data[: old.start()] + data[old.end() :]


def _word(data, words, others, rng):
    """A word of the format in place of a token."""
    found = list(_TOKEN.finditer(data))
    if not found:
        return data
    old = rng.choice(found)
    return data[: old.start()] + rng.choice(words) + data[old.end() :]


def _number(data, words, others, rng):
    found = list(_NUMBER.finditer(data))
    if not found:
        return _word(data, words, others, rng)
    old = rng.choice(found)
    return data[: old.start()] + rng.choice(NUMBERS) + data[old.end() :]


_CHANGES = (
    _flip, _byte, _delete, _double, _move, _insert, _cut, _splice, _number,
    _token, _token, _token, _drop_token, _drop_token, _word, _word,
)  # fmt: skip
