"""How long lifted hindsight goals take, and how many literals they have.

Run `python -m benchmarks.lifting [--out build/lifting.json]`. The cases are goals of regular and of
irregular shape, and the training problems of four domains on states of random walks. For each
case, it prints the milliseconds to prepare the goal, and those for one state. They are CPU time,
the least of three repeats with empty memory. It also prints the literals of all hindsight goals
together, for how many states the largest is not proven, and a digest of the goals drawn.
"""

import argparse
import hashlib
import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.work import random_walk
from regoal.domains.splits import write_split
from regoal.planning.goals import Atom, Goal
from regoal.planning.lifting import bounds, embeddings, greedy, placements
from regoal.planning.lifting.goal_lifter import GoalLifter
from regoal.planning.lifting.lifted_goals import lifted_goals
from regoal.planning.load import load_domain, load_task

REPEATS = 3
STATES = 20
"""States of a goal that is written here."""
WALK = 100
"""Steps of a random walk, the horizon of a training trajectory."""
PROBLEMS = 16
"""Training problems of a domain, evenly spread over its split."""
LOOSE = 24
DOMAINS = ("blocks", "delivery", "visitall", "hiking")


class Question(NamedTuple):
    """A goal, the types of all objects, the constants, and the states to lift it in."""

    goal: Goal
    types_of: dict[str, tuple[str, ...]]
    constants: frozenset[str]
    states: list[frozenset[Atom]]


Case = Callable[[np.random.Generator], list[Question]]


def names(prefix: str, count: int) -> list[str]:
    """Return names for objects."""
    return [f"{prefix}{i}" for i in range(count)]


def towers(rng: np.random.Generator, blocks: Sequence[str], count: int) -> list[Atom]:
    """Make the `on` atoms of so many towers of these blocks, in random order."""
    order = [blocks[i] for i in rng.permutation(len(blocks))]
    cuts = sorted(rng.choice(np.arange(1, len(order)), count - 1, replace=False).tolist())
    ends = zip([0, *cuts], [*cuts, len(order)], strict=True)
    return [Atom("on", pair) for a, b in ends for pair in pairwise(order[a:b])]


def question(goal: Iterable[Atom], states: Iterable[Iterable[Atom]]) -> Question:
    """Make a question without types and constants."""
    return Question(Goal.of(goal), {}, frozenset(), [frozenset(state) for state in states])


