"""Commands begin quickly: their processor time against that of `import numpy`.

Processor time, as a ratio, since other jobs on the machine slow both down. If a command is above
its bound, it has four more tries. PyTorch alone would be a ratio of 15 or more.
"""

import os
import random
import resource
import statistics
import subprocess
import sys

import pytest

from regoal.commands import COMMANDS
from regoal.domains.splits import DOMAINS, domain_pddl

ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
    "OPENBLAS_NUM_THREADS": "1"
}
"""Without bytecode, Python would compile every module each time."""
TRIES = 5


def time_python(*words):
    """Run Python; return its processor seconds and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


@pytest.fixture(scope="module")
def numpy_seconds():
    return statistics.median(time_python("-c", "import numpy")[0] for _ in range(5))


@pytest.fixture
def check_ratio(numpy_seconds):
    """Check that a command's processor time is at most `most` times that of `import numpy`."""

    def check(most, *words):
        ratios = []
        while not ratios or (min(ratios) > most and len(ratios) < TRIES):
            seconds, said = time_python("-m", "regoal.cli", *words)
            ratios.append(seconds / numpy_seconds)
        assert min(ratios) <= most, f"{words}: {ratios}"
        return said

    return check


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_begins_quickly(command, check_ratio):
    assert "usage: regoal" in check_ratio(4, *command, "--help")


def test_running_a_policy_begins_quickly(check_ratio, tmp_path):
    domain, problem, out = (tmp_path / name for name in ("domain.pddl", "p.pddl", "plan"))
    domain.write_text(domain_pddl("blocks"))
    problem.write_text(DOMAINS["blocks"].generate(random.Random(0), blocks=4).to_pddl())
    assert "blocks: " in check_ratio(5, "policies")
    assert "Plan length: " in check_ratio(6, "plan", "blocks", domain, problem, "--out", out)
    assert "valid, " in check_ratio(4, "validate", domain, problem, out)


def test_listing_policies_needs_no_library_of_pddl():
    script = (
        "import sys; from regoal import cli\ncli.run(['policies'])\n"
        "heavy = {'torch', 'pymimir', 'matplotlib'} & sys.modules.keys()\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    time_python("-c", script)
