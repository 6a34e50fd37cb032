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
    """Which goals missed trajectories are relabelled with (paper, "Hindsight Experience Replay
    Variations")."""
    seed: int = 0
    """One seed for the weights, the choice of problems, exploration, replay and ties."""
    episodes: int = 600
    """Most episodes; the paper stops after 12 hours instead."""
    embedding_size: int = 32
    """Numbers an object's embedding has."""
    layers: int = 100
    """Rounds of message passing; all share their weights."""
    achieved_goals: bool = False
    """Tell the network which goal literals are true in the state, as relations of their own. The
    paper does not (docs: Deviations)."""
    policy_layers: int = 0
    """Rounds when the policy is executed, in validation and in tests; 0 takes `layers`. As all
    rounds share their weights, more of them than in training see farther."""
    learning_rate: Decay = field(default_factory=lambda: Decay(start=1e-3, end=1e-6, episodes=300))
    """Adam's step size over the episodes."""
    settle: float = 1.0
    """The factor on the learning rate after each complete validation, down to a twentieth of the
    schedule, so that a policy that carries over is not lost again; 1 leaves the schedule alone (not
    in the paper; docs: Deviations)."""
    temperature: Decay = field(default_factory=lambda: Decay(start=1.0, end=0.1, episodes=600))
    """Boltzmann temperature over the episodes, in units of Q."""
    ladder: bool = False
    """Let the trajectories of an episode explore at different temperatures, from the schedule's own
    up towards its start in equal ratios. The paper explores at one (docs: Deviations)."""
    curriculum: Decay = field(default_factory=lambda: Decay(start=1.0, end=1.0, episodes=1))
    """The share of the training problems that an episode draws from: the smallest, and all of their
    sizes. The paper draws from all (docs: Deviations)."""
    discount: float = 0.999
    """The worth of a reward one step later."""
    updates: int = 32
    """Optimisation steps an episode."""
    batch_size: int = 32
    """Transitions an optimisation step."""
    target_every: int = 32
    """Optimisation steps after which the target network takes the online weights; it also does at
    the end of an episode (the paper's k = 1 episode is its 32 steps)."""
    huber_delta: float = 1.0
    """TD error from which the loss grows linearly."""
    replay_capacity: int = 1000
    """Transitions kept; the oldest makes room."""
    priority_exponent: float = 0.6
    """How strongly large TD errors are preferred when sampling (0 samples uniformly)."""
    priority_weight: float = 0.4
    """How much of that preference the importance weights take back (1 takes back all)."""
    trajectories: int = 4
    """Trajectories an episode, each of a problem drawn at random."""
    horizon: int = 100
    """Most actions in a training trajectory."""
    learn_dead_ends: bool = False
    """Keep trajectories that met a dead end under their own goal too. The paper does not, and
    names the lack of such data as why learning fails if there are dead ends ("Failures")."""
    bound_targets: bool = False
    """Keep targets within what is known of Q*: no better than the steps that are certainly needed,
    no worse than the way to the goal that was found (not in the paper; docs: Deviations)."""
    advantage: float = 0.0
    """How much of an action's gap to the best one is taken off its target (advantage learning, not
    in the paper; docs: Deviations). 0 takes nothing off."""
    divide_sum: bool = False
    """Divide the readout's sum over objects by their number, or by that of the largest training
    problem if that is greater (not in the paper; docs: Deviations)."""
    average: float = 0.0
    """How much of the averaged weights stays in an optimisation step; they make the policy. 0 takes
    the last weights instead, as in the paper."""
    gradient_norm: float = 0.0
    """Gradients are scaled down to this norm; 0 leaves them alone, as in the paper."""
    validate_every: int = 5
    """Episodes between two validations (not in the paper)."""
    validation_steps: int = 300
    """Most actions for a validation problem (not in the paper; its test limit is 1000)."""
    validation_noise: float = 0.0
    """Standard deviation of the noise on Q-values, in steps, with which a policy is validated once
    more; of equally good policies the one that bears it better is kept. 0 does without (not in the
    paper; docs: Deviations)."""
    patience: int = 5
    """Training ends when this many validations in a row were complete and found no better policy;
    0 never ends early (not in the paper)."""

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
    "priority_exponent", "priority_weight", "gradient_norm", "patience", "policy_layers",
    "validation_noise",
)  # fmt: skip

PAPER = TrainConfig()

LAPTOP = TrainConfig(
    layers=30,
    achieved_goals=True,
    temperature=Decay(start=1.0, end=0.1, episodes=80, shape="geometric"),
    ladder=True,
    curriculum=Decay(start=0.3, end=1.0, episodes=60),
    learn_dead_ends=True,
    bound_targets=True,
    replay_capacity=5000,
    advantage=0.9,
    settle=0.5,
    average=0.98,
    validation_noise=5.0,
    patience=3,
)
"""For two CPU cores: fewer layers, a faster cooling, and what steadies learning; found on training
and validation splits (docs: Deviations; docs/dev/log.md). One preset for all domains."""

PRESETS = {"paper": PAPER, "laptop": LAPTOP}
