"""Q(s, a, g) = MLP(f(o_a), Σ_o f(o)) for all applicable actions (paper, "Q-value Predictions").

A network may divide the sum by max(n, m), for a state of n objects and a fixed m. Up to m objects
it is the same function with other weights, beyond it the mean, which does not grow with n.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from regoal.networks.batch import Batch
from regoal.networks.kernels.gpu import launch as gpu
from regoal.networks.parameters import Layout
from regoal.networks.relations import Relation
from regoal.networks.rgnn import apply_mlp, check_depths, embed


class QNetwork(nn.Module):
    """The relational network and its readout. Same seed, same weights."""

    def __init__(
        self,
        relations: Sequence[Relation],
        embedding_size: int,
        *,
        seed: int,
        most_objects: int = 0,
    ) -> None:
        super().__init__()
        self.relations = tuple(relations)
        self.layout = Layout(tuple(r.arity for r in self.relations), embedding_size)
        self.weights = nn.Parameter(self.layout.initial(seed))
        self.most_objects = most_objects
        """m in the module's description; 0 takes the sum as it is, as the paper does."""

    def forward(self, batch: Batch, depths: Sequence[int]) -> Tensor:
        """Q-values [C, Q] of all actions of the batch, read out after each of C depths.

        Depth is an argument, as all rounds share their weights; the depths must rise. The batch
        is moved to where the weights are, and the values stay there.
        """
        if gpu.available(self.weights, self.layout):
            check_depths(depths)
            pairs = gpu.read(self.weights, self.layout, batch, depths)
        else:
            batch = moved(batch, self.weights.device)
            pairs = _pairs(embed(self.weights, self.layout, batch, depths), batch)
        if self.most_objects:
            pairs = self._divided(pairs, batch)
        return self._values(pairs.flatten(0, 1)).view(pairs.shape[:2])

    def q_values(self, batch: Batch, layers: int) -> list[Tensor]:
        """Q-values [actions] of each instance, on the CPU, after `layers` rounds; no gradients."""
        with torch.inference_mode():
            return list(self(batch, [layers])[0].cpu().split(batch.action_counts))

    def without_silent_relations(self) -> "QNetwork":
        """The same network without the relations whose messages' weights are all zero."""
        numbers = range(len(self.relations))
        kept = [i for i in numbers if bool(self.layout.part(self.weights, _last(i)).any())]
        smaller = QNetwork(
            [self.relations[i] for i in kept],
            self.layout.size,
            seed=0,
            most_objects=self.most_objects,
        )
        ours = self.layout.parts(self.weights.detach())
        with torch.no_grad():
            for name, part in smaller.layout.parts(smaller.weights).items():
                owner, _, rest = name.partition(".")
                if owner == "message":
                    number, _, field = rest.partition(".")
                    part.copy_(ours[f"message.{kept[int(number)]}.{field}"])
                else:
                    part.copy_(ours[name])
        return smaller

    def _divided(self, pairs: Tensor, batch: Batch) -> Tensor:
        """Pairs [C, Q, 2D] with their sums divided."""
        objects = torch.bincount(batch.object_instance, minlength=len(batch.action_counts))
        shares = objects.clamp(min=self.most_objects)[batch.action_instance].to(pairs).reciprocal()
        of_action, sums = pairs.tensor_split(2, dim=-1)
        return torch.cat((of_action, sums * shares[:, None]), dim=-1)

    def _values(self, pairs: Tensor) -> Tensor:
        """[Q] from [Q, 2D], an action's embedding and the sum of its objects'."""
        return apply_mlp(self.layout.mlp(self.weights, "readout"), pairs).squeeze(1)


def _pairs(f: Tensor, batch: Batch) -> Tensor:
    """[C, Q, 2D] from embeddings [C, N, D]: an action's, and the sum of its objects'."""
    objects = f.new_zeros(len(f), len(batch.action_counts), f.shape[2])
    objects = objects.index_add(1, batch.object_instance, f[:, batch.object_nodes])
    return torch.cat((f[:, batch.action_nodes], objects[:, batch.action_instance]), dim=2)


def moved(batch: Batch, device: torch.device) -> Batch:
    """The batch with its tensors on a device; itself where they are there."""
    if batch.args.device == device:
        return batch
    return replace(
        batch,
        args=batch.args.to(device),
        object_nodes=batch.object_nodes.to(device),
        object_instance=batch.object_instance.to(device),
        action_nodes=batch.action_nodes.to(device),
        action_instance=batch.action_instance.to(device),
    )


def _last(relation: int) -> str:
    return f"message.{relation}.bias_out"
