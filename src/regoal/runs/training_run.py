"""One run: train on small problems, validate, keep the best policy; killed at any time, it goes on.

Nothing but the budget depends on the clock, so that one seed gives one policy.
"""

import contextlib
import logging
from functools import partial

import torch

from regoal.distributed.collectives import Workers
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
from regoal.system.signals import interrupts
from regoal.system.threads import process_group


def run_training(settings: RunSettings, tell: Tell) -> RunSummary:
    """Train, or go on training, until the episodes, the budget or the patience end.

    Raises `UsageError` for settings, files or a folder that will not do, `PddlError` and
    `UnsupportedPddlError` for PDDL, and `RegoalError` if the loss is no longer finite, the
    disk is full or a worker is lost; what was saved before stays.
    """
    settings.check()
    _device(settings)
    first = process_group().rank == 0
    if first:
        check_folder(settings.out, resume=settings.resume)
    else:
        _warn_no_more()
    inputs = _read(settings, tell if first else _silent)
    with together(settings.workers, partial(_work, settings)) as workers:
        return _train(settings, inputs, tell if first else _silent, workers)


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
    """Only the first worker sees the run folder."""
    cpu_kernel.use_threads(settings.threads)
    with contextlib.ExitStack() as folder:
        if workers.rank == 0:
            folder.enter_context(locked(settings.out))
            folder.enter_context(explained_disk_errors(settings.out))
            check_folder(settings.out, resume=settings.resume)  # nobody else writes now
        run = _prepare(settings, inputs, tell, workers)
        with interrupts(tell) as interrupt:
            return run.go(interrupt)


def _device(settings: RunSettings) -> torch.device:
    return device_called(settings.device if settings.workers == 1 else "cpu")


def _prepare(settings: RunSettings, inputs: Inputs, tell: Tell, workers: Workers) -> Run:
    """The run at its beginning, or at its last checkpoint."""
    config, out = settings.config, settings.out
    relations = relations_of(inputs.schema, achieved_goals=config.achieved_goals)
    most = max(len(task.objects) for task in inputs.tasks) if config.divide_sum else 0
    network = QNetwork(relations, config.embedding_size, seed=config.seed, most_objects=most)
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
