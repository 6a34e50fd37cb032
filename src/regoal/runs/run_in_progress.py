"""A run in progress: episodes, validations, the best policy and checkpoints."""

import hashlib
import math
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass, field, replace

import torch
from torch import Tensor

from regoal.errors import RegoalError
from regoal.learning.checkpoint import save_checkpoint
from regoal.learning.dqn import train
from regoal.learning.episode_stats import EpisodeStats
from regoal.learning.snapshot import Training
from regoal.networks.policy_file import Policy, save_policy
from regoal.planning.matching.schema import Schema
from regoal.planning.task import Task
from regoal.records.json_lines import append_json_line
from regoal.records.run_record import CHECKPOINT, EPISODES, KEPT, POLICY, VALIDATION, kept_name
from regoal.records.validation import Validation
from regoal.runs.advice import advice
from regoal.runs.description import policy_facts
from regoal.runs.news import Ending, Progress, RunSummary, Tell
from regoal.runs.settings import RunSettings
from regoal.runs.validation import Standing, calm, validate
from regoal.system.signals import Interrupt


@dataclass
class Run:
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
        self.episodes: list[EpisodeStats] = []
        self.validations: list[Validation] = []
        self.advice: dict[str, str] = {}
        """Advice given so far, by its subject; each is said once."""

    def go(self, interrupt: Interrupt) -> Generator[Progress, None, RunSummary]:
        """Train to the end, or to an interrupt; yield the progress after each episode.

        A validation after an episode is done before its progress is yielded.
        """
        self.started = time.monotonic() - self.standing.elapsed_s
        episodes = train(
            *self.training,
            first_episode=self.standing.episode,
            stop=lambda: bool(interrupt) or (self.first and self.budget_is_spent()),
        )
        yielded = self.standing.episode
        while True:
            ended, signum = self.agree(self.ending(), interrupt.signum)
            if signum is None and self.validation_is_due(ended):
                if self.validate(interrupt):
                    self.save()
                continue
            if signum is not None:
                self.save()
                ended = "interrupted"
            if self.standing.episode > yielded:
                yielded = self.standing.episode
                yield self.progress(self.episodes[-1])
            if ended:
                return self.summary(ended, signum)
            self.training.learner.calm = calm(self.config, self.standing.complete)
            stats = next(episodes, None)
            if stats is not None:  # else it was cut, and is undone
                self.record_episode(stats)

    def agree(self, ended: Ending | None, signum: int | None) -> tuple[Ending | None, int | None]:
        """Agree on the ending by the first worker's clock, and on a signal that some worker got.

        Raises `RegoalError` if the workers' weights are not the same any more.
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

    def ending(self) -> Ending | None:
        """Why the run is over, None while it is not."""
        self.standing.elapsed_s = time.monotonic() - self.started
        grown = self.standing.episode >= self.config.curriculum.episodes
        if grown and self.config.patience and self.standing.idle >= self.config.patience:
            return "patience"
        if self.standing.episode >= self.config.episodes:
            return "episodes"
        return "budget" if self.budget_is_spent() else None

    def budget_is_spent(self) -> bool:
        """Whether the budget is used up."""
        budget = self.settings.budget_s
        return budget is not None and time.monotonic() - self.started >= budget

    def validation_is_due(self, ended: Ending | None) -> bool:
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
        remark = ": the best so far" if kept and validation.solved else ""
        self.tell(f"validation after episode {standing.episode}: {validation}{remark}")
        self.validations.append(validation)
        self.advise()
        return True

    def advise(self) -> None:
        """Say what stands in the way of the training, if anything does, and what to try."""
        found = advice(self.episodes, self.validations, self.config)
        for about, said in found.items():
            if about not in self.advice:
                self.tell(said)
        self.advice = found | self.advice

    def record_episode(self, stats: EpisodeStats) -> None:
        """Record an episode. Raises `RegoalError` if its numbers are not finite."""
        standing = self.standing
        finite = math.isfinite(stats.loss) and bool(torch.isfinite(self.network.weights).all())
        if not finite:
            kept = f"The best policy so far is in {self.out / POLICY}. " if standing.best else ""
            raise RegoalError(
                f"the training diverged in episode {stats.episode}: loss {stats.loss}. {kept}Try a "
                f"smaller learning rate, or a gradient norm of 10, in a new folder."
            )
        standing.episode = stats.episode
        self.episodes.append(stats)
        standing.elapsed_s = time.monotonic() - self.started
        record = {**asdict(stats), "elapsed_s": standing.elapsed_s}
        if self.first:
            append_json_line(self.out / EPISODES, record)
        self.tell(self.progress(stats))

    def progress(self, stats: EpisodeStats) -> Progress:
        """Summarise the progress after an episode."""
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
        best = self.standing.best
        assert best is not None
        assert self.best_weights is not None
        network = replace(self.network.to_function(), weights=self.best_weights.numpy())
        network = network.without_silent_relations()
        policy = Policy(network, self.schema, self.config.layers, policy_facts(self.settings, best))
        (self.out / KEPT).mkdir(exist_ok=True)
        save_policy(self.out / KEPT / kept_name(best.episode), policy)
        save_policy(self.out / POLICY, policy)

    def save(self) -> None:
        """Write a checkpoint; the first worker's is everyone's."""
        if not self.first:
            return
        extra = {} if self.best_weights is None else {"best": self.best_weights}
        path = self.out / CHECKPOINT
        save_checkpoint(path, self.training, self.standing.to_json(), extra)

    def summary(self, ended: Ending, signum: int | None) -> RunSummary:
        """How the run ended."""
        standing = self.standing
        return RunSummary(
            self.out, ended, standing.episode, standing.best, standing.elapsed_s, signum
        )
