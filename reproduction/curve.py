"""The paper's figures: test coverage of each best policy so far, without cycle avoidance.

`python -m reproduction.curve RUNS...` runs every policy that a training kept on the benchmark's
test problems. It writes `test_curve.jsonl` into the run's folder, with a line for each policy, in
the order of training. `regoal report` then draws it.
"""

from functools import partial
from pathlib import Path

from regoal.cli import script
from regoal.evaluation.execution import Visited, execute
from regoal.evaluation.process_pool import execute_side_by_side, most_processes
from regoal.networks.kernels.cpu import kernel as cpu_kernel
from regoal.networks.policy_encoder import policy_encoder
from regoal.networks.policy_file import load_policy
from regoal.planning.load import load_domain, load_task
from regoal.records.json_lines import JsonObject, append_json_line, as_float
from regoal.records.results import Outcome
from regoal.records.run_record import KEPT, TEST_CURVE, find_runs, load_run
from regoal.system.threads import free_threads
from reproduction.lama import test_problems
from reproduction.words import words


def main() -> None:
    """Test the policies of every run at or below the given paths."""
    cpu_kernel.use_threads(free_threads())
    for folder in find_runs(words(Path, "runs", __doc__)):
        run = load_run(folder)
        problems = test_problems(run.domain, int(as_float(run.config.get("instances_seed", 0))))
        (folder / TEST_CURVE).unlink(missing_ok=True)
        for policy in sorted((folder / KEPT).glob("*")):
            record = run_policy(policy, problems)
            append_json_line(folder / TEST_CURVE, record)
            print(folder, record, flush=True)


def run_policy(path: Path, problems: Path) -> JsonObject:
    """Run one policy on all problems of a folder; each ends at the first repeated state."""
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
