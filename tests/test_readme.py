"""The README's commands are run, with less to do: few problems, tiny networks, few steps."""

import re
import shlex
from pathlib import Path

import pytest

from regoal import cli, commands, errors
from regoal.networks.policy_file import shipped_policies
from reproduction import ipc2023_tables, paper
from tools import result_tables

README = Path(__file__).parent.parent / "README.md"
KEPT = 2
LESS = {
    "train": "--layers 2 --embedding-size 16 --episodes 1 --updates 1 --validation-steps 3 "
    "--horizon 10 --threads 1",
    "evaluate": "--max-steps 3",
}


def readme():
    if not README.is_file():
        pytest.skip("there is no README beside the tests")
    return README.read_text(encoding="utf-8")


def tour():
    """The words of every command in a console block, in order, without `regoal`."""
    blocks = re.findall(r"```console\n(.*?)```", readme(), flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert all(line.startswith("$ regoal ") for line in lines)
    return [shlex.split(line.removeprefix("$ regoal ")) for line in lines]


def test_the_tour_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in tour():
        own = words[:2] == ["plan", "runs/gripper"]  # after one episode it may find no plan
        if words[0] == "plan" and not own and words[1] not in shipped_policies():
            continue
        if words[0] == "validate" and not Path(words[3]).exists():
            continue
        less = "--max-steps 3 --no-search" if own else LESS.get(words[0], "")
        code = cli.run([*words, *less.split()])
        assert code == 0 or (own and code == errors.EXIT_NO_PLAN), (words, capsys.readouterr())
        if words[0] == "generate":
            keep_few(Path(words[words.index("--out") + 1]))
    assert (tmp_path / "report" / "coverage.md").is_file()


def keep_few(problems):
    for surplus in sorted(problems.glob("p*.pddl"))[KEPT:]:
        surplus.unlink()


def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", readme(), flags=re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    plan, best = capsys.readouterr().out.splitlines()
    assert plan.startswith("[GroundAction(name='pick', objects=('ball1', 'rooma', 'left'))")
    assert re.fullmatch(r"best: \(pick ball\d+ rooma (left|right)\) of \d+ actions", best)


def test_the_python_example_is_ten_lines():
    (example,) = re.findall(r"```python\n(.*?)```", readme(), flags=re.DOTALL)
    assert len(example.splitlines()) <= 10


def test_the_table_of_commands_is_complete():
    named = re.findall(r"^\| `regoal (\w+)", readme(), flags=re.MULTILINE)
    assert sorted(named) == sorted(commands.COMMANDS)


@pytest.mark.parametrize("page", result_tables.PAGES)
def test_the_tables_of_results_are_those_of_the_records(page):
    text = (README.parent / page).read_text(encoding="utf-8")
    assert result_tables.with_tables(text, page, README.parent / "results") == text


@pytest.fixture
def filled(tmp_path):
    """The README with tables from files of a few cells, and the folder of these."""
    lines = [
        ",".join(paper.COLUMNS),
        "blocks,lifted,0,0,9,2,20,0,9,20,97,95,100,9000,90,92.8,,abc",
        "blocks,lifted,1,1,9,2,20,0,8,20,99,98,100,9000,90,90.9,,abc",
        "blocks,propositional,0,1,9,2,20,0,9,20,3,3,100,9000,90,90.0,,abc",
        "visitall-l,lifted,0,1,9,2,20,0,9,20,4,4,100,9000,90,90.0,,abc",
    ]
    (tmp_path / "coverage.csv").write_text("\n".join(lines))
    lines = [
        ",".join(ipc2023_tables.COLUMNS),
        "blocksworld,trained,easy,30,30,29,20,29,9.0,400,1.0,2m",
        "blocksworld,trained,hard,15,15,5,4,5,9.0,400,1.0,2m",
        "blocksworld,lama,easy,30,30,28,0,28,9.0,400,1.0,2m",
        "blocksworld,lama,hard,15,9,7,0,7,9.0,400,1.0,2m",
        "ferry,trained,easy,30,30,7,0,7,9.0,400,1.0,2m",  # and not yet on the hard ones
        "ferry,lama,hard,15,15,7,0,7,9.0,400,1.0,2m",
        "transport,shipped,easy,30,30,0,0,0,0.0,0,,2m",
        "sum,trained,,45,45,34,24,34,9.0,400,1.0,",
    ]
    (tmp_path / "ipc2023.csv").write_text("\n".join(lines))
    return result_tables.with_tables(readme(), "README.md", tmp_path), tmp_path


def test_its_tables_have_the_cells_that_there_are(filled):
    text, folder = filled
    tables = [re.findall(r"^\|.*\n", part, re.MULTILINE) for part in blocks_of_results(text)]
    assert tables[0][2:] == [
        "| Blocks | 2-14 blocks; 20-50 blocks | 99 | 97 | 98 | 100 | 100 |\n",
    ]
    assert tables[1][2:] == [  # 85 and 71 of 90 are the best published
        "| Blocksworld | 34 of 45 | 24 of 45 | - | 2m | 94 |\n",
        "| Transport | - | - | 0 of 30 | 2m | 79 |\n",
    ]
    assert "LAMA is its first search" not in text  # as no domain is tested with it
    assert '"Shipped" policies' in text
    assert all(table[0].count("|") - 1 <= 7 for table in tables)
    assert result_tables.with_tables(text, "README.md", folder) == text


def blocks_of_results(text):
    """The two parts of the README that are made from files."""
    return re.findall(r"<!-- table from .*?<!-- end of table -->", text, re.DOTALL)


def test_a_table_without_its_file_stays(filled):
    text, folder = filled
    (folder / "ipc2023.csv").unlink()
    (folder / "coverage.csv").write_text("domain,method,coverage\nblocks,lifted,100\n")
    assert result_tables.with_tables(text, "README.md", folder) == text
    with pytest.raises(ValueError, match=r"no place for the table from coverage\.csv"):
        result_tables.with_tables("# regoal", "README.md", folder)


def test_it_is_short(filled):
    for text in (readme(), filled[0]):
        words = re.sub(r"```.*?```|^\|.*?$", "", text, flags=re.DOTALL | re.MULTILINE).split()
        assert len(words) <= 700


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", readme()):
        assert (README.parent / target).exists(), target
