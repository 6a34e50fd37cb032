"""Write a report on runs into one folder: every table in three formats, and the figures."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from regoal.errors import UsageError
from regoal.records.run_record import RunRecord
from regoal.reports.plots import plot_methods, plot_run
from regoal.reports.rendering import FORMATS
from regoal.reports.tables import tables_of
from regoal.system.files import write_text_atomically


def write_report(runs: Sequence[RunRecord], out: Path) -> list[Path]:
    """Write the tables and figures that the runs have records for, and return their files.

    Tables are `NAME.md`, `.csv` and `.tex`. Each run has a figure, `DOMAIN-METHOD-SEED`; if the
    name is taken, `-2` and so on follows. Each domain with several runs has a figure, `DOMAIN`.
    Raises `UsageError` if `out` is a file.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; give a folder for the tables and figures by --out.")
    out.mkdir(parents=True, exist_ok=True)
    written = []
    if any(run.results for run in runs):
        for name, table in tables_of(runs).items():
            for ending, render in FORMATS.items():
                path = out / f"{name}.{ending}"
                write_text_atomically(path, render(table))
                written.append(path)
    return written + _draw_figures([run for run in runs if run.episodes], out)


def _draw_figures(runs: Sequence[RunRecord], out: Path) -> list[Path]:
    written = []
    by_domain: dict[str, list[RunRecord]] = defaultdict(list)
    names: Counter[str] = Counter()
    for run in runs:
        by_domain[run.domain].append(run)
        name = f"{run.domain}-{run.method}-{run.seed}"
        names[name] += 1
        written += plot_run(run, out / (name if names[name] == 1 else f"{name}-{names[name]}"))
    for domain, group in by_domain.items():
        if len(group) > 1:
            written += plot_methods(group, out / domain)
    return written
