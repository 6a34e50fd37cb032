"""The worker's inputs from the grammars of `grammar.py`."""

import argparse
import json
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from regoal.errors import RegoalError
from regoal.planning.load import load_domain, load_task
from reliability import grammar, texts
from reliability.readers import Fault, Readers, resealed


class _Enough(Exception):
    """The time is over."""


def grammar_inputs(files: Path, options: argparse.Namespace, check) -> None:
    """Inputs from the grammars, a part of each; a valid text that is refused is a fault too."""
    readers, number = Readers(files), 0
    each = max(options.count // len(GRAMMARS), 1)
    for strategy, read in GRAMMARS:

        @seed(options.seed)
        @settings(
            max_examples=each, database=None, deadline=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(strategy)
        def run(value):
            nonlocal number
            number += 1
            if not check(number, lambda: read(readers, value)):  # noqa: B023 - called at once
                raise _Enough

        try:
            run()
        except _Enough:
            return


def _valid_pair(readers: Readers, found: tuple[str, str]) -> Fault | None:
    domain, problem = found
    fault = readers.pair(domain.encode(), problem.encode())
    if fault is None:
        try:
            read = load_domain(readers.now / "domain.pddl")
            load_task(read, readers.now / "problem.pddl")
        except RegoalError as error:
            allowed = ("both true and false", "needs itself", "depends on its own negation")
            if not any(words in str(error) for words in allowed):
                return Fault("pair", f"a valid text is refused: {error}")
    return fault


def _grammars():
    pairs = st.tuples(grammar.domains(), grammar.problems())
    policy = {
        "schema": {"name": "d"}, "relations": [["state", "on", 2]], "layers": 3,
        "embedding_size": 2, "training": {}, "fingerprint": "x",
    }  # fmt: skip
    return (
        (pairs, _valid_pair),
        (
            st.tuples(grammar.broken(grammar.domains()), grammar.problems()),
            lambda readers, x: readers.pair(_bytes(x[0]), _bytes(x[1])),
        ),
        (
            st.tuples(grammar.domains(), grammar.broken(grammar.problems())),
            lambda readers, x: readers.pair(_bytes(x[0]), _bytes(x[1])),
        ),
        (grammar.plans(), lambda readers, x: readers.plan(_bytes(x), "courier")),
        (
            grammar.changed_json(policy),
            lambda readers, x: readers.policy_file(
                resealed(
                    readers.policy, lambda facts: facts.update(x) if isinstance(x, dict) else None
                )
            ),
        ),
        (
            st.tuples(st.sampled_from(sorted(texts.RUN_FILES)), grammar.json_values),
            lambda readers, x: readers.run_folder(
                {n: t.encode() for n, t in texts.RUN_FILES.items()}
                | {x[0]: json.dumps(x[1]).encode()}
            ),
        ),
        (
            grammar.changed_json(json.loads(texts.RESULTS.splitlines()[0])),
            lambda readers, x: readers.run_folder(
                {n: t.encode() for n, t in texts.RUN_FILES.items()}
                | {"results.jsonl": json.dumps(x).encode()}
            ),
        ),
        (grammar.sweep_files(), lambda readers, x: readers.sweep(_bytes(x))),
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogatepass")


GRAMMARS = _grammars()
