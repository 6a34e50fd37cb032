"""One run: train on small problems, validate, keep the best policy; killed at any time, it goes on.

Nothing but the budget depends on the clock, so that one seed gives one policy.
"""

import contextlib
import logging
from collections.abc import Generator, Iterator
from functools import partial

import torch

from regoal.distributed.collectives import ALONE, Workers
from regoal.distributed.launch import together
from regoal.learning.checkpoint import Checkpoint, read_checkpoint
from regoal.learning.learner import Learner
from regoal.learning.replay import Replay
from regoal.learning.snapshot import Training
from regoal.learning.streams import Streams
from regoal.networks.device import device_called
from regoal.networks.encoder import Encoder
from regoal.networks.kernels.cpu import kernel as cpu_kernel
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.records.run_record import CHECKPOINT, POLICY
from regoal.runs.description import config_record
from regoal.runs.folder import check_folder, explained_disk_errors, locked, tidy, write_config
from regoal.runs.inputs import Inputs, read_inputs
from regoal.runs.news import Progress, RunSummary, Tell
from regoal.runs.run_in_progress import Run
from regoal.runs.settings import RunSettings
from regoal.runs.validation import Standing
from regoal.system.signals import Interrupt, interrupts
from regoal.system.threads import process_group


def run_training(settings: RunSettings, tell: Tell) -> RunSummary:
    """Train, or go on training, until the episodes, the budget or the patience end.

    Raises `UsageError` for settings, files or a folder that will not do, `PddlError` and
    `UnsupportedPddlError` for PDDL, and `RegoalError` if the loss is no longer finite, the
    disk is full or a worker is lost; what was saved before stays.
    """
    first = process_group().rank == 0
    inputs = _check(settings, tell, first=first)
    with together(settings.workers, partial(_work, settings)) as workers:
        return _train(settings, inputs, tell if first else _silent, workers)


def iterate_training(settings: RunSettings, tell: Tell) -> Generator[Progress, None, RunSummary]:
    """Train as `run_training` does, but only while the progress of the episodes is asked for.

    Settings and files are checked at once; the run folder is taken at the first `next`. Closing the
    generator after an episode saves a checkpoint. Signals act as usual. There is one worker only.
    """
    return _iterate(settings, _check(settings, tell, first=True), tell)


def _iterate(
    settings: RunSettings, inputs: Inputs, tell: Tell
) -> Generator[Progress, None, RunSummary]:
    with _opened(settings, inputs, tell, ALONE) as run:
        try:
            return (yield from run.go(Interrupt()))
        except GeneratorExit:
            run.save()
            raise


def _check(settings: RunSettings, tell: Tell, *, first: bool) -> Inputs:
    """Check everything before the training begins, and read its inputs."""
    settings.check()
    _device(settings)
    if first:
        check_folder(settings.out, resume=settings.resume)
    else:
        _warn_no_more()
    return _read(settings, tell if first else _silent)


def _work(settings: RunSettings, workers: Workers) -> None:
    """Train as one of the workers that `run_training` starts."""
    _warn_no_more()
    _train(settings, _read(settings, _silent), _silent, workers)


def _warn_no_more() -> None:
    """Leave it to the first worker to warn of what all of them meet."""
    logging.getLogger("regoal").setLevel(logging.ERROR)


def _silent(news: str | Progress) -> None:
    del news


def _read(settings: RunSettings, tell: Tell) -> Inputs:
    return read_inputs(settings.domain, settings.problems, settings.validation, tell)


def _train(settings: RunSettings, inputs: Inputs, tell: Tell, workers: Workers) -> RunSummary:
    """Train to the end or to a signal."""
    with _opened(settings, inputs, tell, workers) as run, interrupts(tell) as interrupt:
        steps = run.go(interrupt)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                summary: RunSummary = end.value
                return summary


@contextlib.contextmanager
def _opened(settings: RunSettings, inputs: Inputs, tell: Tell, workers: Workers) -> Iterator[Run]:
    """Prepare the run; only the first worker sees the run folder, which it locks meanwhile."""
    cpu_kernel.use_threads(settings.threads)
    with contextlib.ExitStack() as folder:
        if workers.rank == 0:
            folder.enter_context(locked(settings.out))
            folder.enter_context(explained_disk_errors(settings.out))
            check_folder(settings.out, resume=settings.resume)  # nobody else writes now
        yield _prepare(settings, inputs, tell, workers)


def _device(settings: RunSettings) -> torch.device:
    return device_called(settings.device if settings.workers == 1 else "cpu")


def _prepare(settings: RunSettings, inputs: Inputs, tell: Tell, workers: Workers) -> Run:
    """The run at its beginning, or at its last checkpoint."""
    config, out = settings.config, settings.out
    relations = relations_of(
        inputs.schema, achieved_goals=config.achieved_goals, relaxed_plans=config.relaxed_plans
    )
    network = QNetwork(relations, config.embedding_size, seed=config.seed)
    network.to(_device(settings))
    training = Training(
        inputs.tasks,
        Learner(network, Encoder(relations), config, workers),
        Replay(
            config.replay_capacity, exponent=config.priority_exponent, weight=config.priority_weight
        ),
        Streams.from_seed(config.seed),
    )
    run = Run(settings, inputs.schema, inputs.validation, training, tell)
    checkpoint = workers.gather(_open_folder(run, inputs) if run.first else None)[0]
    tell(str(settings))
    if checkpoint is not None:
        checkpoint.restore(training)
        run.standing = Standing.from_json(checkpoint.record, str(checkpoint.path))
        run.best_weights = checkpoint.extra.get("best")
        if run.standing.best and run.first and not (out / POLICY).is_file():
            run.write_policy()
        tell(f"going on after episode {run.standing.episode}")
    if run.first:
        tidy(out, run.standing.episode, run.standing.validated)
    return run


def _open_folder(run: Run, inputs: Inputs) -> Checkpoint | None:
    """Write the configuration and read the last checkpoint, if there is one."""
    out = run.settings.out
    notes = write_config(out, config_record(run.settings, inputs, run.network))
    checkpoint, more = read_checkpoint(out / CHECKPOINT)
    for note in (*notes, *more):
        run.tell(note)
    return checkpoint
