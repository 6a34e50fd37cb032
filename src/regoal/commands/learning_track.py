"""Commands as the learning track of the International Planning Competition 2023 calls them.

Their arguments have fixed positions, results are numbered as they get better, and limits come from
outside (ipc2023-learning.github.io, "Submission").
"""

import itertools
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from tyro.conf import Positional

from regoal import terminal
from regoal.commands.planning import EXIT_CODES
from regoal.config import LAPTOP
from regoal.errors import (
    EXIT_DONE,
    EXIT_FOUND_THEN_MEMORY,
    EXIT_FOUND_THEN_TIME,
    EXIT_MEMORY,
    EXIT_NO_PLAN,
    EXIT_TIME,
    lacks_memory,
)
from regoal.records.run_record import KEPT
from regoal.system.limits import process_age
from regoal.system.numbered_files import numbered_files, remove_numbered_files, write_next
from regoal.system.threads import free_threads

if TYPE_CHECKING:
    from regoal.planning.actions import GroundAction
    from regoal.planning.task import Task
    from regoal.runs.news import Progress

STARTED = time.perf_counter() - process_age()
"""When this process began, on the clock of `time.perf_counter`."""
LEAST_STEPS = 1000
STEPS_A_LITERAL = 20
"""Greedy execution has so many actions for each goal literal, and the least in any case; then
commitment and search follow."""
FOUND_THEN = {EXIT_TIME: EXIT_FOUND_THEN_TIME, EXIT_MEMORY: EXIT_FOUND_THEN_MEMORY}
"""The exit codes of a limit if there is a result already."""


@dataclass(frozen=True)
class Learn:
    """Learn, with the learning track's arguments: write policies KNOWLEDGE.1, .2, ...

    Each is better than the one before; the largest problems decide that. If SIGTERM or a limit of
    processor time stops it, the exit code is 2 if there is a policy, else 23.
    """

    knowledge: Positional[Path]
    """The prefix of the policy files; the last one counts."""
    domain: Positional[Path]
    """The domain file."""
    problems: Positional[tuple[Path, ...]]
    """The training problems, small ones first."""

    def run(self) -> int:
        """Learn until validation stays complete, all episodes are done or a limit ends it."""
        remove_numbered_files(self.knowledge, (self.domain, *self.problems))
        return _run_within_limits(self._learn, self.knowledge)

    def _learn(self) -> int:
        from regoal.planning.load import load_domain
        from regoal.runs.settings import RunSettings
        from regoal.runs.training_run import run_training

        parent = self.knowledge.parent
        with tempfile.TemporaryDirectory(prefix=".regoal-", dir=parent) as folder:
            settings = RunSettings(
                domain=self.domain,
                problems=self.problems,
                validation=None,
                out=Path(folder) / "run",
                config=LAPTOP,
                preset="laptop",
                name=load_domain(self.domain).name,
                threads=free_threads(),
                device="auto",
            )
            with self._publish_at_end(settings.out / KEPT) as publish, terminal.live_line() as show:

                def tell(news: "str | Progress") -> None:
                    publish()
                    terminal.show_news(news, show)

                summary = run_training(settings, tell)
        if summary.signal == signal.SIGTERM:
            raise SystemExit(128 + signal.SIGTERM)
        return summary.exit_code

    @contextmanager
    def _publish_at_end(self, kept: Path) -> Iterator[Callable[[], None]]:
        """Yield a function that copies the policies that a training has kept since the last call.

        It is called at the end in any case.
        """
        published: set[str] = set()

        def publish() -> None:
            for path in sorted(kept.glob("*.safetensors")):
                if path.name not in published:
                    published.add(path.name)
                    write_next(self.knowledge, path.read_bytes())

        try:
            yield publish
        finally:
            publish()


@dataclass(frozen=True)
class Solve:
    """Plan, with the learning track's arguments: write plans PLAN.1, .2, ..., each cheaper.

    Every plan is validated. If SIGTERM or a limit of processor time stops it, the exit code is 2 if
    there is a plan, else 23. If memory runs out, it is 1 or 22.
    """

    knowledge: Positional[Path]
    """A policy file, or the prefix of several files, of which the last one is taken."""
    domain: Positional[Path]
    """The domain file."""
    problem: Positional[Path]
    """The problem file."""
    plan: Positional[Path]
    """The prefix of the plan files."""

    def run(self) -> int:
        """Plan until no better plan is found or a limit ends it."""
        remove_numbered_files(self.plan, (self._policy(), self.domain, self.problem))
        return _run_within_limits(self._solve, self.plan)

    def _solve(self) -> int:
        from regoal.evaluation.evaluate import TestSettings, load, solve, unread_goals
        from regoal.evaluation.variations import vary
        from regoal.networks.policy_encoder import policy_encoder
        from regoal.planning.load import load_domain, load_task
        from regoal.planning.shortening.shorten import shorten

        policy = load(str(self._policy()), threads=free_threads(), device="cpu")
        domain = load_domain(self.domain)
        encoder, notes = policy_encoder(policy, domain)
        task = load_task(domain, self.problem)
        for note in (*notes, *unread_goals(encoder, [task])):
            print(note)
        steps = max(LEAST_STEPS, STEPS_A_LITERAL * len(task.goal))
        settings = TestSettings(layers=policy.layers, max_steps=steps, search=True)
        found = solve(policy, encoder, task, settings)
        if found.actions is None:
            print(found.refusal)
            return EXIT_CODES.get(found.outcome, EXIT_NO_PLAN)
        first = found.actions
        cost = self._write_if_cheaper(task, first, math.inf)
        others = vary(policy, encoder, task, settings, len(first))
        for actions in itertools.chain([first], others):
            cost = self._write_if_cheaper(task, shorten(task, actions).actions, cost)
        return EXIT_DONE

    def _policy(self) -> Path:
        """Return the policy file that is meant."""
        files = [] if self.knowledge.exists() else numbered_files(self.knowledge)
        return files[-1] if files else self.knowledge

    def _write_if_cheaper(
        self, task: "Task", actions: "Sequence[GroundAction]", least: float
    ) -> float:
        """Write a valid plan that costs less than `least`; returns the least cost so far.

        Raises `RegoalError` if the plan is not valid, which is a fault of regoal.
        """
        from regoal.planning.plans import check_own_plan, cost_text, format_plan

        verdict = check_own_plan(task, actions)
        if verdict.cost >= least:
            return least
        text = format_plan(actions, verdict.cost, verdict.unit_cost)
        path = write_next(self.plan, text.encode())
        cost = cost_text(verdict.cost)
        seconds = time.perf_counter() - STARTED
        print(f"{path}: {len(actions)} step(s), cost {cost}, after {seconds:.2f}s", flush=True)
        return verdict.cost


def _run_within_limits(run: Callable[[], int], results: Path) -> int:
    """Run a command that writes numbered results until a limit from outside ends it."""
    signal.signal(signal.SIGXCPU, _terminate_self)
    try:
        return run()
    except SystemExit as exit_:
        if exit_.code != 128 + signal.SIGTERM:
            raise
        code, message = EXIT_TIME, "The time limit is reached."
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        code, message = EXIT_MEMORY, "Out of memory."
    print(f"regoal: error: {message}", file=sys.stderr)
    return FOUND_THEN[code] if numbered_files(results) else code


def _terminate_self(number: int, frame: FrameType | None) -> None:
    """End as after SIGTERM. The system repeats its warning every second, which is ignored."""
    del frame
    signal.signal(number, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGTERM)
