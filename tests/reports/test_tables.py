from dataclasses import replace

import pytest

from regoal.errors import UsageError
from regoal.records.results import Outcome, PlanResult
from regoal.records.run_record import RunRecord
from regoal.reports import run_choice as selection
from regoal.reports import tables


def results(lengths, seconds=1.0):
    """Make results of p0, p1, ... with these plan lengths; None is a failure."""
    return [
        PlanResult(
            problem=f"p{i}",
            domain="blocks",
            method="any",
            outcome=Outcome.DEAD_END if length is None else Outcome.SOLVED,
            plan_length=length,
            plan_cost=length,
            seconds=seconds,
            steps=length or 0,
        )
        for i, length in enumerate(lengths)
    ]


def run(tmp_path, method, lengths, validated=(10, 50), **config):
    solved, plan_length = validated
    return RunRecord(
        tmp_path,
        {"domain": "blocks", "hindsight": method, "seed": 0, "preset": "paper", **config},
        validation=[
            {"episode": 0, "solved": 1, "problems": 20, "plan_length": 1},
            {"episode": 9, "solved": solved, "problems": 20, "plan_length": plan_length},
        ],
        results=results(lengths),
    )


def lama(tmp_path, lengths, domain="blocks"):
    return RunRecord(tmp_path, {"domain": domain, "method": "lama"}, results=results(lengths))


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def bold(table):
    return [(row[0].text, i) for row in table.rows for i, cell in enumerate(row) if cell.bold]


def test_coverage_table_by_hand(tmp_path):
    runs = [
        run(tmp_path, "state", [None, 7, None]),
        run(tmp_path, "lifted", [2, 4, 9]),
        run(tmp_path, "lifted", [10, None, 20], domain="Gripper_L"),
        lama(tmp_path, [1, 1, 1]),
    ]
    table = tables.coverage_table(runs)
    assert table.groups == (("", 1), ("lifted", 4), ("state", 4))
    assert texts(table) == [
        ["Blocks", "3", "3", "15", "4.0", "5.0", "1", "7", "7.0", "7.0"],
        ["Gripper-L", "3", "2", "30", "15.0", "15.0", "-", "-", "-", "-"],
        ["Total", "6", "5", "45", "9.0", "9.0", "1", "7", "7.0", "7.0"],
    ]
    assert bold(table) == [("Blocks", 2), ("Gripper-L", 2), ("Total", 2)]
    assert not any("part of the instances" in note for note in table.notes)
    assert any("- if a method was not tested" in note for note in table.notes)
    fewer = tables.coverage_table([*runs, run(tmp_path, "state", [3], domain="Gripper_L")])
    assert "Tested on a part of the instances: Gripper-L, state (1 of 3)." in fewer.notes
    assert not any("if a method was not tested" in note for note in fewer.notes)


def test_lama_table_and_which_tables_there_are(tmp_path):
    only_lama = [lama(tmp_path, [3, None]), lama(tmp_path, [None], domain="spanner")]
    assert texts(tables.lama_table(only_lama)) == [
        ["Blocks", "2", "1", "3", "3.0", "3.0"],
        ["Spanner", "1", "0", "-", "-", "-"],
        ["Total", "3", "1", "3", "3.0", "3.0"],
    ]
    assert "coverage" not in tables.tables_of(only_lama)
    assert "lama" not in tables.tables_of([run(tmp_path, "lifted", [2])])
    assert list(tables.tables_of([*only_lama, run(tmp_path, "lifted", [2])])) == list(tables.TABLES)


def test_paper_table_is_ours_minus_theirs(tmp_path):
    lengths = [100.0, 90.0, None, 80.0]  # 75 %, mean 90; the paper's lifted Blocks: 100, 96.7
    runs = [
        run(tmp_path, "lifted", lengths),
        run(tmp_path, "lifted", [5], domain="hiking"),  # the paper solves none
        run(tmp_path, "lifted", [5], domain="maze"),  # the paper has no such row
    ]
    runs[0].results[3] = replace(runs[0].results[3], returns=2)  # 50 % by the paper's rule
    table = tables.paper_table(runs)
    assert texts(table) == [
        ["Blocks", "lifted", "4", "75.0", "50.0", "100.0", "-50.0", "90.0", "96.7", "-6.7"],
        ["Hiking", "lifted", "1", "100.0", "100.0", "0.0", "+100.0", "5.0", "-", "-"],
        ["Maze", "lifted", "1", "100.0", "100.0", "-", "-", "5.0", "-", "-"],
        ["Mean", "lifted", "5", "87.5", "75.0", "50.0", "+25.0", "-", "-", "-"],
    ]
    assert table.totals == 1
    maze_alone = tables.paper_table(runs[2:])
    assert (len(maze_alone.rows), maze_alone.totals) == (1, 0)


