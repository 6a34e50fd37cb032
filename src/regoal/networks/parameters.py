"""All weights of a Q-network in one vector, and the names and places of its parts.

With one vector, the optimiser's step is a single operation. The CPU kernel reads the vector as it
is. A vector is an array of numpy if the network is run, and a tensor of PyTorch if it is trained.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

V = TypeVar("V")
"""An array or a tensor. Its parts are views of the same kind."""


class MLP(NamedTuple, Generic[V]):
    """Weights of two linear layers; the hidden width is the input width."""

    weight_in: V
    """[inputs, inputs], applied from the right: x @ weight."""
    bias_in: V
    weight_out: V
    """[inputs, outputs]"""
    bias_out: V


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

    def parts(self, vector: V) -> dict[str, V]:
        """Return views of all weights in a vector [length], by name."""
        return {name: self.part(vector, name) for name in self.places}

    def part(self, vector: V, name: str) -> V:
        """Return the view of one weight in a vector [length]."""
        return _view(vector, *self.places[name])

    def mlp(self, vector: V, name: str) -> MLP[V]:
        """Return the views of one MLP's weights in a vector [length]."""
        places = [self.places[f"{name}.{field}"] for field in MLP._fields]
        start, (last, shape) = places[0][0], places[-1]
        # Views of one view, because each view of the vector itself gets a gradient of full length.
        own = _view(vector, start, (last + math.prod(shape) - start,))
        return MLP(*(_view(own, at - start, shape) for at, shape in places))


def _view(vector: V, at: int, shape: tuple[int, ...]) -> V:
    """Return the view of this shape of the numbers from `at` on."""
    whole: Any = vector
    part: V = whole[at : at + math.prod(shape)].reshape(shape)
    return part


def _list_mlp_shapes(name: str, inputs: int, outputs: int) -> Sequence[tuple[str, tuple[int, ...]]]:
    shapes = ((inputs, inputs), (inputs,), (inputs, outputs), (outputs,))
    return [(f"{name}.{field}", shape) for field, shape in zip(MLP._fields, shapes, strict=True)]
