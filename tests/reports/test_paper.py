import pytest

from regoal.reports import paper


@pytest.mark.parametrize("method", ["lifted", "propositional", "state"])
def test_rows_add_up_to_the_papers_totals(method):
    rows = paper.METHODS[method].values()
    assert len(rows) == 15
    assert sum(row.coverage for row in rows) == paper.TOTALS[method].coverage
    assert sum(row.total for row in rows) == paper.TOTALS[method].total


def test_lamas_totals_count_the_limited_domains_twice():
    rows = [*paper.LAMA.values(), *(paper.LAMA[domain] for domain in paper.LIMITED)]
    assert sum(row.coverage for row in rows) == 1212 == paper.TOTALS["lama"].coverage
    assert sum(row.total for row in rows) == 312029 == paper.TOTALS["lama"].total


@pytest.mark.parametrize("method", sorted(paper.METHODS))
def test_each_mean_is_total_by_coverage(method):
    for row in (*paper.METHODS[method].values(), paper.TOTALS[method]):
        mean = row.total / row.coverage if row.coverage else 0.0
        assert row.mean == pytest.approx(mean, abs=0.0501)


def test_table_1_has_the_ten_domains_of_table_2():
    assert list(paper.INSTANCES) == list(paper.LAMA)


def test_lama_has_one_row_for_both_variants():
    assert paper.paper_row("blocks-l", "lama") is paper.LAMA["blocks"]
    assert paper.paper_row("blocks-l", "lifted") is paper.LIFTED["blocks-l"]
    assert paper.paper_row("hiking-l", "lama") is None
    assert paper.paper_row("maze", "lifted") is None
    assert paper.paper_row("blocks", "novel") is None
