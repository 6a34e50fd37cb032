"""A policy's network on a GPU. Of all that runs a policy, only this module loads PyTorch."""

from collections.abc import Sequence
from functools import cached_property

from regoal.networks.batch import Batch
from regoal.networks.device import device_called
from regoal.networks.inference import Floats
from regoal.networks.q_function import QFunction
from regoal.networks.q_network import QNetwork


class GpuFunction(QFunction):
    """A Q-function that PyTorch computes on a GPU."""

    @property
    def on_cpu(self) -> bool:
        """Whether it runs on the CPU."""
        return False

    @cached_property
    def _network(self) -> QNetwork:
        return QNetwork.from_function(self).to(device_called("cuda"))

    def q_values(self, batch: Batch, layers: int) -> Sequence[Floats]:
        """Compute Q-values [actions] of each instance of the batch, after so many rounds."""
        return [values.numpy() for values in self._network.q_values(batch, layers)]


def move_to_gpu(function: QFunction) -> QFunction:
    """Return the same function on a GPU. Raises `UsageError` if PyTorch sees none."""
    device_called("cuda")
    return GpuFunction(function.relations, function.embedding_size, function.weights)
