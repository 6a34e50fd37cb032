"""Building the CPU kernel, and running without it."""

import logging
import shutil
from pathlib import Path

import pytest
import torch

from regoal.networks.kernels.cpu import build as kernel_build
from regoal.networks.kernels.cpu import kernel as cpu_kernel

needs_kernel = pytest.mark.skipif(kernel_build.load_kernel(False) is None, reason="no C compiler")


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    """Look for the kernel again, in an empty cache, during one test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kernel_build, "PORTABLE", {})
    kernel_build.load_kernel.cache_clear()
    yield monkeypatch
    kernel_build.load_kernel.cache_clear()


def q_of_three(tasks, encoder, policy):
    task = tasks["blocks"]["three"]
    batch = encoder.batch([(task.initial_state, task.goal)])
    return policy(encoder.relations, 32).q_values(batch, 5)[0]


def test_switched_off(monkeypatch, tasks, encoders, policy):
    encoder = encoders["blocks"]
    usual = q_of_three(tasks, encoder, policy)
    monkeypatch.setenv("REGOAL_KERNEL", "0")
    monkeypatch.setattr(cpu_kernel, "prepare", None)
    torch.testing.assert_close(q_of_three(tasks, encoder, policy), usual, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("broken", ["no compiler", "failing compiler"])
def test_running_without_it_warns_once(empty_cache, tasks, encoders, policy, caplog, broken):
    if broken == "no compiler":
        empty_cache.setattr(kernel_build.shutil, "which", lambda name: None)
    else:
        empty_cache.setenv("CC", "false")
    with caplog.at_level(logging.WARNING):
        values = [q_of_three(tasks, encoders["blocks"], policy) for _ in range(3)]
        cpu_kernel.use_threads(1)
    assert values[0].isfinite().all()
    assert len(caplog.records) == 1
    assert "kernel" in caplog.text
    assert len(caplog.text) < 200


@needs_kernel
@pytest.mark.parametrize("broken", ["no folder", "no home", "no kernel in the cache"])
def test_without_a_cache_it_is_built_for_this_process(empty_cache, caplog, broken, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    empty_cache.setattr(kernel_build.tempfile, "tempdir", str(temporary))
    if broken == "no folder":
        (tmp_path / "file").write_text("")
        empty_cache.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    elif broken == "no home":
        empty_cache.delenv("XDG_CACHE_HOME")

        def no_home():
            raise RuntimeError("Could not determine home directory.")

        empty_cache.setattr(kernel_build.Path, "home", no_home)
    else:
        assert kernel_build.load_kernel(False) is not None
        [kernel] = (tmp_path / "regoal").iterdir()
        kernel.unlink()
        kernel.write_text("")
        kernel_build.load_kernel.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert kernel_build.load_kernel(False) is not None
    assert not caplog.records
    assert not list(temporary.iterdir())


@needs_kernel
def test_the_compilers_error_is_shown(empty_cache, caplog, tmp_path):
    broken = tmp_path / "broken.c"
    broken.write_text("int main( { return 0; }\n")
    empty_cache.setattr(kernel_build, "SOURCE", broken)
    with caplog.at_level(logging.WARNING):
        assert kernel_build.load_kernel(False) is None
    assert "broken.c:1" in caplog.text


@needs_kernel
def test_an_empty_cache_variable_counts_as_none(empty_cache, tmp_path):
    empty_cache.setenv("XDG_CACHE_HOME", "")
    empty_cache.setattr(kernel_build.Path, "home", lambda: tmp_path / "home")
    empty_cache.chdir(tmp_path)
    assert kernel_build.load_kernel(False) is not None
    assert len(list((tmp_path / "home/.cache/regoal").iterdir())) == 1
    assert not (tmp_path / "regoal").exists()


@needs_kernel
@pytest.mark.parametrize(
    "harm", [lambda data: data[: len(data) // 2], lambda data: b"?" + data[1:]]
)
def test_a_kernel_that_was_cut_short_or_changed_is_built_again(empty_cache, tmp_path, harm):
    assert kernel_build.load_kernel(False) is not None
    [kernel] = (tmp_path / "regoal").iterdir()
    whole = kernel.read_bytes()
    kernel.unlink()  # a loaded library keeps its file
    kernel.write_bytes(harm(whole))
    kernel_build.load_kernel.cache_clear()
    assert kernel_build.load_kernel(False) is not None
    assert kernel_build._is_whole(kernel)


@needs_kernel
def test_built_once(empty_cache):
    assert kernel_build.load_kernel(False) is not None
    kernel_build.load_kernel.cache_clear()
    empty_cache.setattr(kernel_build.subprocess, "run", None)
    assert kernel_build.load_kernel(False) is not None


@pytest.fixture
def kernel_of_wheel(monkeypatch, tmp_path):
    """Pretend that this is an installed wheel, in which each library is a copy of the kernel."""
    if (kernel := kernel_build.load_kernel(False)) is None:
        pytest.skip("no C compiler")
    needed = {"fast": frozenset(("avx9", "fma")), "slow": frozenset(("fma",)), "any": frozenset()}
    for name in needed:
        shutil.copy(kernel._name, tmp_path / f"kernel_{name}.abi3.so")
    monkeypatch.setattr(kernel_build, "PORTABLE", needed)
    monkeypatch.setattr(kernel_build, "SOURCE", tmp_path / "rgnn_kernel.c")
    kernel_build.load_kernel.cache_clear()
    yield monkeypatch
    kernel_build.load_kernel.cache_clear()


@pytest.mark.parametrize(
    ("lines", "damaged", "expected"),
    [
        (["flags\t: sse avx9 fma"], (), "fast"),
        (["flags\t: sse fma avx99"], (), "slow"),
        (["Features\t: neon"], (), "any"),
        ([], (), "any"),
        (["flags\t: sse avx9 fma"], ("fast",), "slow"),
        (["flags\t: sse avx9 fma"], ("fast", "slow", "any"), None),
    ],
)
def test_the_kernel_of_a_wheel(kernel_of_wheel, tmp_path, caplog, lines, damaged, expected):
    kernel_of_wheel.setattr(kernel_build.shutil, "which", lambda name: None)
    kernel_of_wheel.setattr(kernel_build, "_read_features", lambda: lines)
    for name in damaged:
        (tmp_path / f"kernel_{name}.abi3.so").write_text("no library")
    found = kernel_build.load_kernel(False)
    assert (found and Path(found._name).name) == (expected and f"kernel_{expected}.abi3.so")
    assert ("no C compiler found" in caplog.text) == (expected is None)
    assert kernel_build.load_kernel(True) is None  # a wheel has single precision only


def test_a_kernel_compiled_here_comes_before_that_of_the_wheel(kernel_of_wheel, tmp_path):
    assert Path(kernel_build.load_portable()._name).parent == tmp_path
    assert Path(kernel_build.load_kernel(False)._name).parent != tmp_path
