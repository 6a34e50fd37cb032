"""The CPU kernel, which is written in C: compiled at its first use, or as a wheel brings it.

A wheel has the kernel in single precision, compiled for several sets of processors (`setup.py`). It
is for machines without a compiler. The one compiled here is for this processor, so never slower.
To see which is used, print what `load_kernel` returns.
"""

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("rgnn_kernel.c")
SOURCES = sorted(SOURCE.parent.glob("*.[ch]"))
FLAGS = (
    "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast", "-shared", "-fPIC", "-pthread",
)  # fmt: skip
PORTABLE = {
    "avx512": frozenset(("avx512f", "avx2", "fma")),
    "avx2": frozenset(("avx2", "fma")),
    "any": frozenset[str](),
}
"""The libraries of a wheel, the fastest first, and the features that a processor must have."""
DOUBLE = ("-DDOUBLE", "-DREAL=double", "-DINTEGER=int64_t")

log = logging.getLogger(__name__)


@cache
def load_kernel(double: bool, /) -> ctypes.CDLL | None:
    """Return the compiled kernel, or None if there is none, with one warning.

    `double` asks for the kernel in double precision.
    """
    try:
        kernel = _load_or_build(_find_compiler(), FLAGS + (DOUBLE if double else ()))
    except (OSError, subprocess.SubprocessError) as error:
        portable = None if double else load_portable()
        if portable is None:
            log.warning("running without the C kernel, several times slower: %s", _explain(error))
            return None
        kernel = portable
    for name in ("room", "infer", "forward", "backward", "relaxed_plan"):
        getattr(kernel, f"regoal_{name}").restype = ctypes.c_int64
    return kernel


def load_portable() -> ctypes.CDLL | None:
    """Return the fastest library of the wheel that this processor can run, or None."""
    features = {word for line in _read_features() for word in line.split()}
    for name, needed in PORTABLE.items():
        path = SOURCE.with_name(f"kernel_{name}.abi3.so")
        if needed <= features and path.exists():
            with suppress(OSError):  # a file that is damaged, or must not be executed
                return ctypes.CDLL(str(path))
    return None


def _find_compiler() -> str:
    """Find the compiler that `CC` names, else cc or gcc; raises `FileNotFoundError`."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler found; install gcc")
    return compiler


def _explain(error: Exception) -> str:
    """Describe the error in one line: the first line of the compiler's output with an error."""
    if not isinstance(error, subprocess.CalledProcessError):
        return str(error)
    lines = error.stderr.decode(errors="replace").splitlines()
    status = f"the compiler ended with exit status {error.returncode}"
    return next((line for line in lines if "error" in line), status)


def _load_or_build(compiler: str, flags: Sequence[str]) -> ctypes.CDLL:
    """Load the kernel from the user's cache, and build it first if it is not there.

    A file that a full disk or a crash has cut short would end this process by a signal. So only a
    complete file is loaded. If the cache cannot be used, the kernel is built for this process only.
    """
    try:
        path = _find_cache() / f"kernel-{_identify(compiler, flags)}.so"
        if not _is_whole(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                _seal(_build(compiler, flags, folder)).replace(path)
        return ctypes.CDLL(str(path))
    except (OSError, RuntimeError):  # RuntimeError if there is no home folder
        with tempfile.TemporaryDirectory() as folder:
            return ctypes.CDLL(str(_build(compiler, flags, folder)))


def _seal(path: Path) -> Path:
    """Append the file's SHA-256 to it; the loader of libraries ignores what follows the end."""
    data = path.read_bytes()
    path.write_bytes(data + hashlib.sha256(data).digest())
    return path


def _is_whole(path: Path) -> bool:
    """Tell whether `path` is there and complete, as `_seal` left it."""
    data = path.read_bytes() if path.exists() else b""
    end = len(data) - hashlib.sha256().digest_size
    return end > 0 and hashlib.sha256(data[:end]).digest() == data[end:]


def _find_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "regoal"


def _identify(compiler: str, flags: Sequence[str]) -> str:
    """Compute an identity that differs for other sources, compilers, flags and processors."""
    identity = [path.read_text(encoding="utf-8") for path in SOURCES]
    identity += [compiler, *flags, platform.machine(), *_read_features()]
    return hashlib.sha256("\0".join(identity).encode()).hexdigest()[:16]


def _read_features() -> list[str]:
    """Return the lines that say what the processor can do; none if they cannot be read."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text(encoding="utf-8", errors="replace").splitlines() if cpu.exists() else []
    return sorted({x for x in lines if x.startswith(("flags", "Features"))})


def _build(compiler: str, flags: Sequence[str], folder: str) -> Path:
    built = Path(folder) / "kernel.so"
    command = [compiler, *flags, "-o", str(built), str(SOURCE), "-lm"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return built
