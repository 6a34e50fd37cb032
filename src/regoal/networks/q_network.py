"""Q(s, a, g) = MLP(f(o_a), Σ_o f(o)) for all applicable actions (paper, "Q-value Predictions")."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from regoal.networks import gpu
from regoal.networks.encoding import Batch
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
        sum_divisor: int = 1,
    ) -> None:
        super().__init__()
        self.relations = tuple(relations)
        self.layout = Layout(tuple(r.arity for r in self.relations), embedding_size)
        self.weights = nn.Parameter(self.layout.initial(seed))
        self.sum_divisor = sum_divisor
        """What the readout divides the sum over objects by. Weights divided instead give the same
        values, but learn at another rate."""

    def forward(self, batch: Batch, depths: Sequence[int]) -> list[Tensor]:
        """Q-values [Q] of all actions of the batch, read out after each depth in `depths`.

        Depth is an argument, as all rounds share their weights; the depths must rise. The batch
        is moved to where the weights are, and the values stay there.
        """
        if gpu.available(self.weights, self.layout):
            check_depths(depths)
            pairs = gpu.read(self.weights, self.layout, batch, depths)
            return list(self._values(pairs.flatten(0, 1)).view(pairs.shape[:2]).unbind())
        batch = moved(batch, self.weights.device)
        embeddings = embed(self.weights, self.layout, batch, depths)
        values = self._values(torch.cat([_pairs(f, batch) for f in embeddings]))
        return list(values.view(len(embeddings), -1).unbind())

    def q_values(self, batch: Batch, layers: int) -> list[Tensor]:
        """Q-values [actions] of each instance, on the CPU, after `layers` rounds; no gradients."""
        with torch.inference_mode():
            return list(self(batch, [layers])[0].cpu().split(batch.action_counts))

    def plain_weights(self) -> Tensor:
        """A copy of the weights, on the CPU, that give the same values without a divisor.

        The very same where the divisor is a power of two.
        """
        weights = self.weights.detach().cpu().clone()
        self.layout.part(weights, "readout.weight_in")[self.layout.size :] /= self.sum_divisor
        return weights

    def without_silent_relations(self) -> "QNetwork":
        """The same network without the relations whose messages' weights are all zero."""
        numbers = range(len(self.relations))
        kept = [i for i in numbers if bool(self.layout.part(self.weights, _last(i)).any())]
        smaller = QNetwork(
            [self.relations[i] for i in kept],
            self.layout.size,
            seed=0,
            sum_divisor=self.sum_divisor,
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

    def _values(self, pairs: Tensor) -> Tensor:
        """[Q] from [Q, 2D], an action's embedding and the sum of its objects'."""
        readout = self.layout.mlp(self.weights, "readout")
        if self.sum_divisor != 1:
            of_action, of_sum = readout.weight_in.tensor_split(2)
            rows = torch.cat((of_action, of_sum / self.sum_divisor))
            readout = readout._replace(weight_in=rows)
        return apply_mlp(readout, pairs).squeeze(1)


def _pairs(f: Tensor, batch: Batch) -> Tensor:
    """[Q, 2D] from embeddings [N, D]: an action's, and the sum of its objects'."""
    objects = f.new_zeros(len(batch.action_counts), f.shape[1])
    objects = objects.index_add(0, batch.object_instance, f[batch.object_nodes])
    return torch.cat((f[batch.action_nodes], objects[batch.action_instance]), dim=1)


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
