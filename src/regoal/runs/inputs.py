"""The inputs of a run: a domain, problems to learn from, and problems to choose a policy by."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from regoal.errors import UsageError
from regoal.planning.domain import Domain
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.matching.schema import Schema
from regoal.planning.problem_files import problem_files
from regoal.planning.task import Task
from regoal.system.files import read_bytes

MOST_NAMES = 5
HELD_OUT = 0.2
"""The share of the problems that choose the policy if there are no others for that."""
MOST_HELD_OUT = 20
FEW = 10
"""With fewer problems to choose by, a complete validation promises little."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of a run, read."""

    domain: Domain
    schema: Schema
    tasks: list[Task]
    """Training problems whose goals do not hold initially."""
    validation: list[Task]

    def digests(self) -> dict[str, str]:
        """SHA-256 of the domain, of the training problems and of the validation problems."""
        return {
            "domain_sha256": _digest([self.domain.path]),
            "problems_sha256": _digest([task.path for task in self.tasks]),
            "validation_sha256": _digest([task.path for task in self.validation]),
        }


def read_inputs(
    domain: Path,
    problems: Path | Sequence[Path],
    validation: Path | Sequence[Path] | None,
    tell: Callable[[str], None],
) -> Inputs:
    """Read everything; problems of a folder come in natural order.

    Without `validation`, the largest problems are held out for it, which `tell` says. Raises as
    `load_task` does, and `UsageError` if there is nothing to learn from.
    """
    read = load_domain(domain)
    tasks = [load_task(read, path) for path in problem_files(problems)]
    tests = [load_task(read, path) for path in problem_files(validation)] if validation else []
    kept = [task for task in tasks if not task.initial_state.satisfies(task.goal)]
    if not kept:
        raise UsageError(
            f"there is nothing to learn from {name_problems(problems)}: every problem's goal holds "
            f"initially."
        )
    left_out = [task.name for task in tasks if task.initial_state.satisfies(task.goal)]
    if left_out:
        names = ", ".join(left_out[:MOST_NAMES])
        more = " and others" if len(left_out) > MOST_NAMES else ""
        tell(f"left out of training, as their goals hold initially: {names}{more}")
    if validation is None:
        kept, tests = hold_out(kept)
        tell(_held_out(kept, tests))
    return Inputs(read, schema_of(read), kept, tests)


def name_problems(problems: Path | Sequence[Path]) -> str:
    """Name a folder, or the files that were given in place of one, in a message or a record."""
    return str(problems) if isinstance(problems, Path) else " ".join(map(str, problems))


def hold_out(tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
    """Split tasks into those to learn from and the largest fifth, at most 20, for the choice.

    Both keep their order; of equally large tasks the later ones are held out. A single task is in
    both.
    """
    if len(tasks) == 1:
        return list(tasks), list(tasks)
    count = min(MOST_HELD_OUT, max(1, round(HELD_OUT * len(tasks))))
    by_size = sorted(range(len(tasks)), key=lambda i: len(tasks[i].objects))
    largest = set(by_size[-count:])
    return (
        [task for i, task in enumerate(tasks) if i not in largest],
        [task for i, task in enumerate(tasks) if i in largest],
    )


def _held_out(tasks: Sequence[Task], tests: Sequence[Task]) -> str:
    """Describe a split to the user, and say what it cannot promise."""
    if len(tasks) == 1 and tests[0] is tasks[0]:
        return (
            "there is one problem only: the policy is learnt from it and chosen by it, which says "
            "nothing of other problems. Give several, of growing size"
        )
    names = ", ".join(task.name for task in tests[:MOST_NAMES])
    more = " and others" if len(tests) > MOST_NAMES else ""
    said = f"held out to choose the policy by, as the largest: {names}{more}"
    if len(tests) < FEW:
        said += (
            f". So few problems ({len(tests)}) say little of how well a policy carries over; "
            f"50 problems of growing size are a good number"
        )
    return said


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        data = read_bytes(path)
        digest.update(f"{len(data)}\n".encode() + data)
    return digest.hexdigest()
