"""What the parser needs done to PDDL text first: encodings, requirements, clear errors."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DomainText:
    """A domain as the parser gets it.

    `types` maps each type's name in `text` to the name in the file (lower case), `object` aside;
    `predicates` does the same for predicates.
    """

    path: Path
    text: str
    types: dict[str, str]
    predicates: dict[str, str]


def read_domain(path: Path) -> DomainText:
    """Read a domain file and make its text fit for the parser."""
    text = _plain(path)
    types: dict[str, str] = {}
    if "(:types" in text:
        for word in text.split("(:types")[1].split(")")[0].split():
            if word not in ("-", "object"):
                types[word] = word
    return DomainText(path, text, types, {})


def read_problem(path: Path, domain: DomainText) -> str:
    """Read a problem file of `domain` and make its text fit for the parser."""
    del domain
    return _plain(path)


def _plain(path: Path) -> str:
    return re.sub(r";[^\n]*", "", path.read_text(encoding="utf-8")).lower().strip() + "\n"
