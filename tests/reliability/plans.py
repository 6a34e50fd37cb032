"""Random plans, right ones and wrong ones, judged by our validator and by unified-planning's."""

import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import unified_planning.shortcuts as up
from unified_planning.engines import SequentialPlanValidator, ValidationResultStatus
from unified_planning.exceptions import UPException
from unified_planning.io import PDDLReader

from regoal.domains.splits import write_split
from regoal.planning.actions import DUMMY_ACTION
from regoal.planning.domain import Domain
from regoal.planning.load import load_domain, load_task
from regoal.planning.plans import format_plan, parse_plan, validate_plan
from regoal.planning.task import Task
from reliability import texts

GENERATED = ("blocks", "gripper", "miconic", "spanner", "delivery", "visitall", "reward")
MUTATIONS = 4
"""Wrong (or still right) plans made from each right one."""
LONGEST = 12

up.get_environment().credits_stream = None


@dataclass
class Agreement:
    """How the two validators judged."""

    right: int = 0
    mutated: int = 0
    counts: Counter = field(default_factory=Counter)
    """By the kind of mutation and the common verdict."""
    faults: list[str] = field(default_factory=list)


def judge_plans(*, seed: int, right: int, seconds_left=lambda: 1.0) -> Agreement:
    """Make so many right plans, mutate each, and compare the verdicts."""
    rng, found = random.Random(seed), Agreement()
    with tempfile.TemporaryDirectory(prefix="regoal-") as name:
        folder = Path(name)
        sources = list(_sources(folder))
        while found.right < right and seconds_left() > 0:
            domain, text, task = rng.choice(sources)
            _judge_one(domain, text, task, folder / "problem.pddl", rng, found)
    return found


def _sources(folder: Path) -> Iterator[tuple[Domain, str, Task]]:
    """Domains with the text and the task of a small problem."""
    for name in ("courier", "market", "stacks"):
        domain, problem, _ = texts.CASES[name]
        yield _source(folder / name, domain, problem)
    for name in GENERATED:
        problems = write_split(name, "train", folder / name, 0)
        domain = load_domain(folder / name / "domain.pddl")
        for path in problems[:3]:
            yield domain, path.read_text(), load_task(domain, path)


def _source(folder: Path, domain: str, problem: str) -> tuple[Domain, str, Task]:
    folder.mkdir()
    (folder / "domain.pddl").write_text(domain)
    (folder / "problem.pddl").write_text(problem)
    read = load_domain(folder / "domain.pddl")
    return read, problem, load_task(read, folder / "problem.pddl")


def _judge_one(
    domain: Domain, text: str, source: Task, path: Path, rng: random.Random, found: Agreement
) -> None:
    """A random walk makes a plan, and its last state the goal."""
    steps, state = [], source.initial_state
    for _ in range(rng.randint(1, LONGEST)):
        action = rng.choice(source.applicable_actions(state))
        if action is DUMMY_ACTION:
            break
        steps.append((action.name, *action.objects))
        state = source.successor(state, action)
    atoms = sorted(state.fluent_atoms)
    goal = [str(a) for a in rng.sample(atoms, min(len(atoms), rng.randint(1, 3)))]
    before = sorted(set(source.initial_state.fluent_atoms) - set(atoms))
    goal += [f"(not {a})" for a in before[:1] if rng.random() < 0.3]
    metric = "(:metric minimize (total-cost))" if source.has_costs else ""
    path.write_text(f"{text[: text.index('(:goal')]}(:goal (and {' '.join(goal)})) {metric})\n")
    task = load_task(domain, path)
    reader = PDDLReader()
    problem = reader.parse_problem(str(domain.path), str(path))
    plans = [("right", steps)]
    plans += [_mutated(steps, task, rng) for _ in range(MUTATIONS)]
    for kind, plan in plans:
        written = _text(plan)
        ours = validate_plan(task, parse_plan(written)).valid
        theirs = _theirs(reader, problem, written)
        found.right += kind == "right"
        found.mutated += kind != "right"
        found.counts[kind, ours] += 1
        if ours != theirs or (kind == "right" and not ours):
            found.faults.append(
                f"{kind}: ours {ours}, theirs {theirs}\n{path.read_text()}\n{written}"
            )


def _text(plan: list[tuple[str, ...]]) -> str:
    steps = [type("Step", (), {"name": name, "objects": objects}) for name, *objects in plan]
    return format_plan(steps, len(plan), True)


def _theirs(reader: PDDLReader, problem, text: str) -> bool:
    try:
        plan = reader.parse_plan_string(problem, text)
    except (UPException, AssertionError, KeyError, ValueError):
        return False  # names or numbers of arguments that the problem does not have
    with SequentialPlanValidator() as validator:
        # It does not know of itself whether it can do every kind of problem with costs.
        validator.skip_checks = True
        return validator.validate(problem, plan).status is ValidationResultStatus.VALID


def _mutated(steps: list[tuple[str, ...]], task: Task, rng: random.Random):
    """The kind of the mutation, and the plan after it."""
    plan = list(steps)
    kind = rng.choice(("drop", "swap", "step", "argument", "double", "add"))
    at = rng.randrange(len(plan)) if plan else 0
    if not plan:
        kind = "add"
    if kind == "drop":
        del plan[at]
    elif kind == "swap":
        other = rng.randrange(len(plan))
        plan[at], plan[other] = plan[other], plan[at]
    elif kind == "double":
        plan.insert(at, plan[at])
    elif kind == "argument" and len(plan[at]) > 1:
        step = list(plan[at])
        step[rng.randrange(1, len(step))] = rng.choice([*task.objects, "nobody"])
        plan[at] = tuple(step)
    else:
        name, arity = rng.choice(task.domain.actions)
        step = (
            (name, *(rng.choice(task.objects) for _ in range(arity))) if task.objects else (name,)
        )
        plan[at : at + (kind == "step")] = [step]
    return kind, plan
