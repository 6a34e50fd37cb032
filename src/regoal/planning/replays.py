"""Find the plans of problems in folders, and load the states that they go through."""

from collections.abc import Sequence
from pathlib import Path

from regoal.errors import UsageError
from regoal.planning.pddl.domain import parse_domain
from regoal.planning.pddl.problem import parse_problem
from regoal.planning.plain.problem import read_problem
from regoal.planning.plain.replay import Replay, split_goal, trace_changes
from regoal.planning.plans import judge_plan, read_plan
from regoal.planning.problem_files import problem_files, with_domains
from regoal.records.results import problem_names


def load_replays(
    plans: Sequence[Path], problems: Sequence[Path], domain: Path | None
) -> list[Replay]:
    """Load the plans in folders, each with the problems of the folder in the same place.

    A plan folder has a file `NAME.plan` for some of the problems, as `regoal evaluate --plans`
    writes it. A plan file goes with a problem file. If `domain` is None, it is searched near each
    problem. Raises `UsageError` if the numbers differ or a folder has no plan for its problems, and
    the errors of `load_replay`.
    """
    if len(plans) != len(problems):
        raise UsageError(
            f"--plans gives {len(plans)} folder(s) and --problems {len(problems)}; give the "
            f"problems of each folder of plans, in the same order."
        )
    found = []
    for folder, of in zip(plans, problems, strict=True):
        files = with_domains(problem_files(of), domain)
        names = problem_names([problem for _, problem in files])
        loaded = [
            load_replay(*pair, plan, name)
            for pair, name in zip(files, names, strict=True)
            if (plan := _find_plan(folder, name)).is_file()
        ]
        if not loaded:
            raise UsageError(
                f"{folder} has no plan for a problem in {of}: expected files such as "
                f"{names[0]}.plan, as `regoal evaluate --plans {folder}` writes them."
            )
        found += loaded
    return found


def _find_plan(folder: Path, name: str) -> Path:
    return folder if folder.is_file() else folder / f"{name}.plan"


def load_replay(domain: Path, problem: Path, plan: Path, name: str) -> Replay:
    """Read the three files, and return the states that the plan goes through.

    An invalid plan ends before its first step that fails. `name` is the problem's name in the
    replay. The states are those that plans are validated by. Raises as `check_plan_file` does.
    """
    checked = parse_domain(domain)
    plain = read_problem(checked.source, parse_problem(problem, checked, domain).source)
    steps = read_plan(plan)
    verdict = judge_plan(plain, problem, steps)
    executed = steps if verdict.step is None else steps[: verdict.step - 1]
    literals, others = split_goal(plain.goal)
    return Replay(
        domain=checked.name,
        problem=name,
        objects=plain.objects,
        predicates=plain.predicates,
        initial=plain.initial,
        changes=trace_changes(plain, [(step.name, *step.objects) for step in executed]),
        goal=literals,
        other_goals=others,
        cost=verdict.cost,
        fault="" if verdict.valid else verdict.reason,
    )
