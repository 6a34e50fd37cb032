"""One run: train on small problems, validate, keep the best policy; killed at any time, it goes on.

Nothing but the budget depends on the clock, so that one seed gives one policy.
"""

import contextlib
import copy
import hashlib
import logging
import math
import time
from dataclasses import asdict, dataclass, field
from functools import partial

import torch
from torch import Tensor

from regoal.distributed.collectives import Workers
from regoal.distributed.launch import together
from regoal.errors import RegoalError, UsageError
from regoal.learning.checkpoint import Checkpoint, read_checkpoint, save_checkpoint
from regoal.learning.dqn import EpisodeStats, train
from regoal.learning.learner import Learner
from regoal.learning.replay import Replay
from regoal.learning.snapshot import Training
from regoal.learning.streams import Streams
from regoal.networks.device import device_called
from regoal.networks.encoder import Encoder
from regoal.networks.kernels.cpu import kernel as native
from regoal.networks.kernels.gpu import launch as gpu
from regoal.networks.policy_file import Policy, save_policy
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.planning.matching.schema import Schema
from regoal.planning.task import Task
from regoal.records.json_lines import JsonObject, append_json_line
from regoal.records.run_record import EPISODES, KEPT, POLICY, VALIDATION, kept_name
from regoal.runs import folder as run_folder
from regoal.runs.inputs import Inputs, read_inputs
from regoal.runs.settings import Ended, Progress, RunSettings, RunSummary, Tell
from regoal.runs.validation import Standing, policy_rounds, validate
from regoal.system.signals import Interrupt, interrupts
from regoal.system.threads import MOST_THREADS, process_group


def run_training(settings: RunSettings, tell: Tell) -> RunSummary:
    """Train, or go on training, until the episodes, the budget or the patience end.

    Raises `UsageError` for settings, files or a folder that will not do, `PddlError` and
    `UnsupportedPddlError` for PDDL, and `RegoalError` where the loss is no longer finite, the
    disk is full or a worker is lost; what was saved before stays.
    """
    _check(settings)
    first = process_group().rank == 0
    if first:
        run_folder.check_folder(settings.out, resume=settings.resume)
    else:
        _warn_no_more()
    inputs = _read(settings, tell if first else _silent)
    with together(settings.workers, partial(_work, settings)) as workers:
        return _train(settings, inputs, tell if first else _silent, workers)


def _work(settings: RunSettings, workers: Workers) -> None:
    """What the workers do that `run_training` starts."""
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
    native.use_threads(settings.threads)
    with contextlib.ExitStack() as folder:
        if workers.rank == 0:
            folder.enter_context(run_folder.locked(settings.out))
            folder.enter_context(run_folder.told_disk_errors(settings.out))
            run_folder.check_folder(settings.out, resume=settings.resume)  # nobody else writes now
        run = _prepared(settings, inputs, tell, workers)
        with interrupts(tell) as interrupt:
            return run.go(interrupt)


def _check(settings: RunSettings) -> None:
    if settings.budget_s is not None and not settings.budget_s > 0:
        raise UsageError(f"the budget must be above 0 seconds, got {settings.budget_s}.")
    if not 1 <= settings.threads <= MOST_THREADS:
        raise UsageError(f"--threads lies in 1 to {MOST_THREADS}, got {settings.threads}.")
    if not 1 <= settings.workers <= settings.config.batch_size:
        raise UsageError(
            f"--workers lies in 1 to the batch size {settings.config.batch_size}, "
            f"got {settings.workers}."
        )
    _device(settings)


def _device(settings: RunSettings) -> torch.device:
    if settings.workers == 1:
        return device_called(settings.device)
    if settings.device == "cuda":
        raise UsageError("Several workers share a CPU's cores; on a GPU take one, --workers 1.")
    return device_called("cpu")


def _prepared(settings: RunSettings, inputs: Inputs, tell: Tell, workers: Workers) -> "_Run":
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
    run = _Run(settings, inputs.schema, inputs.validation, training, tell)
    checkpoint = workers.gather(run.open_folder(inputs) if run.first else None)[0]
    tell(str(settings))
    if checkpoint is not None:
        checkpoint.restore(training)
        run.standing = Standing.from_json(checkpoint.record, str(checkpoint.path))
        run.best_weights = checkpoint.extra.get("best")
        if run.standing.best and run.first and not (out / POLICY).is_file():
            run.write_policy()
        tell(f"going on after episode {run.standing.episode}")
    if run.first:
        run_folder.tidy(out, run.standing.episode, run.standing.validated)
    return run


