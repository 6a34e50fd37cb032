"""Write a report as one HTML file that needs no network: charts, tables, problems, plans."""

import json
from collections.abc import Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup

from regoal.errors import UsageError
from regoal.planning.plain.replay import Replay
from regoal.records.results import Outcome
from regoal.records.run_record import RunRecord
from regoal.reports.page import charts
from regoal.reports.page.declarations import Drawing
from regoal.reports.page.watch import count_bytes, describe_watched, fit_plans
from regoal.reports.run_choice import display_name, sort_domains
from regoal.reports.tables import tables_of
from regoal.system.files import write_text_atomically

MOST_BYTES = 2_000_000
"""Most bytes of a report; plans and then problems that do not fit are left out, and named."""
ROWS_SHARE = 0.6
"""Of the bytes that problems and plans share, most that problems take."""

Row = list[str | int | float | None]


def write_page(
    runs: Sequence[RunRecord],
    replays: Sequence[Replay],
    drawings: Sequence[Drawing],
    out: Path,
    most_bytes: int = MOST_BYTES,
) -> None:
    """Write the report to `out`. Raises `UsageError` if there is nothing to show, or no such place.

    Plans that would make the page larger than `most_bytes` are left out, the largest first. Their
    names are shown, as is the number of problems that had to be left out.
    """
    if not replays and not any(run.results or run.episodes for run in runs):
        raise UsageError("There is nothing to show: no run has a result or an episode yet.")
    if out.is_dir() or not out.parent.is_dir():
        raise UsageError(f"no report can be written to {out}; give a file in a folder that exists.")
    write_text_atomically(out, render_page(runs, replays, drawings, most_bytes))


def render_page(
    runs: Sequence[RunRecord],
    replays: Sequence[Replay],
    drawings: Sequence[Drawing],
    most_bytes: int = MOST_BYTES,
) -> str:
    """Return the report's text, of at most `most_bytes` bytes if its tables alone leave room."""
    template = _load_template()
    tested = any(run.results for run in runs)
    values = {
        "bars": charts.make_bars(runs),
        "curves": charts.make_curves(runs),
        "kinds": charts.number_methods(runs),
        "tables": tables_of(runs) if tested else {},
        "size": charts,
        "domains": sort_domains((run.domain, "") for run in runs),
        "runs": len(runs),
    }
    rows = list_rows(runs)
    empty = template.render(
        **values,
        rows=[],
        rows_left_out=len(rows),
        outcomes=_list_outcomes(),
        watched={"plans": [], "drawings": []},
        player=bool(replays),
        left_out=[f"{replay.domain} {replay.problem}" for replay in replays],
    )
    budget = max(most_bytes - len(empty.encode("utf-8")) - 200, 0)
    shown = _fit_rows(rows, int(budget * (ROWS_SHARE if replays else 1)))
    watched = fit_plans(replays, drawings, budget - count_bytes(shown))
    return template.render(
        **values,
        rows=shown,
        rows_left_out=len(rows) - len(shown),
        outcomes=_list_outcomes(),
        watched=describe_watched(watched),
        player=bool(watched.plans),
        left_out=watched.left_out,
    )


def list_rows(runs: Sequence[RunRecord]) -> list[Row]:
    """Return a row for each result of each run.

    Its columns are the row's domain, method, seed, problem, outcome, plan length, cost, steps,
    returns, seconds, the domain's name in its PDDL file, and the length of the shortened plan.
    """
    order = {domain: i for i, domain in enumerate(sort_domains((r.domain, "") for r in runs))}
    return [
        [
            display_name(run.domain),
            run.method,
            run.seed,
            result.problem,
            result.outcome.key,
            result.plan_length,
            result.plan_cost,
            result.steps,
            result.returns,
            round(result.seconds, 3),
            result.domain,
            result.short_length,
        ]
        for run in sorted(runs, key=lambda run: order[run.domain])
        for result in run.results
    ]


def embed_json(value: object) -> Markup:
    """Return JSON that may stand in a `<script>` element, whatever names it has."""
    text = json.dumps(value, separators=(",", ":"))
    for character in "<>&'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _list_outcomes() -> dict[str, str]:
    return {outcome.key: outcome.text for outcome in Outcome}


def _fit_rows(rows: Sequence[Row], budget: int) -> list[Row]:
    """Return as many rows as fit into so many bytes of JSON."""
    shown = []
    for row in rows:
        budget -= count_bytes(row)
        if budget < 0:
            break
        shown.append(row)
    return shown


def _load_template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("regoal.reports.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["embed_json"] = embed_json
    return environment.get_template("page.html")
