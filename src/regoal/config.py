"""Every number of the paper as frozen dataclasses, and the two presets `PAPER` and `LAPTOP`."""

import math
from dataclasses import dataclass, field
from typing import Literal

Hindsight = Literal["lifted", "propositional", "state"]
HINDSIGHTS: tuple[Hindsight, ...] = ("lifted", "propositional", "state")
DeviceName = Literal["auto", "cpu", "cuda"]
DEVICES: tuple[DeviceName, ...] = ("auto", "cpu", "cuda")


@dataclass(frozen=True, kw_only=True)
class Decay:
    """A value that falls (or rises) over some episodes, then stays."""

    start: float
    """Value in the first episode."""
    end: float
    """Value from episode `episodes` on."""
    episodes: int
    """How many episodes the change takes."""
    shape: Literal["linear", "geometric"] = "linear"
    """By equal differences, or by equal ratios, which is sooner near the end of a fall."""

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ValueError(f"a decay takes at least one episode, got {self.episodes}")
        if not all(0 < value < math.inf for value in (self.start, self.end)):
            raise ValueError(f"a decay stays above zero and finite, got {self.start}, {self.end}")
        if self.shape not in ("linear", "geometric"):
            raise ValueError(f"a decay is linear or geometric, got {self.shape!r}")

    def __call__(self, episode: int) -> float:
        """The value in `episode`, counted from 0.

        >>> Decay(start=1.0, end=0.1, episodes=600)(300)
        0.55
        >>> Decay(start=1.0, end=0.01, episodes=600, shape="geometric")(300)
        0.1
        """
        share = min(episode / self.episodes, 1.0)
        if self.shape == "geometric":
            return self.start * math.pow(self.end / self.start, share)
        return self.start + share * (self.end - self.start)

    def ladder(self, episode: int, rungs: int) -> list[float]:
        """As many values from the one in `episode` up towards the start, in equal ratios.

        >>> Decay(start=1.0, end=0.25, episodes=5).ladder(5, 2)
        [0.25, 0.5]
        """
        lowest = self(episode)
        return [lowest * math.pow(self.start / lowest, i / rungs) for i in range(rungs)]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How to train. Defaults are the paper's ("Hyperparameters") if their text says no more."""

    hindsight: Hindsight = "lifted"
    """The kind of hindsight goals that trajectories are relabelled with (paper, "Hindsight
    Experience Replay Variations")."""
    seed: int = 0
    """The seed of all random numbers: weights, choice of problems, exploration, replay, ties."""
    episodes: int = 600
    """Most episodes. The paper stops after 12 hours instead."""
    embedding_size: int = 32
    """Numbers in the embedding of an object."""
    layers: int = 100
    """Layers of the network, in each of which messages are passed. All share their weights."""
    achieved_goals: bool = False
    """Let the network see which goal literals are true in the state, and what mentions all objects
    of those that are not. The paper does not (docs: Deviations)."""
    relaxed_plans: bool = False
    """Let the network see which actions help in a relaxed task, where nothing that is true ever
    becomes false, and towards what. It shows what is farther away than the layers reach (not in the
    paper; docs: Deviations)."""
    learning_rate: Decay = field(default_factory=lambda: Decay(start=1e-3, end=1e-6, episodes=300))
    """Adam's step size over the episodes."""
    settle: float = 1.0
    """Each validation that solves all problems multiplies the learning rate by this, down to a
    twentieth of the schedule, so that a good policy is not lost again. 1 changes nothing (not in
    the paper; docs: Deviations)."""
    temperature: Decay = field(default_factory=lambda: Decay(start=1.0, end=0.1, episodes=600))
    """Temperature of exploration over the episodes, in units of Q: high is random, low greedy."""
    ladder: bool = False
    """Let the trajectories of an episode explore at different temperatures, from the scheduled one
    up towards its start in equal ratios. The paper explores at one (docs: Deviations)."""
    curriculum: Decay = field(default_factory=lambda: Decay(start=1.0, end=1.0, episodes=1))
    """The share of the training problems that an episode draws from, the smallest first. The paper
    draws from all (docs: Deviations)."""
    discount: float = 0.999
    """The factor on a reward for each step that it comes later."""
    updates: int = 32
    """Optimisation steps in an episode."""
    batch_size: int = 32
    """Transitions in an optimisation step."""
    target_every: int = 32
    """After so many optimisation steps, and at the end of an episode, the target network takes over
    the weights (the paper: after one episode, which has 32 steps)."""
    huber_delta: float = 1.0
    """TD error from which the loss grows linearly."""
    replay_capacity: int = 1000
    """Most transitions in the replay buffer; beyond that the oldest are dropped."""
    priority_exponent: float = 0.6
    """How strongly large TD errors are preferred when sampling (0 samples uniformly)."""
    priority_weight: float = 0.4
    """How much of that preference the importance weights take back (1 takes back all)."""
    trajectories: int = 4
    """Trajectories in an episode, each of a problem drawn at random."""
    horizon: int = 100
    """Most actions in a training trajectory."""
    learn_dead_ends: bool = False
    """Take steps into dead ends back during exploration and learn that they are worse than others,
    and learn from trajectories that meet one. The paper does not, and says that learning fails for
    lack of such data ("Failures")."""
    learn_others: bool = False
    """In each state of a relabelled trajectory, learn from one random other action, too, as its
    successor is known. The paper learns from the actions taken alone (docs: Deviations)."""
    bound_targets: bool = False
    """Keep targets within known bounds: no better than the steps that are certainly needed, no
    worse than the way to the goal that was found (not in the paper; docs: Deviations)."""
    advantage: float = 0.0
    """The share of an action's gap to the best action that is subtracted from its target (advantage
    learning; not in the paper; docs: Deviations)."""
    average: float = 0.0
    """The policy is a moving average of the weights; this share of it stays in each optimisation
    step. 0 takes the last weights instead, as in the paper."""
    validate_every: int = 5
    """Episodes between two validations (not in the paper)."""
    validation_steps: int = 300
    """Most actions for a validation problem (not in the paper; its test limit is 1000)."""
    validation_noise: float = 0.0
    """Policies are validated once more with random noise on their Q-values, of this standard
    deviation in steps. Of equally good policies, the one that solves more with noise is kept. 0:
    no such validation (not in the paper; docs: Deviations)."""
    patience: int = 5
    """Training ends after this many validations in a row that solve all problems and find no better
    policy, but not before --curriculum.episodes. 0: it never ends early (not in the paper)."""

    def __post_init__(self) -> None:
        if self.hindsight not in HINDSIGHTS:
            raise ValueError(f"hindsight must be one of {HINDSIGHTS}, got {self.hindsight!r}")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"a seed lies in [0, 2^32), got {self.seed}")
        for name in POSITIVE:
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be above 0 and finite, got {getattr(self, name)}")
        for name in NOT_NEGATIVE:
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)}")
        self._check_shares()

    def _check_shares(self) -> None:
        if not 0.0 < self.discount <= 1.0:
            raise ValueError(f"discount must lie in (0, 1], got {self.discount}")
        for name in ("average", "advantage"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"{name} must lie in [0, 1), got {getattr(self, name)}")
        if not 0.0 < self.settle <= 1.0:
            raise ValueError(f"settle must lie in (0, 1], got {self.settle}")


POSITIVE = (
    "episodes", "embedding_size", "layers", "huber_delta", "updates", "target_every", "batch_size",
    "replay_capacity", "trajectories", "horizon", "validate_every", "validation_steps",
)  # fmt: skip
NOT_NEGATIVE = (
    "priority_exponent", "priority_weight", "patience", "validation_noise",
)  # fmt: skip

PAPER = TrainConfig()

LAPTOP = TrainConfig(
    layers=15,
    achieved_goals=True,
    temperature=Decay(start=1.0, end=0.1, episodes=80, shape="geometric"),
    ladder=True,
    curriculum=Decay(start=0.3, end=1.0, episodes=60),
    learn_dead_ends=True,
    bound_targets=True,
    replay_capacity=5000,
    advantage=0.9,
    settle=0.8,
    average=0.995,
    validation_noise=5.0,
    patience=3,
)
"""For two CPU cores: fewer layers, a faster cooling, and what steadies learning; found on training
and validation splits (docs: Deviations; docs/dev/log.md). One preset for all domains."""

PRESETS = {"paper": PAPER, "laptop": LAPTOP}
