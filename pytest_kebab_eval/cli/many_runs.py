"""`kebab-eval leaderboard` and `noise`: many runs, against one baseline or of one configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pytest_kebab_eval.cli.options import json_option, options, sources_from
from pytest_kebab_eval.cli.output import fail_if, print_json, print_line, read_golden, tell_warnings
from pytest_kebab_eval.cli.runs import full_names
from pytest_kebab_eval.comparing.significance import IMPROVED, WORSE
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.inputs.sides import check_alike
from pytest_kebab_eval.reading import score_runs
from pytest_kebab_eval.reports.leaderboard import MAIN_METRICS, Board, BoardRow, find_board, make_board
from pytest_kebab_eval.reports.wording import counted, format_delta, format_value
from pytest_kebab_eval.settings import Settings, database_of, resolve, share_in
from pytest_kebab_eval.store import check_suite, find_runs, open_database, whole_runs
from pytest_kebab_eval.text import brief, printable

if TYPE_CHECKING:
    from pytest_kebab_eval.comparing.noise.power import CheckPower, MetricPower, Power
    from pytest_kebab_eval.comparing.replicates import CheckRates

# -- leaderboard ------------------------------------------------------------------------------------

_NAME_WIDTH = 40
_COLOURS = {IMPROVED: "green", WORSE: "red"}


@click.command()
@click.argument("a", metavar="A")
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option(
    "--last", type=click.IntRange(1), metavar="N", help="The N newest runs of the suite, or of that of A."
)
@click.option("--sort", metavar="METRIC", help="The metric to sort and to judge by: mrr, if it is measured.")
@options(
    *("db", "db_a", "db_b", "golden", "suite", "gates", "fail_on", "strict_chunker_version"),
    *("allow_document_matching", "k", "cutoffs", "compare_k", "span_overlap", "mask"),
)
@json_option
def leaderboard(
    a: str, names: tuple[str, ...], last: int | None, sort: str | None, as_json: bool, **given: Any
) -> None:
    """Compare many runs with one baseline, the best first.

    Each run is compared as by 'compare': its metrics, the change over the queries that both have, with a 95 %
    interval, and how many queries it won and failed, and lost a target of while another is found (partial).
    What is called improved or worse is so by the metric of --sort, corrected for the number of runs (Holm).
    Without RUN, --suite or --last say which. Exits with 0 whatever it finds, and with 1 if a comparison
    cannot be relied on.
    """
    sources = sources_from(run_a=a, run_b="latest", **given)
    settings = resolve(sources)
    if names and last is not None:
        raise InputError("RUN and --last are both given; leave one of them out")
    if not names and last is None and settings.suite is None:
        raise InputError("name the runs to compare with A, or say --suite or --last N")
    golden = read_golden(sources)
    pairs = find_board(settings, names or _runs_of(settings, last), golden)
    chosen = full_names([sort] if sort else [], [metric.name for metric in pairs[0].metrics])
    board = make_board(settings, pairs)
    _tell_warnings(board.rows)
    metric = chosen[0] if chosen else board.main_metric()
    if as_json:
        print_json(_as_json(board, metric))
    else:
        _print_board(board, metric)
    fail_if(any(row.problems for row in board.rows))


def _runs_of(settings: Settings, last: int | None) -> list[str]:
    """The ids of the newest runs of the suite, but A."""
    with open_database(settings.db_a) as database:
        runs_a = find_runs(database, settings.run_a or "", settings.suite)
    suite = runs_a[0].suite if settings.suite is None else settings.suite
    excluded = {run.run_id for run in runs_a}
    with open_database(settings.db_b) as database:
        check_suite(database, suite)
        found = [run.run_id for run in whole_runs(database, suite) if run.run_id not in excluded]
    if not found:
        raise InputError(f"there are no runs of the suite '{brief(suite)}' to compare with A")
    return found[:last]


def _tell_warnings(rows: Sequence[BoardRow]) -> None:
    """What is said of every run is said once."""
    times = Counter(warning for row in rows for warning in row.warnings)
    tell_warnings(warning for warning, count in times.items() if count == len(rows))
    for row in rows:
        own = (warning for warning in row.warnings if times[warning] < len(rows))
        tell_warnings(f"{brief(row.run_id, _NAME_WIDTH)}: {warning}" for warning in own)


def _print_board(board: Board, metric: str) -> None:
    rows, measured = board.sorted_by(metric), board.metrics()
    columns = [name for name in MAIN_METRICS if name in measured and name != metric]
    width = max(len(brief(name, _NAME_WIDTH)) for name in (board.run_a, *(row.run_id for row in rows)))
    titles = _cells(metric, {}, columns, titles=True)
    change = f"{'change':>9}  {'95 % interval':<19}  {'p':>6}  {'wins':>4}  {'failed':>6}  {'partial':>7}"
    print_line(f"{'run':<{width}}{titles[0]}  {change}{titles[1]}  verdict")
    first, others = _cells(metric, board.values_a, columns)
    print_line(f"{brief(board.run_a, _NAME_WIDTH):<{width}}{first}{'':{len(change) + 2}}{others}  baseline")
    p_values = board.corrected(metric)
    for row in rows:
        test, verdict = row.significance.get(metric), board.verdict(row, metric)
        first, others = _cells(metric, row.values, columns)
        interval = f"{format_delta(test.low)} … {format_delta(test.high)}" if test else "–"
        p = f"{p_values[row.run_id]:.4f}" if row.run_id in p_values else "–"
        change = f"{format_delta(row.deltas.get(metric)):>9}  {interval:<19}  {p:>6}"
        counts = f"{len(row.wins):>4}  {len(row.failed):>6}  {len(row.partial_losses):>7}"
        name = f"{brief(row.run_id, _NAME_WIDTH):<{width}}"
        print_line(f"{name}{first}  {change}  {counts}{others}  {verdict}", _COLOURS.get(verdict))
    print_line("")
    for line in _notes(board, metric):
        print_line(line)


def _cells(
    metric: str, values: Mapping[str, float | None], columns: Sequence[str], *, titles: bool = False
) -> tuple[str, str]:
    """The metric that is sorted by, and the others."""
    cells = [
        f"{name if titles else format_value(values.get(name)):>{max(8, len(name) + 2)}}"
        for name in (metric, *columns)
    ]
    return cells[0], "".join(cells[1:])


def _notes(board: Board, metric: str) -> Iterator[str]:
    runs = counted(len(board.rows), "run")
    if board.corrected(metric):
        corrected = f"its p is corrected for {runs} (Holm), the intervals are not"
        yield f"improved and worse are by {metric}; {corrected}"
    else:
        yield f"{metric} has no test query by query, so no run is called improved or worse"
    for row in board.rows:
        name, value = brief(row.run_id, _NAME_WIDTH), row.values_a.get(metric)
        if value != board.values_a.get(metric):
            yield f"{name}: matched with it, {brief(board.run_a, _NAME_WIDTH)} has {format_value(value)}"
        if row.has_gaps:
            yield f"{name}: the change is over the {counted(row.queries, 'query')} that both have"
        for gate in row.failed_gates:
            yield f"{name}: the gate '{printable(gate)}' fails"
        for problem in row.problems:
            yield f"{name}: {problem}"


def _as_json(board: Board, metric: str) -> dict[str, Any]:
    """Every metric of every run, each with its p corrected over the runs."""
    p_values = {name: board.corrected(name) for name in board.metrics()}
    rows = []
    for row in board.sorted_by(metric):
        tests = {
            name: msgspec.to_builtins(test)
            | {"p_corrected": p_values[name].get(row.run_id), "verdict": board.verdict(row, name)}
            for name, test in row.significance.items()
        }
        rows.append(msgspec.to_builtins(row) | {"significance": tests, "verdict": board.verdict(row, metric)})
    return {"run_a": board.run_a, "values_a": board.values_a, "sorted_by": metric, "runs": rows}


# -- noise ------------------------------------------------------------------------------------------

# The metrics that are printed; --json has all.
_NOISE_SHOWN = (
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
        for line in _noise_lines(power):
            print_line(line)


def _noise_lines(power: Power) -> Iterator[str]:
    runs = counted(len(power.runs), "run")
    yield f"{runs} over {counted(power.queries, 'query')}: {brief(', '.join(power.runs), 200)}"
    yield ""
    for check in power.checks:
        yield f"{check.noise.check} ({check.noise.what}): {_noise(check.noise)}"
        yield f"  to find 80 % of a drop of {power.drop:g}: {_needs(check, runs)}"
    yield ""
    metrics = [metric for metric in power.metrics if metric.metric in _NOISE_SHOWN]
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
