"""Cells of a table: runs of a sweep, and their records in one file that is small enough to commit.

A cell that has a record is not run again. So a sweep that stops on one machine goes on on another
one from the committed file. A record is a line of JSON:

- `name`: VARIANT/DOMAIN/HINDSIGHT/SEED, and these four by their own names;
- `settings`: all that the sweep file says of the run;
- `commit`, `machine`: with which version of regoal it was made, and on what kind of machine;
- `episodes`, `minutes`: how long the training was;
- `validation`: a list for each validation: after which episode, problems solved, tried and given,
  actions of all plans, problems solved with noise, and 1 if the policy was kept, else 0;
- `test`: for each problem the outcome, the length of the plan or null, seconds, and returns.
"""

import argparse
import csv
import io
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from regoal.errors import UsageError
from regoal.records.json_lines import JsonObject, as_float, read_json, read_jsonl, write_json_lines
from regoal.records.results import PlanResult
from regoal.records.run_record import DONE, RunRecord, find_runs, load_run
from regoal.reports.attributes import MISSING
from regoal.reports.rendering import Cell, Table, to_markdown
from regoal.sweeps.commands import done_record, finished
from regoal.sweeps.run_sweep import PROGRAM, run_sweep
from regoal.sweeps.sweep_file import Sweep, read_sweep
from regoal.system.files import natural_key, write_text_atomically

REPRODUCTION = Path(__file__).parent
RESULTS_FOLDER = REPRODUCTION.parent / "results"
VALIDATION_KEYS = ("episode", "solved", "tried", "problems", "plan_length", "robust", "kept")
Records = dict[str, dict[str, Any]]
"""Records of cells by name."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of the command line of a table."""

    runs: Sequence[Path]
    """Folders with runs that were made otherwise. Their records are taken, and nothing is run."""
    jobs: int
    only: Sequence[str]
    """Only cells that have one of these texts in their names are run."""
    table: bool
    """Only show the table."""