def test_seeds_table(tmp_path):
    runs = [
        run(tmp_path, "lifted", [5, 5], seed=0),
        run(tmp_path, "lifted", [5, None], seed=1),
        run(tmp_path, "state", [None, None], seed=0),
        run(tmp_path, "lifted", [5], seed=0, domain="maze"),
    ]
    assert texts(tables.seeds_table(runs)) == [
        ["Blocks", "lifted", "2", "75.0", "50.0 to 100.0"],
        ["Blocks", "state", "1", "0.0", "-"],
        ["Maze", "lifted", "1", "100.0", "-"],
    ]


def test_common_table_compares_only_what_all_solve(tmp_path):
    runs = [run(tmp_path, "lifted", [8, 1, None]), lama(tmp_path, [6, None, 3])]
    table = tables.common_table(runs)
    assert texts(table) == [
        ["Blocks", "lifted", "1", "8", "8.0", "8.0", "-", "1.00"],
        ["Blocks", "lama", "1", "6", "6.0", "6.0", "-", "1.00"],
    ]
    assert bold(table) == [
        ("Blocks", 7),
        ("Blocks", 3),
        ("Blocks", 4),
        ("Blocks", 5),
        ("Blocks", 7),
    ]
    one = tables.common_table([run(tmp_path, "lifted", [None]), lama(tmp_path, [6])])
    assert texts(one) == [["Blocks", "lama", "1", "6", "6.0", "6.0", "-", "1.00"]]
    assert tables.common_table([run(tmp_path, "lifted", [None])]).rows == ()
    apart = tables.common_table([run(tmp_path, "lifted", [None, 2]), lama(tmp_path, [6, None])])
    assert [row[2:] for row in texts(apart)] == [["0", *["-"] * 5]] * 2


def test_selection_by_coverage_then_length_then_seed(tmp_path):
    def seed_with(seed, validated):
        return run(tmp_path, "lifted", [seed], seed=seed, validated=validated)

    weak, long, short = seed_with(0, (9, 10)), seed_with(3, (10, 60)), seed_with(2, (10, 50))
    tie, never = seed_with(1, (10, 50)), RunRecord(tmp_path, {"seed": 9}, results=results([1]))
    assert selection.select_run([weak, long, short]) is short
    assert selection.select_run([short, never, tie]) is tie
    assert selection.select_run([never, weak]) is weak
    table = tables.coverage_table([weak, long, short])
    assert texts(table)[0] == ["Blocks", "1", "1", "2", "2.0", "2.0"]
    assert table.notes == (tables.SELECTION_NOTE,)


def test_notes_report_mixed_presets_and_unfinished_runs(tmp_path):
    runs = [
        run(tmp_path, "lifted", [1]),
        run(tmp_path, "state", [1], preset="laptop"),
        run(tmp_path, "state", []),
    ]
    notes = tables.coverage_table(runs).notes
    assert "The runs differ in preset; their config.json has the values." in notes
    assert "1 of 3 runs have no test results yet and are omitted." in notes


def test_without_results_the_remedy_is_named(tmp_path):
    for make in (tables.tables_of, *tables.TABLES.values()):
        with pytest.raises(UsageError, match="run `regoal evaluate RUN"):
            make([run(tmp_path, "lifted", [])])


def test_domains_and_methods_stand_in_the_papers_order():
    keys = [("maze10", "novel"), ("maze2", "lama"), ("visitall", "state"), ("blocks-l", "lifted")]
    assert selection.sort_domains(keys) == ["blocks-l", "visitall", "maze2", "maze10"]
    assert selection.sort_methods(keys) == ["lifted", "state", "lama", "novel"]


def test_shortened_plans_have_a_column_and_a_note(tmp_path):
    lifted = run(tmp_path, "lifted", [8, 4])
    lifted.results[:] = [replace(r, short_length=r.plan_length - 3) for r in lifted.results]
    table = tables.common_table([lifted, lama(tmp_path, [6, 5])])
    assert texts(table) == [
        ["Blocks", "lifted", "2", "12", "6.0", "6.0", "3.0", "1.00"],
        ["Blocks", "lama", "2", "11", "5.5", "5.5", "-", "1.00"],
    ]
    for make in (tables.coverage_table, tables.paper_table):
        assert tables.LENGTHS_NOTE in make([lifted]).notes
    assert tables.LENGTHS_NOTE not in tables.coverage_table([run(tmp_path, "lifted", [8])]).notes
