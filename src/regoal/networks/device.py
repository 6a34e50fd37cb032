"""The device on which the network runs: the CPU or a GPU, each with its own kernels."""

import torch

from regoal.errors import UsageError
from regoal.networks.kernels.gpu import launch as gpu_kernel


def device_called(name: str) -> torch.device:
    """Return the device that `auto`, `cpu` or `cuda` stands for.

    `auto` is a GPU if PyTorch sees one and the fused kernels run on it, else the CPU. A GPU was
    measured faster than the CPU with these kernels, and much slower without them
    (docs/dev/performance.md, "CUDA"). Raises `UsageError` for `cuda` if PyTorch sees no GPU.
    """
    fast = torch.cuda.is_available() and (name != "auto" or gpu_kernel.load_kernels() is not None)
    if name == "cpu" or (name == "auto" and not fast):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        built = "sees no GPU" if torch.version.cuda else "is built for CPUs only"
        raise UsageError(
            f"CUDA is not available: PyTorch {torch.__version__} {built}. "
            f"Use --device cpu, or install the driver and a PyTorch with CUDA."
        )
    return torch.device("cuda")