def read_arguments(about: str | None) -> Arguments:
    """Parse the command line; ends the program if it is wrong."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, help="take the records of these runs")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs at a time")
    parser.add_argument("--only", nargs="+", default=[], help="run only cells with such names")
    parser.add_argument("--table", action="store_true", help="run nothing, show the table")
    return Arguments(**vars(parser.parse_args()))


def make_table(
    name: str,
    arguments: Arguments,
    summarise: Callable[[Records, Sweep], tuple[Sequence[Table], str]],
    *,
    csv_name: str = "",
) -> None:
    """Run the cells of `reproduction/NAME.toml` that have no record, and show their tables.

    The records are in `results/NAME.jsonl`. `summarise` makes the tables and the text of a CSV
    file in `results/`, which is `NAME.csv` unless `csv_name` is given. Raises `UsageError` if some
    run fails, after all others have ended.
    """
    sweep, file = read_sweep(REPRODUCTION / f"{name}.toml"), RESULTS_FOLDER / f"{name}.jsonl"
    failed: Sequence[object] = ()
    if arguments.runs:
        add_records(file, find_runs(arguments.runs))
    elif not arguments.table:
        failed = run_cells(sweep, file, only=arguments.only, jobs=arguments.jobs)
    if records := read_records(file):
        tables, text = summarise(records, sweep)
        write_text_atomically(RESULTS_FOLDER / (csv_name or f"{name}.csv"), text)
        print("\n".join(map(to_markdown, tables)), end="")
    else:
        print(f"{file} has no record yet.")
    if failed:
        raise UsageError(f"{len(failed)} cells have failed; the first: {failed[0]}.")


def run_cells(
    sweep: Sweep,
    file: Path,
    *,
    only: Sequence[str] = (),
    jobs: int = 1,
    program: Sequence[str] = PROGRAM,
) -> Sequence[object]:
    """Run the cells of a sweep that have no record in `file`, and add their records as they end.

    Returns the failures. Raises `UsageError` if a record is of other settings than the sweep's.
    """
    records = read_records(file)
    wanted = [s for s in sweep.settings if not only or any(text in s.name for text in only)]
    missing = [s for s in wanted if s.name not in records]
    for setting in wanted:
        settings = done_record(sweep, setting)
        if setting not in missing and records[setting.name]["settings"] != settings:
            raise UsageError(
                f"{file} has a record of {setting.name} with other settings than the sweep. "
                f"Remove its line to run it again."
            )
    print(f"{len(wanted) - len(missing)} of {len(wanted)} cells have their records in {file}")
    lock = threading.Lock()

    def collect() -> None:
        with lock:
            known = read_records(file)
            ended = [s for s in missing if s.name not in known and finished(sweep, s)]
            add_records(file, [sweep.folder(setting) for setting in ended])

    def tell(text: str) -> None:
        print(f"{text}\n", end="", flush=True)
        collect()

    collect()
    missing = [s for s in missing if s.name not in read_records(file)]
    if not missing:
        return ()
    try:
        left = replace(sweep, settings=tuple(missing))
        return run_sweep(left, jobs=jobs, tell=tell, program=program)
    finally:
        collect()


def read_records(file: Path) -> Records:
    """Read the records of a file by the names of their cells."""
    return {str(record["name"]): record for record in read_jsonl(file)}


def add_records(file: Path, folders: Iterable[Path]) -> None:
    """Add the records of finished runs to a file, in natural order of their names.

    They replace records of the same cells. Runs that are not finished are left out.
    """
    made = [make_record(folder) for folder in folders if (folder / DONE).is_file()]
    if made:
        records = read_records(file) | {str(record["name"]): record for record in made}
        ordered = sorted(records, key=natural_key)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json_lines(file, [records[name] for name in ordered])


def make_record(folder: Path) -> JsonObject:
    """Make the record of a finished run, as the module's docstring says."""
    run, settings = load_run(folder), read_json(folder / DONE)
    software: Any = run.config.get("environment", {})
    variant = str(settings.get("variant", ""))
    parts = [variant, run.domain, run.method, str(run.seed)]
    return {
        "name": "/".join(part for part in parts if part),
        **{"variant": variant, "domain": run.domain, "hindsight": run.method, "seed": run.seed},
        "settings": settings,
        **{key: software.get(key) for key in ("commit", "machine")},
        "episodes": run.episodes[-1]["episode"] if run.episodes else 0,
        "minutes": round(_seconds(run) / 60, 2),
        "validation": [
            [int(as_float(v.get(k, 0))) for k in VALIDATION_KEYS] for v in run.validation
        ],
        "test": {result.problem: describe(result) for result in run.results},
    }


def describe(result: PlanResult) -> list[object]:
    """List the outcome of a test problem, the plan's length, seconds, and returns."""
    return [result.outcome.key, result.plan_length, round(result.seconds, 2), result.returns]


def _seconds(run: RunRecord) -> float:
    return max(
        (as_float(r["elapsed_s"]) for r in (*run.episodes[-1:], *run.validation[-1:])), default=0.0
    )


def group_records(records: Records, sweep: Sweep) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Group records by variant and domain, in the sweep's order of these, and by seed."""
    variants = list(dict.fromkeys(setting.variant for setting in sweep.settings))
    domains = list(dict.fromkeys(setting.domain for setting in sweep.settings))

    def order(record: Mapping[str, Any]) -> tuple[int, ...]:
        places = [(variants, record["variant"]), (domains, record["domain"])]
        found = (known.index(x) if x in known else len(known) for known, x in places)
        return (*found, record["seed"])

    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for record in sorted(records.values(), key=order):
        groups[record["variant"], record["domain"]].append(record)
    return groups


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write rows as comma-separated values, under the names of the columns."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([columns, *rows])
    return stream.getvalue()


def note_commits(records: Iterable[Mapping[str, Any]]) -> str:
    """Say with which commits the cells were made."""
    commits = sorted({str(record["commit"])[:7] for record in records})
    return f"Commits: {', '.join(commits)}."


def text_row(*texts: object) -> tuple[Cell, ...]:
    """Make a row of a table."""
    return tuple(Cell(str(text)) for text in texts)


def write_mean(numbers: Sequence[float]) -> str:
    """Write the mean of some numbers with one digit."""
    return f"{fmean(numbers):.1f}" if numbers else MISSING
