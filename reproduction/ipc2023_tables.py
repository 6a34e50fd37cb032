"""The tables of `reproduction.ipc2023`, from its records of problems."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from regoal.records.results import PlanResult
from regoal.reports.attributes import MISSING
from regoal.reports.rendering import Cell, Table
from reproduction.cells import Records, note_commits, text_row, write_mean
from reproduction.steadiness import measure
from reproduction.timed_tests import find_limit, read_domain

OPTIONS: dict[str, tuple[str, ...]] = {
    "trained": ("--search",),
    "shipped": ("--search",),
    "lama": (),
}
"""Methods, each with its own options of `regoal evaluate` or `regoal lama`.

A method begins with `trained`, `shipped` or `lama`, as `trained-fast` would.
"""
METHODS = tuple(OPTIONS)
PARTS = ("easy", "medium", "hard")
PUBLISHED: dict[str, tuple[int | None, ...]] = {
    "HUZAR (2023)": (61, 35, 70, 26, 90, 66, 88, 40, 30, 66),
    "GOFAI (2023)": (61, 35, 64, 35, 90, 56, 76, 42, 30, 71),
    "SMAC (2023)": (61, 32, 66, 26, 74, 67, 90, 36, 30, 66),
    "GOOSE, rank-SVM (2024)": (85, 24, 77, 3, 90, 56, 57, 37, 72, 56),
    "Vanir (2023)": (None, None, 77, None, 90, 68, 89, 40, None, None),
    "Muninn (2023)": (39, 11, 42, 0, 30, 15, 16, 26, 32, 17),
}
"""Published coverage of 90 problems a domain, by planner, in the order of domains."""
DOMAINS = (
    "blocksworld", "childsnack", "ferry", "floortile", "miconic", "rovers", "satellite", "sokoban",
    "spanner", "transport",
)  # fmt: skip
GIVEN: Mapping[str, Mapping[str, int]] = {
    domain: {"easy": 30, "medium": 15, "hard": 8 if domain == "rovers" else 15}
    for domain in DOMAINS
}
"""How many test problems the public files have."""
COLUMNS = (
    "domain", "method", "part", "given", "tested", "solved", "solved_greedily",
    "solved_without_return", "quality", "actions", "median_seconds", "time_limit",
)  # fmt: skip

Results = Mapping[tuple[str, str], Sequence[PlanResult]]
"""Records of problems by (method, domain)."""
Limits = Mapping[tuple[str, str], str]
"""The time that a problem had, by (method, domain)."""


def read_all(folder: Path) -> Results:
    """Read the records of all methods and domains."""
    return {
        (method, domain): read_domain(folder / method, domain)
        for method in METHODS
        for domain in DOMAINS
    }


def read_limits(folder: Path) -> Limits:
    """Find the time that problems had, by method and domain."""
    return {(m, d): find_limit(folder / m, d) for m in METHODS for d in DOMAINS}


@dataclass(frozen=True)
class Score:
    """How one method did on some problems."""

    given: int
    results: Sequence[PlanResult]
    quality: float
    """The sum over the problems of the length of the shortest known plan, divided by ours."""

    @property
    def solved(self) -> list[PlanResult]:
        """The results with a plan."""
        return [result for result in self.results if result.solved]

    @property
    def seconds(self) -> float | None:
        """The median of the seconds of the solved problems."""
        return median(r.seconds for r in self.solved) if self.solved else None


def score(results: Results, method: str, domain: str, part: str = "") -> Score:
    """Score a method on a domain, or on a part of it.

    A best known plan is the shortest one of all methods. Plans count as they were after shortening.
    """
    best: dict[str, int] = {}
    for result in [r for (_, d), found in results.items() if d == domain for r in found]:
        if (length := _length(result)) is not None:
            best[result.problem] = min(best.get(result.problem, length), length)
    own = [result for result in results[method, domain] if result.problem.startswith(part)]
    lengths = [(r.problem, length) for r in own if (length := _length(r)) is not None]
    # An empty plan is as good as it gets.
    quality = sum(best[problem] / length if length else 1.0 for problem, length in lengths)
    given = sum(n for name, n in GIVEN[domain].items() if name.startswith(part))
    return Score(given, own, quality)


def _length(result: PlanResult) -> int | None:
    return result.plan_length if result.short_length is None else result.short_length


LENGTHS: Mapping[str, Callable[[PlanResult], int | None]] = {
    "steps": lambda result: result.plan_length,
    "shortened": _length,
}
"""The lengths of a plan: as it was executed, and without its useless steps."""


def coverage_table(results: Results) -> Table:
    """Make the table of solved problems: ours by easy, medium and hard, and the published rows."""
    scores = {m: [[score(results, m, d, p) for p in PARTS] for d in DOMAINS] for m in METHODS}
    given = ["+".join(str(part.given) for part in domain) for domain in scores[METHODS[0]]]
    total = sum(part.given for domain in scores[METHODS[0]] for part in domain)
    rows = [text_row("problems given: easy + medium + hard", *given, total, MISSING)]
    for method, domains in scores.items():
        if not any(part.results for domain in domains for part in domain):
            continue
        rows.append(_make_row(method, domains, lambda _: True, total))
        if "--search" in OPTIONS[method]:
            greedily = f"{method}, greedy"
            rows.append(_make_row(greedily, domains, lambda r: r.found_by == "greedy", total))
    for planner, solved_of_90 in PUBLISHED.items():
        cells = [MISSING if n is None else str(n) for n in solved_of_90]
        solved = sum(n or 0 for n in solved_of_90)
        rows.append(text_row(f"{planner}, of 90", *cells, solved, f"{solved / 9:.1f}"))
    return Table(
        title="The learning track of 2023: solved test problems",
        header=("", *DOMAINS, "sum", "%"),
        rows=tuple(rows),
        notes=tuple(_note_unfinished(results)),
    )


def _make_row(
    label: str,
    domains: Sequence[Sequence[Score]],
    counts: Callable[[PlanResult], bool],
    total: int,
) -> tuple[Cell, ...]:
    """Make a row with the solved problems that count, by domain and part."""
    found = [[sum(map(counts, part.solved)) for part in domain] for domain in domains]
    cells = [
        "+".join(map(str, parts)) if any(part.results for part in domain) else MISSING
        for domain, parts in zip(domains, found, strict=True)
    ]
    solved = sum(map(sum, found))
    return text_row(label, *cells, solved, f"{100 * solved / max(total, 1):.1f}")


def _note_unfinished(results: Results) -> list[str]:
    parts = []
    for method, domain in results:
        found = score(results, method, domain)
        if 0 < len(found.results) < found.given:
            parts.append(f"{method} {domain} ({len(found.results)} of {found.given})")
    return [f"Not yet tested on all problems: {', '.join(parts)}."] if parts else []


def quality_table(results: Results) -> Table:
    """Make the table of quality, and of steps and seconds of the solved problems."""
    rows = []
    for method in METHODS:
        scores = [score(results, method, domain) for domain in DOMAINS]
        if not any(x.results for x in scores):
            continue
        cells = [f"{x.quality:.1f}" if x.results else MISSING for x in scores]
        times = [MISSING if x.seconds is None else f"{x.seconds:.1f}" for x in scores]
        rows.append(text_row(f"{method}: quality", *cells, f"{sum(x.quality for x in scores):.1f}"))
        for what, length in LENGTHS.items():
            means = [write_mean([length(r) or 0 for r in x.solved]) for x in scores]
            rows.append(text_row(f"{method}: {what}", *means, MISSING))
        rows.append(text_row(f"{method}: seconds", *times, MISSING))
    return Table(
        title="Quality, steps and seconds of the solved problems",
        header=("", *DOMAINS, "sum"),
        rows=tuple(rows),
        notes=(
            "Quality: the shortest plan of all methods here, divided by the plan's length, summed "
            "over the problems. Both are as they were after shortening. Steps are means, seconds "
            "medians.",
        ),
    )


def training_table(records: Records) -> Table:
    """Make the table of how the trainings went, by domain."""
    rows = []
    for domain in DOMAINS:
        for record in [r for r in records.values() if r["domain"] == f"{domain}-2023"]:
            x = measure(record["validation"])
            _, _, _, given, *_ = record["validation"][0]
            most = max(solved for _, solved, *_ in record["validation"])
            first = MISSING if x.first is None else f"{x.first}; {x.complete} of {x.after}"
            minutes = f"{record['minutes']:.1f}"
            rows.append(
                text_row(
                    domain, record["seed"], minutes, record["episodes"], f"{most} of {given}", first
                )
            )
    return Table(
        title="The trainings",
        header=(
            *("Domain", "Seed", "Minutes", "Episodes", "Most solved on validation"),
            "First complete after episode; later ones that are complete",
        ),
        rows=tuple(rows),
        notes=(note_commits(records.values()),),
    )


def to_csv(results: Results, limits: Limits) -> str:
    """Write a row for each domain, method and part, and sums of methods over all domains."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for domain in DOMAINS:
        for method in METHODS:
            for part in PARTS if results[method, domain] else ():
                found = score(results, method, domain, part)
                writer.writerow([domain, method, part, *_numbers([found]), limits[method, domain]])
    for method in METHODS:
        found_all = [score(results, method, domain) for domain in DOMAINS]
        writer.writerow(["sum", method, "", *_numbers(found_all), ""])
    return stream.getvalue()


def _numbers(scores: Sequence[Score]) -> list[object]:
    solved = [result for found in scores for result in found.solved]
    return [
        sum(found.given for found in scores),
        sum(len(found.results) for found in scores),
        len(solved),
        sum(result.found_by == "greedy" for result in solved),
        sum(result.solved_without_return for result in solved),
        f"{sum(found.quality for found in scores):.2f}",
        sum(result.plan_length or 0 for result in solved),
        f"{median(result.seconds for result in solved):.2f}" if solved else "",
    ]
