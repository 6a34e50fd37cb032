"""The plain evaluator and Fast Downward on random domains: cost of the best plan, or none.

    PYTHONPATH=tests python -m reliability.fast_downward --domains 40 --seed 1

The best plan is found by trying everything with the plain evaluator; domains with more states
than MOST_STATES are passed over.
"""

import argparse
import heapq
import math
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from regoal.evaluation.lama import fast_downward
from regoal.planning.plain.problem import Problem, read_problem
from regoal.planning.plain.state import State
from regoal.planning.plans import check_plan_file
from reliability.evaluators import applicable, plain_cost, successor
from reliability.random_domains import domain_and_problem

MOST_STATES = 400
UNSOLVABLE = (10, 11)
"""Fast Downward's exit codes for a problem without a plan."""


def judge(*, domains: int, seed: int) -> tuple[dict[str, int], list[str]]:
    """How many domains were solved and unsolvable, and every difference."""
    counts, faults, number = {"solved": 0, "unsolvable": 0, "passed over": 0}, [], 0
    with tempfile.TemporaryDirectory(prefix="regoal-") as name:
        while counts["solved"] + counts["unsolvable"] < domains:
            texts = _for_fast_downward(
                *domain_and_problem(random.Random(f"{seed} {number}"), derived=True)
            )
            number += 1
            problem = read_problem(*texts)
            best = best_cost(problem)
            if best == 0 or best is None or (best == math.inf and number % 16):
                counts["passed over"] += 1  # true at the start, too large, most unsolvable ones
                continue
            fault = _compare(texts, Path(name), best)
            counts["unsolvable" if best == math.inf else "solved"] += 1
            if fault:
                faults.append(f"seed {seed}, number {number - 1}: {fault}\n{''.join(texts)}")
    return counts, faults


def best_cost(problem: Problem) -> float | None:
    """The cost of the cheapest plan, infinite if there is none; None if it takes too long."""
    start = frozenset(problem.initial)
    done: set[frozenset] = set()
    waiting = [(0.0, 0, start)]
    count = 0
    while waiting:
        cost, _, facts = heapq.heappop(waiting)
        if facts in done:
            continue
        done.add(facts)
        state = State(problem, facts)
        if state.holds(problem.goal, {}):
            return cost
        if len(done) > MOST_STATES:
            return None
        for step in applicable(state):
            count += 1
            after = frozenset(successor(state, step).facts)
            heapq.heappush(waiting, (cost + plain_cost(problem, step), count, after))
    return math.inf


def _for_fast_downward(domain: str, problem: str) -> tuple[str, str]:
    """Whole costs, no `either`, and rules that repeat their predicate's types."""
    domain, problem = (text.replace("(either u v)", "object") for text in (domain, problem))
    declared = re.search(r"\(:predicates (.*)\)\n", domain)[1]
    kinds = {
        words[0]: words[3::3]
        for words in (found.split() for found in re.findall(r"\(([^()]*)\)", declared))
    }

    def spelled_out(found: re.Match) -> str:
        words = found[1].split()
        for i, kind in enumerate(kinds[words[0]]):
            words[3 * i + 3] = kind if words[3 * i + 3] == "object" else words[3 * i + 3]
        return f"(:derived ({' '.join(words)})"

    return re.sub(r"\(:derived \(([^()]*)\)", spelled_out, domain), problem.replace("2.5", "3")


def _compare(texts: tuple[str, str], folder: Path, best: float) -> str:
    paths = folder / "domain.pddl", folder / "problem.pddl", folder / "plan"
    for path, text in zip(paths, texts, strict=False):
        path.write_text(text)
    paths[2].unlink(missing_ok=True)
    run = subprocess.run(
        [sys.executable, str(fast_downward()), "--plan-file", "plan", "domain.pddl", "problem.pddl",
         "--search", "astar(blind())"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if run.returncode in UNSOLVABLE:
        return "" if best == math.inf else f"no plan by Fast Downward, but one of cost {best}"
    if run.returncode != 0:
        return f"Fast Downward ends with {run.returncode}: {run.stdout[-300:]} {run.stderr[-300:]}"
    verdict = check_plan_file(*paths)
    if not verdict.valid or verdict.cost != best:
        return f"a plan by Fast Downward, {verdict.reason}; best {best}: {paths[2].read_text()}"
    return ""


def main() -> int:
    """The command; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--domains", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts, faults = judge(domains=options.domains, seed=options.seed)
    for fault in faults:
        print(f"difference: {fault}")
    print(f"seed {options.seed}: {counts}; {len(faults)} differences")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
