"""The machine of a measurement: processor, versions, commit; and this process's memory."""

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("torch", "triton", "numpy", "pymimir", "pymimir-rl", "pymimir-rgnn")


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0))


def description() -> dict[str, Any]:
    """Describe machine, commit and versions, for a JSON record."""
    return {
        "machine": {
            "processor": _find_processor(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
            "cores": cores(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            "system": f"{platform.system()} {platform.machine()}",
            "load_average": [round(x, 2) for x in os.getloadavg()],
        },
        "commit": _run_git("rev-parse", "HEAD"),
        "uncommitted_changes": bool(_run_git("status", "--porcelain", "--untracked-files=no")),
        "versions": {"python": platform.python_version()} | {p: _find_version(p) for p in PACKAGES},
        "command": " ".join(
            ["python", "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *sys.argv[1:]]
        ),
    }


def resident_mb() -> float:
    """Return the memory that this process holds now, in MB (10^6 bytes)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def forget_peak() -> None:
    """Forget the peak so far: `peak_mb` starts from what this process holds now."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """Return the most memory that this process has held, or since `forget_peak`, in MB.

    The system's `ru_maxrss` is of no use here, because a new process inherits its parent's.
    """
    status = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def _find_processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _run_git(*arguments: str) -> str:
    try:
        result = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return result.stdout.strip()


def _find_version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
