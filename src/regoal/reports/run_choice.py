"""Choose and order the runs that a table shows."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from regoal.errors import UsageError
from regoal.records.json_lines import JsonObject, as_float
from regoal.records.results import PlanResult
from regoal.records.run_record import RunRecord
from regoal.reports.paper import LIFTED, METHODS
from regoal.system.files import natural_key

Results = Mapping[tuple[str, str], Sequence[PlanResult]]
"""Test results by (domain, method)."""

NO_RESULTS = "No run has test results yet; run `regoal evaluate RUN --problems DIR` first."


def select_run(runs: Sequence[RunRecord]) -> RunRecord:
    """Select one run of several seeds: best validation coverage, then shortest validation plans.

    The paper breaks remaining ties at random. Here the lowest seed wins, so that equal records give
    equal reports.
    """
    return max(
        runs,
        key=lambda run: (
            *max(map(_rate_validation, run.validation), default=(-1.0, 0.0)),
            -run.seed,
        ),
    )


def _rate_validation(validation: JsonObject) -> tuple[float, float]:
    """Return the solved share and the negative plan length of one validation."""
    share = as_float(validation.get("solved")) / max(as_float(validation.get("problems")), 1.0)
    length = as_float(validation.get("plan_length"))
    return (-1.0 if math.isnan(share) else share, -math.inf if math.isnan(length) else -length)


def group_by_domain_and_method(runs: Iterable[RunRecord]) -> dict[tuple[str, str], list[RunRecord]]:
    """Group the runs that have test results. Raises `UsageError` if none has."""
    found: dict[tuple[str, str], list[RunRecord]] = defaultdict(list)
    for run in runs:
        if run.results:
            found[run.domain, run.method].append(run)
    if not found:
        raise UsageError(NO_RESULTS)
    return dict(found)


def select_results(runs: Iterable[RunRecord]) -> Results:
    """Return the test results of the selected run of each domain and method.

    Raises `UsageError` if no run has test results.
    """
    return {
        key: select_run(seeds).results for key, seeds in group_by_domain_and_method(runs).items()
    }


def sort_domains(keys: Iterable[tuple[str, str]]) -> list[str]:
    """Return the domains of (domain, method) keys: the paper's in its order, others naturally."""
    order = {domain: i for i, domain in enumerate(LIFTED)}
    found = {domain for domain, _ in keys}
    return sorted(found, key=lambda domain: (order.get(domain, len(order)), natural_key(domain)))


def sort_methods(keys: Iterable[tuple[str, str]]) -> list[str]:
    """Return the methods of the keys: the paper's in its order, LAMA, then others by name."""
    order = {method: i for i, method in enumerate(METHODS)}
    found = {method for _, method in keys}
    return sorted(found, key=lambda method: (order.get(method, len(order)), method))


def display_name(domain: str) -> str:
    """Return the domain's name as the paper spells it.

    >>> display_name("childsnack-af"), display_name("blocks-l")
    ('Childsnack-AF', 'Blocks-L')
    """
    name, *suffixes = domain.split("-")
    return "-".join([name.capitalize(), *(s.upper() if s in ("af", "l") else s for s in suffixes)])
