"""Collect finished runs under `results/`: `python -m reproduction.results RUNS...`.

For each finished run of a sweep, its configuration and records are copied to
`results/DOMAIN/METHOD/SEED/`. They replace the run that was there, if any. `results/coverage.csv`
gets a row for each domain and method under `results/`.
"""

import csv
import io
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path

from regoal.cli import script
from regoal.records.json_lines import as_float
from regoal.records.run_record import (
    CONFIG,
    DONE,
    EPISODES,
    RESULTS,
    TEST_CURVE,
    VALIDATION,
    RunRecord,
    find_runs,
    load_run,
)
from regoal.reports.paper import METHODS
from regoal.reports.run_choice import group_by_domain_and_method, select_run
from regoal.reports.tables import SETTINGS
from regoal.system.files import write_text_atomically
from reproduction.words import words

OUT = Path(__file__).parent.parent / "results"
COLUMNS = (
    "domain", "method", "seeds", "tested", "coverage", "without_returns", "total", "median",
    "mean", "minutes", "layers", "policy_layers", "episodes", "paper_coverage",
)  # fmt: skip


def main() -> None:
    """Copy and print the runs that are trained and tested, and write the table of all."""
    for folder in find_runs(words(Path, "runs", __doc__, least="*")):
        run = load_run(folder)
        if run.of_another_policy:
            print(
                f"{folder}: left out: trained further after its test; `regoal sweep` tests it again"
            )
        elif (folder / DONE).is_file() or run.method == "lama":
            print(f"{folder}: {keep(run, folder)}")
        else:
            print(f"{folder}: left out: not finished")
    runs = [load_run(folder) for folder in find_runs([OUT])]
    write_text_atomically(OUT / "coverage.csv", table(runs))
    print((OUT / "coverage.csv").read_text(encoding="utf-8"), end="")


def keep(run: RunRecord, folder: Path) -> str:
    """Copy a run's records and configuration, but not its weights.

    Returns where they are kept, and which run they replace.
    """
    to = OUT / run.domain / run.method / str(run.seed)
    done = f"kept in {to.relative_to(OUT.parent)}"
    if to.is_dir():
        before = load_run(to).config
        names = [n for n in SETTINGS if n in before and before[n] != run.config.get(n)]
        done += " in place of a run with " + (
            f"other {', '.join(names)}" if names else "its settings"
        )
        shutil.rmtree(to)
    to.mkdir(parents=True)
    for name in (CONFIG, EPISODES, VALIDATION, RESULTS, TEST_CURVE):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, to / name)
    return done


def table(runs: Sequence[RunRecord]) -> str:
    """Make a row for each domain and method: its run with the best validation, as in the paper."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for (domain, method), group in sorted(group_by_domain_and_method(runs).items()):
        run = select_run(group)
        lengths = [r.plan_length for r in run.results if r.plan_length is not None]
        seconds = [as_float(r["elapsed_s"]) for r in (*run.episodes[-1:], *run.validation[-1:])]
        layers = run.config.get("layers", "")
        paper = METHODS.get(method, {}).get(domain)
        writer.writerow(
            (
                *(domain, method, len(group), len(run.results), len(lengths)),
                *(sum(r.solved_without_return for r in run.results), sum(lengths)),
                *(_rounded(f(lengths)) if lengths else "" for f in (statistics.median, _mean)),
                _rounded(max(seconds) / 60) if seconds else "",
                layers,
                run.config.get("policy_layers") or layers,
                run.episodes[-1]["episode"] if run.episodes else "",
                paper.coverage if paper else "",
            )
        )
    return text.getvalue()


def _mean(lengths: Sequence[int]) -> float:
    return statistics.fmean(lengths)


def _rounded(value: float) -> str:
    return f"{value:.1f}"


if __name__ == "__main__":
    script(main)