def tower(size: int) -> Case:
    """One tower of `size` blocks, in states of one to half as many towers."""

    def case(rng: np.random.Generator) -> list[Question]:
        blocks = names("b", size)
        counts = rng.integers(1, size // 2 + 1, STATES).tolist()
        return [question(towers(rng, blocks, 1), (towers(rng, blocks, k) for k in counts))]

    return case


def several_towers(size: int, count: int) -> Case:
    """So many towers of all blocks, in states of one to half as many towers as blocks."""

    def case(rng: np.random.Generator) -> list[Question]:
        blocks = names("b", size)
        counts = rng.integers(1, size // 2 + 1, STATES).tolist()
        return [question(towers(rng, blocks, count), (towers(rng, blocks, k) for k in counts))]

    return case


def loose(size: int) -> Case:
    """Things, each with a separate place, in states in which some share a place."""

    def case(rng: np.random.Generator) -> list[Question]:
        things, places = names("t", size), names("p", size)
        goal = [Atom("at", pair) for pair in zip(things, places, strict=True)]
        drawn = [rng.choice(places[: rng.integers(1, size + 1)], size) for _ in range(STATES)]
        states = [[Atom("at", (t, str(p))) for t, p in zip(things, x, strict=True)] for x in drawn]
        return [question(goal, states)]

    return case


def visited(cells: int) -> Case:
    """As many unary atoms as there are cells, in states that have some of them."""

    def case(rng: np.random.Generator) -> list[Question]:
        goal = [Atom("visited", (name,)) for name in names("c", cells)]
        counts = rng.integers(1, cells + 1, STATES).tolist()
        return [question(goal, ([goal[i] for i in rng.permutation(cells)[:n]] for n in counts))]

    return case


def star(size: int) -> Case:
    """Balls that must be in one room, in states in which they are spread over two."""

    def case(rng: np.random.Generator) -> list[Question]:
        balls = names("ball", size)
        states = [
            [Atom("at", (ball, str(room))) for ball, room in zip(balls, rooms, strict=True)]
            for rooms in rng.choice(["a", "b"], (STATES, size))
        ]
        return [question([Atom("at", (ball, "b")) for ball in balls], states)]

    return case


def board(joined: Callable[[int, int], bool]) -> Case:
    """Cells of an 8x8 board, joined both ways; states keep some of the atoms, or all."""

    def case(rng: np.random.Generator) -> list[Question]:
        cells = list(product(range(8), repeat=2))
        goal = [
            Atom("joined", (f"c{a}{b}", f"c{c}{d}"))
            for (a, b), (c, d) in permutations(cells, 2)
            if joined(abs(a - c), abs(b - d))
        ]
        shares = [0.1, 0.5, 0.9, 1.0]
        return [question(goal, ([x for x in goal if rng.random() < k] for k in shares))]

    return case


def irregular(objects: int, literals: int) -> Case:
    """Random directed edges, in random states of fewer and of more edges."""

    def case(rng: np.random.Generator) -> list[Question]:
        pairs = [Atom("e", pair) for pair in permutations(names("o", objects), 2)]

        def some(count: int) -> list[Atom]:
            return [pairs[i] for i in rng.choice(len(pairs), count, replace=False)]

        sizes = [1, literals // 2, literals, min(2 * literals, len(pairs) - 5)]
        return [question(some(literals), map(some, sizes))]

    return case


def training_problems(domain: str) -> Case:
    """Training problems of a benchmark domain, with every state of a random walk in each."""

    def case(rng: np.random.Generator) -> list[Question]:
        questions = []
        with tempfile.TemporaryDirectory() as folder:
            paths = write_split(domain, "train", Path(folder))
            definition = load_domain(Path(folder) / "domain.pddl")
            for path in paths[:: max(1, len(paths) // PROBLEMS)]:
                task = load_task(definition, path)
                states = random_walk(task, WALK, rng).states
                atoms = [state.atoms for state in states if not state.satisfies(task.goal)]
                questions.append(
                    Question(task.goal, dict(task.types_of), task.domain.constants, atoms)
                )
        return questions

    return case


CASES: dict[str, Case] = {
    "tower of 10": tower(10),
    "tower of 20": tower(20),
    "tower of 40": tower(40),
    "4 towers of 14 blocks": several_towers(14, 4),
    "8 towers of 50 blocks": several_towers(50, 8),
    "10 loose atoms": loose(10),
    "24 loose atoms": loose(24),
    "144 unary atoms": visited(144),
    "star of 19": star(19),
    "star of 129": star(129),
    "grid 8x8": board(lambda x, y: x + y == 1),
    "rook's graph 8x8": board(lambda x, y: x == 0 or y == 0),
    "irregular 10, 40": irregular(10, 40),
    "irregular 6, 12": irregular(6, 12),
} | {domain: training_problems(domain) for domain in DOMAINS}


def run_once(questions: Sequence[Question]) -> dict[str, Any]:
    """Do one repeat: seconds to prepare and for all states, and what was found."""
    rng = np.random.default_rng(1)
    prepared = asked = 0.0
    literals = unproven = 0
    digest = hashlib.sha256()
    for goal, types_of, constants, states in questions:
        start = time.process_time()
        lifter = GoalLifter(goal, types_of, constants)
        ready = time.process_time()
        goals = [lifter.hindsight(state, rng) for state in states]
        prepared += ready - start
        asked += time.process_time() - ready
        literals += sum(len(found) for found in goals if found is not None)
        unproven += lifter.unproven
        digest.update("\n".join(map(str, goals)).encode())
    return {
        "prepared": prepared,
        "asked": asked,
        "literals": literals,
        "unproven": unproven,
        "digest": digest.hexdigest()[:8],
    }


def measure(name: str) -> dict[str, Any]:
    """Measure the fastest repeat of one case, in milliseconds per goal and per state."""
    questions = CASES[name](np.random.default_rng(0))
    repeats = []
    for _ in range(REPEATS):
        forget_all()
        repeats.append(run_once(questions))
    states = sum(len(question.states) for question in questions)
    best = {key: min(repeat[key] for repeat in repeats) for key in repeats[0]}
    return {
        "case": name,
        "states": states,
        "prepare_ms": round(1000 * best["prepared"] / len(questions), 3),
        "state_ms": round(1000 * best["asked"] / states, 3),
        "literals": best["literals"],
        "unproven": best["unproven"],
        "digest": best["digest"],
    }


def list_loose_atoms() -> dict[str, Any]:
    """List all lifted goals of 24 unconnected atoms: seconds, and peak MiB."""
    goal = Goal.of(
        Atom("at", pair) for pair in zip(names("t", LOOSE), names("p", LOOSE), strict=True)
    )
    start = time.process_time()
    count = sum(1 for _ in lifted_goals(goal, {}))
    seconds = time.process_time() - start
    forget_all()
    tracemalloc.start()
    list(lifted_goals(goal, {}))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"case": "list", "count": count, "seconds": round(seconds, 4), "MiB": peak / 2**20}


def forget_all() -> None:
    """Empty what earlier repeats have left in memory."""
    for remembered in (
        embeddings.canonical_form,
        placements.first_placement,
        placements.all_placements,
        greedy.grown_placement,
        bounds.capacity,
        bounds.largest_in,
    ):
        remembered.cache_clear()


def main() -> None:
    """Measure every case, print a line for each, and write all as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=list(CASES))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = [list_loose_atoms()]
    print(rows[0])
    print(f"{'case':24}{'states':>8}{'prepare ms':>12}{'state ms':>10}{'literals':>10} unproven")
    for name in [options.only] if options.only else CASES:
        row = measure(name)
        rows.append(row)
        print(
            f"{name:24}{row['states']:8}{row['prepare_ms']:12.2f}{row['state_ms']:10.3f}"
            f"{row['literals']:10} {row['unproven']:3} {row['digest']}",
            flush=True,
        )
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
