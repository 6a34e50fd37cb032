"""What a run reads: a domain, the problems to learn from and those to choose a policy by."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from regoal.errors import UsageError
from regoal.planning.matching.schema import Schema, schema_of
from regoal.planning.problem_files import problem_files
from regoal.planning.task import Domain, Task, load_domain, load_task
from regoal.system.files import read_bytes

MOST_NAMES = 5


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
    domain: Path, problems: Path, validation: Path, tell: Callable[[str], None]
) -> Inputs:
    """Read everything; problems come in natural order.

    Raises as `load_task` does, and `UsageError` where there is nothing to learn from.
    """
    read = load_domain(domain)
    tasks = [load_task(read, path) for path in problem_files(problems)]
    tests = [load_task(read, path) for path in problem_files(validation)]
    kept = [task for task in tasks if not task.initial_state.satisfies(task.goal)]
    if not kept:
        raise UsageError(
            f"there is nothing to learn from {problems}: every problem's goal holds initially."
        )
    left_out = [task.name for task in tasks if task.initial_state.satisfies(task.goal)]
    if left_out:
        names = ", ".join(left_out[:MOST_NAMES])
        more = " and others" if len(left_out) > MOST_NAMES else ""
        tell(f"left out of training, as their goals hold initially: {names}{more}")
    return Inputs(read, schema_of(read), kept, tests)


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        data = read_bytes(path)
        digest.update(f"{len(data)}\n".encode() + data)
    return digest.hexdigest()
