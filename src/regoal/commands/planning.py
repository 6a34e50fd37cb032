"""Commands for one problem: plan, check a plan; and the policies to plan with."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from regoal.commands.arguments import Duration, Layers, Memory, RunDevice
from regoal.errors import (
    EXIT_DONE,
    EXIT_INVALID_PLAN,
    EXIT_MEMORY,
    EXIT_NO_PLAN,
    EXIT_TIME,
    EXIT_UNSOLVABLE,
)
from regoal.records.results import Outcome
from regoal.system.limits import process_age, supervised
from regoal.system.threads import free_threads

if TYPE_CHECKING:
    from regoal.planning.actions import GroundAction
    from regoal.planning.task import Task

STARTED = time.perf_counter() - process_age()
"""When this process began, on the clock of `time.perf_counter`."""
SPARE_SHARE = 0.05
"""The share of the time limit that is kept for checking and writing the plan."""
EXIT_CODES = {
    Outcome.UNSOLVABLE: EXIT_UNSOLVABLE,
    Outcome.MEMORY_LIMIT: EXIT_MEMORY,
    Outcome.TIME_LIMIT: EXIT_TIME,
}
"""The exit code for each way to end without a plan; `EXIT_NO_PLAN` for others."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Find a plan with a policy, and validate it. If there is no plan, no file is written.

    Greedy execution comes first: it takes the best action that leads to a new state; if there is
    none, it goes to the state visited least often. If it finds no plan, commitment follows: the
    policy is given one goal literal after another. If that finds none, search follows: best-first,
    guided by the policy.
    """

    policy: Positional[str]
    """A policy file, a run folder, or the name of a shipped policy (see `regoal policies`)."""
    domain: Positional[Path]
    """The domain file."""
    problem: Positional[Path]
    """The problem file."""
    out: Path = Path("sas_plan")
    """The plan file."""
    layers: Layers = None
    """Layers of the network; as many as in training unless given."""
    max_steps: int = 1000
    """Most actions of greedy execution. Commitment may take four times as many."""
    search: bool = True
    """Leave dead ends, and go on with commitment and search if greedy execution finds no plan."""
    time_limit: Duration = math.inf
    """Most wall-clock time of the whole command, from the start of its process, e.g. 30s, 5m."""
    memory_limit: Memory = math.inf
    """Most memory for data, e.g. 1G."""
    shorten: bool = True
    """Take loops and useless actions out of the plan, for at most 10 s or half the time left."""
    device: RunDevice = "cpu"

    def run(self) -> int:
        """Plan."""
        left = self.time_limit - (time.perf_counter() - STARTED)
        code = supervised(seconds=left, mib=self.memory_limit)
        return self._plan() if code is None else code

    def _plan(self) -> int:
        from regoal.evaluation.evaluate import TestSettings, load, solve, unread_goals
        from regoal.networks.policy_encoder import policy_encoder
        from regoal.networks.policy_file import find_policy
        from regoal.planning.load import load_domain, load_task
        from regoal.planning.plans import cost_text, prepare_plan_file, write_plan

        prepare_plan_file(self.out, (find_policy(self.policy), self.domain, self.problem))
        policy = load(self.policy, threads=free_threads(), device=self.device)
        domain = load_domain(self.domain)
        encoder, notes = policy_encoder(policy, domain)
        task = load_task(domain, self.problem)
        for note in (*notes, *unread_goals(encoder, [task])):
            print(note)
        layers = policy.layers if self.layers is None else self.layers
        left = (1 - SPARE_SHARE) * self.time_limit - (time.perf_counter() - STARTED)
        settings = TestSettings(
            layers=layers, max_steps=self.max_steps, search=self.search, time_limit_s=left
        )
        found = solve(policy, encoder, task, settings)
        if found.actions is None or found.ended is None:
            print(found.refusal)
            return EXIT_CODES.get(found.outcome, EXIT_NO_PLAN)
        ended = found.ended
        actions = self._take_out(task, found.actions) if self.shorten else found.actions
        verdict = write_plan(self.out, task, actions)
        print(f"Plan length: {len(actions)} step(s).")
        print(f"Plan cost: {cost_text(verdict.cost)}")
        print(f"Found by: {ended.found_by}")
        if ended.returns:
            print(f"Steps into states visited before: {ended.returns}")
        print(f"Evaluated {ended.evaluations} state(s).")
        if ended.expansions:
            print(f"Generated {ended.expansions} state(s).")
        print(f"Search time: {ended.seconds:.2f}s")
        print(f"Total time: {time.perf_counter() - STARTED:.2f}s")
        print(f"The plan is valid and written to {self.out}")
        return EXIT_DONE

    def _take_out(
        self, task: "Task", actions: "Sequence[GroundAction]"
    ) -> "Sequence[GroundAction]":
        """Return the plan without useless actions, and print how many there were, if any."""
        from regoal.planning.shortening.shorten import shorten, time_to_shorten

        begin = time.perf_counter()
        left = self.time_limit - (begin - STARTED)
        found = shorten(task, actions, time_to_shorten(left))
        seconds = time.perf_counter() - begin
        count = len(actions) - len(found.actions)
        if count:
            print(f"Useless steps taken out: {count} of {len(actions)} in {seconds:.2f}s")
        if found.note:
            print(f"There may be more useless steps: {found.note}")
        return found.actions


@dataclass(frozen=True)
class Validate:
    """Check a plan; say which step fails and why. Exit code 0: it is valid, 1: it is not."""

    domain: Positional[Path]
    """The domain file."""
    problem: Positional[Path]
    """The problem file."""
    plan: Positional[Path]
    """The plan file."""

    def run(self) -> int:
        """Validate."""
        from regoal.planning.plans import check_plan_file

        verdict = check_plan_file(self.domain, self.problem, self.plan)
        print(f"{self.plan}: {'valid' if verdict.valid else 'INVALID'}, {verdict.reason}")
        return EXIT_DONE if verdict.valid else EXIT_INVALID_PLAN


@dataclass(frozen=True)
class Policies:
    """List the policies that come with regoal."""

    def run(self) -> int:
        """List them."""
        from regoal.networks.policy_file import describe_policy, shipped_policies

        for name, path in shipped_policies().items():
            schema, layers = describe_policy(path)
            print(f"{name}: {layers} layers, {path}")
            print("    " + str(schema).replace("; ", "\n    "))
        return EXIT_DONE
