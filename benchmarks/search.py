"""By which means are plans found where greedy execution finds none, or needs returns?

Run `python -m benchmarks.search [--seconds 60] [--most 3] [--domains reward,hiking] [--out F]`. It
takes test problems that the shipped policies leave, or solve with returns, by the records in
`results/`, and tries each by greedy execution, by commitment and by search alone. With
`--folder FOLDER --policy NAME` it takes the problems of a folder instead.

Seconds are processor seconds of one thread, so that other work on the machine does not count. Each
result is written at once, and a later call with the same file goes on.
"""

import argparse
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from regoal.cli import script
from regoal.domains.splits import write_split
from regoal.evaluation.commitment import Commitment
from regoal.evaluation.evaluate import load
from regoal.evaluation.execution import Visited, execute
from regoal.evaluation.search import Search
from regoal.networks.encoder import Encoder
from regoal.networks.policy_encoder import policy_encoder
from regoal.networks.policy_file import Policy, shipped_policies
from regoal.planning.load import load_domain, load_task
from regoal.planning.problem_files import problem_files, with_domains
from regoal.planning.task import Task
from regoal.records.json_lines import JsonObject, append_json_line, read_jsonl
from regoal.records.results import Outcome
from regoal.records.run_record import read_results
from regoal.system.files import short_digest

RECORDS = Path("results")
"""The tests of policies, by domain, method and seed."""
MAX_STEPS = 1000

Stop = Callable[[], bool]


def is_over(deadline: float) -> bool:
    """Return whether this process has used so many processor seconds."""
    return time.process_time() > deadline


class Found(NamedTuple):
    """How one way has ended: outcome, plan length, rated states, successors of search."""

    outcome: str
    length: int
    evaluations: int
    expansions: int


def run_greedy(policy: Policy, encoder: Encoder, task: Task, stop: Stop) -> Found:
    """Execute the policy as `regoal evaluate` does."""
    for x in execute(
        policy.network,
        encoder,
        [task],
        layers=policy.layers,
        max_steps=MAX_STEPS,
        visited=Visited.LAST,
        stop=stop,
    ):
        assert x.outcome is not None
        return Found(x.outcome.key, len(x.actions), x.evaluations, 0)
    return Found(Outcome.TIME_LIMIT.key, 0, 0, 0)


def run_commitment(policy: Policy, encoder: Encoder, task: Task, stop: Stop) -> Found:
    """Commit to one goal literal after another."""
    x = Commitment(policy.network, encoder, task, policy.layers)
    return Found(x.run(max_steps=MAX_STEPS, stop=stop).key, len(x.actions), x.evaluations, 0)


def run_search(policy: Policy, encoder: Encoder, task: Task, stop: Stop) -> Found:
    """Search from the initial state."""
    x = Search(policy.network, encoder, task, layers=policy.layers)
    return Found(x.run(stop=stop).key, len(x.plan or ()), x.evaluations, x.expansions)


WAYS = {"greedy": run_greedy, "commitment": run_commitment, "search": run_search}


def left_problems(policy: str, most: int) -> list[str]:
    """Return the names of up to `most` test problems that the policy leaves or returns in.

    They are spread evenly over all such problems.
    """
    digest = short_digest(shipped_policies()[policy])
    names = [
        result.problem
        for path in sorted((RECORDS / policy).glob("*/*/results.jsonl"))
        for result in read_results(path)
        if result.policy == digest and not result.solved_without_return
    ]
    return [names[i * len(names) // most] for i in range(most)] if len(names) > most else names


def run_all(
    name: str, problems: Sequence[tuple[Path, Path]], seconds: float, known: set[tuple[str, ...]]
) -> Iterator[JsonObject]:
    """Yield a record for each problem and way that is not known."""
    policy = load(name, threads=1, device="cpu")
    for domain_path, path in problems:
        for way, run in WAYS.items():
            if (name, path.stem, way, str(seconds)) in known:
                continue
            domain = load_domain(domain_path)
            encoder, _ = policy_encoder(policy, domain)
            task = load_task(domain, path)
            start = time.process_time()
            found = run(policy, encoder, task, partial(is_over, start + seconds))
            spent = round(time.process_time() - start, 1)
            yield {
                "policy": name,
                "problem": path.stem,
                "way": way,
                "limit": str(seconds),
                "seconds": spent,
                **found._asdict(),
            }


def table(records: Sequence[JsonObject]) -> str:
    """Make a table of solved problems, by policy, limit and way."""
    solved: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for record in records:
        row = str(record["policy"]), str(record["limit"])
        solved[row]["problems"] += record["way"] == "greedy"
        solved[row][str(record["way"])] += record["outcome"] == Outcome.SOLVED.key
    columns = ["problems", *WAYS]
    lines = [" ".join(f"{x:>12}" for x in ["policy", "limit", *columns])]
    for row, counts in solved.items():
        lines.append(" ".join(f"{x:>12}" for x in [*row, *(counts[c] for c in columns)]))
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--most", type=int, default=3)
    parser.add_argument("--domains", default="delivery,hiking,visitall,reward")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--policy")
    parser.add_argument("--out", type=Path, default=Path("build/search.jsonl"))
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    records = read_jsonl(arguments.out) if arguments.out.is_file() else []
    keys = ("policy", "problem", "way", "limit")
    known = {tuple(str(record[key]) for key in keys) for record in records}
    with tempfile.TemporaryDirectory() as folder:
        chosen: dict[str, list[tuple[Path, Path]]] = {}
        if arguments.folder:
            files = with_domains(problem_files(arguments.folder), None)
            chosen[arguments.policy] = files[: arguments.most]
        else:
            for name in arguments.domains.split(","):
                left = left_problems(name, arguments.most)
                paths = write_split(name, "test", Path(folder) / name)
                pairs = [(path.with_name("domain.pddl"), path) for path in paths]
                chosen[name] = [pair for pair in pairs if pair[1].stem in left]
        for name, problems in chosen.items():
            for record in run_all(name, problems, arguments.seconds, known):
                append_json_line(arguments.out, record)
                records.append(record)
                print(record, flush=True)
    print(table(records))


if __name__ == "__main__":
    script(main)
