"""Downward Lab's reports of regoal against LAMA: `python -m reproduction.lab [OUT]`.

They are made from the records in `results/`: lifted goals with seed 0, and LAMA's first plans, on
the domains that have both. `OUT` is `build/lab` unless given. It gets `regoal-eval/properties`, and
from that `absolute.html`, `comparative.html` and `plan_length.png`.
"""

import sys
from pathlib import Path

from downward.reports.absolute import AbsoluteReport
from downward.reports.compare import ComparativeReport
from downward.reports.scatter import ScatterPlotReport

from regoal.cli import script
from regoal.records.run_record import find_runs, load_run
from regoal.reports.lab import make_attributes, name_algorithm, write_properties
from reproduction.cells import RESULTS_FOLDER

REGOAL, LAMA = "regoal-lifted-0", "lama"
OUT = Path(__file__).parent.parent / "build" / "lab"


def main() -> None:
    """Write the properties and the three reports."""
    out = Path(sys.argv[1]) if sys.argv[1:] else OUT
    write_reports(out)


def write_reports(out: Path) -> None:
    """Write the properties and the three reports into a folder."""
    runs = [load_run(folder) for folder in find_runs([RESULTS_FOLDER])]
    domains = {
        name: {r.domain for r in runs if name_algorithm(r) == name} for name in (REGOAL, LAMA)
    }
    both = domains[REGOAL] & domains[LAMA]
    compared = [run for run in runs if run.domain in both and name_algorithm(run) in domains]
    evaluation = write_properties(compared, out / "regoal-eval").parent
    algorithms = [REGOAL, LAMA]
    reports = {
        "absolute.html": AbsoluteReport(
            attributes=["error", *make_attributes()], filter_algorithm=algorithms
        ),
        "comparative.html": ComparativeReport([(LAMA, REGOAL)], attributes=make_attributes()),
        "plan_length.png": ScatterPlotReport(
            attributes=make_attributes(["plan_length"]),
            filter_algorithm=[LAMA, REGOAL],
            get_category=lambda run, other: run["domain"],
        ),
    }
    for name, report in reports.items():
        report(str(evaluation), str(out / name))


if __name__ == "__main__":
    script(main)
