"""Where the network's arithmetic runs: on the CPU or on a GPU, on each with kernels of its own."""

import torch

from regoal.errors import UsageError
from regoal.networks.kernels.gpu import launch as gpu


def device_called(name: str) -> torch.device:
    """The device that `auto`, `cpu` or `cuda` stands for.

    `auto` is a GPU where PyTorch sees one and the fused kernels run on it: with these it was
    measured faster than the CPU, without them much slower (docs/dev/performance.md, "CUDA"). Raises
    `UsageError` for `cuda` where PyTorch sees none.
    """
    fast = torch.cuda.is_available() and (name != "auto" or gpu.kernels() is not None)
    if name == "cpu" or (name == "auto" and not fast):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        built = "sees no GPU" if torch.version.cuda else "is built for CPUs only"
        raise UsageError(
            f"There is no CUDA here: PyTorch {torch.__version__} {built}. "
            f"Use --device cpu, or install the driver and a PyTorch with CUDA."
        )
    return torch.device("cuda")
