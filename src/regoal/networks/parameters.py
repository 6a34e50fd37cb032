"""All weights of a Q-network in one vector, and the names and places of its parts.

With one vector, the optimiser's step is a single operation. The CPU kernel reads the vector as it
is.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

INITIAL_SCALE = 0.1
"""Standard deviation of what an untrained round adds to an embedding."""


class MLP(NamedTuple):
    """Weights of two linear layers; the hidden width is the input width."""

    weight_in: Tensor
    """[inputs, inputs], applied from the right: x @ weight."""
    bias_in: Tensor
    weight_out: Tensor
    """[inputs, outputs]"""
    bias_out: Tensor


@dataclass(frozen=True)
class Layout:
    """The place of each weight in the vector, for relations of these arities."""

    arities: tuple[int, ...]
    size: int
    """D, the numbers in one embedding."""

    def shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the name and shape of every weight, in the order of the vector."""
        for i, arity in enumerate(self.arities):
            yield from _list_mlp_shapes(f"message.{i}", arity * self.size, arity * self.size)
        yield from _list_mlp_shapes("update", 2 * self.size, self.size)
        yield "norm.scale", (self.size,)
        yield "norm.shift", (self.size,)
        yield from _list_mlp_shapes("readout", 2 * self.size, 1)

    @cached_property
    def places(self) -> dict[str, tuple[int, tuple[int, ...]]]:
        """By name: where in the vector a weight begins, and its shape."""
        places, at = {}, 0
        for name, shape in self.shapes():
            places[name] = at, shape
            at += math.prod(shape)
        return places

    @property
    def length(self) -> int:
        """How many numbers the vector has."""
        return sum(math.prod(shape) for _, shape in self.shapes())

    def parts(self, vector: Tensor) -> dict[str, Tensor]:
        """Return views of all weights in a vector [length], by name."""
        return {name: self.part(vector, name) for name in self.places}

    def part(self, vector: Tensor, name: str) -> Tensor:
        """Return the view of one weight in a vector [length]."""
        at, shape = self.places[name]
        return vector[at : at + math.prod(shape)].view(shape)

    def mlp(self, vector: Tensor, name: str) -> MLP:
        """Return the views of one MLP's weights in a vector [length]."""
        places = [self.places[f"{name}.{field}"] for field in MLP._fields]
        start, (last, shape) = places[0][0], places[-1]
        # Views of one view, because each view of the vector itself gets a gradient of full length.
        own = vector[start : last + math.prod(shape)]
        return MLP(
            *(own[at - start : at - start + math.prod(shape)].view(shape) for at, shape in places)
        )

    def initial(self, seed: int) -> Tensor:
        """Draw the initial weights as `torch.nn` draws linear layers, with two exceptions.

        The readout's last layer is zero, so that every Q-value starts at 0. Else it would be a
        random value of tens, and bootstrapping unlearns only about one unit in an episode. The
        norm's scale is small, so that embeddings do not grow with the number of rounds.
        """
        generator = torch.Generator().manual_seed(seed)
        vector = torch.zeros(self.length)
        for name, part in self.parts(vector).items():
            if name == "norm.scale":
                part.fill_(INITIAL_SCALE)
            elif name not in ("norm.shift", "readout.weight_out", "readout.bias_out"):
                inputs = self.places[f"{name.rpartition('.')[0]}.bias_in"][1][0]
                bound = 1.0 / math.sqrt(inputs)
                part.uniform_(-bound, bound, generator=generator)
        return vector


def _list_mlp_shapes(name: str, inputs: int, outputs: int) -> Sequence[tuple[str, tuple[int, ...]]]:
    shapes = ((inputs, inputs), (inputs,), (inputs, outputs), (outputs,))
    return [(f"{name}.{field}", shape) for field, shape in zip(MLP._fields, shapes, strict=True)]
