"""Gripper: carry balls from one room to the other with two grippers."""

from random import Random

from regoal.domains.instance import Atom, Instance, numbered, require

ROOMS = ("rooma", "roomb")
GRIPPERS = ("left", "right")


def generate(rng: Random, *, balls: int) -> Instance:
    """Generate the only instance with this many balls, all in the robot's room."""
    del rng
    require(balls > 0, f"balls must be at least 1, got {balls}")
    names = numbered("ball", balls)
    init: list[Atom] = [("room", room) for room in ROOMS]
    init += [("gripper", gripper) for gripper in GRIPPERS]
    init += [("ball", ball) for ball in names]
    init += [("at-robby", "rooma")]
    init += [("free", gripper) for gripper in GRIPPERS]
    init += [("at", ball, "rooma") for ball in names]
    goal = tuple(("at", ball, "roomb") for ball in names)
    objects = (("", (*ROOMS, *GRIPPERS, *names)),)
    return Instance(f"gripper-{balls}", "gripper-strips", objects, tuple(init), goal)


def count_reachable_states(instance: Instance, limit: int) -> int:
    """Count the reachable states: up to two balls held, the others in either room.

    The count is exact and ignores `limit`.
    """
    del limit
    n = len(instance.goal)
    none, one, two = 1 << n, n << n, (n * (n - 1) << n) // 4
    return len(ROOMS) * (none + one + two)
