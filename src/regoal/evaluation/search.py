"""Best-first search guided by a policy's Q-values, for problems that greedy execution leaves.

An open entry is an action that was not yet tried in a rated state; its rank is the action's
Q-value. Its successor is made when the entry is taken. So a state with a thousand actions costs
one rating and one entry, not a thousand successors.

From the best entry the search goes on greedily, as the policy does, until the best Q-value has not
grown for `PATIENCE` states or there is no new state. Then it goes back to the best open entry. A
best-first search that compares all entries after every state hesitates between ways that are
equally good.

What keeps it complete: a state is omitted only if it has been seen before, if it equals a seen one
up to exchanging objects (`regoal.planning.symmetry`), or if it is proven that the goal cannot be
reached from it (`regoal.planning.dead_ends`). If no entry is left, no plan exists.
"""

import heapq
import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from regoal.errors import RegoalError, TooWideError, lacks_memory
from regoal.evaluation.batching import BATCH_BYTES, Memory, compute_q_values
from regoal.evaluation.inputs import Inputs, Situation
from regoal.networks.encoder import Encoder
from regoal.networks.q_function import QValues, RatesActions
from regoal.planning.actions import GroundAction
from regoal.planning.dead_ends import DeadEnds
from regoal.planning.task import State, Task
from regoal.records.results import Outcome
from regoal.system.cancellation import StoppedError, stopping
from regoal.system.limits import memory_is_short

MOST_EXPANSIONS = 1_000_000
"""Successors that a search makes at most, unless it has another limit."""
LANES = 1
"""Greedy continuations at a time. More of them share forward passes, but all except the first go on
from worse entries (docs/dev/log.md)."""
PATIENCE = 20
"""States without a better Q-value after which a greedy continuation ends."""

NO_ACTIONS: QValues = np.empty(0, np.float32)


class _Node(Situation):
    """A state that the search has reached, with its actions once it is rated."""

    __slots__ = ("action", "actions", "parent", "q_values", "tried")

    def __init__(
        self, inputs: Inputs, state: State, parent: "_Node | None", action: GroundAction | None
    ) -> None:
        super().__init__(inputs, state)
        self.parent = parent
        self.action = action
        self.actions: Sequence[GroundAction] = ()
        """The best one first; equal ones up to exchanging objects are listed once."""
        self.q_values = NO_ACTIONS
        self.tried = 0
        """The number of actions whose successors have been made."""

    @property
    def is_open(self) -> bool:
        """Whether some action was not tried."""
        return self.tried < len(self.actions)

    @property
    def next_q(self) -> float:
        """The Q-value of the best action that was not tried; there must be one."""
        return float(self.q_values[self.tried])

    def plan(self) -> list[GroundAction]:
        """Return the actions from the initial state."""
        found: list[GroundAction] = []
        node = self
        while node.parent is not None and node.action is not None:
            found.append(node.action)
            node = node.parent
        return found[::-1]


@dataclass
class _Lane:
    """A greedy continuation: its last state, and how it has gone."""

    node: _Node
    best: float = -math.inf
    """The highest Q-value on the way."""
    waited: int = 0
    """States since it was met."""

    def goes_on(self) -> bool:
        """Note the last state's best Q-value; return whether to continue from it."""
        best = self.node.next_q if self.node.is_open else -math.inf
        if best > self.best:
            self.best, self.waited = best, 0
        else:
            self.waited += 1
        return self.waited < PATIENCE and self.node.is_open


