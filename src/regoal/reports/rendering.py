"""Tables as values, and four formats for them: terminal, Markdown, CSV and LaTeX."""

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import rich.box
import rich.table
from rich.console import Console, Group
from rich.text import Text

from regoal.reports.attributes import MISSING


class Cell(NamedTuple):
    """The text of one cell; the best value of a comparison is bold."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A table: `text_columns` columns of text, then columns of numbers.

    Raises `ValueError` if a row or the groups do not fit the header.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    groups: tuple[tuple[str, int], ...] = ()
    """Headings above the header as (text, number of columns), from the second column on.

    Columns with the empty text "" belong to every group.
    """
    text_columns: int = 1
    totals: int = 0
    """The number of rows at the end that summarise the rows above."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"a row has {len(row)} cells under {len(self.header)} headings")
        if self.groups and sum(span for _, span in self.groups) != len(self.header) - 1:
            raise ValueError(f"groups span {self.groups} under {len(self.header)} headings")

    def flatten_header(self) -> list[str]:
        """Return the header in one line, e.g. `lifted coverage`, for formats without groups."""
        spanned = [name for name, span in self.groups for _ in range(span)]
        if not spanned:
            return list(self.header)
        names = [
            f"{group} {name}".strip() for group, name in zip(spanned, self.header[1:], strict=True)
        ]
        return [self.header[0], *names]


def split_by_group(table: Table) -> list[Table]:
    """Split a table that is too wide into one table for each group of columns."""
    owners = ["", *(name for name, span in table.groups for _ in range(span))]
    parts = []
    for group in dict.fromkeys(name for name, _ in table.groups if name):
        kept = [i for i, owner in enumerate(owners) if owner in ("", group)]
        part = replace(
            table,
            title=f"{table.title}: {group}",
            header=tuple(table.header[i] for i in kept),
            rows=tuple(tuple(row[i] for i in kept) for row in table.rows),
            groups=(),
            notes=(),
        )
        parts.append(part)
    return [*parts[:-1], replace(parts[-1], notes=table.notes)] if parts else [table]


def to_rich(table: Table, width: int = 80) -> Group:
    """Return the table for `rich.console.Console.print`, split by group if `width` is too small."""
    whole = _make_rich_table(table)
    console = Console(width=10_000)
    if table.groups and whole.__rich_measure__(console, console.options).maximum > width:
        return Group(*(_make_rich_table(part) for part in split_by_group(table)))
    return Group(whole)


def _make_rich_table(table: Table) -> rich.table.Table:
    shown = rich.table.Table(
        title=table.title,
        caption=Text("\n".join(table.notes)) if table.notes else None,
        title_justify="left",
        caption_justify="left",
        box=rich.box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    names = list(table.header)
    if table.groups:
        names[0], at = f"\n{names[0]}", 1
        for group, span in table.groups:  # a group's name stands over its first column
            names[at] = f"{group}\n{names[at]}"
            names[at + 1 : at + span] = [f"\n{name}" for name in names[at + 1 : at + span]]
            at += span
    for i, name in enumerate(names):
        side: Literal["left", "right"] = "left" if i < table.text_columns else "right"
        shown.add_column(Text(name), justify=side, no_wrap=True)
    first_total = len(table.rows) - table.totals
    for i, row in enumerate(table.rows):
        cells = [Text(cell.text, style="bold" if cell.bold else "") for cell in row]
        shown.add_row(*cells, end_section=bool(table.totals) and i + 1 == first_total)
    return shown


def to_markdown(table: Table) -> str:
    """Write the table in GitHub's Markdown, with its title above and its notes below."""
    header = table.flatten_header()
    lines = [
        f"**{_escape_markdown(table.title)}**",
        "",
        _format_markdown_row([_escape_markdown(name) for name in header]),
        _format_markdown_row(
            ["---" if i < table.text_columns else "---:" for i in range(len(header))]
        ),
    ]
    for row in table.rows:
        cells = [_escape_markdown(cell.text) for cell in row]
        lines.append(
            _format_markdown_row(
                [f"**{t}**" if c.bold else t for t, c in zip(cells, row, strict=True)]
            )
        )
    lines += ["", *(f"{_escape_markdown(note)}  " for note in table.notes)] if table.notes else []
    return "\n".join(line.rstrip() if line.endswith("|") else line for line in lines) + "\n"


def to_csv(table: Table) -> str:
    """Write header and rows as comma-separated values, without title, notes and bold type."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.flatten_header())
    for row in table.rows:
        writer.writerow(["" if cell.text == MISSING else cell.text for cell in row])
    return stream.getvalue()


def to_latex(table: Table) -> str:
    r"""Write the table as a `table*` environment, which needs only `\usepackage{booktabs}`."""
    columns = "l" * table.text_columns + "r" * (len(table.header) - table.text_columns)
    lines = [r"\begin{table*}[ht]", r"  \centering", r"  \footnotesize"]
    lines += [rf"  \begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"    \toprule"]
    if table.groups:
        lines += _format_latex_groups(table.groups)
    lines += [_format_latex_row([_escape_latex(name) for name in table.header]), r"    \midrule"]
    first_total = len(table.rows) - table.totals
    for i, row in enumerate(table.rows):
        if table.totals and i == first_total:
            lines.append(r"    \midrule")
        cells = [
            rf"\textbf{{{_escape_latex(c.text)}}}" if c.bold else _escape_latex(c.text) for c in row
        ]
        lines.append(_format_latex_row(cells))
    caption = " ".join([f"{table.title}.", *table.notes])
    lines += [r"    \bottomrule", r"  \end{tabular}", rf"  \caption{{{_escape_latex(caption)}}}"]
    return "\n".join([*lines, r"\end{table*}", ""])


FORMATS: dict[str, Callable[[Table], str]] = {"md": to_markdown, "csv": to_csv, "tex": to_latex}
"""Formats of files by the ending of their names."""


def _format_markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape_markdown(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _format_latex_groups(groups: Sequence[tuple[str, int]]) -> list[str]:
    cells, rules, first = [""], [], 2
    for name, span in groups:
        cells += [rf"\multicolumn{{{span}}}{{c}}{{{_escape_latex(name)}}}"] if name else [""] * span
        if name:
            rules.append(rf"\cmidrule(lr){{{first}-{first + span - 1}}}")
        first += span
    return [_format_latex_row(cells), f"    {' '.join(rules)}"]


def _format_latex_row(cells: Sequence[str]) -> str:
    return rf"    {' & '.join(cells)} \\"


_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "Δ": r"$\Delta$",
    }
)


def _escape_latex(text: str) -> str:
    return re.sub(r"^-(?=\d)", "$-$", text.translate(_LATEX))
