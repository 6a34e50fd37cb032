"""General policies for planning: the functions of `regoal.api`, loaded at their first use."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regoal.api.running import RunnablePolicy, evaluate, load_policy, load_task
    from regoal.api.training import generate, train

__all__ = ["RunnablePolicy", "evaluate", "generate", "load_policy", "load_task", "train"]


_PLACES = {"generate": "regoal.api.training", "train": "regoal.api.training"}


def __getattr__(name: str) -> object:
    """Import a name of `__all__` when it is first asked for, so that `import regoal` is quick."""
    if name not in __all__:
        raise AttributeError(f"module 'regoal' has no attribute {name!r}")
    return getattr(import_module(_PLACES.get(name, "regoal.api.running")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
