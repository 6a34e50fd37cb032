"""Print for the user: one live line on a terminal, plain lines everywhere else."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from regoal.records.json_lines import JsonObject, append_json_line, write_json_lines
from regoal.records.results import PlanResult
from regoal.records.run_record import RunRecord
from regoal.runs.news import Progress, RunSummary
from regoal.system.files import is_special
from regoal.system.units import duration_text

PLAIN_EVERY_S = 10
ENDINGS = {
    "episodes": "all episodes are done",
    "budget": "the budget is spent",
    "patience": "validation stays complete",
    "interrupted": "interrupted (--resume goes on)",
}
Show = Callable[[str, bool], None]
"""Shows a text; kept on the screen if the second argument is true, else until the next one."""


class _Console(Console):
    """One that leaves it to its caller what follows when the reader of the output has gone."""

    def on_broken_pipe(self) -> None:
        """Raise the `BrokenPipeError` that is being handled again; rich would exit."""
        raise  # noqa: PLE0704


def console() -> Console:
    """Standard output; nothing in it is taken for markup."""
    return _Console(highlight=False, markup=False, emoji=False)


@contextlib.contextmanager
def live_line() -> Iterator[Show]:
    """A line that is rewritten in place on a terminal.

    Elsewhere each text is a line; one that is not kept is printed at most every 10 seconds.
    """
    out = console()
    if not out.is_terminal:
        yield _plain_lines()
        return
    with out.status("starting") as status:

        def show(text: str, keep: bool) -> None:
            if keep:
                out.print(text, soft_wrap=True)
            else:
                status.update(text)

        yield show


def _plain_lines() -> Show:
    latest = -math.inf

    def show(text: str, keep: bool) -> None:
        nonlocal latest
        if keep or time.monotonic() - latest >= PLAIN_EVERY_S:
            print(text, flush=True)
            latest = time.monotonic()

    return show


def progress_line(progress: Progress) -> str:
    """Describe a training so far: mean hindsight-goal size, trajectory length, and so on."""
    parts = [f"episode {progress.episode}/{progress.episodes}"]
    if progress.coverage is not None and progress.best_coverage is not None:
        parts.append(f"coverage {progress.coverage:.0%}, best {progress.best_coverage:.0%}")
    parts += [
        f"goal {progress.goal_size:.1f}",
        f"length {progress.trajectory_length:.1f}",
        f"loss {progress.loss:.3f}",
        f"{duration_text(progress.left_s)} left",
    ]
    return "  ".join(parts)


def show_news(news: str | Progress, show: Show) -> None:
    """Show what a training tells: notes are kept, the state replaces the one before."""
    if isinstance(news, str):
        show(news, True)
    else:
        show(progress_line(news), False)


def summary_lines(summary: RunSummary) -> list[str]:
    """Say how a training ended, and where the policy is."""
    why = ENDINGS[summary.ended]
    lines = [f"{why} after {summary.episode} episodes and {duration_text(summary.elapsed_s)}"]
    if summary.policy is None or summary.best is None:
        return [*lines, "no policy was validated yet"]
    return [*lines, f"best policy, on validation {summary.best}: {summary.policy}"]


def print_tables(runs: Sequence[RunRecord]) -> None:
    """Print every table that the runs have results for."""
    from regoal.reports.rendering import to_rich
    from regoal.reports.tables import tables_of

    out = console()
    for table in tables_of(runs).values():
        out.print(to_rich(table, out.width))


def result_line(result: PlanResult) -> str:
    """One attempt in one line: `p007: 34 steps, 0.2 s` or `p008: step limit reached`."""
    if not result.solved:
        return f"{result.problem}: {result.outcome.text}"
    short = result.short_length
    shorter = short is not None and short != result.plan_length
    length = f"{result.plan_length} steps{f', shortened to {short}' if shorter else ''}"
    return f"{result.problem}: {length}, {result.seconds:.1f} s"


def print_coverage(results: Sequence[PlanResult]) -> None:
    """Print the coverage table of one method and how many of the problems are solved."""
    from regoal.reports.attributes import SHORT_LENGTH
    from regoal.reports.rendering import to_rich
    from regoal.reports.tables import coverage_table, lama_table

    method = results[0].method
    config: JsonObject = {"domain": results[0].domain, "method": method}
    runs = [RunRecord(Path(), config, results=list(results))]
    out = console()
    out.print(to_rich(lama_table(runs) if method == "lama" else coverage_table(runs)))
    out.print(f"Coverage: {sum(r.solved for r in results)} of {len(results)}")
    if (mean := SHORT_LENGTH.of(results)) is not None:
        out.print(f"Mean length of the shortened plans: {SHORT_LENGTH.text(mean)}")


def _record(records: Path, result: PlanResult, *, first: bool) -> None:
    """Append a result. If not even the first can be written, no empty file is left."""
    try:
        append_json_line(records, result.to_json())
    except OSError:
        if first and not is_special(records):
            with contextlib.suppress(OSError):
                records.unlink()
        raise


def _set_aside(records: Path, show: Show) -> None:
    """Keep the results that a file has under another name: hours may stand behind them."""
    if records.is_file() and records.stat().st_size:
        kept = records.with_name(f"{records.name}.before")
        records.replace(kept)
        show(f"{records} had results of an earlier call: they are in {kept} now", True)


def follow(
    results: Iterator[PlanResult],
    total: int,
    records: Path | None,
    show: Show,
    known: Sequence[PlanResult] = (),
) -> list[PlanResult]:
    """Show each result as it comes and append it to the file of records, behind those `known`.

    If none is known, results of an earlier call are set aside, and a line says so.
    """
    if records is not None:
        records.parent.mkdir(parents=True, exist_ok=True)
        if not known:
            _set_aside(records, show)
        write_json_lines(records, [result.to_json() for result in known])
    done = list(known)
    for result in results:
        done.append(result)
        if records is not None:
            _record(records, result, first=len(done) == 1)
        show(result_line(result), True)
        show(f"{len(done)} of {total} problems, {sum(r.solved for r in done)} solved", False)
    return done
