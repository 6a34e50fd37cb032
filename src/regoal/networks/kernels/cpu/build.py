"""The kernel in C, compiled at first use where there is a compiler."""

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("rgnn_kernel.c")
SOURCES = sorted(SOURCE.parent.glob("rgnn_*.[ch]"))
FLAGS = (
    "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast", "-shared", "-fPIC", "-pthread",
)  # fmt: skip
DOUBLE = ("-DDOUBLE", "-DREAL=double", "-DINTEGER=int64_t")

log = logging.getLogger(__name__)


@cache
def library(double: bool, /) -> ctypes.CDLL | None:
    """The compiled kernel, or None (said once) where it cannot be built."""
    flags = FLAGS + (DOUBLE if double else ())
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        log.warning("no C compiler found: training runs several times slower without the kernel")
        return None
    try:
        kernel = _load(compiler, flags)
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("the C kernel does not build (%s): running without it", _reason(error))
        return None
    for name in ("room", "infer", "forward", "backward"):
        getattr(kernel, f"regoal_{name}").restype = ctypes.c_int64
    return kernel


def _reason(error: Exception) -> str:
    """The error in one line: of the compiler's own words the first that speak of an error."""
    if not isinstance(error, subprocess.CalledProcessError):
        return str(error)
    lines = error.stderr.decode(errors="replace").splitlines()
    ended = f"the compiler ends with exit status {error.returncode}"
    return next((line for line in lines if "error" in line), ended)


def _load(compiler: str, flags: Sequence[str]) -> ctypes.CDLL:
    """The kernel in the user's cache, built if it is not there.

    One that a full disk or a crash has cut short would end this process by a signal, so that only a
    whole one is loaded. Where the cache cannot be written or read, one for this process alone.
    """
    try:
        path = _cache() / f"kernel-{_identity(compiler, flags)}.so"
        if not _is_whole(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                _sealed(_build(compiler, flags, folder)).replace(path)
        return ctypes.CDLL(str(path))
    except (OSError, RuntimeError):  # the latter where there is no home
        with tempfile.TemporaryDirectory() as folder:
            return ctypes.CDLL(str(_build(compiler, flags, folder)))


def _sealed(path: Path) -> Path:
    """The file with its SHA-256 behind its end, which the loader of libraries ignores."""
    data = path.read_bytes()
    path.write_bytes(data + hashlib.sha256(data).digest())
    return path


def _is_whole(path: Path) -> bool:
    """Whether `path` is there as `_sealed` left it."""
    data = path.read_bytes() if path.exists() else b""
    end = len(data) - hashlib.sha256().digest_size
    return end > 0 and hashlib.sha256(data[:end]).digest() == data[end:]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "regoal"


def _identity(compiler: str, flags: Sequence[str]) -> str:
    """Another one for each source, compiler, flags and processor."""
    cpu = Path("/proc/cpuinfo")
    identity = [path.read_text(encoding="utf-8") for path in SOURCES]
    identity += [compiler, *flags, platform.machine()]
    if cpu.exists():
        lines = cpu.read_text(encoding="utf-8", errors="replace").splitlines()
        identity += sorted({x for x in lines if x.startswith(("flags", "Features"))})
    return hashlib.sha256("\0".join(identity).encode()).hexdigest()[:16]


def _build(compiler: str, flags: Sequence[str], folder: str) -> Path:
    built = Path(folder) / "kernel.so"
    command = [compiler, *flags, "-o", str(built), str(SOURCE), "-lm"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return built
