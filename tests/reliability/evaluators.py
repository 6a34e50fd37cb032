"""The engine and the plain evaluator side by side on random domains.

    PYTHONPATH=tests python -m reliability.evaluators --domains 20000 --seed 1

prints how many domains, states and actions were compared, and every difference; exit code 1 if
there is one.
"""

import argparse
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from regoal.errors import RegoalError
from regoal.planning.actions import DUMMY_ACTION
from regoal.planning.load import load_domain, load_task
from regoal.planning.plain.problem import Fact, Problem, read_problem
from regoal.planning.plain.state import State, cost, fits
from regoal.planning.task import State as EngineState
from regoal.planning.task import Task
from reliability.random_domains import domain_and_problem

STEPS = 4
"""States of the walk through a problem."""
EVERY = 1000
"""Domains between two reports."""
REFUSED = ("comes to more than", "both true and false", "can never hold", "leaves a choice")
"""Parts of the messages by which regoal may refuse a random text."""


@dataclass
class Comparison:
    """Counts of what was compared."""

    domains: int = 0
    derived: int = 0
    """How many of these have derived predicates."""
    states: int = 0
    actions: int = 0
    true: Counter[str] = field(default_factory=Counter)
    """States in which the goal holds, a derived fact does, a derived fact does not."""
    refused: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.domains} domains ({self.derived} with derived predicates), {self.states} "
            f"states, {self.actions} actions; {dict(self.true)}; refused {dict(self.refused)}; "
            f"{len(self.faults)} differences"
        )


def compare(*, domains: int, seed: int, seconds: float = math.inf) -> Comparison:
    """Compare on so many random domains, half of them with derived predicates, or for a time.

    Domain number i depends on the seed and i alone.
    """
    found, number, start = Comparison(), 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="regoal-") as folder:
        while found.domains < domains and time.monotonic() - start < seconds:
            rng = random.Random(f"{seed} {number}")
            texts = domain_and_problem(rng, derived=number % 2 == 1)
            if fault := _compare_one(texts, Path(folder), rng, found):
                found.faults.append(f"seed {seed}, number {number}: {fault}\n{''.join(texts)}")
            number += 1
            if number % EVERY == 0:
                print(f"{number}: {found}", flush=True)
    return found


def compare_texts(texts: tuple[str, str]) -> Comparison:
    """Compare on one domain and problem."""
    found = Comparison()
    with tempfile.TemporaryDirectory(prefix="regoal-") as folder:
        if fault := _compare_one(texts, Path(folder), random.Random(0), found):
            found.faults.append(fault)
    return found


def _compare_one(
    texts: tuple[str, str], folder: Path, rng: random.Random, found: Comparison
) -> str:
    paths = folder / "domain.pddl", folder / "problem.pddl"
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    try:
        task = load_task(load_domain(paths[0]), paths[1])
    except RegoalError as error:
        reason = next((words for words in REFUSED if words in str(error)), "")
        found.refused[reason] += 1
        return "" if reason else f"refused: {error}"
    found.domains += 1
    problem = read_problem(*texts)
    found.derived += bool(problem.rules)
    return next(_differences(task, problem, rng, found), "")


def _differences(
    task: Task, problem: Problem, rng: random.Random, found: Comparison
) -> Iterator[str]:
    """Yield the differences along a random walk, the first one first."""
    state, plain, walked = task.initial_state, State(problem, problem.initial), ""
    for _ in range(STEPS):
        found.states += 1
        yield from _state_differences(task, state, plain, walked, found)
        steps = applicable(plain)
        if not steps:
            return
        actions = {(a.name, *a.objects): a for a in task.applicable_actions(state)}
        for step in steps:
            found.actions += 1
            if task.cost(state, actions[step]) != plain_cost(problem, step):
                yield f"cost of {step}{walked}"
            reached = _facts(task.successor(state, actions[step]))
            if reached != (after := all_facts(successor(plain, step))):
                yield f"successor by {step}{walked}: {sorted(reached ^ after)}"
        step = rng.choice(steps)
        walked += f" after {step}"
        state, plain = task.successor(state, actions[step]), successor(plain, step)


def _state_differences(
    task: Task, engine: EngineState, plain: State, walked: str, found: Comparison
) -> Iterator[str]:
    facts, goal, steps = all_facts(plain), plain.holds(plain.problem.goal, {}), applicable(plain)
    if _facts(engine) != facts:
        yield f"atoms{walked}: {sorted(_facts(engine) ^ facts)}"
    if engine.satisfies(task.goal) is not goal:
        yield f"goal{walked}: plainly {goal}"
    actions = [a for a in task.applicable_actions(engine) if a is not DUMMY_ACTION]
    if [(a.name, *a.objects) for a in actions] != steps:
        yield f"actions{walked}: {actions}, plainly {steps}"
    found.true["goal"] += goal
    found.true["derived"] += any(fact[0] in plain.problem.rules for fact in facts)
    found.true["not derived"] += any(
        len({f for f in facts if f[0] == name})
        < len(plain.problem.objects) ** len(rules[0].parameters)
        for name, rules in plain.problem.rules.items()
    )


def _facts(state: EngineState) -> set[Fact]:
    return {(atom.predicate, *atom.objects) for atom in state.atoms}


def all_facts(state: State) -> set[Fact]:
    """Return every fact that holds, derived ones too."""
    arities = {name: len(rules[0].parameters) for name, rules in state.problem.rules.items()}
    derived = {
        (name, *objects)
        for name, arity in arities.items()
        for objects in product(state.problem.objects, repeat=arity)
    }
    return {*state.facts} | {fact for fact in derived if state.holds([*fact], {})}


def applicable(state: State) -> list[Fact]:
    """Every action with its objects whose precondition holds, sorted."""
    found = []
    for name, action in state.problem.actions.items():
        for objects in product(state.problem.objects, repeat=len(action.parameters)):
            if fits(state.problem, action.parameters, objects) and state.holds(
                action.precondition, action.bind(objects)
            ):
                found.append((name, *objects))
    return sorted(found)


def successor(state: State, step: Fact) -> State:
    """The state after an action, the old one left as it is."""
    after = State(state.problem, state.facts)
    action = state.problem.actions[step[0]]
    after.execute(action, action.bind(step[1:]))
    return after


def plain_cost(problem: Problem, step: Fact) -> float | None:
    """Return the cost of a step."""
    action = problem.actions[step[0]]
    return cost(problem, action, action.bind(step[1:]))


def main() -> int:
    """The command; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--domains", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = compare(domains=options.domains, seed=options.seed)
    for fault in found.faults:
        print(f"difference: {fault}")
    print(f"seed {options.seed}: {found}")
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
