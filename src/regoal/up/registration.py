"""Make regoal's engines known to Unified Planning."""

from unified_planning.environment import Environment, get_environment

ENGINES = {"regoal": "Planner", "regoal-validator": "Validator"}
"""The classes in `regoal.up.engines`, by the names that Unified Planning gets for them."""


def register(environment: Environment | None = None) -> None:
    """Add regoal's planner and validator to an environment, by default the global one.

    They are found by their names, `OneshotPlanner(name="regoal")` and
    `PlanValidator(name="regoal-validator")`, and are never chosen by the kind of a problem: a
    policy solves the problems of its own domain only. Engines that are there already stay.
    """
    factory = get_environment(environment).factory
    preferred = list(factory.preference_list)
    for name, of in ENGINES.items():
        if name not in factory.engines:
            factory.add_engine(name, "regoal.up.engines", of)
    factory.preference_list = preferred
