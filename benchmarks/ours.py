"""regoal as the benchmark drives it."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch

from benchmarks.work import UNIFORM, Timed, Work, actions_of, finish
from regoal.evaluation.execution import execute
from regoal.evaluation.process_pool import execute_side_by_side, most_processes
from regoal.learning.dqn import train
from regoal.learning.learner import Learner
from regoal.learning.replay import Replay, Sample
from regoal.learning.rollout import rollout
from regoal.learning.streams import Streams
from regoal.networks.encoder import Encoder
from regoal.networks.kernels.cpu import kernel as cpu_kernel
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.planning.goals import Goal
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.task import State


class Ours:
    """The learner, encoder and training loop of regoal on one `Work`."""

    def __init__(self, work: Work, layers: int, seed: int = 0, device: str = "cpu") -> None:
        self.work = work
        self.layers = layers
        self.config = work.config(layers)
        self.relations = relations_of(schema_of(work.tasks[0].domain))
        network = QNetwork(self.relations, self.config.embedding_size, seed=seed).to(device)
        self.device = device
        self.learner = Learner(network, Encoder(self.relations), self.config)
        config = self.config
        self.replay = Replay(
            config.replay_capacity, exponent=config.priority_exponent, weight=config.priority_weight
        )
        self.training = train(work.tasks, self.learner, self.replay, Streams.from_seed(seed))
        self.rng = np.random.default_rng(seed)
        self._actions = [actions_of(walk) for walk in work.walks]
        self._seen: tuple[Encoder, list[tuple[State, Goal]]]
        for batch in work.batches:
            self.learner.encoder.batch((t.state, t.goal) for t in batch)
            self.learner.encoder.batch((t.next_state, t.goal) for t in batch)

    def use_threads(self, count: int) -> None:
        """Set the kernel's threads and the processes of greedy execution.

        Torch's own operations stay in one thread, because they are too small for more.
        """
        torch.set_num_threads(1)
        cpu_kernel.use_threads(count)

    def optimise(self, turn: int) -> Timed:
        """Time one `Learner.update`. Its states are encoded already, as after exploration."""
        transitions = self.work.batches[turn % len(self.work.batches)]
        size = len(transitions)
        sample = Sample(np.arange(size), list(transitions), np.ones(size))
        depth = self.work.depth(turn, self.config.layers)
        self.learner.sync_target()
        start = time.perf_counter()
        self.learner.update(sample, depth)
        finish(self.learner.device)
        return Timed(time.perf_counter() - start, 1)

    def explore(self, steps: int) -> Timed:
        """Time one rollout; a unit is one action in each trajectory."""
        start = time.perf_counter()
        trajectories = rollout(
            [self.work.tasks[i] for i in self.work.explored],
            self.learner.q_values,
            self.learner.encoder,
            temperatures=[UNIFORM] * len(self.work.explored),
            horizon=steps,
            rngs=[self.rng] * len(self.work.explored),
        )
        seconds = time.perf_counter() - start
        return Timed(seconds, max(map(len, trajectories)), sum(map(len, trajectories)))

    def warm_up_episode(self) -> None:
        """Run one whole episode."""
        next(self.training)

    def episode(self) -> Timed:
        """Time the next episode of `train`."""
        start = time.perf_counter()
        stats = next(self.training)
        return Timed(time.perf_counter() - start, 1, stats.transitions)

    def greedy(self, steps: int) -> Timed:
        """Time `execute` with noise in the weights, so that the first action is not always best.

        The encoder is new, because the states of a test problem are met only once. A problem is
        dropped when it ends. So it is read again before the timing begins, as theirs are.
        """
        network = QNetwork(self.relations, self.config.embedding_size, seed=0)
        noise = torch.randn(network.weights.shape, generator=torch.Generator().manual_seed(0))
        network.weights.data.add_(noise, alpha=0.05)
        network.to(self.device)
        encoder = Encoder(self.relations)
        run = partial(execute, network, encoder, layers=self.layers, max_steps=steps)
        for task in self.work.test_tasks:
            task.initial_state  # noqa: B018
        start = time.perf_counter()
        processes = most_processes(network)
        ended = list(execute_side_by_side(run, self.work.test_tasks, processes=processes))
        seconds = time.perf_counter() - start
        taken = sum(len(execution.actions) for _, execution in ended)
        return Timed(seconds, taken, taken)

    def encode(self) -> Timed:
        """Time the encoding of new states by an encoder that knows only the tasks' fixed part."""
        encoder = Encoder(self.relations)
        pairs = []
        for i, actions in enumerate(self._actions):
            state = self.work.walks[i].states[0]
            task = state.task
            encoder.state(state)
            for j, action in enumerate(actions):
                state = task.successor(state, action)
                if (i, j) in self.work.encoded:
                    pairs.append((state, task.goal))
        self._seen = encoder, pairs
        return self.encode_again()

    def encode_again(self) -> Timed:
        """Time the encoding of the states of the last `encode`, which the encoder now remembers."""
        encoder, pairs = self._seen
        size = self.work.batch_size
        start = time.perf_counter()
        for i in range(0, len(pairs), size):
            encoder.batch(pairs[i : i + size])
        return Timed(time.perf_counter() - start, len(pairs))


class WithoutKernels(Ours):
    """regoal without kernels: the network runs by its plain definition."""

    def optimise(self, turn: int) -> Timed:
        """Do what `Ours.optimise` does, without kernels."""
        with _switch_kernels_off():
            return super().optimise(turn)

    def explore(self, steps: int) -> Timed:
        """Do what `Ours.explore` does, without kernels."""
        with _switch_kernels_off():
            return super().explore(steps)

    def greedy(self, steps: int) -> Timed:
        """Do what `Ours.greedy` does, without kernels."""
        with _switch_kernels_off():
            return super().greedy(steps)


@contextmanager
def _switch_kernels_off() -> Iterator[None]:
    before = os.environ.get("REGOAL_KERNEL")
    os.environ["REGOAL_KERNEL"] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["REGOAL_KERNEL"]
        else:
            os.environ["REGOAL_KERNEL"] = before
