"""Every command by its name: a dataclass whose fields are its arguments.

What needs torch, pymimir or matplotlib is imported by the command that needs it, so that help is
quick.
"""

from regoal.commands.arguments import Command
from regoal.commands.experiments import Export, Report, Sweep
from regoal.commands.learning_track import Learn, Solve
from regoal.commands.planning import Plan, Policies, Validate
from regoal.commands.testing import Evaluate, Lama
from regoal.commands.training import Generate, Train

COMMANDS: dict[str, type[Command]] = {
    "generate": Generate,
    "train": Train,
    "evaluate": Evaluate,
    "plan": Plan,
    "validate": Validate,
    "policies": Policies,
    "lama": Lama,
    "learn": Learn,
    "solve": Solve,
    "sweep": Sweep,
    "report": Report,
    "export": Export,
}
