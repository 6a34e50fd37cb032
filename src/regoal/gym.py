"""A PDDL task as an environment of Gymnasium, with a mask of actions; needs `regoal[gym]`."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    import gymnasium
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "regoal.gym needs Gymnasium, which is not installed. Run `pip install 'regoal[gym]'`."
    ) from error

from regoal.errors import UsageError
from regoal.planning.actions import DUMMY_ACTION, GroundAction
from regoal.planning.load import load_domain, load_task
from regoal.planning.reachable import list_reachable
from regoal.planning.task import State

Bits = npt.NDArray[np.int8]
"""Zeros and ones."""
MOST_STATES = 100_000
"""States that an environment meets before it frees the memory of all, at the next reset."""


class PddlEnv(gymnasium.Env[Bits, np.int64]):
    """One problem: the agent takes actions until the goal holds or `horizon` actions are taken.

    A number means one ground action, or one bit of the observation one atom, in all episodes and
    processes. `ground_actions` and `atoms` say which, in alphabetical order. They hold everything
    that the delete relaxation reaches. The last action is a dummy: as in the paper, it is
    applicable if and only if nothing else is, and changes nothing.

    - Observation: `MultiBinary`, 1 for each atom that holds. The goal is that of the problem and is
      not in it.
    - Action: `Discrete`. `info["action_mask"]` (int8) is 1 for each applicable action. An action
      that is not applicable changes nothing and counts as a step.
    - Reward: -1 for each step. Action costs are ignored.
    - An episode is terminated if the goal holds, truncated after `horizon` steps.

    Raises `PddlError` and `UnsupportedPddlError` as `regoal.load_task` does. Raises `UsageError` if
    the horizon is below 1, the goal holds initially, or the task has too many ground actions.

    Examples:
        >>> import regoal, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     problem, *others = regoal.generate("gripper", folder)
        ...     env = PddlEnv(f"{folder}/domain.pddl", problem, horizon=50)
        >>> observation, info = env.reset(seed=0)
        >>> env.observation_space, env.action_space
        (MultiBinary(8), Discrete(11))
        >>> [str(env.ground_actions[i]) for i in info["action_mask"].nonzero()[0]]
        ['(move rooma roomb)', '(pick ball1 rooma left)', '(pick ball1 rooma right)']
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        domain: str | Path,
        problem: str | Path,
        *,
        horizon: int = 1000,
        render_mode: str | None = None,
    ) -> None:
        if horizon < 1:
            raise UsageError(f"the horizon must be at least 1, got {horizon}.")
        self.task = load_task(load_domain(Path(domain)), Path(problem))
        if self.task.initial_state.satisfies(self.task.goal):
            raise UsageError(f"{problem}: the goal holds initially; there is nothing to do.")
        reachable = list_reachable(self.task)
        self.atoms = reachable.atoms
        self.ground_actions = (*reachable.actions, DUMMY_ACTION)
        self.horizon = horizon
        self.render_mode = render_mode
        self._atom_numbers = {atom: i for i, atom in enumerate(self.atoms)}
        self._action_numbers = {action: i for i, action in enumerate(self.ground_actions)}
        self.observation_space = gymnasium.spaces.MultiBinary(len(self.atoms))
        self.action_space = gymnasium.spaces.Discrete(len(self.ground_actions))
        self._steps = 0
        self._enter(self.task.initial_state)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Bits, dict[str, Any]]:
        """Return to the initial state. Nothing is random, and there are no options."""
        super().reset(seed=seed, options=options)
        if self.state.index > MOST_STATES:
            self.task.forget_states()
        self._steps = 0
        self._enter(self.task.initial_state)
        return self._observe(), self._inform()

    def step(self, action: np.int64 | int) -> tuple[Bits, float, bool, bool, dict[str, Any]]:
        """Take the action with this number."""
        chosen = self._applicable.get(int(action))
        if chosen is not None:
            self._enter(self.task.successor(self.state, chosen))
        self._steps += 1
        solved = self.state.satisfies(self.task.goal)
        return self._observe(), -1.0, solved, self._steps >= self.horizon, self._inform()

    def render(self) -> str | None:
        """Return the atoms of the state in PDDL if the mode is `ansi`."""
        if self.render_mode != "ansi":
            return None
        return " ".join(str(atom) for atom in sorted(self.state.fluent_atoms))

    def _enter(self, state: State) -> None:
        self.state = state
        """The present state, as a value of regoal."""
        self._applicable: dict[int, GroundAction] = {
            self._action_numbers[action]: action for action in self.task.applicable_actions(state)
        }

    def _observe(self) -> Bits:
        bits = np.zeros(len(self.atoms), dtype=np.int8)
        bits[[self._atom_numbers[atom] for atom in self.state.fluent_atoms]] = 1
        return bits

    def _inform(self) -> dict[str, Any]:
        mask = np.zeros(len(self.ground_actions), dtype=np.int8)
        mask[list(self._applicable)] = 1
        return {"action_mask": mask}