class Search:
    """A search for a plan of one task. It can be asked for its progress after it has ended."""

    def __init__(
        self,
        network: RatesActions,
        encoder: Encoder,
        task: Task,
        *,
        layers: int,
        dead_ends: DeadEnds | None = None,
    ) -> None:
        self.task = task
        self.evaluations = 0
        """States that the network has rated."""
        self.expansions = 0
        """Successors that were made, also those that had been seen."""
        self.reached = 0
        """The most goal literals that hold together in one of the states met."""
        self.plan: list[GroundAction] | None = None
        self.fault: RegoalError | None = None
        """A fault in the problem itself, if that ended the search."""
        self._network, self._encoder, self._layers = network, encoder, layers
        self._memory = Memory(encoder, network.layout.size, BATCH_BYTES)
        self._inputs = Inputs(task, task.goal)
        self._literals = tuple(task.goal.literals())
        self._dead_ends = dead_ends or DeadEnds(task)
        self._open: list[tuple[float, int, _Node]] = []
        self._entered = 0
        self._seen: set[Hashable] = set()
        self._omitted = False
        """Whether a state was omitted because it was too large, so that nothing is proven."""

    def run(
        self,
        begin: Sequence[GroundAction] = (),
        *,
        time_limit_s: float = math.inf,
        max_expansions: int = MOST_EXPANSIONS,
        stop: Callable[[], bool] = lambda: False,
    ) -> Outcome:
        """Search until there is a plan, a proof that there is none, or a limit is reached.

        It starts in the initial state, and in the state after the actions `begin`, if any.

        A search is run once. `UNSOLVABLE` is returned only if all reachable states were seen, those
        aside that cannot lead to the goal. `NO_PLAN` says that `max_expansions` is reached, or
        that some states could not be rated. `stop` ends it like the time limit.
        """
        deadline = time.perf_counter() + time_limit_s

        def is_over() -> bool:
            return stop() or time.perf_counter() > deadline

        try:
            with stopping(is_over):
                outcome = self._run(begin, is_over, max_expansions)
        except StoppedError:
            outcome = Outcome.TIME_LIMIT
        except RegoalError as error:
            self.fault = error
            outcome = Outcome.ERROR
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
            outcome = Outcome.MEMORY_LIMIT
        self._open.clear()
        self._seen.clear()
        return outcome

    def _run(
        self, begin: Sequence[GroundAction], ended: Callable[[], bool], max_expansions: int
    ) -> Outcome:
        lanes = self._start(begin)
        while self.plan is None:
            if ended():
                return Outcome.TIME_LIMIT
            if memory_is_short():
                return Outcome.MEMORY_LIMIT
            if self.expansions >= max_expansions:
                return Outcome.NO_PLAN
            if not lanes:
                return Outcome.NO_PLAN if self._omitted else Outcome.UNSOLVABLE
            lanes = self._rate(lanes)
            lanes = self._go_on(lanes)
        return Outcome.SOLVED

    def _start(self, begin: Sequence[GroundAction]) -> list[_Lane]:
        """Return a lane at the initial state, and one behind the actions `begin`.

        The states between these two are not noted as seen, as they are not rated.
        """
        root = self._visit(self.task.initial_state, None, None)
        if root is None:
            return []
        node = root
        for action in begin:
            state = self.task.successor(node.state, action)
            node = _Node(self._inputs, state, node, action)
        last = self._visit(node.state, node.parent, node.action)
        return [_Lane(root)] if last is None else [_Lane(last), _Lane(root)]

    def _rate(self, lanes: Sequence[_Lane]) -> list[_Lane]:
        """Rate the last states of all lanes and open their actions; return lanes that go on."""
        nodes = [lane.node for lane in lanes if self._can_encode(lane.node)]
        found = compute_q_values(self._network, nodes, self._layers, self._memory) if nodes else []
        self.evaluations += len(nodes)
        for node, q in zip(nodes, found, strict=True):
            if q is None:
                self._omitted = True
            else:
                node.actions, node.q_values = node.make(self._encoder).rank_unequal(q)
            node.give_up()
            node.state.forget_atoms()
            self._push(node)
        return [lane for lane in lanes if lane.goes_on()]

    def _can_encode(self, node: _Node) -> bool:
        """Make the node's input; return false if the state has too many actions for that."""
        try:
            node.make(self._encoder)
        except TooWideError:
            self._omitted = True
            return False
        return True

    def _go_on(self, lanes: Sequence[_Lane]) -> list[_Lane]:
        """Take a step in every lane; those that end go on from the best open entries."""
        found = []
        for lane in lanes:
            node = self._try_next(lane.node)
            if node is not None:
                lane.node = node
                found.append(lane)
        while len(found) < LANES and self.plan is None and (node := self._pop()) is not None:
            found.append(_Lane(node))
        return found

    def _push(self, node: _Node) -> None:
        """Enter the node's best action that was not tried; the latest of equal ones is first."""
        if node.is_open:
            self._entered += 1
            heapq.heappush(self._open, (-node.next_q, -self._entered, node))

    def _pop(self) -> _Node | None:
        """Take open entries, best first, until one leads to a new state; None if none does."""
        while self._open and self.plan is None:
            rank, _, node = heapq.heappop(self._open)
            if not node.is_open:
                continue
            if -node.next_q > rank:  # a lane has tried the action meanwhile
                self._push(node)
                continue
            new = self._try(node)
            self._push(node)
            if new is not None:
                return new
        return None

    def _try_next(self, node: _Node) -> _Node | None:
        """Try actions, best first, until one leads to a new state; None if none does."""
        while node.is_open and self.plan is None:
            if (new := self._try(node)) is not None:
                return new
        return None

    def _try(self, node: _Node) -> _Node | None:
        """Make the successor of the best action that was not tried; None if it is of no use."""
        action = node.actions[node.tried]
        node.tried += 1
        self.expansions += 1
        return self._visit(self.task.successor(node.state, action), node, action)

    def _visit(
        self, state: State, parent: _Node | None, action: GroundAction | None
    ) -> _Node | None:
        """Make a node for a state unless it was seen, or is a dead end, or a goal state."""
        symmetry = self._inputs.symmetry
        key = state if symmetry is None else symmetry.key(state)
        if key in self._seen:
            return None
        self._seen.add(key)
        holding = sum(state.holds(atom) == positive for atom, positive in self._literals)
        self.reached = max(self.reached, holding)
        node = _Node(self._inputs, state, parent, action)
        if state.satisfies(self.task.goal):
            self.plan = node.plan()
            return node
        if self._dead_ends.has(state):
            state.forget_atoms()
            return None
        return node
