"""The wheel on a machine without compiler and PyTorch: built, installed, and used for a plan."""

import os
import random
import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from regoal.domains.splits import DOMAINS, domain_pddl
from regoal.networks.kernels.cpu.build import PORTABLE
from regoal.planning.plans import check_plan_file

ROOT = Path(__file__).parents[1]
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
FEATURES = set(Path("/proc/cpuinfo").read_text().split())
"""What this processor can do, and other words."""

pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CC", "cc")) is None, reason="no C compiler to build the wheel with"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of what git keeps, as a build leaves files behind."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    unkept = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so")
    shutil.copytree(ROOT / "src", source / "src", ignore=unkept)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", out)
    subprocess.run([*PIP, "wheel", *options, source], check=True)
    [found] = out.iterdir()
    return found


@pytest.fixture(scope="module")
def machine(wheel, tmp_path_factory):
    """A Python with the wheel and what it asks for, taken from the Python that runs this test."""
    folder = tmp_path_factory.mktemp("machine")
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    options = ("--no-deps", "--no-index", "--no-compile")
    python = folder / "bin/python"
    subprocess.run([*PIP, "--python", python, "install", *options, wheel], check=True)
    for name in find_dependencies("regoal", packages):
        for top in {file.parts[0] for file in distribution(name).files or ()}:
            if top not in ("..", "__pycache__") and not (packages / top).exists():
                (packages / top).symlink_to(Path(distribution(name).locate_file(top)))
    return folder


def find_dependencies(name, packages):
    """Return the names of all packages that a plain installation of this wheel brings."""
    [metadata] = packages.glob(f"{name}-*.dist-info/METADATA")
    wanted = re.findall(r"^Requires-Dist: (.*)$", metadata.read_text(encoding="utf-8"), re.M)
    found = set()
    while wanted:
        needed = Requirement(wanted.pop())
        if needed.name not in found and (
            not needed.marker or needed.marker.evaluate({"extra": ""})
        ):
            found.add(needed.name)
            wanted += distribution(needed.name).requires or ()
    return found


PLAN = """
import atexit, re
from pathlib import Path
from regoal.networks.kernels.cpu import build

@atexit.register
def print_libraries():
    mapped = Path("/proc/self/maps").read_text()
    print("libraries:", *sorted(set(re.findall("kernel[^/]*[.]so", mapped))))

if (features := FEATURES) is not None:
    build._read_features = lambda: features
from regoal.cli import main
main()
"""


@pytest.fixture
def plan(machine, tmp_path):
    """Plan for a small problem of Blocks without compiler; return what is printed."""
    domain, problem, out = (tmp_path / name for name in ("domain.pddl", "p.pddl", "plan"))
    domain.write_text(domain_pddl("blocks"))
    problem.write_text(DOMAINS["blocks"].generate(random.Random(0), blocks=6).to_pddl())

    words = ("plan", "blocks", domain, problem, "--out", out)

    def run(features=None):
        script = PLAN.replace("FEATURES", repr(features))
        done = subprocess.run(
            [machine / "bin/python", "-c", script, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={"PATH": str(machine / "bin"), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        )
        assert done.returncode == 0, done.stderr
        assert check_plan_file(domain, problem, out).valid
        assert not (tmp_path / "cache").exists()  # nothing was compiled
        return done

    return run


def test_the_wheel_serves_every_python_and_processor(wheel):
    assert wheel.name.split("-")[2:4] == ["cp311", "abi3"]
    content = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", wheel], capture_output=True, text=True, check=True
    ).stdout
    for name in PORTABLE if os.uname().machine == "x86_64" else ["any"]:
        assert f"kernels/cpu/kernel_{name}.abi3.so" in content


def test_the_machine_has_no_torch(machine):
    for name, found in (("torch", False), ("numpy", True)):
        done = subprocess.run(
            [machine / "bin/python", "-c", f"import {name}"], capture_output=True, check=False
        )
        assert (done.returncode == 0) == found


def test_a_plan_with_the_kernel_for_this_processor(plan):
    done = plan()
    best = next(name for name, needed in PORTABLE.items() if needed <= FEATURES)
    assert f"libraries: kernel_{best}.abi3.so\n" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("name", PORTABLE)
def test_a_plan_with_each_kernel(plan, name):
    if not PORTABLE[name] <= FEATURES:
        pytest.skip(f"this processor does not run {name}")
    done = plan([f"flags : {' '.join(PORTABLE[name])} sse2"])
    assert f"libraries: kernel_{name}.abi3.so\n" in done.stdout


@pytest.fixture
def no_kernel(machine):
    """The machine without its kernels for one test."""
    kernels = list(machine.glob("lib/**/kernel_*.so"))
    assert kernels
    for path in kernels:
        path.rename(f"{path}.away")
    yield
    for path in kernels:
        Path(f"{path}.away").rename(path)


@pytest.mark.usefixtures("no_kernel")
def test_a_plan_with_numpy_alone(plan):
    done = plan()
    assert done.stderr == (
        "regoal: running without the C kernel, several times slower: no C compiler found; install "
        "gcc\n"
    )
    assert "libraries:\n" in done.stdout
