"""Unified Planning's own report on its engines, run on regoal's: `python -m reliability.up_report`.

Further words are the report's own arguments. Its test cases that need PDDL files are left out if
the installed package lacks the files, as version 1.3.0 does.
"""

import importlib.util
import runpy
import sys
from pathlib import Path

import regoal.up


def main() -> None:
    """Run the report, which ends the process with 1 if it found an error."""
    cases = importlib.util.find_spec("up_test_cases")
    assert cases is not None
    assert cases.origin is not None
    report = Path(cases.origin).with_name("report.py")
    sys.path.insert(0, str(report.parent))
    import utils  # the report's own module, by the name that it has there

    gather = utils._get_pddl_test_cases

    def gather_if_there(folder, *rest):
        return gather(folder, *rest) if any(Path(folder).rglob("*.pddl")) else {}

    utils._get_pddl_test_cases = gather_if_there
    regoal.up.register()
    words = sys.argv[1:] or ["--mode", "oneshot", "validation"]
    sys.argv = [str(report), "regoal", "regoal-validator", *words]
    runpy.run_path(str(report), run_name="__main__")


if __name__ == "__main__":
    main()
