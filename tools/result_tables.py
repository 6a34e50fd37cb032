"""Write the tables of results into README.md and the site: `python -m tools.result_tables`.

README's are made from `results/coverage.csv` and `results/ipc2023.csv`, with the cells that these
have. Those of docs/reference/results.md are what `reproduction.paper`, `reproduction.ipc2023` and
`reproduction.plans` show of their records. A table whose file does not exist stays as it is.
"""

import csv
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from regoal.reports.attributes import MISSING
from regoal.reports.paper import INSTANCES, LAMA, LIFTED
from regoal.reports.rendering import to_markdown
from regoal.reports.run_choice import display_name
from regoal.sweeps.sweep_file import read_sweep
from reproduction import paper, plans, relaxed_plans
from reproduction.cells import REPRODUCTION, read_records
from reproduction.ipc2023_tables import (
    COLUMNS,
    DOMAINS,
    METHODS,
    PUBLISHED,
    coverage_table,
    quality_table,
    read_all,
    training_table,
)

ROOT = Path(__file__).parent.parent
BEGIN = "<!-- table from {}: python -m tools.result_tables -->\n"
END = "<!-- end of table -->\n"
OF_PAPER = """\
Solved of 100 test problems, with lifted goals: by the seed that validation chooses, and by the
lowest if there are several. Only plans that enter no state twice, the paper's rule, compare with
the paper's. LAMA is a planner that searches. Trainings had a budget of 15 minutes of one core,
Visitall's of 30. The test problems follow the paper's rules, but are our own.
[Results](docs/reference/results.md) has more.
"""
OF_2023 = """\
The learning track of the planning competition of 2023: solved test problems, and the time that each
had (in the competition 30 minutes). Trainings had a budget of 15 minutes. The best published share
is of all 90 problems. Domains not tested on all problems are left out."""
TEXTS_OF_2023 = {
    "shipped": '"Shipped" policies never saw the training files.',
    "LAMA": "LAMA is its first search.",
}
"""What is said of columns, if they are there."""

Lines = Sequence[Mapping[str, str]]
"""The lines of a CSV file, by the names of its columns."""


def make_paper_table(lines: Lines) -> str:
    """Make the table of the paper's ten domains, with lifted goals."""
    groups: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for line in lines:
        if line["hindsight"] == "lifted":
            groups[line["domain"]].append(line)
    rows = []
    for domain, (train, _, test) in INSTANCES.items():
        for chosen in [line for line in groups[domain] if line["chosen"] == "1"]:
            solved = [int(line["solved"]) for line in groups[domain]]
            lowest = min(solved) if solved[1:] else MISSING
            ours = (chosen["solved"], lowest, chosen["without_return"])
            theirs = (LIFTED[domain].coverage, LAMA[domain].coverage)
            rows.append((display_name(domain), f"{train}; {test}", *ours, *theirs))
    header = (
        *("domain", "trained on; tested on", "solved", "lowest seed", "no state twice"),
        *("paper", "LAMA (paper)"),
    )
    return _to_markdown(header, rows) + "\n" + OF_PAPER


def make_table_of_2023(lines: Lines) -> str:
    """Make the table of the learning track of 2023. Tests that have not ended are left out."""
    groups: dict[tuple[str, str], list[Mapping[str, str]]] = defaultdict(list)
    given: dict[str, dict[str, int]] = defaultdict(dict)
    for line in lines:
        groups[line["domain"], line["method"]].append(line)
        given[line["domain"]][line["part"]] = int(line["given"])

    def count(domain: str, method: str, column: str) -> str:
        tested, found = (sum(int(x[c]) for x in groups[domain, method]) for c in ("tested", column))
        of = sum(given[domain].values())
        return f"{found} of {of}" if tested == of > 0 else MISSING

    rows = []
    for i, domain in enumerate(DOMAINS):
        best = max(solved[i] or 0 for solved in PUBLISHED.values())
        ours = [count(domain, *of) for of in COLUMNS_OF_2023.values()]
        if set(ours) != {MISSING}:
            limits = {x["time_limit"] for m in METHODS for x in groups[domain, m]}
            time = ", ".join(sorted(limits))
            rows.append((domain.capitalize(), *ours, time, f"{100 * best / 90:.0f}"))
    table = [("domain", *COLUMNS_OF_2023, "time", "best published, % of 90"), *rows]
    columns = [column for column in zip(*table, strict=True) if set(column[1:]) != {MISSING}]
    header, *kept = zip(*columns, strict=True)
    said = [text for name, text in TEXTS_OF_2023.items() if name in header]
    return _to_markdown(header, kept) + "\n" + "\n".join([OF_2023, *said, ""])


