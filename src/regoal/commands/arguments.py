"""Arguments that several commands have: devices, and numbers with a unit."""

import math
from collections.abc import Callable
from typing import Annotated, Literal, Optional, Protocol

from tyro.conf import arg
from tyro.constructors import PrimitiveConstructorSpec

from regoal.config import DeviceName
from regoal.system import units


def _quantity(
    metavar: str, read: Callable[[str], float], unit: str
) -> PrimitiveConstructorSpec[float]:
    """How tyro reads and shows a number with a unit."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: read(words[0]),
        is_instance=lambda value: isinstance(value, int | float),
        str_from_instance=lambda value: [
            units.NONE if math.isinf(value) else f"{units.number_text(float(value))}{unit}",
        ],
    )


Device = Annotated[
    DeviceName,
    arg(
        help="Device of the network; auto takes a GPU that the fused kernels run on, else the CPU."
    ),
]
Layers = Optional[int]  # noqa: UP045 - tyro would ask typeguard about `int | None`, and load asyncio
RunDevice = Annotated[
    Literal["cpu", "cuda"],
    arg(help="Device of the network. cuda needs PyTorch, and takes seconds to begin."),
]
Duration = Annotated[float, _quantity("TIME", units.seconds, "s")]
Memory = Annotated[float, _quantity("SIZE", units.mebibytes, "M")]


class Command(Protocol):
    """A parsed command."""

    def run(self) -> int:
        """Do it; returns the exit code. Raises `RegoalError`."""
