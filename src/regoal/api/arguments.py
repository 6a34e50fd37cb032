"""Arguments as users write them."""

from collections.abc import Sequence
from pathlib import Path

Problems = str | Path | Sequence[str | Path]
"""A folder of problems, a problem file, or a list of problem files."""


def as_paths(problems: Problems) -> Path | list[Path]:
    """Return the path, or the list of paths.

    >>> as_paths("problems")
    PosixPath('problems')
    >>> as_paths(["p1.pddl"])
    [PosixPath('p1.pddl')]
    """
    if isinstance(problems, str | Path):
        return Path(problems)
    return [Path(path) for path in problems]
