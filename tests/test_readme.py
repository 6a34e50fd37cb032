"""The README's commands are run, with less to do: few problems, tiny networks, few steps."""

import re
import shlex
from pathlib import Path

import pytest

from regoal import cli, commands, errors
from regoal.networks.policy_file import shipped_policies
from tools import readme_table

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


def test_the_table_of_results_is_that_of_the_records():
    coverage = (README.parent / "results" / "coverage.csv").read_text(encoding="utf-8")
    assert readme_table.with_table(readme(), coverage) == readme()


def test_it_is_short():
    text = re.sub(r"```.*?```|^\|.*?$", "", readme(), flags=re.DOTALL | re.MULTILINE)
    assert len(text.split()) <= 700


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", readme()):
        assert (README.parent / target).exists(), target
