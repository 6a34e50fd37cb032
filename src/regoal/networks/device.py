"""Where the network's arithmetic runs: the CPU, with the kernel, or a GPU, with plain PyTorch."""

import torch

from regoal.errors import UsageError


def device_called(name: str) -> torch.device:
    """The device that `auto`, `cpu` or `cuda` stands for; `auto` is a GPU where PyTorch sees one.

    Raises `UsageError` for `cuda` where it sees none.
    """
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        built = "sees no GPU" if torch.version.cuda else "is built for CPUs only"
        raise UsageError(
            f"There is no CUDA here: PyTorch {torch.__version__} {built}. "
            f"Use --device cpu, or install the driver and a PyTorch with CUDA."
        )
    return torch.device("cuda")
