"""Where a measurement was made: processor, versions, commit; and what this process holds."""

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
    """Cores this process may use."""
    return len(os.sched_getaffinity(0))


def description() -> dict[str, Any]:
    """Machine, commit and versions, for a JSON record."""
    return {
        "machine": {
            "processor": _processor(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
            "cores": cores(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            "system": f"{platform.system()} {platform.machine()}",
            "load_average": [round(x, 2) for x in os.getloadavg()],
        },
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted_changes": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "versions": {"python": platform.python_version()} | {p: _version(p) for p in PACKAGES},
        "command": " ".join(
            ["python", "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *sys.argv[1:]]
        ),
    }


def resident_mb() -> float:
    """Memory this process holds now, MB (10^6 bytes)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def forget_peak() -> None:
    """Let `peak_mb` count from what this process holds now."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """The most memory this process has held so far, or since `forget_peak`, MB.

    The system's `ru_maxrss` would not do: a new process inherits its parent's.
    """
    status = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _git(*arguments: str) -> str:
    try:
        result = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return result.stdout.strip()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
