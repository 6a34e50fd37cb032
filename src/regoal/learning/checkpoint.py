"""Exact save and resume of a training run; never a pickle.

One safetensors file holds the weights, Adam's moments and the replay buffer as tensors, and in its
JSON header the random streams and whatever the run wants back. A training that is restored and
goes on yields the very numbers of one that was never stopped: the target network's remembered
values, the encoder's and the lifter's are caches.

The one before the newest is kept too, should the newest turn out damaged.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regoal.errors import UsageError
from regoal.learning.replay import ReplayState
from regoal.learning.snapshot import Training, TrainingState
from regoal.learning.trajectory import Transition
from regoal.networks.tensor_file import Facts, Kind, read_tensor_file, write_tensor_file
from regoal.planning.goals import Atom, Goal
from regoal.planning.task import State, Task

KIND = Kind("checkpoint", 3, oldest=3)
REPLAY_FACTS = ("next_slot", "largest")
"""The fields of `ReplayState` that are plain values, in its order."""
_UNFIT = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Errors that the content of a whole checkpoint can raise if another program wrote it."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that has been read and found whole."""

    path: Path
    record: Facts
    """The run's own record, as it was given."""
    extra: dict[str, Tensor]
    """Tensors that the run wanted back."""
    _facts: Facts
    _tensors: dict[str, Tensor]

    def restore(self, training: Training) -> None:
        """Bring a training of the same config and tasks to the point of the checkpoint.

        Raises `UsageError` if it is another one.
        """
        try:
            replay = _unpack_replay(training.tasks, self._facts["replay"], self._tensors)
            training.restore(TrainingState(self._tensors, replay, self._facts["streams"]))
        except _UNFIT as error:
            raise UsageError(
                f"{self.path} was made by another training: {error}. Use the same domain, problems "
                f"and version of regoal, or start again in another folder."
            ) from error


def save_checkpoint(
    path: Path, training: Training, record: Facts, extra: dict[str, Tensor] | None = None
) -> None:
    """Write a checkpoint, all of it or nothing; the one before it is kept.

    `record` are JSON values. Raises `OSError` if the folder cannot be written; then the one
    before is still there.
    """
    state = training.state()
    packed, content = _pack_replay(state.replay, training.tasks)
    tensors = {
        **state.learner,
        **{f"replay/{name}": tensor for name, tensor in packed.items()},
        **{f"extra/{name}": tensor for name, tensor in (extra or {}).items()},
    }
    if path.is_file():
        path.replace(_previous(path))
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    facts = {"record": record, "streams": state.streams, "replay": content}
    write_tensor_file(path, KIND, facts, arrays)


def read_checkpoint(path: Path) -> tuple[Checkpoint | None, tuple[str, ...]]:
    """The newest whole checkpoint, None if there has never been one, and notes for the user.

    A damaged newest one is set aside, so that it does not become the one before. Raises
    `UsageError` if there are some but all are damaged.
    """
    existing = [p for p in (path, _previous(path)) if p.exists()]
    notes: list[str] = []
    for candidate in existing:
        try:
            facts, arrays = read_tensor_file(candidate, KIND)
            record = facts["record"]
            if not isinstance(record, dict):
                raise TypeError("its record is no object")
        except (LookupError, TypeError) as error:
            notes.append(f"{candidate} does not describe a training ({error!r}).")
            continue
        except UsageError as error:
            notes.append(str(error))
            continue
        tensors = {name: torch.tensor(array) for name, array in arrays.items()}
        extra = {k.removeprefix("extra/"): v for k, v in tensors.items() if k.startswith("extra/")}
        if notes:
            path.replace(path.with_suffix(f".damaged{path.suffix}"))
            notes = [f"{path} is damaged; going on from the one before, {candidate.name}"]
        return Checkpoint(candidate, record, extra, facts, tensors), tuple(notes)
    if existing:
        raise UsageError(f"{' '.join(notes)} Start again in another folder.")
    return None, ()


def _previous(path: Path) -> Path:
    return path.with_suffix(f".previous{path.suffix}")


def _pack_replay(replay: ReplayState, tasks: Sequence[Task]) -> tuple[dict[str, Tensor], Facts]:
    """The replay buffer as integers; each distinct state, goal and atom is stored once."""
    states: dict[State, int] = {}
    goals: dict[Goal, int] = {}
    rows = [
        (
            states.setdefault(t.state, len(states)),
            t.action,
            states.setdefault(t.next_state, len(states)),
            goals.setdefault(t.goal, len(goals)),
            t.remaining,
        )
        for t in replay.transitions
    ]
    sets: list[Iterable[Atom]] = [state.fluent_atoms for state in states]
    sets += [part for goal in goals for part in (goal.atoms, goal.negative)]
    atoms = sorted(set().union(*sets))
    number = {atom: i for i, atom in enumerate(atoms)}
    numbered = [sorted([number[atom] for atom in part]) for part in sets]
    task_index = {task: i for i, task in enumerate(tasks)}
    tensors = {
        "transitions": _integers(rows).view(-1, 5),
        "state_tasks": _integers([task_index[state.task] for state in states]),
        "set_sizes": _integers([len(part) for part in numbered]),
        "set_atoms": _integers([n for part in numbered for n in part]),
        "atoms": _bytes(json.dumps([[atom.predicate, *atom.objects] for atom in atoms])),
        "priorities": torch.from_numpy(replay.priorities),
    }
    facts = {name: getattr(replay, name) for name in REPLAY_FACTS}
    return tensors, facts


def _bytes(text: str) -> Tensor:
    return torch.from_numpy(np.frombuffer(text.encode(), dtype=np.uint8).copy())


def _integers(values: Sequence[Any]) -> Tensor:
    return torch.from_numpy(np.array(values, dtype=np.int32))


def _unpack_replay(
    tasks: Sequence[Task], content: Facts, tensors: dict[str, Tensor]
) -> ReplayState:
    table = json.loads(tensors["replay/atoms"].numpy().tobytes())
    atoms = [Atom(predicate, tuple(objects)) for predicate, *objects in table]
    sizes = tensors["replay/set_sizes"].tolist()
    numbers = tensors["replay/set_atoms"].tolist()
    ends = [0, *accumulate(sizes)]
    if ends[-1] != len(numbers) or min(sizes, default=0) < 0:
        raise ValueError("its states do not have the atoms that it says")
    sets = [[atoms[n] for n in numbers[a:b]] for a, b in pairwise(ends)]
    owners = tensors["replay/state_tasks"].tolist()
    states = [tasks[i].state_of(part) for i, part in zip(owners, sets, strict=False)]
    parts = sets[len(states) :]
    goals = [Goal.of(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    transitions = [
        Transition(states[a], action, states[b], goals[g], remaining)
        for a, action, b, g, remaining in tensors["replay/transitions"].tolist()
    ]
    priorities = tensors["replay/priorities"].numpy()
    return ReplayState(transitions, priorities, *(content[name] for name in REPLAY_FACTS))
