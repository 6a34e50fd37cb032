"""Policies as an engine of Unified Planning, and training on its problems; needs `regoal[up]`."""

try:
    import unified_planning  # noqa: F401 - only to say what is missing
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "regoal.up needs Unified Planning, which is not installed. Run `pip install 'regoal[up]'`."
    ) from error

from regoal.up.registration import register
from regoal.up.training import train

__all__ = ["register", "train"]
