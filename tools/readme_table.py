"""Write README's table of results from `results/coverage.csv`: `python -m tools.readme_table`."""

import csv
from pathlib import Path

from regoal.reports.paper import INSTANCES, LAMA, LIFTED

ROOT = Path(__file__).parent.parent
BEGIN = "<!-- table of results: python -m tools.readme_table -->\n"
END = "<!-- end of table -->\n"
HEAD = """| domain | trained on; tested on | regoal | paper | LAMA (paper) |
|---|---|---|---|---|
"""


def table(coverage: str) -> str:
    """The Markdown table, from the text of `results/coverage.csv`.

    Coverage is that under the paper's rule, which allows no plan that visits a state twice. Raises
    `KeyError` if a domain of the paper has no row.
    """
    rows = {
        row["domain"]: row
        for row in csv.DictReader(coverage.splitlines())
        if row["method"] == "lifted"
    }
    return HEAD + "".join(
        f"| {domain.capitalize()} | {sizes[0]}; {sizes[-1]} | {rows[domain]['without_returns']} "
        f"| {LIFTED[domain].coverage} | {LAMA[domain].coverage} |\n"
        for domain, sizes in INSTANCES.items()
    )


def with_table(readme: str, coverage: str) -> str:
    """The README with its table made anew. Raises `ValueError` if it has no place for one."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError("the README has no place for the table of results")
    return before + BEGIN + "\n" + table(coverage) + "\n" + END + after


def main() -> None:
    """Write the table into README.md."""
    path = ROOT / "README.md"
    coverage = (ROOT / "results" / "coverage.csv").read_text(encoding="utf-8")
    path.write_text(with_table(path.read_text(encoding="utf-8"), coverage), encoding="utf-8")


if __name__ == "__main__":
    main()
