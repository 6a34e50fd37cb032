"""Named tensors and a JSON description in one safetensors file, checked when read.

Reading executes nothing, and what it costs is bounded by the file's size. All of the description
is one entry of the file's metadata: the library writes several entries in random order, and equal
contents shall give equal bytes.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from regoal.errors import UsageError
from regoal.system.files import write_bytes_atomically

MOST_BYTES = 1 << 30
MOST_HEADER_BYTES = 8 << 20
KEY = "regoal"

Facts = dict[str, Any]


class Kind(NamedTuple):
    """What a file is, and which versions of its format are read."""

    name: str
    """What the user calls it."""
    version: int
    """The version that is written."""
    oldest: int
    """The oldest version that is still read."""


def write_tensor_file(
    path: Path, kind: Kind, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Write all of it or nothing; same facts and tensors, same bytes.

    `facts` are JSON values. Raises `OSError` where the folder cannot be written.
    """
    own = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    description = {**facts, "format": kind.name, "version": kind.version}
    description["sha256"] = _digest(description, own)
    data = safetensors.torch.save(own, {KEY: _text(description)})
    write_bytes_atomically(path, data)


def read_tensor_file(path: Path, kind: Kind) -> tuple[Facts, dict[str, Tensor]]:
    """Facts and tensors, the latter on the CPU.

    Raises `UsageError` where the file is missing, foreign, damaged, of another version or too big.
    """
    if not path.is_file():
        raise UsageError(f"{path} is not a file; a {kind.name} is needed.")
    try:
        with path.open("rb") as stream:
            facts = _description(path, kind, stream)
            stream.seek(0)
            data = stream.read()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        tensors = safetensors.torch.load(data)
        damaged = facts.pop("sha256", None) != _digest(facts, tensors)
    except (SafetensorError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
        damaged = True
    if damaged:
        raise UsageError(
            f"{path} is damaged or was cut short; use another copy of the {kind.name}."
        )
    return facts, tensors


def _description(path: Path, kind: Kind, stream: BinaryIO) -> Facts:
    """The JSON part, read after the file's size and the header's length have been looked at."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    length = int.from_bytes(stream.read(8), "little")
    foreign = UsageError(f"{path} is no {kind.name} of regoal, or was cut short.")
    if size > MOST_BYTES or not 0 < length <= min(size - 8, MOST_HEADER_BYTES):
        raise foreign
    try:
        facts = json.loads(json.loads(stream.read(length))["__metadata__"][KEY])
        found = facts["format"], facts["version"]
    except (LookupError, TypeError, ValueError, RecursionError):
        raise foreign from None
    versions = range(kind.oldest, kind.version + 1)
    if found[0] != kind.name or found[1] not in versions:
        told = f"{found[0]!s:.40} of version {found[1]!s:.40}"
        raise UsageError(
            f"{path} is a regoal {told}, but a {kind.name} of version {kind.version} is needed."
        )
    return dict(facts)


def _digest(facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of everything that a file holds."""
    digest = hashlib.sha256(_text(facts).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def _text(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True, allow_nan=False)
