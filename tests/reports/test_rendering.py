import csv
import io

import pytest
from rich.console import Console

from regoal.reports.rendering import (
    Cell,
    Table,
    split_by_group,
    to_csv,
    to_latex,
    to_markdown,
    to_rich,
)

TABLE = Table(
    title="A_b & 5 %",
    header=("Domain", "#", "Cov.", "Mean"),
    rows=(
        (Cell("Blocks"), Cell("100"), Cell("98", bold=True), Cell("-1.5")),
        (Cell("a|b*"), Cell("2"), Cell("0"), Cell("-")),
        (Cell("Total"), Cell("102"), Cell("98"), Cell("+1.5")),
    ),
    groups=(("", 1), ("lifted", 1), ("state", 1)),
    totals=1,
    notes=("one [note]",),
)


def test_markdown():
    assert to_markdown(TABLE).splitlines() == [
        "**A\\_b & 5 %**",
        "",
        "| Domain | # | lifted Cov. | state Mean |",
        "| --- | ---: | ---: | ---: |",
        "| Blocks | 100 | **98** | -1.5 |",
        "| a\\|b\\* | 2 | 0 | - |",
        "| Total | 102 | 98 | +1.5 |",
        "",
        "one [note]  ",
    ]


def test_csv_has_one_header_and_empty_cells_for_missing_values():
    assert list(csv.reader(io.StringIO(to_csv(TABLE)))) == [
        ["Domain", "#", "lifted Cov.", "state Mean"],
        ["Blocks", "100", "98", "-1.5"],
        ["a|b*", "2", "0", ""],
        ["Total", "102", "98", "+1.5"],
    ]


def test_latex():
    text = to_latex(TABLE)
    assert r"\begin{tabular}{@{}lrrr@{}}" in text
    assert r" &  & \multicolumn{1}{c}{lifted} & \multicolumn{1}{c}{state} \\" in text
    assert r"\cmidrule(lr){3-3} \cmidrule(lr){4-4}" in text
    assert r"Domain & \# & Cov. & Mean \\" in text
    assert r"Blocks & 100 & \textbf{98} & $-$1.5 \\" in text
    assert r"\caption{A\_b \& 5 \%. one [note]}" in text
    assert text.index(r"a|b*") < text.rindex(r"\midrule") < text.index("Total")
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize("width", [100, 20])
def test_terminal(width):
    console = Console(width=width, file=io.StringIO(), record=True, color_system=None)
    console.print(to_rich(TABLE, width))
    text = console.export_text()
    for word in ("A_b & 5 %", "lifted", "Blocks", "98", "one [note]", "+1.5"):
        assert word in text
    assert text.count("Total") == (1 if width == 100 else 2)


def test_nothing_is_cut_off_if_the_table_is_just_too_wide():
    for width in range(20, 60):
        console = Console(width=width, file=io.StringIO(), record=True, color_system=None)
        console.print(to_rich(TABLE, width))
        assert "\N{HORIZONTAL ELLIPSIS}" not in console.export_text()


def test_a_table_is_cut_at_its_groups():
    lifted, state = split_by_group(TABLE)
    assert lifted.title == "A_b & 5 %: lifted"
    assert (lifted.header, state.header) == (("Domain", "#", "Cov."), ("Domain", "#", "Mean"))
    assert [cell.text for cell in state.rows[0]] == ["Blocks", "100", "-1.5"]
    assert (lifted.notes, state.notes) == ((), TABLE.notes)
    assert split_by_group(lifted) == [lifted]


def test_tables_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="a row has 1 cells under 2 headings"):
        Table("t", ("a", "b"), ((Cell("x"),),))
    with pytest.raises(ValueError, match="groups span"):
        Table("t", ("a", "b"), (), groups=(("g", 2),))
