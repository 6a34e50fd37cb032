"""Every command by its name: a dataclass whose fields are its arguments.

A command's module is imported when the command is given. Whatever torch, pymimir and matplotlib are
needed for, the command's `run` imports. So every command begins quickly.
"""

from importlib import import_module

from regoal.commands.arguments import Command

COMMANDS = {
    "generate": "training.Generate",
    "train": "training.Train",
    "evaluate": "testing.Evaluate",
    "plan": "planning.Plan",
    "validate": "planning.Validate",
    "policies": "planning.Policies",
    "lama": "testing.Lama",
    "learn": "learning_track.Learn",
    "solve": "learning_track.Solve",
    "sweep": "experiments.Sweep",
    "report": "experiments.Report",
    "export": "experiments.Export",
}
"""By name: the module in this folder, and the class."""


def load_command(name: str) -> type[Command]:
    """Import a command."""
    module, _, kind = COMMANDS[name].partition(".")
    command: type[Command] = getattr(import_module(f"{__name__}.{module}"), kind)
    return command
