"""regoal and the authors' stack side by side, in one run on the same problems and batches.

Run `python -m benchmarks.compare [--out build/bench.json] [--quick]` on an otherwise idle machine.
The standard comparison takes less than 15 minutes on two cores. `--quick` takes less than two: one
repeat, one thread for theirs, two domains, 30 layers. It shows that all works; do not cite it.

The two stacks take turns within every measure. Theirs runs with its fastest number of threads, up
to all cores, which a short search finds before. Ours runs with all cores, and again with one
thread. A row's `ratio` says how many times faster ours is; `spread` has quartiles and extremes.

An optimisation step begins without known target values, although many are known in our episodes.
Both stacks have met its states before, as in training. Exploration draws actions evenly. Peak
memory is the memory of two optimisation steps above what the process held before. Batches have 32
transitions, and 4 on the large domain. Episodes are not measured on the large domain, nor on
Miconic with 100 layers: there, one of theirs takes minutes.

`--device cuda` compares on a GPU instead: ours with its kernels and without, theirs, and ours on
the CPU with two and with eight threads. Optimisation steps are then measured with larger batches
too.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine, peak
from benchmarks.measures import (
    MEASURES,
    QUICK,
    Budget,
    Measure,
    best_threads,
    ratio,
    repeat,
    summary,
)
from benchmarks.ours import Ours, WithoutKernels
from benchmarks.theirs import Theirs
from benchmarks.work import DOMAINS, LARGE, Stack, Work, prepare
from regoal.cli import script
from regoal.networks.device import device_called
from regoal.system.files import write_text_atomically

LAYERS = (30, 100)
ON_GPU = ("optimisation_step", "exploration_step", "greedy_steps_per_second")
BATCHES = (32, 256)
"""Transitions of an optimisation step on a GPU."""
GPU_BUDGET = Budget(seconds=5.0, least=3, most=20)
Row = dict[str, Any]


def compare(work: Work, layers: int, *, quick: bool, with_encoding: bool) -> Iterator[Row]:
    """Measure one domain at one depth, and yield its rows."""
    cores = machine.cores()
    theirs = Theirs(work, layers)
    stacks: dict[str, tuple[Stack, int]] = {
        "ours": (Ours(work, layers), cores),
        "ours_one_thread": (Ours(work, layers), 1),
    }
    threads: dict[str, int] = {}
    for measure in _chosen(work, layers, with_encoding=with_encoding):
        budget = QUICK if quick else measure.budget
        known = threads.get(measure.threads_of or "")
        threads[measure.name] = known or best_threads(measure, theirs, 1 if quick else cores)
        timings = repeat(measure, stacks | {"theirs": (theirs, threads[measure.name])}, budget)
        spread = {
            name: summary(found, per_second=measure.per_second) for name, found in timings.items()
        }
        yield {
            **_make_row(
                work, layers, measure.name, {n: s.pop("median") for n, s in spread.items()}
            ),
            "unit": measure.unit,
            "threads": {"ours": cores, "theirs": threads[measure.name]},
            "spread": spread,
        }


def compare_on_gpu(work: Work, layers: int, *, quick: bool) -> Iterator[Row]:
    """Measure one domain at one depth with one batch size on a GPU, and yield its rows."""
    theirs = Theirs(work, layers, device="cuda")
    stacks: dict[str, tuple[Stack, int]] = {
        "ours": (Ours(work, layers, device="cuda"), 1),
        "ours_definition": (WithoutKernels(work, layers, device="cuda"), 1),
        "ours_cpu_2_threads": (Ours(work, layers), 2),
        "ours_cpu_8_threads": (Ours(work, layers), 8),
        "theirs": (theirs, 1),
    }
    for measure in MEASURES:
        if measure.name not in ON_GPU or (measure.name != ON_GPU[0] and work.batch_size > 32):
            continue
        for stack, threads in stacks.values():  # not timed: kernels are compiled at first use
            stack.use_threads(threads)
            for turn in range(2):
                measure.run(stack, turn)
        timings = repeat(measure, stacks, QUICK if quick else GPU_BUDGET)
        spread = {
            name: summary(found, per_second=measure.per_second) for name, found in timings.items()
        }
        medians = {name: found.pop("median") for name, found in spread.items()}
        yield {
            **_make_row(work, layers, measure.name, medians),
            "unit": measure.unit,
            "medians": medians,
            "spread": spread,
        }


def _chosen(work: Work, layers: int, *, with_encoding: bool) -> list[Measure]:
    slow = work.name == LARGE or (work.name == "miconic" and layers > LAYERS[0])
    return [
        measure
        for measure in MEASURES
        if (with_encoding or not measure.name.startswith("encode"))
        and not (slow and measure.name == "episode")
    ]


def _make_row(work: Work, layers: int, measure: str, medians: dict[str, float]) -> Row:
    per_second = measure.endswith("per_second")
    ours, theirs = medians["ours"], medians["theirs"]
    row: Row = {
        "domain": work.name,
        "layers": layers,
        "measure": measure,
        "ours": ours,
        "theirs": theirs,
        "ratio": ratio(ours, theirs, per_second=per_second),
        "batch": work.batch_size,
    }
    if (single := medians.get("ours_one_thread")) is not None:
        row["ours_one_thread"] = single
        row["ratio_one_thread"] = ratio(single, theirs, per_second=per_second)
    return row


def measure_memory(work: Work, layers: int) -> Row:
    """Measure the peak memory of optimisation steps, each stack in a separate process."""
    peaks = {
        side: peak.measure_in_new_process(side, work.name, layers) for side in ("ours", "theirs")
    }
    return {**_make_row(work, layers, "peak_memory", peaks), "unit": "MB"}


def measure_on_gpu(domains: Sequence[str], depths: Sequence[int], *, quick: bool) -> Iterator[Row]:
    """Measure everything on a GPU, and yield the rows."""
    for domain in domains:
        for batch_size in BATCHES:
            with tempfile.TemporaryDirectory() as folder:
                work = prepare(domain, Path(folder), batch_size=batch_size)
                for layers in depths:
                    yield from compare_on_gpu(work, layers, quick=quick)


def measure_on_cpu(domains: Sequence[str], depths: Sequence[int], *, quick: bool) -> Iterator[Row]:
    """Measure everything on the CPU, and yield the rows."""
    for domain in domains:
        with tempfile.TemporaryDirectory() as folder:
            work = prepare(domain, Path(folder))
            for layers in depths:
                yield from compare(work, layers, quick=quick, with_encoding=layers == depths[0])
                yield measure_memory(work, layers)


def main() -> None:
    """Measure, print a line for each row, and write the JSON file again after each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"))
    parser.add_argument(
        "--quick", action="store_true", help="only check that it works, in two minutes"
    )
    parser.add_argument("--domains", nargs="+", choices=DOMAINS, help="only these domains")
    parser.add_argument("--layers", nargs="+", type=int, help="only these depths")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    arguments = parser.parse_args()
    quick, on_gpu = arguments.quick, arguments.device == "cuda"
    device_called(arguments.device)
    usual = tuple(name for name in DOMAINS if not (on_gpu and name == LARGE))
    domains = arguments.domains or (("blocks", LARGE) if quick and not on_gpu else usual)
    depths = arguments.layers or (LAYERS[:1] if quick else LAYERS)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    record = machine.description() | {"quick": quick, "rows": []}
    start = time.perf_counter()
    for row in (measure_on_gpu if on_gpu else measure_on_cpu)(domains, depths, quick=quick):
        record["rows"].append(row)
        record["seconds"] = round(time.perf_counter() - start, 1)
        write_text_atomically(arguments.out, json.dumps(record, indent=1) + "\n")
        print(
            f"{row['domain']:15} {row['layers']:4} {row['batch']:4} {row['measure']:24}"
            f" ours {row['ours']:10.4g}"
            f"  theirs {row['theirs']:10.4g} {row['unit']:4} {row['ratio']:7.1f} times"
            f"  [{record['seconds']:.0f} s]",
            flush=True,
        )


if __name__ == "__main__":
    script(main)
