import json
import os
import subprocess
import sys
import threading

import pytest

from regoal.system import claims
from regoal.system.claims import STALE_S, holder_of, take

TAKE = "import sys, pathlib; from regoal.system.claims import take; take(pathlib.Path(sys.argv[1]))"


@pytest.fixture
def elsewhere(monkeypatch):
    """Lets this process look like one of another machine or job."""

    def be(**changes):
        here = {"host": "here", "machine": "m1", "process": "1", "job": "", "life": "0"}
        monkeypatch.setattr(claims, "_holder", lambda: here | changes)

    be()
    return be


def age(claim, seconds):
    at = claim.path.stat().st_mtime - seconds
    os.utime(claim.path, (at, at))


def test_what_is_taken_is_free_once_it_is_released(tmp_path):
    work = tmp_path / "folder" / "0"
    claim = take(work)
    assert take(work) is None
    assert holder_of(work) == os.uname().nodename
    assert claim.renew()
    claim.release()
    assert take(work) is not None
    assert take(tmp_path / "folder" / "1") is not None, "claims of other work do not matter"
    assert holder_of(tmp_path / "folder" / "2") == ""


def test_of_many_that_take_at_once_one_has_it(tmp_path):
    found, barrier = [], threading.Barrier(8)

    def run():
        barrier.wait()
        found.append(take(tmp_path / "0"))

    for _ in range(20):
        found.clear()
        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        [claim] = [claim for claim in found if claim is not None]
        claim.release()


def test_what_a_dead_process_of_this_machine_held_is_free(tmp_path):
    subprocess.run([sys.executable, "-c", TAKE, str(tmp_path / "0")], check=True)
    [path] = tmp_path.iterdir()
    assert json.loads(path.read_text())["process"] != str(os.getpid())
    assert take(tmp_path / "0") is not None


def test_a_claim_of_another_machine_is_free_once_it_is_stale(tmp_path, elsewhere):
    claim = take(tmp_path / "0")
    elsewhere(machine="m2", process="2")
    age(claim, STALE_S - 20)
    assert take(tmp_path / "0") is None
    assert claim.renew()
    age(claim, STALE_S + 20)
    second = take(tmp_path / "0")
    assert second is not None
    assert not claim.renew(), "whoever was away for too long has lost it"
    claim.release()
    assert take(tmp_path / "0") is None, "a late release does not give up the claim of another"
    assert [path.name for path in sorted(tmp_path.iterdir())] == [".0.claim.1", ".0.claim.2"]


def test_a_job_that_was_requeued_takes_what_it_had(tmp_path, elsewhere):
    elsewhere(job="cluster 7")
    take(tmp_path / "0")
    elsewhere(job="cluster 8", machine="m2", life="1")
    assert take(tmp_path / "0") is None
    elsewhere(job="cluster 7", machine="m2")
    assert take(tmp_path / "0") is None, "another process of the job that is still at work"
    elsewhere(job="cluster 7", machine="m2", life="1")
    assert take(tmp_path / "0") is not None


def test_a_claim_that_is_being_written_is_taken(tmp_path):
    (tmp_path / ".0.claim.1").touch()
    assert take(tmp_path / "0") is None
