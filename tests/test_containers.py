"""The recipes in `containers/`: what the track asks of them, and that their commands exist."""

import re
from pathlib import Path

import pytest

from regoal import cli
from regoal.commands.learning_track import Learn, Solve

FOLDER = Path(__file__).parent.parent / "containers"
FEATURES = (
    "DerivedPredicates", "UniversallyQuantifiedPreconditions",
    "ExistentiallyQuantifiedPreconditions", "UniversallyQuantifiedEffects",
    "NegativePreconditions", "EqualityPreconditions", "InequalityPreconditions",
    "ConditionalEffects", "ImplyPreconditions",
)  # fmt: skip


def section(name, text):
    """Return the lines of a section of a recipe, without indentation."""
    found = re.search(rf"^%{name}\n(.*?)(?=^%|\Z)", text, flags=re.DOTALL | re.MULTILINE)
    return [line.strip() for line in found[1].splitlines() if line.strip()]


@pytest.mark.parametrize(("name", "command"), [("learn", Learn), ("plan", Solve)])
def test_a_recipe_has_every_label_and_calls_a_command(name, command):
    text = (FOLDER / f"Apptainer.regoal.{name}").read_text(encoding="utf-8")
    labels = dict(line.split(maxsplit=1) for line in section("labels", text))
    wanted = {"Name", "Description", "Authors", "License", "Environments"}
    assert wanted | {f"Supports{feature}" for feature in FEATURES} <= labels.keys()
    assert {labels[f"Supports{feature}"] for feature in FEATURES} == {"yes"}
    [line] = section("runscript", text)
    assert re.fullmatch(r'exec regoal (\w+) "\$@"', line)
    parsed = cli.parse([line.split()[2], "dk", "domain.pddl", "p1.pddl", "p2.pddl"])
    assert isinstance(parsed, command)


def test_all_images_are_made_alike():
    learn, plan = (
        (FOLDER / f"Apptainer.regoal.{name}").read_text(encoding="utf-8")
        for name in ("learn", "plan")
    )
    for name in ("files", "environment"):
        assert section(name, learn) == section(name, plan)
    assert section("post", learn)[:-1] == section("post", plan)[:-1]
    copied = {line.split()[0] for line in section("files", plan)}
    docker = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    listed = {
        word
        for line in re.findall(r"^COPY (.*) \S+$", docker, flags=re.MULTILINE)
        for word in line.split()
    }
    ignored = (FOLDER / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    assert copied == listed == {word.removeprefix("!") for word in ignored if word != "*"}
    for package in ("gcc", "libc6-dev"):
        assert package in docker
        assert package in plan


def test_images_that_learn_have_pytorch():
    for name in ("Apptainer.regoal.learn", "Dockerfile"):
        assert "'.[train]'" in (FOLDER / name).read_text(encoding="utf-8"), name