COLUMNS_OF_2023 = {
    "trained here": ("trained", "solved"),
    "without search": ("trained", "solved_greedily"),
    "shipped": ("shipped", "solved"),
    "LAMA": ("lama", "solved"),
}
"""The headings of our columns, each with a method and a column of `results/ipc2023.csv`."""


def show_paper(results: Path, name: str = "paper", title: str = paper.TITLE) -> str:
    """Make the tables of `reproduction.paper`; empty if there are no records."""
    records = read_records(results / f"{name}.jsonl")
    tables = paper.summarise(records, read_sweep(REPRODUCTION / f"{name}.toml"), title)[0]
    return "\n".join(map(to_markdown, tables)) if records else ""


def show_track_of_2023(results: Path) -> str:
    """Make the tables of `reproduction.ipc2023`; empty if there are no records."""
    found, trained = read_all(results / "ipc2023"), read_records(results / "ipc2023.jsonl")
    if not trained:
        return ""
    tables = (coverage_table(found), quality_table(found), training_table(trained))
    return "\n".join(map(to_markdown, tables))


def show_plans(results: Path) -> str:
    """Make the table of `reproduction.plans`; empty if there are no records."""
    table = plans.make_table(results)
    return to_markdown(table) if table.rows else ""


def show_coverage(results: Path) -> str:
    """Make README's table of the paper's domains, and say what relaxed plans add."""
    table = _make_from_csv("coverage.csv", paper.COLUMNS, make_paper_table)(results)
    more = _make_from_csv("relaxed_plans.csv", paper.COLUMNS, _note_relaxed_plans)(results)
    return table and table + more


def _note_relaxed_plans(lines: Lines) -> str:
    found = [f"{display_name(x['domain'])} {x['solved']}" for x in lines if x["chosen"] == "1"]
    link = "docs/reference/results.md#with-relaxed-plans"
    return f"[With relaxed plans]({link}): {', '.join(found)}.\n"


def _make_from_csv(
    name: str, columns: Sequence[str], make: Callable[[Lines], str]
) -> Callable[[Path], str]:
    """Return a function that makes a table from a CSV file of the results with these columns."""

    def make_table(results: Path) -> str:
        file = results / name
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        reader = csv.DictReader(lines)
        return make(list(reader)) if reader.fieldnames == list(columns) else ""

    return make_table


PAGES: Mapping[str, Mapping[str, Callable[[Path], str]]] = {
    "README.md": {
        "coverage.csv": show_coverage,
        "ipc2023.csv": _make_from_csv("ipc2023.csv", COLUMNS, make_table_of_2023),
    },
    "docs/reference/results.md": {
        "paper.jsonl": show_paper,
        "relaxed_plans.jsonl": partial(show_paper, name="relaxed_plans", title=relaxed_plans.TITLE),
        "ipc2023": show_track_of_2023,
        "plans": show_plans,
    },
}
"""For each page the files in `results/` of its tables, and the functions that make these."""


def with_tables(text: str, page: str, results: Path) -> str:
    """Return the text of a page with its tables made from the files in a folder.

    A file that does not exist, or that has other columns, leaves its table as it is. Raises
    `ValueError` if the page has no place for a table.
    """
    for name, make in PAGES[page].items():
        begin = BEGIN.format(f"results/{name}")
        before, _, rest = text.partition(begin)
        _, end, after = rest.partition(END)
        if not end:
            raise ValueError(f"{page} has no place for the table from {name}")
        if made := make(results):
            text = f"{before}{begin}\n{made}\n{END}{after}"
    return text


def _to_markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def main() -> None:
    """Write the tables into their pages."""
    for page in PAGES:
        path = ROOT / page
        text = with_tables(path.read_text(encoding="utf-8"), page, ROOT / "results")
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
