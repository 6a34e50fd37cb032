"""Commands for experiments: many runs, and tables and figures of them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tyro.conf import FlagCreatePairsOff, Positional

from regoal.errors import (
    EXIT_DONE,
    UsageError,
)

if TYPE_CHECKING:
    from regoal.records.run_record import RunRecord
    from regoal.sweeps.cell import Failure
    from regoal.sweeps.sweep_file import Sweep as Grid


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Train and test a grid of domains, hindsight variants and seeds; skip what is finished."""

    file: Positional[Path]
    """A TOML file with the grid, as in reproduction/."""
    jobs: int = 0
    """How many runs at a time. 0 means one on this machine, or as many as the cluster allows."""
    executor: Literal["processes", "submitit"] = "processes"
    """processes: run on this machine; submitit: submit jobs to SLURM and follow them."""
    submitit: tuple[str, ...] = ()
    """Parameters of the jobs, as NAME=VALUE: timeout_min, cpus_per_task, mem_gb, slurm_partition,
    slurm_account, ... (docs: Use a cluster). cluster=local runs the jobs on this machine."""
    print_commands: FlagCreatePairsOff[bool] = False
    """Only print the commands, one line for each run, for other schedulers."""

    def run(self) -> int:
        """Run the grid to its end, whatever fails in between."""
        from regoal.sweeps.commands import print_commands
        from regoal.sweeps.sweep_file import read_sweep

        if self.jobs < 0:
            raise UsageError(f"--jobs must be 0 or more, got {self.jobs}.")
        grid = read_sweep(self.file)
        if self.print_commands:
            print("\n".join(print_commands(grid)))
            return EXIT_DONE
        try:
            failures = self._execute(grid)
        except (KeyboardInterrupt, SystemExit):
            jobs = "; submitted jobs stay in the queue" if self.executor == "submitit" else ""
            print(f"interrupted; the same command goes on{jobs}", flush=True)
            raise
        for failure in failures:
            print(f"regoal: error: {failure}", file=sys.stderr)
        return failures[0].exit_code if failures else EXIT_DONE

    def _execute(self, grid: "Grid") -> "list[Failure]":
        if self.executor == "submitit":
            from regoal.sweeps.submit import submit_sweep

            options = dict(_split_option(text) for text in self.submitit)
            return submit_sweep(grid, options=options, jobs=self.jobs, tell=_print_whole_line)
        from regoal.sweeps.run_sweep import run_sweep

        if self.submitit:
            raise UsageError("--submitit needs --executor submitit.")
        return run_sweep(grid, jobs=max(self.jobs, 1), tell=_print_whole_line)


def _split_option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"--submitit takes NAME=VALUE, such as timeout_min=60; got {text!r}.")
    return name, value


def _print_whole_line(text: str) -> None:
    """Print a line in one write, as several threads do so."""
    print(f"{text}\n", end="", flush=True)


@dataclass(frozen=True, kw_only=True)
class Report:
    """Make tables and figures from run folders, or a page with plans to watch."""

    runs: Positional[tuple[Path, ...]] = ()
    """Run folders, folders with runs somewhere below, or files of results."""
    out: Path | None = None
    """A folder for the tables (Markdown, CSV, LaTeX) and figures (PNG, SVG)."""
    html: Path | None = None
    """A file for everything in one page that any browser opens, without a network."""
    plans: tuple[Path, ...] = ()
    """For --html: folders of plans to watch, as evaluate and lama write them, or plan files."""
    problems: tuple[Path, ...] = ()
    """For --html: the problems of each folder in --plans, in the same order."""
    domain: Path | None = None
    """For --html: the domain file, if it is not found next to the problems or above them."""
    drawings: tuple[Path, ...] = ()
    """For --html: files that say how states of further domains are drawn (docs: Drawings)."""

    def run(self) -> int:
        """Write everything if a folder or a file is given, then print the tables."""
        from regoal import terminal
        from regoal.records.run_record import find_runs, load_run

        if self.html is None and (self.plans or self.problems or self.domain or self.drawings):
            raise UsageError("--plans, --problems, --domain and --drawings need --html FILE.")
        if not self.runs and not (self.html and self.plans):
            raise UsageError("Give at least one run folder or file of results.")
        runs = [load_run(folder) for folder in find_runs(self.runs)]
        written: list[Path] = []
        if self.out is not None:
            from regoal.reports.report import write_report

            written = write_report(runs, self.out)
        if self.html is not None:
            self._write_page(runs, self.html)
            written.append(self.html)
        if any(run.results for run in runs) or not written:
            terminal.print_tables(runs)
        for path in written:
            print(path)
        return EXIT_DONE

    def _write_page(self, runs: Sequence["RunRecord"], path: Path) -> None:
        from regoal.planning.replays import load_replays
        from regoal.reports.page.declarations import read_drawing, shipped_drawings
        from regoal.reports.page.page import write_page

        drawings = [*map(read_drawing, self.drawings), *shipped_drawings()]
        replays = load_replays(self.plans, self.problems, self.domain)
        write_page(runs, replays, drawings, path)


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write test results in the format of Downward Lab."""

    format: Positional[Literal["lab"]]
    """lab: a file `properties`, which Lab's reports read."""
    runs: Positional[tuple[Path, ...]]
    """Run folders, folders with runs somewhere below, or files of results."""
    out: Path
    """The folder that Lab's reports get as their `eval_dir`."""

    def run(self) -> int:
        """Write the file and print its path."""
        from regoal.records.run_record import find_runs, load_run
        from regoal.reports.lab import write_properties

        if not self.runs:
            raise UsageError("Give at least one run folder or file of results.")
        runs = [load_run(folder) for folder in find_runs(self.runs)]
        print(write_properties(runs, self.out))
        return EXIT_DONE
