"""The text of an instance."""

import pytest

from regoal.domains.instance import Instance, numbered


def test_typed_text():
    instance = Instance(
        "two",
        "lights",
        (("lamp", numbered("l", 2)), ("wire", ())),
        (("ready",), ("off", "l1")),
        (("on", "l1"),),
    )
    assert instance.to_pddl() == (
        "(define (problem two)\n"
        "  (:domain lights)\n"
        "  (:objects\n    l1 l2 - lamp\n  )\n"
        "  (:init\n    (ready)\n    (off l1)\n  )\n"
        "  (:goal (and\n    (on l1)\n  ))\n"
        ")\n"
    )
    assert instance.of_type("lamp") == ("l1", "l2")


@pytest.mark.parametrize("goal", [(), (("on", "l1"),)])
def test_a_goal_that_holds_already_is_refused(goal):
    with pytest.raises(ValueError, match="done: the goal already holds"):
        Instance("done", "lights", (("", ("l1",)),), (("on", "l1"),), goal)
