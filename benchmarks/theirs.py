"""The authors' released stack (pymimir-rl and pymimir-rgnn), set up as in the paper.

It has a hard maximum, normalised and residual updates, embedding size 32, and one MLP for each
predicate. Their DQN step reads Q-values from the last layer only. The paper also takes the loss on
one random layer. `PaperDqn` adds that through their hooks, and costs only one more readout.
"""

import time
import warnings
from typing import Any

import numpy as np
import pymimir
import pymimir_rgnn as rgnn
import pymimir_rl as rl
import torch
from pymimir_rgnn.encoders import get_input_from_encoders
from torch.nn.functional import huber_loss

from benchmarks.work import SIDE_BY_SIDE, UNIFORM, Timed, Work, actions_of, finish
from regoal.config import TrainConfig
from regoal.learning.streams import Streams
from regoal.learning.trajectory import Transition
from regoal.planning.goals import Goal
from regoal.planning.task import State, Task

warnings.filterwarnings("ignore", message=r"index_reduce\(\) is in beta")

MELLOWMAX = 1000.0
"""So large that their smooth maximum over actions equals the maximum."""


class Model(rl.ActionScalarModel):  # type: ignore[misc]
    """Their network with the interface of their learner, and with an optional second readout."""

    def __init__(self, domain: Any, config: TrainConfig) -> None:
        super().__init__()
        self.input_spec = (rgnn.StateEncoder(), rgnn.GroundActionsEncoder(), rgnn.GoalEncoder())
        numbers = rgnn.HyperparameterConfig(
            domain=domain,
            embedding_size=config.embedding_size,
            num_layers=config.layers,
            normalize_updates=True,
            residual_updates=True,
        )
        modules = rgnn.ModuleConfig(
            aggregation_function=rgnn.HardMaximumAggregation(),
            message_function=rgnn.PredicateMLPMessages(numbers, self.input_spec),
            update_function=rgnn.MLPUpdates(numbers),
        )
        output_spec = [("q", rgnn.ActionScalarDecoder(numbers))]
        self.network = rgnn.RelationalGraphNeuralNetwork(
            numbers, modules, self.input_spec, output_spec
        )

    def forward(self, pairs: list[Any]) -> list[Any]:
        """Compute Q-values and actions of each (state, goal), after all layers."""
        actions = [state.generate_applicable_actions() for state, _ in pairs]
        inputs = [(state, a, goal) for (state, goal), a in zip(pairs, actions, strict=True)]
        values = self.network(inputs).readout("q")
        return list(zip(values, actions, strict=True))

    def forward_twice(self, pairs: list[Any], depth: int) -> tuple[list[Any], list[Any]]:
        """Compute what `forward` does, and in the same pass the Q-values after `depth` layers."""
        early: list[Any] = []

        def read_out(state: Any) -> None:
            if state.get_layer_index() == depth - 1:
                early.extend(state.readout("q"))

        self.network.add_hook(read_out)
        late = self.forward(pairs)
        self.network.clear_hooks()
        return late, early


class PaperDqn(rl.DQNOptimization):  # type: ignore[misc]
    """Their DQN step, with the loss after the last layer and after one random layer."""

    depth: int | None = None
    """The random layer; None draws one for each step."""

    def __call__(self, transitions: list[Any], weights: Any) -> Any:
        """Do one optimisation step, which differs from theirs only by the second readout."""
        device = next(self.model.parameters()).device
        targets, weights = self._compute_targets(transitions, -10000.0, device), weights.to(device)
        pairs = [(t.current_state, t.goal_condition) for t in transitions]
        layers = self.model.network.get_hparam_config().num_layers
        depth = self.depth or int(torch.randint(1, layers, ()))
        self.model.train()
        late, early = self.model.forward_twice(pairs, depth)
        chosen = [a.index(t.selected_action) for (_, a), t in zip(late, transitions, strict=True)]
        losses = [
            huber_loss(torch.stack([q[i] for q, i in zip(values, chosen, strict=True)]), targets,
                       delta=1.0, reduction="none") * weights
            for values in ([q for q, _ in late], early)
        ]  # fmt: skip
        self.model_optimizer.zero_grad()
        (losses[0] + losses[1]).mean().backward()
        self.model_optimizer.step()
        self.model_lr_scheduler.step()
        return losses[0].detach()


