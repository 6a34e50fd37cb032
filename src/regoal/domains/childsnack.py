"""Childsnack: make sandwiches and serve them; in the allergy-free variant no child is allergic."""

from random import Random

from regoal.domains.instance import Atom, Instance, numbered, require

TABLES = numbered("table", 3)


def generate(rng: Random, *, children: int, gluten_ratio: float = 0.0) -> Instance:
    """Generate a problem with one tray, three tables, and as many portions as children.

    The share `gluten_ratio` of children (rounded down) has an allergy. Equally many bread and
    content portions are free of gluten. Every child waits at a uniform table.
    """
    require(children > 0, f"children must be at least 1, got {children}")
    kids = numbered("child", children)
    breads, contents = numbered("bread", children), numbered("content", children)
    sandwiches = numbered("sandw", children)
    special = int(children * gluten_ratio)
    allergic = frozenset(rng.sample(kids, special))
    init: list[Atom] = [("at", "tray1", "kitchen")]
    init += [("at_kitchen_bread", bread) for bread in breads]
    init += [("at_kitchen_content", content) for content in contents]
    init += [("no_gluten_bread", bread) for bread in _choose(rng, breads, special)]
    init += [("no_gluten_content", content) for content in _choose(rng, contents, special)]
    init += [("allergic_gluten" if kid in allergic else "not_allergic_gluten", kid) for kid in kids]
    init += [("waiting", kid, rng.choice(TABLES)) for kid in kids]
    init += [("notexist", sandwich) for sandwich in sandwiches]
    objects = (
        ("child", kids),
        ("bread-portion", breads),
        ("content-portion", contents),
        ("sandwich", sandwiches),
        ("tray", ("tray1",)),
        ("place", TABLES),
    )
    goal = tuple(("served", kid) for kid in kids)
    return Instance(f"childsnack-{children}-{special}", "child-snack", objects, tuple(init), goal)


def _choose(rng: Random, names: tuple[str, ...], count: int) -> list[str]:
    """Draw a uniform subset of `names`, in their order."""
    chosen = frozenset(rng.sample(names, count))
    return [name for name in names if name in chosen]
