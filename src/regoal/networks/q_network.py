"""Q(s, a, g) = MLP(f(o_a), Σ_o f(o)) for all applicable actions (paper, "Q-value Predictions").

This is the network of training, in PyTorch. `QFunction` (q_function.py) runs it without PyTorch.

Shapes by letter: N nodes, Q actions, D embedding size, C depths.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regoal.networks.batch import Batch, Longs
from regoal.networks.kernels.gpu import launch as gpu_kernel
from regoal.networks.parameters import Layout
from regoal.networks.q_function import QFunction
from regoal.networks.relations import Relation
from regoal.networks.rgnn import apply_mlp, check_depths, embed

INITIAL_SCALE = 0.1
"""Standard deviation of what an untrained round adds to an embedding."""


class QNetwork(nn.Module):
    """The relational network and its readout. Equal seeds give equal initial weights."""

    def __init__(self, relations: Sequence[Relation], embedding_size: int, *, seed: int) -> None:
        super().__init__()
        self.relations = tuple(relations)
        self.layout = Layout(tuple(r.arity for r in self.relations), embedding_size)
        self.weights = nn.Parameter(draw_initial_weights(self.layout, seed))

    @classmethod
    def from_function(cls, function: QFunction) -> "QNetwork":
        """Make the network of a Q-function, with a copy of its weights on the CPU."""
        network = cls(function.relations, function.embedding_size, seed=0)
        network.weights = nn.Parameter(torch.tensor(function.weights), requires_grad=False)
        return network

    def to_function(self) -> QFunction:
        """Return the Q-function of a copy of the weights as they are now."""
        weights = self.weights.detach().cpu().numpy().copy()
        return QFunction(self.relations, self.layout.size, weights)

    @property
    def on_cpu(self) -> bool:
        """Whether the weights are on the CPU."""
        return self.weights.device.type == "cpu"

    def forward(self, batch: Batch, depths: Sequence[int]) -> Tensor:
        """Compute Q-values [C, Q] of all actions of the batch, read out after each of C depths.

        Any depth will do, since all rounds share their weights. The batch is moved to the weights'
        device, and the values stay there. Raises `ValueError` unless the depths rise from 1.
        """
        if gpu_kernel.available(self.weights, self.layout):
            check_depths(depths)
            pairs = gpu_kernel.read(self.weights, self.layout, batch, depths)
        else:
            pairs = _pair_with_sums(embed(self.weights, self.layout, batch, depths), batch)
        return self._read_out(pairs.flatten(0, 1)).view(pairs.shape[:2])

    def q_values(self, batch: Batch, layers: int) -> list[Tensor]:
        """Compute Q-values [actions] of each instance, on the CPU, without gradients."""
        with torch.inference_mode():
            return list(self(batch, [layers])[0].cpu().split(batch.action_counts))

    def _read_out(self, pairs: Tensor) -> Tensor:
        """Compute Q-values [Q] from pairs [Q, 2D] of an action's embedding and the objects' sum."""
        return apply_mlp(self.layout.mlp(self.weights, "readout"), pairs).squeeze(1)


def _pair_with_sums(f: Tensor, batch: Batch) -> Tensor:
    """Join each action's embedding and its instance's sum of objects': [C, N, D] to [C, Q, 2D]."""

    def move(index: Longs) -> Tensor:
        return torch.from_numpy(index).to(f.device)

    objects = f.new_zeros(len(f), len(batch.action_counts), f.shape[2])
    objects = objects.index_add(1, move(batch.object_instance), f[:, move(batch.object_nodes)])
    of_actions, instance = move(batch.action_nodes), move(batch.action_instance)
    return torch.cat((f[:, of_actions], objects[:, instance]), dim=2)


def draw_initial_weights(layout: Layout, seed: int) -> Tensor:
    """Draw the initial weights as `torch.nn` draws linear layers, with two exceptions.

    The readout's last layer is zero, so that every Q-value starts at 0. Else it would be a
    random value of tens, and bootstrapping unlearns only about one unit in an episode. The
    norm's scale is small, so that embeddings do not grow with the number of rounds.
    """
    generator = torch.Generator().manual_seed(seed)
    vector = torch.zeros(layout.length)
    for name, part in layout.parts(vector).items():
        if name == "norm.scale":
            part.fill_(INITIAL_SCALE)
        elif name not in ("norm.shift", "readout.weight_out", "readout.bias_out"):
            inputs = layout.places[f"{name.rpartition('.')[0]}.bias_in"][1][0]
            bound = 1.0 / math.sqrt(inputs)
            part.uniform_(-bound, bound, generator=generator)
    return vector
