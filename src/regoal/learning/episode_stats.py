"""The record of an episode of training."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EpisodeStats:
    """Statistics of one episode."""

    episode: int
    """Counted from 1."""
    trajectories: int
    solved: int
    """Trajectories that reached the problem's own goal."""
    parts: int
    """Relabelled parts of trajectories, stored for replay."""
    transitions: int
    """Steps in all parts together."""
    goal_size: float
    """Mean number of literals of the parts' goals."""
    trajectory_length: float
    """Mean number of steps of the parts."""
    loss: float
    """Mean loss of the optimisation steps; 0 while there is nothing to learn from."""
    temperature: float
    learning_rate: float
    explore_seconds: float
    optimise_seconds: float
