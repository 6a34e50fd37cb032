"""Every reader of regoal under one form: bytes in; `Fault` where anything but a clear error comes.

A reader may accept its input or refuse it with one of regoal's own errors, in one line that names
the file and ends with exit code 31, 34 or 36. All else (another exception, an internal error, lack
of memory, text of several lines) is a fault, whatever the input.
"""

import json
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import safetensors.numpy
import torch

from regoal import cli
from regoal.config import LAPTOP
from regoal.errors import EXIT_BAD_PDDL, EXIT_UNSUPPORTED_PDDL, EXIT_USAGE
from regoal.learning.checkpoint import read_checkpoint, save_checkpoint
from regoal.learning.dqn import train
from regoal.learning.learner import Learner
from regoal.learning.replay import Replay
from regoal.learning.snapshot import Training
from regoal.learning.streams import Streams
from regoal.networks import tensor_file
from regoal.networks.encoder import Encoder
from regoal.networks.policy_encoder import policy_encoder
from regoal.networks.policy_file import Policy, load_policy, save_policy
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.planning.load import load_domain, load_task
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.mimir import library as library_module
from regoal.planning.plans import read_plan, validate_plan
from regoal.records.run_record import load_run
from regoal.reports.rendering import to_markdown
from regoal.reports.tables import tables_of
from regoal.runs.validation import Standing
from regoal.sweeps.commands import print_commands
from regoal.sweeps.sweep_file import read_sweep
from reliability import texts
from reliability.mutation import DATA_WORDS, PDDL_WORDS, PLAN_WORDS, mutated

