"""The process that reads fuzzed inputs, one after the other, far from whoever must survive it.

Before each input its number goes to a file that the parent watches (`watch.py`), so that a native
crash or a hang is known to be that input's. Input number n of a seed is always the same.
"""

import argparse
import json
import mmap
import os
import random
import resource
import signal
import struct
import sys
import time
from pathlib import Path

STAMP = struct.Struct("<qqd")
"""The number of the input, how many were read before, and when it began (monotonic clock)."""
MOST_MEMORY = 3 << 30
TRAP_AT = 8


def main() -> None:
    """Read inputs until the number or the time is reached."""
    options = _options()
    folder = Path(options.folder)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    stamp = _Stamp(folder)
    faults = (folder / "faults.jsonl").open("a", encoding="utf-8")
    source = _trapped_inputs if options.trap else _mutated_inputs
    if options.grammar:
        from reliability.grammar_inputs import grammar_inputs as source
    deadline = time.monotonic() + options.seconds

    def check(number: int, read) -> bool:
        """Read one input; whether to go on."""
        stamp.put(number)
        started = time.monotonic()
        fault = read()
        stamp.took(time.monotonic() - started)
        if fault is not None:
            record = {"number": number, "reader": fault.reader, "message": fault.message}
            print(json.dumps(record), file=faults, flush=True)
        return time.monotonic() < deadline

    source(folder / "files", options, check)
    stamp.put(-1)
    (folder / "slowest").write_text(f"{stamp.slowest:.3f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--grammar", action="store_true")
    parser.add_argument("--trap", choices=("crash", "hang"))
    return parser.parse_args()


def _trapped_inputs(files: Path, options: argparse.Namespace, check) -> None:
    """Crash or hang at a known input, without any reader, for the tests of the watching."""

    def read(number: int) -> None:
        (files / "now").mkdir(parents=True, exist_ok=True)
        (files / "now" / "input").write_text(str(number))
        if number == TRAP_AT and options.trap == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif number == TRAP_AT:
            time.sleep(1000)

    for number in range(options.start, options.start + options.count):
        check(number, lambda number=number: read(number))


class _Stamp:
    """The number of the worker's present input, for the parent to see."""

    def __init__(self, folder: Path) -> None:
        path = folder / "stamp"
        path.write_bytes(STAMP.pack(-2, 0, time.monotonic()))
        with path.open("r+b") as stream:
            self._map = mmap.mmap(stream.fileno(), STAMP.size)
        self._done = -1
        self.slowest = 0.0

    def put(self, number: int) -> None:
        self._done += 1
        self._map[:] = STAMP.pack(number, self._done, time.monotonic())

    def took(self, seconds: float) -> None:
        self.slowest = max(self.slowest, seconds)


def _mutated_inputs(files: Path, options: argparse.Namespace, check) -> None:
    from reliability.readers import MUTATIONS, TURNS, Readers

    readers = Readers(files)
    for number in range(options.start, options.start + options.count):
        mutate = MUTATIONS[TURNS[number % len(TURNS)]]
        rng = random.Random(f"{options.seed} {number}")
        if not check(number, lambda mutate=mutate, rng=rng: mutate(readers, rng)):
            return


if __name__ == "__main__":
    sys.exit(main())
