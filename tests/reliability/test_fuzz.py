"""The short part of the fuzz, and that crashes and hangs of a reader are noticed at all."""

import signal

import pytest

from reliability.watch import GRAMMAR, fuzz


@pytest.mark.parametrize(("extra", "count"), [((), 500), (GRAMMAR, 160)])
def test_no_input_brings_a_reader_down(tmp_path, extra, count):
    report = fuzz(tmp_path, seed=1, count=count, seconds=60, extra=extra)
    assert report.faults == []
    assert report.inputs >= 0.9 * count


@pytest.mark.parametrize("trap", ["crash", "hang"])
def test_a_crash_and_a_hang_are_faults_of_one_input(tmp_path, trap):
    report = fuzz(tmp_path, seed=1, count=20, seconds=60, extra=("--trap", trap), hang_s=0.5)
    assert report.inputs == 19
    [fault] = report.faults
    assert fault["number"] == 8
    told = f"ended with -{signal.SIGSEGV.value}" if trap == "crash" else "longer than 0.5 s"
    assert fault["message"].startswith(told)
    assert list((tmp_path / "kept" / "1-8").iterdir())
