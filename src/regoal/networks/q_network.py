"""Q(s, a, g) = MLP(f(o_a), Σ_o f(o)) for all applicable actions (paper, "Q-value Predictions").

A network may divide the sum by max(n, m), for a state of n objects and a fixed m. Up to m objects,
this is the same function with other weights. Beyond m it is the mean, which does not grow with n.

Shapes by letter: N nodes, Q actions, D embedding size, C depths.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from regoal.networks.batch import Batch
from regoal.networks.kernels.gpu import launch as gpu_kernel
from regoal.networks.parameters import Layout
from regoal.networks.relations import Relation
from regoal.networks.rgnn import apply_mlp, check_depths, embed


class QNetwork(nn.Module):
    """The relational network and its readout. Equal seeds give equal initial weights."""

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
        """m in the module's description; 0 leaves the sum undivided, as in the paper."""

    def forward(self, batch: Batch, depths: Sequence[int]) -> Tensor:
        """Compute Q-values [C, Q] of all actions of the batch, read out after each of C depths.

        Any depth will do, since all rounds share their weights. The batch is moved to the weights'
        device, and the values stay there. Raises `ValueError` unless the depths rise from 1.
        """
        if gpu_kernel.available(self.weights, self.layout):
            check_depths(depths)
            pairs = gpu_kernel.read(self.weights, self.layout, batch, depths)
        else:
            batch = move_batch(batch, self.weights.device)
            pairs = _pair_with_sums(embed(self.weights, self.layout, batch, depths), batch)
        if self.most_objects:
            pairs = self._divide_sums(pairs, batch)
        return self._read_out(pairs.flatten(0, 1)).view(pairs.shape[:2])

    def q_values(self, batch: Batch, layers: int) -> list[Tensor]:
        """Compute Q-values [actions] of each instance, on the CPU, without gradients."""
        with torch.inference_mode():
            return list(self(batch, [layers])[0].cpu().split(batch.action_counts))

    def without_silent_relations(self) -> "QNetwork":
        """Copy the network without the relations whose messages' weights are all zero."""
        # A relation's last bias stands for all its weights.
        numbers = range(len(self.relations))
        names = {i: _name_last_bias(i) for i in numbers}
        kept = [i for i in numbers if bool(self.layout.part(self.weights, names[i]).any())]
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

    def _divide_sums(self, pairs: Tensor, batch: Batch) -> Tensor:
        """Divide the sums in pairs [C, Q, 2D] by max(n, m)."""
        objects = torch.bincount(batch.object_instance, minlength=len(batch.action_counts))
        shares = objects.clamp(min=self.most_objects)[batch.action_instance].to(pairs).reciprocal()
        of_action, sums = pairs.tensor_split(2, dim=-1)
        return torch.cat((of_action, sums * shares[:, None]), dim=-1)

    def _read_out(self, pairs: Tensor) -> Tensor:
        """Compute Q-values [Q] from pairs [Q, 2D] of an action's embedding and the objects' sum."""
        return apply_mlp(self.layout.mlp(self.weights, "readout"), pairs).squeeze(1)


def _pair_with_sums(f: Tensor, batch: Batch) -> Tensor:
    """Join each action's embedding and its instance's sum of objects': [C, N, D] to [C, Q, 2D]."""
    objects = f.new_zeros(len(f), len(batch.action_counts), f.shape[2])
    objects = objects.index_add(1, batch.object_instance, f[:, batch.object_nodes])
    return torch.cat((f[:, batch.action_nodes], objects[:, batch.action_instance]), dim=2)


def move_batch(batch: Batch, device: torch.device) -> Batch:
    """Move the batch's tensors to a device; returns the batch itself if they are there already."""
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


def _name_last_bias(relation: int) -> str:
    return f"message.{relation}.bias_out"
