"""The C kernel as libraries for a wheel, for machines without a compiler; all else is in pyproject.

Each is compiled for a set of processors; `regoal.networks.kernels.cpu.build` takes the first that
fits. A library that does not compile is left out: `avx2` and `avx512` on processors other than
x86-64, and all of them without a compiler. They do not use Python, so one wheel serves every
version of it. An installation that can be edited has none: it would not follow the sources.
"""

import sys
from pathlib import Path

from setuptools import Extension, setup

FOLDER = Path("src/regoal/networks/kernels/cpu")
FLAGS = ["-O3", "-g0", "-fno-math-errno", "-ffp-contract=fast", "-pthread"]
PROCESSORS = {"any": [], "avx2": ["-mavx2", "-mfma"], "avx512": ["-mavx512f", "-mavx2", "-mfma"]}

kernels = [
    Extension(
        f"regoal.networks.kernels.cpu.kernel_{name}",
        sources=[str(FOLDER / "rgnn_kernel.c")],
        depends=[str(path) for path in FOLDER.glob("*.h")],
        extra_compile_args=FLAGS + flags,
        extra_link_args=["-s"],
        libraries=["m"],
        py_limited_api=True,
        optional=True,
    )
    for name, flags in PROCESSORS.items()
]
setup(
    ext_modules=[] if "editable_wheel" in sys.argv else kernels,
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
