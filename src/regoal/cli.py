"""The command line: parses, runs the command, turns errors into a message and an exit code."""

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import tyro

from regoal.commands import COMMANDS, load_command
from regoal.commands.arguments import Command
from regoal.errors import (
    EXIT_DONE,
    EXIT_INTERNAL,
    EXIT_MEMORY,
    EXIT_USAGE,
    RegoalError,
    UsageError,
    lacks_memory,
)
from regoal.system.signals import end_at_second

EXIT_INTERRUPTED = 130
EXIT_HUNG_UP = 129
EXIT_PIPE = 141
EXIT_TERMINATED = 143
NO_TORCH = "Training and --device cuda need PyTorch: pip install 'regoal[train]'."


def main() -> None:
    """The entry point of `regoal`."""
    logging.basicConfig(format="regoal: %(message)s")
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # else `nohup` wants us to go on
        signal.signal(signal.SIGHUP, _terminate)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        end_at_second(number)
    # The matrices are small: threads of numpy would cost more than they give.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = run(sys.argv[1:])
    # Only what trains imports it, as it brings torch.
    collectives = sys.modules.get("regoal.distributed.collectives")
    if collectives is not None and collectives.was_connected:
        collectives.leave(code)
    sys.exit(code)


def run(words: Sequence[str]) -> int:
    """Run one command line, without the program's name; returns the exit code."""
    rest = [word for word in words if word != "--debug"]
    try:
        command = parse(rest)
        return command if isinstance(command, int) else command.run()
    except (Exception, KeyboardInterrupt) as error:
        if len(rest) < len(words):
            traceback.print_exc()
        return _report(error)


def script(main: Callable[[], None]) -> None:
    """Run a script outside the package; errors and SIGTERM end it as they end a command."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        main()
    except (RegoalError, KeyboardInterrupt) as error:
        sys.exit(_report(error))


def parse(words: Sequence[str]) -> Command | int:
    """The command, or an exit code if there is nothing more to do. Raises `UsageError`."""
    name, *arguments = words or ["--help"]
    if name in ("-h", "--help"):
        print(_overview())
        return EXIT_DONE if words else EXIT_USAGE
    if name == "--version":
        from importlib.metadata import version

        print(f"regoal {version('regoal')}")
        return EXIT_DONE
    if name not in COMMANDS:
        raise UsageError(f"There is no command {name!r}. Commands: {', '.join(COMMANDS)}.")
    try:
        return tyro.cli(
            load_command(name),
            prog=f"regoal {name}",
            args=arguments,
            default=_preset_defaults(arguments) if name == "train" else tyro.MISSING_NONPROP,
            config=(tyro.conf.PositionalMetavarFromFieldName,),
        )
    except SystemExit as exit_:
        if exit_.code in (EXIT_TERMINATED, EXIT_HUNG_UP):
            raise
        return EXIT_USAGE if exit_.code else EXIT_DONE
    except ValueError as error:
        raise UsageError(f"{error}.") from error


def _preset_defaults(words: Sequence[str]) -> Command:
    """Return `train` with the numbers of the preset that the command line names."""
    from regoal.config import LAPTOP, PRESETS

    name = "laptop"
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--preset" or word.startswith("--preset="):
            name = following if word == "--preset" else word.partition("=")[2]
    missing: Any = tyro.MISSING
    train: Callable[..., Command] = load_command("train")
    return train(
        domain=missing,
        problems=missing,
        out=missing,
        config=PRESETS.get(name, LAPTOP),
    )


def _overview() -> str:
    described = {name: load_command(name).__doc__ or "" for name in COMMANDS}
    commands = [f"  {name:9} {text.splitlines()[0]}" for name, text in described.items()]
    return "\n".join(
        (
            "usage: regoal COMMAND ... [--debug]",
            "",
            "General policies for planning domains, learnt from small problems.",
            "",
            *commands,
            "",
            "`regoal COMMAND --help` explains a command. --debug shows the traceback of an error.",
        )
    )


def _report(error: BaseException) -> int:
    """Say on standard error what went wrong; returns the exit code."""
    if isinstance(error, BrokenPipeError):
        # Whoever read the output has gone; Python must not fail over it again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    code, message = _explain(error)
    print(f"regoal: error: {message}", file=sys.stderr)
    return code


def _explain(error: BaseException) -> tuple[int, str]:
    match error:
        case RegoalError():
            return error.exit_code, str(error)
        case ModuleNotFoundError(name="torch"):
            return EXIT_USAGE, NO_TORCH
        case KeyboardInterrupt():
            return EXIT_INTERRUPTED, "Interrupted."
        case _ if lacks_memory(error):
            return EXIT_MEMORY, "Out of memory."
        case OSError() if error.strerror:
            return EXIT_USAGE, f"{error.filename or 'a file'}: {error.strerror}."
        case _:
            what = f"{type(error).__name__}: {error}"
            return EXIT_INTERNAL, f"Internal error, {what}. Run it again with --debug to see where."


def _terminate(signum: int, frame: FrameType | None) -> None:
    """End as after an interrupt, so that everything is put in order first."""
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    main()
