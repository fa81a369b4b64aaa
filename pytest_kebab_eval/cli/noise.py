"""`kebab-eval noise`: what several runs of one configuration tell of noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from pytest_kebab_eval.cli.options import json_option, options, sources_from
from pytest_kebab_eval.cli.output import print_json, print_line, read_golden, tell_warnings
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.inputs.sides import check_alike
from pytest_kebab_eval.reading import score_runs
from pytest_kebab_eval.reports.wording import counted, format_value
from pytest_kebab_eval.settings import database_of, share_in
from pytest_kebab_eval.store import find_runs, open_database
from pytest_kebab_eval.text import brief, printable

if TYPE_CHECKING:
    from pytest_kebab_eval.comparing.noise.power import CheckPower, MetricPower, Power
    from pytest_kebab_eval.comparing.replicates import CheckRates

# The metrics that are printed; --json has all.
_SHOWN = (
    *("hit@1", "hit@3", "hit@5", "hit@10", "mrr", "recall@10_doc", "groundedness"),
    *("citation_coverage", "refusal_correctness", "error_rate", "latency_p95_ms", "cost_usd"),
)


def _share(_: click.Context, __: click.Parameter, value: str) -> float:
    share = share_in(value)
    if share is None:
        raise click.BadParameter("give a number above 0 and up to 1, or a percentage")
    return share


@click.command()
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
@options("db", "golden", "suite", "alpha", "compare_k")
@click.option(
    "--drop",
    callback=_share,
    default="0.05",
    show_default=True,
    metavar="SHARE",
    help="The share of the queries whose loss is to be seen.",
)
@json_option
def noise(names: tuple[str, ...], drop: float, as_json: bool, **given: Any) -> None:
    """Tell from several runs of one configuration what is noise.

    Runs are named as anywhere, one by one, with commas between them, or as commit:HASH*. For each check: how
    often two runs disagree on a query, and how many runs a side would find 80 % of the queries that a drop of
    the given size loses. For each metric: how large a delta must be to be more than noise.
    """
    from pytest_kebab_eval.comparing.noise.power import find_power

    sources = sources_from(**given)
    golden = read_golden(sources)
    with open_database(database_of(sources)) as database:
        runs = find_runs(database, ",".join(names), sources.read("suite"))
        if len(runs) < 2:
            raise InputError(
                f"noise takes two runs or more, and '{brief(runs[0].run_id)}' is one; name them one after"
                " another, or all of a commit as commit:HASH*"
            )
        tell_warnings([*database.warnings, *check_alike(runs)])
        cards = score_runs(database, runs, golden)
    ids = [query.id for query in golden.queries]
    power = find_power(cards, ids, drop, sources.read("alpha"), sources.read("compare_k"))
    if as_json:
        print_json(power)
    else:
        for line in _lines(power):
            print_line(line)


def _lines(power: Power) -> Iterator[str]:
    runs = counted(len(power.runs), "run")
    yield f"{runs} over {counted(power.queries, 'query')}: {brief(', '.join(power.runs), 200)}"
    yield ""
    for check in power.checks:
        yield f"{check.noise.check} ({check.noise.what}): {_noise(check.noise)}"
        yield f"  to find 80 % of a drop of {power.drop:g}: {_needs(check, runs)}"
    yield ""
    metrics = [metric for metric in power.metrics if metric.metric in _SHOWN]
    yield f"{'metric':<20} {'mean':>9} {'± a run':>9}   a delta is more than noise beyond"
    yield f"{'':<20} {'':>9} {'':>9} {'1 run a side':>14} {f'{runs} a side':>15}"
    for metric in metrics:
        figures = f"{format_value(metric.mean):>9} {format_value(metric.deviation):>9}"
        limits = f"{format_value(metric.one_run):>14} {format_value(metric.these_runs):>15}"
        yield f"{printable(metric.metric):<20} {figures} {limits}"
    yield ""
    yield f"a drop of {power.drop:g} is significant (p < 0.05) in 80 % of sessions:"
    for metric in metrics:
        if metric.queries or metric.runs:
            yield f"  {metric.metric}: {_shown_with(metric, runs)}"


def _shown_with(metric: MetricPower, runs: str) -> str:
    by_runs = f"with {counted(metric.runs, 'run')} a side over these queries" if metric.runs else ""
    by_queries = f"with {runs} a side you need {counted(metric.queries, 'query')}" if metric.queries else ""
    if by_runs and by_queries:
        return f"{by_runs}; {by_queries}"
    if by_queries:
        return f"{by_queries}; more runs alone would not do"
    return f"{by_runs}; more queries alone would not do"


def _noise(check: CheckRates) -> str:
    if not check.disagreement:
        return "its runs never disagree"
    disagree = f"two runs disagree on {100 * check.disagreement:.1f} % of the queries"
    return f"{check.flaky} of {counted(check.queries, 'query')} flaky, {disagree}"


def _needs(check: CheckPower, runs: str) -> str:
    by_runs = f"{counted(check.runs, 'run')} a side" if check.runs else "more than 20 runs a side"
    by_queries = counted(check.queries, "query") if check.queries else "more queries than were tried"
    return f"{by_runs} with these queries, or {by_queries} with {runs} a side"
