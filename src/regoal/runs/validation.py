"""Validation, and which policy of a run is kept (paper, "Training").

The best policy solves the most validation problems. Of equal ones it is the one that solves the
most of them with noise on its Q-values, in tenths of the problems: a policy that noise leads astray
is led astray by larger problems too. Of equal ones it is the one with the shortest plans in total;
of equal ones a random one. The paper does not look at noise (docs: Deviations).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial

import numpy as np

from regoal.config import TrainConfig
from regoal.distributed.collectives import ALONE, Workers
from regoal.errors import RegoalError, UsageError
from regoal.evaluation.ending import Ended
from regoal.evaluation.execution import execute
from regoal.evaluation.process_pool import execute_side_by_side, most_processes
from regoal.networks.encoder import Encoder
from regoal.networks.q_network import QNetwork
from regoal.networks.tensor_file import Facts
from regoal.planning.task import Task
from regoal.records.results import Outcome
from regoal.records.validation import Validation

CALMEST = 0.05
"""The smallest factor on the learning rate."""
FIRST = 0.25
"""The share of the problems that is run before the others, at least."""


def validate(
    episode: int,
    network: QNetwork,
    tasks: Sequence[Task],
    config: TrainConfig,
    stop: Callable[[], bool],
    best: int = 0,
    workers: Workers = ALONE,
) -> Validation | None:
    """Execute the policy greedily on the problems, small ones first; None if `stop` ended it.

    A poor policy wanders until the step limit, which is most of the time. So the smallest quarter
    of the problems is run first, with all that are as small as the smallest, and the validation
    ends there if the policy solves none of it, or can no longer solve `best` problems. Tasks and
    encoder are used once, so that their many states are not kept. Every worker takes its part of
    both, and all get the result of all; if `stop` ended it for one it is None for all. A fault
    ends the part of the worker that meets it, and is then raised by all. A policy that may become
    the best one is executed once more with `config.validation_noise` on its Q-values.
    """
    by_size = sorted(tasks, key=lambda task: len(task.objects))
    solve = _Solver(network, config, stop, workers)
    equal = sum(len(task.objects) == len(by_size[0].objects) for task in tasks)
    first = max(equal, math.ceil(len(tasks) * FIRST))
    plans: list[int] = []
    tried, robust = 0, 0
    for part in (by_size[:first], by_size[first:]):
        found = solve(part)
        if found is None:
            return None
        tried += len(part)
        plans += found
        if not plans or len(plans) + len(tasks) - tried < best:
            break
    if config.validation_noise and plans and len(plans) >= best:
        found = solve(by_size, config.validation_noise)
        if found is None:
            return None
        robust = len(found)
    return Validation(episode, len(plans), len(tasks), sum(plans), tried, robust)


class _Solver:
    """Executes the policy on parts of the validation problems; each worker takes its share."""

    def __init__(
        self,
        network: QNetwork,
        config: TrainConfig,
        stop: Callable[[], bool],
        workers: Workers,
    ) -> None:
        self._run = partial(
            execute,
            network,
            Encoder(network.relations, remember=2_000_000),
            layers=config.layers,
            max_steps=config.validation_steps,
        )
        self._processes = most_processes(network) if workers.count == 1 else 1
        self._stop, self._workers = stop, workers

    def __call__(self, tasks: Sequence[Task], noise: float = 0.0) -> list[int] | None:
        """The lengths of the plans that are found; None if `stop` ended it for some worker."""
        workers = self._workers
        mine = [task.renewed() for task in tasks[workers.rank :: workers.count]]
        run = partial(self._run, noise=noise)
        ended = execute_side_by_side(run, mine, processes=self._processes, stop=self._stop)
        found = workers.gather(_part_done(ended))
        for *_, fault in found:
            if fault is not None:
                raise fault
        if sum(count for count, _, _ in found) < len(tasks):
            return None
        return [length for _, lengths, _ in found for length in lengths]


def _part_done(
    results: Iterator[tuple[Task, Ended]],
) -> tuple[int, list[int], RegoalError | MemoryError | None]:
    """How many problems ended, the plans' lengths, and the first fault, which ends the rest."""
    ended = 0
    solved: list[int] = []
    try:
        for _, result in results:
            if result.outcome is Outcome.ERROR and result.fault:
                return ended, solved, result.fault
            ended += 1
            solved += [len(result.actions)] if result.outcome is Outcome.SOLVED else []
    except (RegoalError, MemoryError) as error:
        return ended, solved, error
    return ended, solved, None


def calm(config: TrainConfig, complete: int) -> float:
    """The factor on the learning rate after so many complete validations (not in the paper).

    >>> [calm(TrainConfig(settle=0.5), complete) for complete in (0, 1, 2, 10)]
    [1.0, 0.5, 0.25, 0.05]
    """
    return max(config.settle**complete, CALMEST)


@dataclass
class Standing:
    """How far a run has come; a checkpoint carries it."""

    episode: int = 0
    """Episodes done."""
    validated: int = 0
    """The last episode after which the policy was validated, 0 for none."""
    coverage: float | None = None
    """Of the last validation."""
    best: Validation | None = None
    equals: int = 0
    """Policies as good as the best one, itself included."""
    complete: int = 0
    """Complete validations so far."""
    idle: int = 0
    """Complete validations in a row that were no better than the best."""
    elapsed_s: float = 0.0
    """Wall-clock seconds of training and validation."""

    def judge(self, validation: Validation, ties: np.random.Generator) -> bool:
        """Take in a validation; whether its policy is to be kept.

        Of n equally good policies each is kept with probability 1/n.
        """
        self.validated, self.coverage = validation.episode, validation.coverage
        self.complete += validation.complete
        better = self.best is None or validation.merit > self.best.merit
        if better:
            self.equals, self.idle = 1, 0
        else:
            self.idle = self.idle + 1 if validation.complete else 0
            if self.best is None or validation.merit < self.best.merit:
                return False
            self.equals += 1
            if ties.integers(self.equals) > 0:
                return False
        self.best = validation
        return True

    def to_json(self) -> Facts:
        """The standing as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Facts, source: str = "the checkpoint") -> "Standing":
        """Read what `to_json` gave. Raises `UsageError`, naming `source`, for anything else."""
        try:
            best = values["best"]
            own = {f.name: values[f.name] for f in fields(cls)}
            return cls(**own | {"best": best and Validation(**best)})
        except (LookupError, TypeError) as error:
            raise UsageError(
                f"{source} is from another version of regoal ({error!r}); "
                f"start again in another folder."
            ) from error
