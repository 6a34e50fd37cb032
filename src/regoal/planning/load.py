"""Read PDDL files as a domain and its tasks."""

from pathlib import Path

import pymimir

from regoal.planning.domain import Domain
from regoal.planning.mimir.library import make_library_value
from regoal.planning.pddl.domain import parse_domain
from regoal.planning.pddl.library_text import (
    DomainText,
    ProblemText,
    print_domain,
    print_problem,
)
from regoal.planning.pddl.problem import parse_problem
from regoal.planning.pddl.syntax import name_file
from regoal.planning.task import Task, make_library


def load_domain(path: Path) -> Domain:
    """Read a domain file.

    Raises `UsageError` if there is no readable file. Raises `PddlError` or `UnsupportedPddlError`
    if its content is wrong, with file, line and remedy in the message.
    """
    text = read_domain(path)
    library_domain = make_library_value(path, text.text, lambda: pymimir.Domain(text.text))
    return Domain(path, text, library_domain)


def load_task(domain: Domain, path: Path) -> Task:
    """Read a problem file of `domain`. Raises the errors of `load_domain`."""
    text = read_problem(path, domain.text)
    library = make_library_value(path, text.text, lambda: make_library(domain, text))
    return Task(domain, text, library)


def read_domain(path: Path) -> DomainText:
    """Read and check a domain file, and print it for the library.

    Raises `UsageError` if there is no such file, `PddlError` if it is wrong, and
    `UnsupportedPddlError` if it goes beyond classical planning. Messages have file, line and
    remedy.
    """
    domain = parse_domain(path)
    with name_file(path):
        return print_domain(path, domain)


def read_problem(path: Path, domain: DomainText) -> ProblemText:
    """Read and check a problem file of `domain`. Raises the errors of `read_domain`."""
    return print_problem(path, parse_problem(path, domain.content, domain.path), domain)
