"""A batch laid out for the GPU kernels: one packed array of 32-bit integers.

Shapes: N nodes, M arguments, Q actions, B instances, C depths.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regoal.networks.batch import Batch
from regoal.networks.parameters import Layout

Longs = npt.NDArray[np.int64]
HEADER = 16
ROWS = 16
"""Atoms a tile: the least that matrix units take."""
NODE_ROWS = 16
"""Nodes a tile."""


class Rows(NamedTuple):
    """Sums of rows by index lists: where these are in `ints`, both ways, and how many rows."""

    ptr_at: int
    index_at: int
    back_ptr_at: int
    back_index_at: int
    inputs: int
    outputs: int


class Plan(NamedTuple):
    """A batch as the kernels take it.

    `ints` begins with N, M, where the parts below begin, and where in the weights the update and
    the norm are. Parts: `args` [M]; `tiles` [T, 3] of atoms of one relation, wide relations first:
    where its weights begin, its first argument, its atoms; `order` [M] the arguments by node and
    `ptr` [N + 1] where each node's begin; `starts`: the tiles of arity K begin at starts[K] and end
    at starts[K - 1]; `jobs` [J, 6] for the weights' gradients: where the relation's weights begin,
    its first argument, atoms, arity, whether it is the last matrix, the argument's place; `depths`.
    """

    ints: Tensor
    layout: Layout
    depths: tuple[int, ...]
    depths_at: int
    nodes: int
    arguments: int
    tiles: int
    jobs: int
    read: Rows
    """[Q + B] from [N]: the nodes of actions, then the sums of objects."""
    shared: Rows
    """[Q] from [B]: each action's instance."""

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

    def rows(self, index: Longs, outputs: Longs, inputs: int, count: int) -> Rows:
        """Output row `outputs[j]`, rising, of `count` gets input row `index[j]` of `inputs`."""
        order, back = _by_number(index, inputs)
        ends = _ends(np.bincount(outputs, minlength=count))
        forth = self.add(ends), self.add(index)
        return Rows(*forth, self.add(back), self.add(outputs[order]), inputs, count)

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
    tiles, starts = _tiles(arity, at, first, batch.counts)
    jobs = _jobs(arity, at, first, batch.counts)
    packer = _Packer()
    # First, so that it always begins at a multiple of 16 bytes: kernels are compiled for that.
    depths_at = packer.add(np.array(depths))
    parts = (args, tiles, *_by_number(args, batch.nodes))
    header = [batch.nodes, len(args), *map(packer.add, parts)]
    header += [layout.places[name][0] for name in ("update.weight_in", "norm.scale")]
    header += [packer.add(starts), packer.add(jobs)]
    actions = np.arange(len(batch.action_nodes))
    objects = batch.object_instance.cpu().numpy()
    sources = (batch.action_nodes.cpu().numpy(), batch.object_nodes.cpu().numpy())
    instances = len(batch.node_counts)
    read = packer.rows(
        np.concatenate(sources),
        np.concatenate((actions, len(actions) + objects)),
        batch.nodes,
        len(actions) + instances,
    )
    shared = packer.rows(batch.action_instance.cpu().numpy(), actions, instances, len(actions))
    return Plan(
        packer.sent(header, device), layout, tuple(depths), depths_at, batch.nodes, len(args),
        len(tiles), len(jobs), read, shared,
    )  # fmt: skip


def _by_number(numbers: Longs, count: int) -> tuple[Longs, Longs]:
    """The order that sorts numbers below `count`, and where each number's begin [count + 1]."""
    short = numbers.astype(np.uint16) if count <= np.iinfo(np.uint16).max else numbers
    return np.argsort(short, kind="stable"), _ends(np.bincount(numbers, minlength=count))


def _ends(counts: Longs) -> Longs:
    ends = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    return ends


def _tiles(arity: Longs, at: Longs, first: Longs, counts: Longs) -> tuple[Longs, Longs]:
    """The tiles [T, 3], those that take longest first, and where those of each arity begin."""
    order = np.argsort(-arity, kind="stable")
    parts = -(-counts[order] // ROWS)
    relation = np.repeat(order, parts)
    begin = (np.arange(len(relation)) - np.repeat(_ends(parts)[:-1], parts)) * ROWS
    tiles = np.stack(
        (
            at[relation],
            first[relation] + begin * arity[relation],
            np.minimum(ROWS, counts[relation] - begin),
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
