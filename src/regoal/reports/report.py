"""A report on runs: every table in three forms, and the figures, in one folder."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from regoal.errors import UsageError
from regoal.records.run_record import RunRecord
from regoal.reports.plots import plot_methods, plot_run
from regoal.reports.rendering import FORMS
from regoal.reports.tables import tables_of
from regoal.system.files import write_text_atomically


def write_report(runs: Sequence[RunRecord], out: Path) -> list[Path]:
    """Write the tables and figures that the runs have records for; returns the files written.

    Tables are `NAME.md`, `.csv` and `.tex`. There is one figure a run, `DOMAIN-METHOD-SEED` (`-2`
    and so on behind it where that is taken), and one of each domain with several runs, `DOMAIN`.
    Raises `UsageError` where `out` is a file.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; give a folder for the tables and figures by --out.")
    out.mkdir(parents=True, exist_ok=True)
    written = []
    if any(run.results for run in runs):
        for name, table in tables_of(runs).items():
            for ending, render in FORMS.items():
                path = out / f"{name}.{ending}"
                write_text_atomically(path, render(table))
                written.append(path)
    return written + _figures([run for run in runs if run.episodes], out)


def _figures(runs: Sequence[RunRecord], out: Path) -> list[Path]:
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
