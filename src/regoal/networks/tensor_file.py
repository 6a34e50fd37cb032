"""Named arrays and a JSON description in one safetensors file, checked when read.

Reading executes nothing, and its cost is bounded by the file's size. The whole description is one
entry of the file's metadata. The library writes several entries in random order, but equal contents
must give equal bytes.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError

from regoal.errors import UsageError
from regoal.system.files import write_bytes_atomically

MOST_BYTES = 1 << 30
MOST_HEADER_BYTES = 8 << 20
KEY = "regoal"

Facts = dict[str, Any]
Array = npt.NDArray[Any]


class Kind(NamedTuple):
    """A kind of file, and the versions of its format that can be read."""

    name: str
    """Its name in messages to the user."""
    version: int
    """The version to write."""
    oldest: int
    """The oldest version that can be read."""


def write_tensor_file(
    path: Path, kind: Kind, facts: Mapping[str, Any], tensors: Mapping[str, Array]
) -> None:
    """Write the whole file or nothing. Equal facts and tensors give equal bytes.

    `facts` are JSON values. Raises `OSError` if the folder cannot be written.
    """
    own = {name: np.array(tensor, order="C") for name, tensor in tensors.items()}
    description = {**facts, "format": kind.name, "version": kind.version}
    description["sha256"] = _compute_digest(description, own)
    data = safetensors.numpy.save(own, {KEY: _to_json(description)})
    write_bytes_atomically(path, data)


def read_tensor_file(path: Path, kind: Kind) -> tuple[Facts, dict[str, Array]]:
    """Read facts and tensors, which are arrays that cannot be written to.

    Raises `UsageError` if the file is missing, foreign, damaged, of another version or too big.
    """
    with _open(path, kind) as stream:
        facts = _read_description(path, kind, stream)
        stream.seek(0)
        data = stream.read()
    try:
        tensors = safetensors.numpy.load(data)
        damaged = facts.pop("sha256", None) != _compute_digest(facts, tensors)
    except (SafetensorError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
        damaged = True
    if damaged:
        raise UsageError(
            f"{path} is damaged or was cut short. Use another copy of the {kind.name}."
        )
    return facts, tensors


def read_facts(path: Path, kind: Kind) -> Facts:
    """Read the facts alone, without a look at the tensors, which may be damaged.

    Raises `UsageError` if the file is missing, foreign, of another version or too big.
    """
    with _open(path, kind) as stream:
        facts = _read_description(path, kind, stream)
    facts.pop("sha256", None)
    return facts


@contextmanager
def _open(path: Path, kind: Kind) -> Iterator[BinaryIO]:
    """Open a file. Raises `UsageError` if it is missing or cannot be read."""
    if not path.is_file():
        raise UsageError(f"{path} is not a file. Give the file of a {kind.name}.")
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def _read_description(path: Path, kind: Kind, stream: BinaryIO) -> Facts:
    """Read the JSON part, after checking the file's size and the header's length."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    length = int.from_bytes(stream.read(8), "little")
    foreign = UsageError(
        f"{path} is not a {kind.name} of regoal, or was cut short. Use another file."
    )
    if size > MOST_BYTES or not 0 < length <= min(size - 8, MOST_HEADER_BYTES):
        raise foreign
    try:
        facts = json.loads(json.loads(stream.read(length))["__metadata__"][KEY])
        found = facts["format"], facts["version"]
    except (LookupError, TypeError, ValueError, RecursionError):
        raise foreign from None
    versions = range(kind.oldest, kind.version + 1)
    if found[0] != kind.name or found[1] not in versions:
        what = f"{found[0]!s:.40} of version {found[1]!s:.40}"
        raise UsageError(
            f"{path} is a regoal {what}, but a {kind.name} of version {kind.version} is needed."
        )
    return dict(facts)


def _compute_digest(facts: Mapping[str, Any], tensors: Mapping[str, Array]) -> str:
    """Compute the SHA-256 of everything that a file holds."""
    digest = hashlib.sha256(_to_json(facts).encode())
    for name, tensor in sorted(tensors.items()):
        # Types have the names that PyTorch gives them, as it wrote these files at first.
        digest.update(f"{name} torch.{tensor.dtype} {tensor.shape}\n".encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()


def _to_json(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True, allow_nan=False)