CLEAR = (EXIT_BAD_PDDL, EXIT_UNSUPPORTED_PDDL, EXIT_USAGE)
MOST_GROUND = 3000
"""Ground actions at most (by counting arguments) where a mutated task is also executed."""
CONFIG = replace(
    LAPTOP, layers=2, embedding_size=2, updates=2, batch_size=4, horizon=6, replay_capacity=12,
    trajectories=2, episodes=4,
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """A reader's error or crash that is not a clear message for the user."""

    reader: str
    message: str


def judged(name: str, read: Callable[[], object], folder: Path) -> Fault | None:
    """Call a reader; the fault it shows, if any."""
    try:
        read()
    except (Exception, KeyboardInterrupt) as error:
        code, message = cli._explain(error)
        where = f"{type(error).__name__}: {message}"
        if code not in CLEAR:
            return Fault(name, f"exit code {code}, {where}")
        if "\n" in message or len(message) > 3000:
            return Fault(name, f"a message of several lines, or too long: {where[:3000]!r}")
        if str(folder) not in message:
            return Fault(name, f"a message without the file: {where}")
    return None


class Readers:
    """The readers, with all that they need prepared in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        torch.set_num_threads(1)
        library_module.find_crash = lambda make: ""  # a crash shall be seen, and this be fast
        self.folder = folder
        self.base = folder / "base"
        self.now = folder / "now"
        for name, (domain, problem, _) in texts.CASES.items():
            (self.base / name).mkdir(parents=True, exist_ok=True)
            (self.base / name / "domain.pddl").write_text(domain)
            (self.base / name / "problem.pddl").write_text(problem)
        (self.now / "run").mkdir(parents=True, exist_ok=True)
        self.domains = {n: load_domain(self.base / n / "domain.pddl") for n in texts.CASES}
        self.tasks = {
            n: load_task(d, self.base / n / "problem.pddl") for n, d in self.domains.items()
        }
        self.words = {n: [t.encode() for t in parts] for n, parts in texts.CASES.items()}
        self._prepare_tensor_files()

    def _prepare_tensor_files(self) -> None:
        task = self.tasks["stacks"]
        relations = relations_of(schema_of(task.domain))
        network = QNetwork(relations, CONFIG.embedding_size, seed=0)
        self.training = Training(
            [task], Learner(network, Encoder(relations), CONFIG),
            Replay(CONFIG.replay_capacity, exponent=0.6, weight=0.4), Streams.from_seed(0),
        )  # fmt: skip
        for _ in train(*self.training):
            pass
        path = self.base / "checkpoint.safetensors"
        save_checkpoint(
            path, self.training, Standing().to_json(), {"best": network.weights.detach()}
        )
        self.checkpoint = path.read_bytes()
        path = self.base / "policy.safetensors"
        policy = Policy(network.to_function(), schema_of(task.domain), 2, {"hindsight": "lifted"})
        save_policy(path, policy)
        self.policy = path.read_bytes()

    # One reader each: writes its input to the folder `now`, so that a crash leaves it there

    def domain(self, data: bytes, case: str) -> Fault | None:
        """A domain file, and the case's problem with it."""
        path = self.now / "domain.pddl"
        path.write_bytes(data)

        def read() -> None:
            domain = load_domain(path)
            schema_of(domain).fingerprint()
            self._execute(load_task(domain, self.base / case / "problem.pddl"))

        return judged("domain", read, self.folder)

    def problem(self, data: bytes, case: str) -> Fault | None:
        """A problem file of the case's domain."""
        path = self.now / "problem.pddl"
        path.write_bytes(data)

        def read() -> None:
            self._execute(load_task(self.domains[case], path))

        return judged("problem", read, self.folder)

    def pair(self, domain: bytes, problem: bytes) -> Fault | None:
        """A domain and a problem, both new."""
        for name, data in (("domain", domain), ("problem", problem)):
            (self.now / f"{name}.pddl").write_bytes(data)

        def read() -> None:
            found = load_domain(self.now / "domain.pddl")
            self._execute(load_task(found, self.now / "problem.pddl"))

        return judged("pair", read, self.folder)

    def plan(self, data: bytes, case: str) -> Fault | None:
        """A plan file, judged on the case's problem."""
        path = self.now / "plan"
        path.write_bytes(data)
        return judged(
            "plan", lambda: validate_plan(self.tasks[case], read_plan(path)).reason, self.folder
        )

    def policy_file(self, data: bytes, case: str = "stacks") -> Fault | None:
        """A policy file, then read for a domain."""
        path = self.now / "policy.safetensors"
        path.write_bytes(data)

        def read() -> None:
            policy = load_policy(path)
            try:
                policy_encoder(policy, self.domains[case])
            except cli.UsageError as error:  # shows both domains, not the file
                raise cli.UsageError(f"{path}: {' '.join(str(error).split())}") from error

        return judged("policy", read, self.folder)

    def checkpoint_file(self, data: bytes) -> Fault | None:
        """A checkpoint, alone in its folder, restored."""
        path = self.now / "checkpoint.safetensors"
        path.write_bytes(data)

        def read() -> None:
            found, _ = read_checkpoint(path)
            if found is not None:
                found.restore(self.training)
                Standing.from_json(found.record, str(found.path))

        return judged("checkpoint", read, self.folder)

    def run_folder(self, files: dict[str, bytes]) -> Fault | None:
        """A run folder's JSON, read as reports do."""
        for name in texts.RUN_FILES:
            (self.now / "run" / name).write_bytes(files[name])

        def read() -> None:
            run = load_run(self.now / "run")
            assert (run.domain, run.method, run.seed) is not None
            if run.results:
                for table in tables_of([run]).values():
                    to_markdown(table)

        return judged("records", read, self.folder)

    def sweep(self, data: bytes) -> Fault | None:
        """A sweep file."""
        path = self.now / "sweep.toml"
        path.write_bytes(data)
        return judged("sweep", lambda: print_commands(read_sweep(path)), self.folder)

    def _execute(self, task) -> None:
        sizes = [len(task.objects) ** arity for _, arity in task.domain.actions]
        if sum(sizes) > MOST_GROUND:
            return
        state = task.initial_state
        for _ in range(2):
            state = task.successor(state, task.applicable_actions(state)[0])
            assert state.fluent_atoms is not None
            state.satisfies(task.goal)

    # One mutated input each, drawn with `rng`

    def mutate_domain(self, rng: random.Random) -> Fault | None:
        """A mutated domain."""
        case = rng.choice(sorted(self.words))
        others = [parts[0] for parts in self.words.values()]
        return self.domain(mutated(self.words[case][0], PDDL_WORDS, others, rng), case)

    def mutate_problem(self, rng: random.Random) -> Fault | None:
        """A mutated problem."""
        case = rng.choice(sorted(self.words))
        others = [parts[1] for parts in self.words.values()]
        return self.problem(mutated(self.words[case][1], PDDL_WORDS, others, rng), case)

    def mutate_plan(self, rng: random.Random) -> Fault | None:
        """A mutated plan."""
        case = rng.choice(sorted(self.words))
        others = [parts[2] for parts in self.words.values()]
        return self.plan(mutated(self.words[case][2], PLAN_WORDS, others, rng), case)

    def mutate_policy(self, rng: random.Random) -> Fault | None:
        """A policy with bytes changed, or with a changed content under a right checksum."""
        return self.policy_file(_mutated_tensors(self.policy, self.checkpoint, rng))

    def mutate_checkpoint(self, rng: random.Random) -> Fault | None:
        """A checkpoint, mutated as policies are."""
        return self.checkpoint_file(_mutated_tensors(self.checkpoint, self.policy, rng))

    def mutate_records(self, rng: random.Random) -> Fault | None:
        """A run folder, one file of it mutated."""
        files = {name: text.encode() for name, text in texts.RUN_FILES.items()}
        name = rng.choice(sorted(files))
        files[name] = mutated(files[name], DATA_WORDS, sorted(files.values()), rng)
        return self.run_folder(files)

    def mutate_sweep(self, rng: random.Random) -> Fault | None:
        """A mutated sweep file."""
        other = [texts.SWEEP.encode(), texts.CONFIG.encode()]
        return self.sweep(mutated(other[0], DATA_WORDS, other, rng))


MUTATIONS = {
    "domain": Readers.mutate_domain,
    "problem": Readers.mutate_problem,
    "plan": Readers.mutate_plan,
    "policy": Readers.mutate_policy,
    "checkpoint": Readers.mutate_checkpoint,
    "records": Readers.mutate_records,
    "sweep": Readers.mutate_sweep,
}
TURNS = (
    *(2 * ("domain", "problem", "plan", "records", "sweep", "domain", "problem")),
    "policy",
    *(2 * ("domain", "problem", "plan", "records", "sweep", "domain", "problem")),
    "checkpoint",
)
"""In which order the fuzz takes them; tensor files take ten times as long as the others."""


def _mutated_tensors(data: bytes, other: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return mutated(data, DATA_WORDS, [data, other], rng)
    return resealed(data, lambda facts: _changed(facts, rng), rng)


def resealed(
    data: bytes, change: Callable[[dict], object], rng: random.Random | None = None
) -> bytes:
    """A tensor file with its description changed, tensors now and then, and a right checksum."""
    length = struct.unpack("<Q", data[:8])[0]
    facts = json.loads(json.loads(data[8 : 8 + length])["__metadata__"][tensor_file.KEY])
    tensors = safetensors.numpy.load(data)
    if rng is not None and rng.random() < 0.4:
        name = rng.choice(sorted(tensors))
        tensors = _changed_tensors(tensors, name, rng)
    facts.pop("sha256")
    changed = change(facts)
    if isinstance(changed, dict):
        facts = changed
    try:
        facts["sha256"] = tensor_file._compute_digest(facts, tensors)
        text = tensor_file._to_json(facts)
    except ValueError:  # a number that is not finite has no place in the format
        text = json.dumps(facts)
    return safetensors.numpy.save(tensors, {tensor_file.KEY: text})


def _changed_tensors(tensors, name: str, rng: random.Random):
    tensor = tensors[name]
    kind = rng.randrange(6)
    if kind == 0:
        return {k: v for k, v in tensors.items() if k != name}
    if kind == 1:
        return {**tensors, f"{name}x": tensor.copy()}
    if kind == 2:
        return {**tensors, name: tensor.flatten()[:-1]}
    if kind == 3:
        other = np.float64 if tensor.dtype.kind == "f" else np.float32
        return {**tensors, name: tensor.astype(other)}
    flat = tensor.flatten()
    if len(flat):
        odd = rng.choice((-1, 0, 7, 100000, -(2**31), 2**31 - 1))
        if flat.dtype == np.uint8:
            odd %= 256
        if flat.dtype.kind == "f":
            odd = rng.choice((float("nan"), float("inf"), 0.0, 1e30))
        flat[rng.randrange(len(flat))] = odd
    return {**tensors, name: flat.reshape(tensor.shape)}


def _changed(value, rng: random.Random):
    """A JSON value with one part of it, at any depth, replaced, left out or doubled."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.15:
        odd = (None, True, -1, 0, 2**31, 2**70, 1.5, float("inf"), "", "x", [], {}, [1], {"a": 1})
        return rng.choice(odd)
    keys = sorted(value) if isinstance(value, dict) else list(range(len(value)))
    key = rng.choice(keys)
    kind = rng.random()
    copy = dict(value) if isinstance(value, dict) else list(value)
    if kind < 0.15:
        del copy[key]
    elif kind < 0.3:
        other = rng.choice(keys)
        copy[key], copy[other] = copy[other], copy[key]
    elif kind < 0.4 and isinstance(copy, list):
        copy += copy[key : key + 1] * rng.choice((1, 3, 100))
    else:
        copy[key] = _changed(copy[key], rng)
    return copy