def _config_record(settings: RunSettings, inputs: Inputs, used: JsonObject) -> JsonObject:
    return {
        "domain": settings.name,
        "preset": settings.preset,
        **asdict(settings.config),
        "threads": settings.threads,
        "workers": settings.workers,
        "budget_s": settings.budget_s,
        "pddl_domain": inputs.domain.name,
        "fingerprint": inputs.schema.fingerprint(),
        "training_problems": len(inputs.tasks),
        "validation_problems": len(inputs.validation),
        **inputs.digests(),
        "paths": {
            "domain": str(settings.domain),
            "problems": str(settings.problems),
            "validation": settings.validation and str(settings.validation),
        },
        "environment": run_folder.environment() | used,
    }


@dataclass
class _Run:
    """A run in progress."""

    settings: RunSettings
    schema: Schema
    validation: list[Task]
    training: Training
    tell: Tell
    standing: Standing = field(default_factory=Standing)
    best_weights: Tensor | None = None

    def __post_init__(self) -> None:
        self.out, self.config = self.settings.out, self.settings.config
        self.network = self.training.learner.averaged
        self.workers = self.training.learner.workers
        self.first = self.workers.rank == 0
        """Whether this worker writes what the run leaves."""

    def open_folder(self, inputs: Inputs) -> Checkpoint | None:
        """Write the configuration and read the last checkpoint, if there is one."""
        weights, layout = self.network.weights, self.network.layout
        used: JsonObject = {
            "kernel": native.available(weights, layout) or gpu.available(weights, layout),
            "device": weights.device.type,
        }
        notes = run_folder.write_config(self.out, _config_record(self.settings, inputs, used))
        checkpoint, more = read_checkpoint(run_folder.checkpoint_path(self.out))
        for note in (*notes, *more):
            self.tell(note)
        return checkpoint

    def go(self, interrupt: Interrupt) -> RunSummary:
        """Train to the end, or to an interrupt."""
        self.started = time.monotonic() - self.standing.elapsed_s
        episodes = train(
            *self.training,
            first_episode=self.standing.episode,
            stop=lambda: bool(interrupt) or (self.first and self.spent()),
        )
        while True:
            ended, signum = self.agreed(self.ended(), interrupt.signum)
            if signum is None and self.validation_due(ended):
                if self.validate(interrupt):
                    self.save()
                continue
            if signum is not None:
                self.save()
                ended = "interrupted"
            if ended:
                return self.summary(ended, signum)
            stats = next(episodes, None)
            if stats is not None:  # else it was cut, and is undone
                self.take(stats)

    def agreed(self, ended: Ended | None, signum: int | None) -> tuple[Ended | None, int | None]:
        """What the first worker's clock says, and a signal that some worker got.

        Raises `RegoalError` where the workers' weights are not the same any more.
        """
        weights = self.network.weights.detach().cpu().numpy()
        digest = hashlib.sha256(weights.tobytes()).digest() if self.workers.count > 1 else b""
        reports = self.workers.gather((ended, signum, digest))
        if len({digest for _, _, digest in reports}) > 1:
            raise RegoalError(
                "the workers' weights differ: they must run on processors of one kind, with the "
                "same versions of everything."
            )
        return reports[0][0], next((s for _, s, _ in reports if s is not None), None)

    def ended(self) -> Ended | None:
        """Why the run is over, None while it is not."""
        self.standing.elapsed_s = time.monotonic() - self.started
        if self.config.patience and self.standing.idle >= self.config.patience:
            return "patience"
        if self.standing.episode >= self.config.episodes:
            return "episodes"
        return "budget" if self.spent() else None

    def spent(self) -> bool:
        """Whether the budget is used up."""
        budget = self.settings.budget_s
        return budget is not None and time.monotonic() - self.started >= budget

    def validation_due(self, ended: Ended | None) -> bool:
        """At regular intervals, and at the end so that no training is lost."""
        standing = self.standing
        regular = standing.episode % self.config.validate_every == 0
        return standing.episode > standing.validated and (regular or ended is not None)

    def validate(self, interrupt: Interrupt) -> bool:
        """Validate the policy and keep it if it is the best; False if an interrupt came first."""
        start, standing = time.monotonic(), self.standing
        validation = validate(
            standing.episode,
            self.network,
            self.validation,
            self.config,
            lambda: bool(interrupt),
            standing.best.solved if standing.best else 0,
            self.workers,
        )
        if validation is None:
            return False
        kept = standing.judge(validation, self.training.streams.ties)
        if kept:
            self.best_weights = self.training.learner.trained_weights()
        if not self.first:
            return True
        if kept:
            self.write_policy()
        seconds = time.monotonic() - start
        standing.elapsed_s = time.monotonic() - self.started
        record = {**asdict(validation), "kept": kept, "seconds": seconds}
        append_json_line(self.out / VALIDATION, {**record, "elapsed_s": standing.elapsed_s})
        told = ": the best so far" if kept and validation.solved else ""
        self.tell(f"validation after episode {standing.episode}: {validation}{told}")
        return True

    def take(self, stats: EpisodeStats) -> None:
        """Record an episode. Raises `RegoalError` where its numbers are not finite."""
        standing = self.standing
        finite = math.isfinite(stats.loss) and bool(torch.isfinite(self.network.weights).all())
        if not finite:
            kept = f"The best policy so far is in {self.out / POLICY}. " if standing.best else ""
            raise RegoalError(
                f"the training diverged in episode {stats.episode}: loss {stats.loss}. {kept}Try a "
                f"smaller learning rate, or a gradient norm of 10, in a new folder."
            )
        standing.episode = stats.episode
        standing.elapsed_s = time.monotonic() - self.started
        record = {**asdict(stats), "elapsed_s": standing.elapsed_s}
        if self.first:
            append_json_line(self.out / EPISODES, record)
        self.tell(self.progress(stats))

    def progress(self, stats: EpisodeStats) -> Progress:
        """What to show after an episode."""
        standing, episodes = self.standing, self.config.episodes
        elapsed = standing.elapsed_s
        left = elapsed / stats.episode * (episodes - stats.episode)
        if self.settings.budget_s is not None:
            left = min(left, max(self.settings.budget_s - elapsed, 0.0))
        return Progress(
            episode=stats.episode,
            episodes=episodes,
            coverage=standing.coverage,
            best_coverage=standing.best.coverage if standing.best else None,
            goal_size=stats.goal_size,
            trajectory_length=stats.trajectory_length,
            loss=stats.loss,
            elapsed_s=elapsed,
            left_s=left,
        )

    def write_policy(self) -> None:
        """Write the best policy so far, and a copy that later ones do not replace."""
        best, config = self.standing.best, self.config
        assert best is not None
        assert self.best_weights is not None
        network = copy.deepcopy(self.network).cpu()
        with torch.no_grad():
            network.weights.copy_(self.best_weights)
        network = network.without_silent_relations()
        facts = {
            "domain": self.settings.name,
            "preset": self.settings.preset,
            "hindsight": config.hindsight,
            "seed": config.seed,
            "episode": best.episode,
            "validation": asdict(best) | {"coverage": best.coverage},
            "regoal": run_folder.package_version(),
            "threads": self.settings.threads,
            "config": {k: v for k, v in asdict(config).items() if k not in run_folder.MAY_CHANGE},
        }
        if self.workers.count > 1:
            facts["workers"] = self.workers.count
        policy = Policy(network, self.schema, policy_rounds(config), facts)
        (self.out / KEPT).mkdir(exist_ok=True)
        save_policy(self.out / KEPT / kept_name(best.episode), policy)
        save_policy(self.out / POLICY, policy)

    def save(self) -> None:
        """Write a checkpoint; the first worker's is everyone's."""
        if not self.first:
            return
        extra = {} if self.best_weights is None else {"best": self.best_weights}
        path = run_folder.checkpoint_path(self.out)
        save_checkpoint(path, self.training, self.standing.to_json(), extra)

    def summary(self, ended: Ended, signum: int | None) -> RunSummary:
        """How the run ended."""
        standing = self.standing
        return RunSummary(
            self.out, ended, standing.episode, standing.best, standing.elapsed_s, signum
        )