class SameProblems(rl.ProblemSampler):  # type: ignore[misc]
    """Draws the problems that regoal's training loop draws with this seed."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def sample(self, problems: list[Any], n: int) -> list[Any]:
        """Draw `n` problems evenly."""
        return [problems[i] for i in self.rng.integers(len(problems), size=n)]


class Theirs:
    """Their libraries on one `Work`. Their parser reads the problems."""

    def __init__(self, work: Work, layers: int, seed: int = 0, device: str = "cpu") -> None:
        torch.manual_seed(seed)
        self.work, self.layers = work, layers
        config = work.config(layers)
        domain = pymimir.Domain(work.domain)
        self.problems = {t: pymimir.Problem(domain, t.path) for t in work.tasks}
        self.tests = [pymimir.Problem(domain, t.path) for t in work.test_tasks]
        self.reward = rl.ConstantRewardFunction(-1.0)
        self.device = torch.device(device)
        self.model, self.target = (Model(domain, config).to(device) for _ in range(2))
        self.loss = self._make_loss(config)
        self.sampler = rl.BoltzmannTrajectorySampler(self.model, self.reward, UNIFORM)
        self._states: dict[State, Any] = {}
        self._goals: dict[tuple[Task, Goal], Any] = {}
        self._walks = [self._follow(walk.states, actions_of(walk)) for walk in work.walks]
        self.batches = [[self._make_transition(t) for t in batch] for batch in work.batches]
        self._algorithm: Any = None
        self._explored: list[int] = []
        self._seed = seed
        self._seen: list[tuple[Any, Any]] = []

    def use_threads(self, count: int) -> None:
        """Set the threads of torch."""
        torch.set_num_threads(count)

    def optimise(self, turn: int) -> Timed:
        """Time one call of their loss function, which also steps the optimiser."""
        batch = self.batches[turn % len(self.batches)]
        self.loss.depth = self.work.depth(turn, self.layers)
        weights = torch.ones(len(batch))
        start = time.perf_counter()
        self.loss(batch, weights)
        finish(self.device)
        return Timed(time.perf_counter() - start, 1)

    def explore(self, steps: int) -> Timed:
        """Time their sampler from the initial states."""
        chosen = [self.problems[self.work.tasks[i]] for i in self.work.explored]
        return self._sample(self.sampler, chosen, steps, together=True)

    def warm_up_episode(self) -> None:
        """Run the exploring half of an episode, which draws problems as a whole episode does."""
        self.algorithm.collect_experience(SIDE_BY_SIDE)

    def episode(self) -> Timed:
        """Time one `fit` of their algorithm, and the copy to the target network."""
        algorithm = self.algorithm
        self._explored.clear()
        self.loss.depth = None
        start = time.perf_counter()
        algorithm.fit()
        self.target.load_state_dict(self.model.state_dict())
        return Timed(time.perf_counter() - start, 1, sum(self._explored))

    def greedy(self, steps: int) -> Timed:
        """Time their greedy sampler, which excludes visited states as ours does."""
        sampler = rl.GreedyPolicyTrajectorySampler(self.model, self.reward)
        return self._sample(sampler, self.tests, steps, together=False)

    def encode(self) -> Timed:
        """Time the encoding of new state objects, about which nothing is cached."""
        self._seen = []
        for i, (state, actions) in enumerate(self._walks):
            goal = state.get_problem().get_goal_condition()
            for j, action in enumerate(actions):
                state = action.apply(state)  # noqa: PLW2901
                if (i, j) in self.work.encoded:
                    self._seen.append((state, goal))
        return self.encode_again()

    def encode_again(self) -> Timed:
        """Time the encoding of the last `encode`'s states; their actions are cached now."""
        device, size = self.device, self.work.batch_size
        start = time.perf_counter()
        for i in range(0, len(self._seen), size):
            batch = [(s, s.generate_applicable_actions(), g) for s, g in self._seen[i : i + size]]
            get_input_from_encoders(batch, self.model.input_spec, device)
        return Timed(time.perf_counter() - start, len(self._seen))

    @property
    def algorithm(self) -> Any:
        """Their training loop; built when first needed, because its goal tables take long."""
        if self._algorithm is None:
            config = self.work.config(self.layers)
            problems = list(self.problems.values())
            self._algorithm = rl.OffPolicyAlgorithm(
                problems, self.loss, self.reward, None,
                rl.PrioritizedReplayBuffer(
                    config.replay_capacity, config.priority_exponent, config.priority_weight
                ),
                self.sampler, config.horizon, config.trajectories, config.batch_size,
                config.updates,
                problem_sampler=SameProblems(Streams.from_seed(self._seed).problems),
                trajectory_refiner=rl.LiftedHindsightTrajectoryRefiner(problems, 1000),
            )  # fmt: skip
            self._algorithm.register_on_refine_trajectories(
                lambda parts: self._explored.extend(map(len, parts))
            )
        return self._algorithm

    def _make_loss(self, config: TrainConfig) -> PaperDqn:
        self.target.load_state_dict(self.model.state_dict())
        optimizer = torch.optim.Adam(self.model.parameters(), lr=config.learning_rate.start)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
        return PaperDqn(self.model, optimizer, scheduler, self.target, config.discount, MELLOWMAX)

    def _sample(self, sampler: Any, problems: list[Any], steps: int, *, together: bool) -> Timed:
        pairs = [(p.get_initial_state(), p.get_goal_condition()) for p in problems]
        start = time.perf_counter()
        lengths = [len(t) for t in sampler.sample(pairs, steps)]
        seconds = time.perf_counter() - start
        return Timed(seconds, max(lengths) if together else sum(lengths), sum(lengths))

    def _follow(self, states: tuple[State, ...], actions: list[Any]) -> tuple[Any, list[Any]]:
        """Follow a walk in their library; return its initial state and actions.

        Their state for each of ours is kept in `_states`.
        """
        first = state = self.problems[states[0].task].get_initial_state()
        self._states.setdefault(states[0], state)
        taken = []
        for action, after in zip(actions, states[1:], strict=True):
            taken.append(_find_action(state, action.name, action.objects))
            state = taken[-1].apply(state)
            state = self._states.setdefault(after, state)
        return first, taken

    def _make_transition(self, t: Transition) -> Any:
        state, after = self._states[t.state], self._states[t.next_state]
        action = t.state.task.applicable_actions(t.state)[t.action]
        after.generate_applicable_actions()
        return rl.Transition(
            state, after, _find_action(state, action.name, action.objects), 0.0, 0.0, -1.0, 0.0,
            self.reward, self._make_goal(t.state.task, t.goal), True,
        )  # fmt: skip

    def _make_goal(self, task: Task, goal: Goal) -> Any:
        """Return their conjunction for a goal, one object for each as in their relabelled parts."""
        if (task, goal) not in self._goals:
            problem = self.problems[task]
            domain = problem.get_domain()
            literals = []
            for atom, positive in goal.literals():
                objects = [problem.get_object(name) for name in atom.objects]
                ground = problem.new_ground_atom(domain.get_predicate(atom.predicate), objects)
                literals.append(problem.new_ground_literal(ground, positive))
            self._goals[task, goal] = problem.new_ground_conjunctive_condition(literals)
        return self._goals[task, goal]


def _find_action(state: Any, name: str, objects: tuple[str, ...]) -> Any:
    """Find their applicable action with this name and these objects."""
    for action in state.generate_applicable_actions():
        arguments = tuple(o.get_name() for o in action.get_objects())
        if (action.get_action().get_name(), arguments) == (name, objects):
            return action
    raise ValueError(f"the authors' stack finds ({name} {' '.join(objects)}) not applicable")
