"""The paper's figures: how each best policy so far does on the test problems when it may cycle.

`python -m reproduction.curve RUNS...` runs every policy that a training kept, in its order, on the
benchmark's test problems without cycle avoidance, and writes `test_curve.jsonl` in the run's
folder, a line a policy. `regoal report` then draws it.
"""

from functools import partial
from pathlib import Path

from regoal.cli import script
from regoal.evaluation.execution import Visited, execute
from regoal.evaluation.process_pool import execute_side_by_side, most_processes
from regoal.networks.kernels.cpu import kernel as native
from regoal.networks.policy_file import load_policy, policy_encoder
from regoal.planning.task import load_domain, load_task
from regoal.records.json_lines import JsonObject, append_json_line, as_float
from regoal.records.results import Outcome
from regoal.records.run_record import KEPT, TEST_CURVE, find_runs, load_run
from regoal.system.threads import free_threads
from reproduction.lama import test_problems
from reproduction.words import words


def main() -> None:
    """Follow every run at or below the paths given."""
    native.use_threads(free_threads())
    for folder in find_runs(words(Path, "runs", __doc__)):
        run = load_run(folder)
        problems = test_problems(run.domain, int(as_float(run.config.get("instances_seed", 0))))
        (folder / TEST_CURVE).unlink(missing_ok=True)
        for policy in sorted((folder / KEPT).glob("*")):
            record = tested(policy, problems)
            append_json_line(folder / TEST_CURVE, record)
            print(folder, record, flush=True)


def tested(path: Path, problems: Path) -> JsonObject:
    """One policy on all problems of a folder; a problem ends at the first state seen before."""
    policy, domain = load_policy(path), load_domain(problems / "domain.pddl")
    encoder, _ = policy_encoder(policy, domain)
    tasks = [load_task(domain, file) for file in sorted(problems.glob("p*.pddl"))]
    network, visited = policy.network, Visited.ALLOWED
    run = partial(execute, network, encoder, layers=policy.layers, visited=visited)
    ended = execute_side_by_side(run, tasks, processes=most_processes(network))
    solved = sum(x.outcome is Outcome.SOLVED for _, x in ended)
    return {"episode": policy.facts["episode"], "solved": solved, "problems": len(tasks)}


if __name__ == "__main__":
    script(main)
