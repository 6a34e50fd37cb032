"""The README's commands are run, with less to do: few problems, tiny networks, few steps."""

import re
import shlex
from pathlib import Path

import pytest

from regoal import cli, commands, errors
from regoal.networks.policy_file import shipped_policies

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
        own = words[:2] == ["plan", "runs/blocks"]  # after one episode it may find no plan
        if words[0] == "plan" and not own and words[1] not in shipped_policies():
            continue
        if words[0] == "validate" and not Path(words[3]).exists():
            continue
        less = "--max-steps 3" if own else LESS.get(words[0], "")
        code = cli.run([*words, *less.split()])
        assert code == 0 or (own and code == errors.EXIT_NO_PLAN), (words, capsys.readouterr())
        if words[0] == "generate":
            keep_few(Path(words[words.index("--out") + 1]))
    assert (tmp_path / "report" / "coverage.md").is_file()


def keep_few(problems):
    for surplus in sorted(problems.glob("p*.pddl"))[KEPT:]:
        surplus.unlink()


def test_the_table_of_commands_is_complete():
    named = re.findall(r"^\| `regoal (\w+)", readme(), flags=re.MULTILINE)
    assert sorted(named) == sorted(commands.COMMANDS)


def test_the_table_of_exit_codes_is_complete():
    table = readme().split("## Exit codes")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\d, ]+) \|", table, flags=re.MULTILINE)
    listed = {int(code) for row in rows for code in row.split(",")}
    defined = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert listed == defined | {cli.EXIT_INTERRUPTED, cli.EXIT_TERMINATED}


def test_the_places_exist():
    table = readme().split("## Where things are")[1]
    for place in re.findall(r"`([a-z_]+(?:/[a-z_.]*)*/)`", table):
        assert (README.parent / place).is_dir(), place
