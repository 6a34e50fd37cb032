"""Errors before planning or outside of it, each kind with its exit code.

The codes are Fast Downward's, which Lab and unified-planning already interpret. Libraries
raise; only `cli.py` turns an exception into an exit.
"""

EXIT_DONE = 0
EXIT_INVALID_PLAN = 1
EXIT_FOUND_THEN_MEMORY = 1
EXIT_FOUND_THEN_TIME = 2
EXIT_UNSOLVABLE = 11
EXIT_NO_PLAN = 12
EXIT_MEMORY = 22
EXIT_TIME = 23
EXIT_BAD_PDDL = 31
EXIT_INTERNAL = 32
EXIT_UNSUPPORTED_PDDL = 34
EXIT_USAGE = 36


class RegoalError(Exception):
    """An error whose message is meant for the user: what is wrong, where, and what to do."""

    exit_code = EXIT_INTERNAL


class PddlError(RegoalError):
    """A PDDL file that cannot be read: the message names the file, the line and the remedy."""

    exit_code = EXIT_BAD_PDDL


class UnsupportedPddlError(RegoalError):
    """Correct PDDL that lies outside classical planning as regoal reads it."""

    exit_code = EXIT_UNSUPPORTED_PDDL


class UsageError(RegoalError):
    """A bad command line, a missing file, or a policy that does not fit."""

    exit_code = EXIT_USAGE


class TooWideError(RegoalError):
    """A state with more applicable actions than memory and time are spent on."""

    exit_code = EXIT_MEMORY


def lacks_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out: Python's, or PyTorch's for a CPU or a GPU."""
    if isinstance(error, MemoryError):
        return True
    message = str(error)  # PyTorch has a special type for GPUs only
    return isinstance(error, RuntimeError) and (
        "can't allocate memory" in message or "out of memory" in message
    )
