"""Find the problem files of a folder, and the domain file of a problem."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from regoal.errors import UsageError
from regoal.system.files import natural_key


def problem_files(path: Path | Sequence[Path]) -> list[Path]:
    """Return the problem files of a folder in natural order (p2 before p10), or `path` itself.

    A folder's problems are its `*.pddl` files without "domain" in the name. If `path` is a file, it
    is the only problem; several files are returned as they are. Raises `UsageError` if there is no
    problem.
    """
    if not isinstance(path, Path):
        if not path:
            raise UsageError("there are no problems; give at least one problem file.")
        return list(path)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(f"{path} is neither a problem file nor a folder of problems.")
    found = [file for file in path.iterdir() if is_problem_file(file)]
    if not found:
        raise UsageError(f'{path} holds no problems: no *.pddl without "domain" in its name.')
    return sorted(found, key=lambda file: (natural_key(file.name), file.name))


def is_problem_file(path: Path) -> bool:
    """Whether a file in a folder is a problem: `*.pddl` without "domain" in its name."""
    name = path.name.lower()
    return name.endswith(".pddl") and "domain" not in name and path.is_file()


def domain_file(problem: Path) -> Path:
    """Return the domain file of a problem, found as in Fast Downward and Lab.

    For the problem `p01-a.pddl`, five names are tried in its folder, in this order: `domain.pddl`,
    `p01-a-domain.pddl`, `p01-domain.pddl` (first three letters), `domain_p01-a.pddl` and
    `domain-p01-a.pddl`. Then `domain.pddl` is tried in each folder above, as in the learning track
    of 2023. Raises `UsageError` if no such file exists.
    """
    names = (
        "domain.pddl",
        f"{problem.stem}-domain.pddl",
        f"{problem.name[:3]}-domain.pddl",
        f"domain_{problem.name}",
        f"domain-{problem.name}",
    )
    above = [folder / "domain.pddl" for folder in problem.absolute().parents[1:]]
    for path in (*(problem.with_name(name) for name in names), *above):
        if path.is_file():
            return path
    raise UsageError(
        f"no domain file was found for {problem}: put a domain.pddl next to it, or name the domain."
    )


def with_domains(problems: Iterable[Path], domain: Path | None = None) -> list[tuple[Path, Path]]:
    """Return (domain file, problem file) for each problem, with `domain` or the domain found."""
    return [(domain or domain_file(problem), problem) for problem in problems]
