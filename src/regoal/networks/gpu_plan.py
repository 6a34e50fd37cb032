"""A batch laid out for the GPU kernels: one packed array of 32-bit integers.

Shapes: N nodes, M arguments, Q actions, B instances, C depths.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regoal.networks.encoding import Batch
from regoal.networks.parameters import Layout

Longs = npt.NDArray[np.int64]
HEADER = 24
ROWS = 16
"""Atoms a tile: the least that matrix units take."""
NODE_ROWS = 16
"""Nodes a tile."""


class Plan(NamedTuple):
    """A batch as the kernels take it.

    `ints` begins with numbers, in this order: N, M, where `args`, `tiles`, `order` and `ptr` begin;
    where in the weights the update and the norm are; where `starts` and `jobs` begin; where in the
    weights the readout is; Q; and where the other parts begin. The parts:

    - `args` [M] nodes;
    - `tiles` [T, 3] of atoms of one relation, wide relations first: where its weights begin, its
      first argument, its atoms;
    - `order` [M] the arguments by node, `ptr` [N + 1] where each node's begin;
    - `starts`: the tiles of arity K begin at starts[K] and end at starts[K - 1];
    - `jobs` [J, 6] for the weights' gradients: where the relation's weights begin, its first
      argument, its atoms, its arity, whether it is the last matrix, the argument's place;
    - the node [Q] and the instance [Q] of each action; where each instance's objects begin [B + 1],
      and their nodes [O]; where each instance's actions begin [B + 1];
    - of each node [N, 3] its action or -1, its instance, how often it counts among the objects;
    - `depths` [C], and the slot of the last one where two slots take turns.
    """

    ints: Tensor
    layout: Layout
    depths: tuple[int, ...]
    depths_at: int
    nodes: int
    arguments: int
    actions: int
    rows: int
    """Atoms a tile."""
    tiles: int
    jobs: int

    @property
    def programs(self) -> int:
        """Programs that a launch is cut into; on a GPU as many as can run beside each other."""
        if self.ints.device.type == "cpu":
            return 3
        cores = torch.cuda.get_device_properties(self.ints.device).multi_processor_count
        return max(1, min(cores, max(self.tiles, -(-self.nodes // NODE_ROWS))))


class _Packer:
    """Arrays that become one."""

    def __init__(self) -> None:
        self.parts: list[npt.NDArray[Any]] = [np.zeros(HEADER, np.int64)]
        self.length = HEADER

    def add(self, part: npt.NDArray[Any]) -> int:
        """Where the part begins."""
        self.parts.append(part.ravel())
        self.length += part.size
        return self.length - part.size

    def sent(self, header: Sequence[int], device: torch.device) -> Tensor:
        """All of it as 32-bit integers on the device."""
        self.parts[0][: len(header)] = header
        packed = torch.empty(self.length, dtype=torch.int32, pin_memory=device.type == "cuda")
        np.concatenate(self.parts, out=packed.numpy(), casting="unsafe")
        return packed.to(device, non_blocking=True)


def plan_of(batch: Batch, layout: Layout, depths: Sequence[int], device: torch.device) -> Plan:
    """Lay a batch out for the kernels and send it to the device."""
    arity = np.array(layout.arities, dtype=np.int64)
    at = np.array([layout.places[f"message.{i}.weight_in"][0] for i in range(len(arity))], np.int64)
    first, args = np.cumsum(batch.sizes) - batch.sizes, batch.args.cpu().numpy()
    rows = ROWS
    tiles, starts = _tiles(arity, at, first, batch.counts, rows)
    jobs = _jobs(arity, at, first, batch.counts)
    packer = _Packer()
    header = [batch.nodes, len(args)]
    header += map(packer.add, (args, tiles, *_by_number(args, batch.nodes)))
    header += [layout.places[name][0] for name in ("update.weight_in", "norm.scale")]
    header += [packer.add(starts), packer.add(jobs)]
    header += [layout.places["readout.weight_in"][0], len(batch.action_nodes)]
    header += map(packer.add, _readout(batch))
    depths_at = packer.add(np.array([*depths, depths[-1] % 2]))
    return Plan(
        packer.sent(header, device), layout, tuple(depths), depths_at, batch.nodes, len(args),
        len(batch.action_nodes), rows, len(tiles), len(jobs),
    )  # fmt: skip


def _readout(batch: Batch) -> list[Longs]:
    """Which nodes the readout takes, and of each node what takes it."""
    action_nodes, action_instance, object_nodes, object_instance = (
        getattr(batch, name).cpu().numpy()
        for name in ("action_nodes", "action_instance", "object_nodes", "object_instance")
    )
    instances = len(batch.node_counts)
    nodes = np.empty((batch.nodes, 3), np.int64)
    nodes[:, 0] = -1
    nodes[action_nodes, 0] = np.arange(len(action_nodes))
    nodes[:, 1] = np.repeat(np.arange(instances), batch.node_counts)
    nodes[:, 2] = np.bincount(object_nodes, minlength=batch.nodes)
    return [
        action_nodes,
        action_instance,
        _ends(np.bincount(object_instance, minlength=instances)),
        object_nodes,
        _ends(np.array(batch.action_counts, np.int64)),
        nodes,
    ]


def _by_number(numbers: Longs, count: int) -> tuple[Longs, Longs]:
    """The order that sorts numbers below `count`, and where each number's begin [count + 1]."""
    short = numbers.astype(np.uint16) if count <= np.iinfo(np.uint16).max else numbers
    return np.argsort(short, kind="stable"), _ends(np.bincount(numbers, minlength=count))


def _ends(counts: Longs) -> Longs:
    ends = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    return ends


def _tiles(arity: Longs, at: Longs, first: Longs, counts: Longs, rows: int) -> tuple[Longs, Longs]:
    """The tiles [T, 3], those that take longest first, and where those of each arity begin."""
    order = np.argsort(-arity, kind="stable")
    parts = -(-counts[order] // rows)
    relation = np.repeat(order, parts)
    begin = (np.arange(len(relation)) - np.repeat(_ends(parts)[:-1], parts)) * rows
    tiles = np.stack(
        (
            at[relation],
            first[relation] + begin * arity[relation],
            np.minimum(rows, counts[relation] - begin),
        ),
        axis=1,
    )
    starts = np.searchsorted(-arity[relation], -np.arange(arity.max(initial=1) + 1))
    return tiles, starts


def _jobs(arity: Longs, at: Longs, first: Longs, counts: Longs) -> Longs:
    """The jobs [J, 6] of relations that have atoms."""
    found = [
        (at[r], first[r], counts[r], arity[r], last, place)
        for r in np.flatnonzero(counts)
        for last in (0, 1)
        for place in range(arity[r])
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 6)
