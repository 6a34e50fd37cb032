"""The layout of a batch for the GPU kernels: one packed array of 32-bit integers.

Shapes: N nodes, M arguments, Q actions, B instances, C depths.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regoal.networks.batch import Batch, Longs
from regoal.networks.parameters import Layout

HEADER = 16
ROWS = 16
"""Atoms in a tile: the fewest rows that matrix units take."""
NODE_ROWS = 16
"""Nodes in a tile."""


class RowSums(NamedTuple):
    """Sums of input rows, given by index lists in `ints`.

    `ptr_at` and `index_at` say where the lists begin that make output rows from input rows.
    `back_ptr_at` and `back_index_at` do so for the gradients, which go the other way.
    """

    ptr_at: int
    index_at: int
    back_ptr_at: int
    back_index_at: int
    inputs: int
    outputs: int


class PackedBatch(NamedTuple):
    """A batch in the form that the kernels read.

    `ints` begins with N, M, the places where the parts below begin, and the places of the update
    and the norm in the weights. The parts are:

    - `args` [M];
    - `tiles` [T, 3] of atoms of one relation, wide relations first: where the relation's weights
      begin, the tile's first argument, and its number of atoms;
    - `order` [M], the arguments sorted by node, and `ptr` [N + 1], where those of each node begin;
    - `starts`: the tiles of arity K begin at starts[K] and end at starts[K - 1];
    - `jobs` [J, 6] for the weights' gradients: where the relation's weights begin, its first
      argument, its atoms, its arity, whether it is the second matrix, and the argument's place;
    - `depths` [C].
    """

    ints: Tensor
    layout: Layout
    depths: tuple[int, ...]
    depths_at: int
    nodes: int
    arguments: int
    tiles: int
    jobs: int
    read: RowSums
    """From nodes [N] to [Q + B]: first the actions' nodes, then each instance's sum of objects."""
    to_actions: RowSums
    """From instances [B] to actions [Q]: each action gets its instance's row."""

    @property
    def programs(self) -> int:
        """Programs in one launch; on a GPU, as many as can run in parallel."""
        if self.ints.device.type == "cpu":
            return 3
        cores = torch.cuda.get_device_properties(self.ints.device).multi_processor_count
        return max(1, min(cores, max(self.tiles, -(-self.nodes // NODE_ROWS))))


class _Packer:
    """Collects arrays and joins them into one."""

    def __init__(self) -> None:
        self.parts: list[npt.NDArray[Any]] = [np.zeros(HEADER, np.int64)]
        self.length = HEADER

    def add(self, part: npt.NDArray[Any]) -> int:
        """Append a part and return where it begins."""
        self.parts.append(part.ravel())
        self.length += part.size
        return self.length - part.size

    def add_row_sums(self, index: Longs, outputs: Longs, inputs: int, count: int) -> RowSums:
        """Append the lists for sums of rows: input row `index[j]` goes to output row `outputs[j]`.

        `outputs` must rise. There are `inputs` input rows and `count` output rows.
        """
        order, back = _sort_numbers(index, inputs)
        starts = _list_starts(np.bincount(outputs, minlength=count))
        forth = self.add(starts), self.add(index)
        return RowSums(*forth, self.add(back), self.add(outputs[order]), inputs, count)

    def send(self, header: Sequence[int], device: torch.device) -> Tensor:
        """Join all parts as 32-bit integers, and send them to the device."""
        self.parts[0][: len(header)] = header
        packed = torch.empty(self.length, dtype=torch.int32, pin_memory=device.type == "cuda")
        np.concatenate(self.parts, out=packed.numpy(), casting="unsafe")
        return packed.to(device, non_blocking=True)


def pack_batch(
    batch: Batch, layout: Layout, depths: Sequence[int], device: torch.device
) -> PackedBatch:
    """Lay out a batch for the kernels, and send it to the device."""
    arity = np.array(layout.arities, dtype=np.int64)
    at = np.array([layout.places[f"message.{i}.weight_in"][0] for i in range(len(arity))], np.int64)
    first, args = np.cumsum(batch.argument_counts) - batch.argument_counts, batch.args
    tiles, starts = _list_tiles(arity, at, first, batch.atom_counts)
    jobs = _list_jobs(arity, at, first, batch.atom_counts)
    packer = _Packer()
    # Depths come first, to begin at a multiple of 16 bytes: kernels are compiled for that.
    depths_at = packer.add(np.array(depths))
    parts = (args, tiles, *_sort_numbers(args, batch.nodes))
    header = [batch.nodes, len(args), *map(packer.add, parts)]
    header += [layout.places[name][0] for name in ("update.weight_in", "norm.scale")]
    header += [packer.add(starts), packer.add(jobs)]
    actions = np.arange(len(batch.action_nodes))
    objects = batch.object_instance
    sources = (batch.action_nodes, batch.object_nodes)
    instances = len(batch.node_counts)
    read = packer.add_row_sums(
        np.concatenate(sources),
        np.concatenate((actions, len(actions) + objects)),
        batch.nodes,
        len(actions) + instances,
    )
    to_actions = packer.add_row_sums(batch.action_instance, actions, instances, len(actions))
    return PackedBatch(
        packer.send(header, device), layout, tuple(depths), depths_at, batch.nodes, len(args),
        len(tiles), len(jobs), read, to_actions,
    )  # fmt: skip


def _sort_numbers(numbers: Longs, count: int) -> tuple[Longs, Longs]:
    """Return the order that sorts numbers below `count`, and where each one begins [count + 1]."""
    short = numbers.astype(np.uint16) if count <= np.iinfo(np.uint16).max else numbers
    return np.argsort(short, kind="stable"), _list_starts(np.bincount(numbers, minlength=count))


def _list_starts(counts: Longs) -> Longs:
    """Return where each group begins if groups of these sizes follow each other, and the end."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _list_tiles(arity: Longs, at: Longs, first: Longs, counts: Longs) -> tuple[Longs, Longs]:
    """List the tiles [T, 3], slowest first, and where those of each arity begin."""
    order = np.argsort(-arity, kind="stable")
    parts = -(-counts[order] // ROWS)
    relation = np.repeat(order, parts)
    begin = (np.arange(len(relation)) - np.repeat(_list_starts(parts)[:-1], parts)) * ROWS
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


def _list_jobs(arity: Longs, at: Longs, first: Longs, counts: Longs) -> Longs:
    """List the jobs [J, 6] of all relations that have atoms."""
    found = [
        (at[r], first[r], counts[r], arity[r], last, place)
        for r in np.flatnonzero(counts)
        for last in (0, 1)
        for place in range(arity[r])
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 6)
