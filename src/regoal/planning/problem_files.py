"""Which files are meant: the problems of a folder, and the domain of a problem."""

from collections.abc import Iterable
from pathlib import Path

from regoal.errors import UsageError
from regoal.system.files import natural_key


def problem_files(path: Path) -> list[Path]:
    """The problems of a folder in natural order (p2 before p10), or the one file that `path` is.

    A folder's problems are its `*.pddl` without "domain" in the name. Raises `UsageError` where
    there is none.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(f"{path} is neither a problem file nor a folder of problems.")
    found = [
        file
        for file in path.iterdir()
        if file.suffix.lower() == ".pddl" and "domain" not in file.name.lower() and file.is_file()
    ]
    if not found:
        raise UsageError(f'{path} holds no problems: no *.pddl without "domain" in its name.')
    return sorted(found, key=lambda file: (natural_key(file.name), file.name))


def domain_file(problem: Path) -> Path:
    """The domain file of a problem, as Fast Downward and Lab find it.

    Beside the problem `p01.pddl` the names `domain.pddl`, `p01-domain.pddl`, `p01-domain.pddl`
    from the first three letters, `domain_p01.pddl` and `domain-p01.pddl` are tried in this order;
    then, as the learning track of 2023 has it, `domain.pddl` in each folder above. Raises
    `UsageError` where none exists.
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
        f"no domain file was found for {problem}: put a domain.pddl beside it, or name the domain."
    )


def with_domains(problems: Iterable[Path], domain: Path | None = None) -> list[tuple[Path, Path]]:
    """Each problem as (domain file, problem file): the domain given, or the one found for it."""
    return [(domain or domain_file(problem), problem) for problem in problems]
