"""A policy on disk: one safetensors file with a JSON header.

The header holds the domain's structure (`planning/matching/schema.py`), its fingerprint, and the
network's relations and sizes. Its entry `training` says how the policy was trained. Each tensor's
name says what it belongs to, e.g. `message/state:on/weight_in`.
"""

import importlib.resources
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regoal.errors import UsageError
from regoal.networks.parameters import Layout
from regoal.networks.q_function import QFunction
from regoal.networks.relations import ACHIEVED_KINDS, GOAL_KINDS, Relation, relations_of
from regoal.networks.tensor_file import (
    Array,
    Facts,
    Kind,
    read_facts,
    read_tensor_file,
    write_tensor_file,
)
from regoal.planning.matching.schema import Schema
from regoal.system.files import short_digest

FILE_NAME = "policy.safetensors"
"""The name of a policy in a run folder."""
KIND = Kind("policy", 3, oldest=1)
"""Version 3 may have relations of goal literals by whether they are true in the state. Those of
version 2 meant something else, and are refused."""
UNREADABLE = (UsageError, ArithmeticError, LookupError, TypeError, ValueError)
"""What reading a header that makes no sense raises."""
MOST_LAYERS = 10_000
MOST_ARGUMENTS = 1000


@dataclass(frozen=True)
class Policy:
    """A trained network, the domain it was trained on, and how to run it."""

    network: QFunction
    """It has the relations that training has met, and ignores atoms of other relations."""
    schema: Schema
    layers: int
    """Layers of the network."""
    facts: Facts
    """How it was trained, as JSON values: config, seed, episode, validation and the like."""
    digest: str = ""
    """The first digits of the SHA-256 of its file, as in records of tests; empty if not read."""


def save_policy(path: Path, policy: Policy) -> None:
    """Write the whole file or nothing. Equal policies give equal bytes.

    Raises `OSError` if the folder cannot be written.
    """
    network = policy.network
    parts = network.layout.parts(network.weights)
    names = _name_tensors(network.relations, network.layout)
    facts = {
        "schema": policy.schema.to_json(),
        "fingerprint": policy.schema.fingerprint(),
        "relations": [list(relation) for relation in network.relations],
        "embedding_size": network.layout.size,
        "layers": policy.layers,
        "training": policy.facts,
    }
    write_tensor_file(path, KIND, facts, {names[part]: parts[part] for part in parts})


def load_policy(path: Path) -> Policy:
    """Read a policy.

    Raises `UsageError` if the file is missing, foreign, damaged or of another version. The weights
    must also be finite and fit the description.
    """
    facts, tensors = read_tensor_file(path, KIND)
    schema, layers = _describe(path, facts)
    try:
        relations = tuple(Relation(str(k), str(n), int(a)) for k, n, a in facts["relations"])
        size = int(facts["embedding_size"])
        training = dict(facts["training"])
    except UNREADABLE as error:
        raise _make_unreadable(path, error) from error
    kinds = {relation.kind for relation in relations}
    has_goals, has_achieved = (
        not kinds.isdisjoint(of_sign.values()) for of_sign in (GOAL_KINDS, ACHIEVED_KINDS)
    )
    if (has_goals and has_achieved) or facts.get("most_objects"):
        raise UsageError(
            f"{path} has a network as only an earlier version of regoal did. Train it again."
        )
    possible = relations_of(schema, achieved_goals=not has_goals, relaxed_plans=True)
    in_order = tuple(r for r in possible if r in set(relations)) == relations
    if not (in_order and 1 <= layers <= MOST_LAYERS):
        raise _make_error(path, "its network does not fit its domain")
    network = _build_network(path, relations, size, tensors)
    return Policy(network, schema, layers, training, short_digest(path))


def describe_policy(path: Path) -> tuple[Schema, int]:
    """Read the domain and the number of layers of a policy, without a look at its weights.

    Raises `UsageError` if the file is missing, foreign or of another version.
    """
    return _describe(path, read_facts(path, KIND))


def shipped_policies() -> dict[str, Path]:
    """Return the policies that come with regoal, by name, in alphabetical order."""
    folder = Path(str(importlib.resources.files("regoal"))) / "policies"
    return {path.stem: path for path in sorted(folder.glob("*.safetensors"))}


def find_policy(name_or_path: str | Path) -> Path:
    """Find the policy file, given a file, a run folder, or the name of a shipped policy.

    Raises `UsageError`, with the shipped names, if it is none of these.
    """
    path, shipped = Path(name_or_path), shipped_policies()
    if path.is_file():
        return path
    if (path / FILE_NAME).is_file():
        return path / FILE_NAME
    if str(name_or_path) in shipped:
        return shipped[str(name_or_path)]
    why = f"the folder holds no {FILE_NAME}" if path.is_dir() else "there is no such file or folder"
    names = ", ".join(shipped) or "none"
    raise UsageError(
        f"{name_or_path} is not a policy: {why}. Give a policy file, a run folder, or the name of "
        f"a policy that comes with regoal ({names})."
    )


def _describe(path: Path, facts: Facts) -> tuple[Schema, int]:
    try:
        return _read_schema(facts["schema"]), int(facts["layers"])
    except UNREADABLE as error:
        raise _make_unreadable(path, error) from error


def _make_unreadable(path: Path, error: Exception) -> UsageError:
    return UsageError(f"{path} does not describe a policy ({error!r}). Use another copy.")


def _make_error(path: Path, fault: str) -> UsageError:
    return UsageError(f"{path} is not a valid policy: {fault}. Use another copy.")


def _read_schema(values: Any) -> Schema:
    schema = Schema.from_json(values)
    arities = [s.arity for s in schema.symbols] + [a.arity for a in schema.actions]
    if not all(0 <= arity <= MOST_ARGUMENTS for arity in arities):
        raise ValueError("an arity is out of range")
    schema.fingerprint()  # raises an error if terms make no sense
    return schema


def _build_network(
    path: Path,
    relations: Sequence[Relation],
    size: int,
    tensors: dict[str, Array],
) -> QFunction:
    """Build the network with these weights. Sizes are checked before anything is allocated."""
    layout = Layout(tuple(r.arity for r in relations), size)
    names = _name_tensors(relations, layout)
    shapes = {names[part]: shape for part, shape in layout.shapes()}
    if {name: tensor.shape for name, tensor in tensors.items()} != shapes or size < 1:
        raise _make_error(path, "its weights do not fit its network")
    if any(tensor.dtype != np.float32 for tensor in tensors.values()):
        raise _make_error(path, "its weights are not 32-bit numbers")
    vector = np.concatenate([tensors[name].ravel() for name in shapes])
    if not np.isfinite(vector).all():
        raise _make_error(path, "some weights are not finite")
    return QFunction(tuple(relations), size, vector)


def _name_tensors(relations: Sequence[Relation], layout: Layout) -> dict[str, str]:
    """Return the name in the file of each part of the layout."""
    names = {}
    for part, _ in layout.shapes():
        owner, _, field = part.rpartition(".")
        if owner.startswith("message."):
            relation = relations[int(owner.removeprefix("message."))]
            owner = f"message/{relation.kind}:{relation.name}"
        names[part] = f"{owner}/{field}"
    return names
