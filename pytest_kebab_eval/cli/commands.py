"""The command `kebab-eval`: the same logic as the plugin, for scripts and for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec

from pytest_kebab_eval.cli.group import REGRESSION, Group
from pytest_kebab_eval.cli.options import COMPARING, options, settings_from
from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.evaluation import Evaluation, evaluate, scored_run, store_aggregate
from pytest_kebab_eval.files import write_whole
from pytest_kebab_eval.golden import load_golden_set, lock_path
from pytest_kebab_eval.golden.lock import render_lock
from pytest_kebab_eval.history import history as runs_so_far
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.metrics import Metric, all_names
from pytest_kebab_eval.pausing import collection_paused, leave_to_the_system
from pytest_kebab_eval.reports.as_json import report_json
from pytest_kebab_eval.reports.as_text import explain, summary
from pytest_kebab_eval.reports.wording import counted, format_value
from pytest_kebab_eval.scoring.aggregates import aggregate as total
from pytest_kebab_eval.scoring.aggregates import stored_values
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import find_run, in_order, open_database
from pytest_kebab_eval.text import printable, shown_path
from pytest_kebab_eval.validation import make_lock, validate

_IN_HISTORY = ("hit@5", "mrr", "groundedness", "error_rate")


def _exit(code: int) -> NoReturn:
    click.get_current_context().exit(code)


def _print(parts: Iterable[str]) -> None:
    if sys.stdout is not None:  # which it is where it was closed
        sys.stdout.writelines(parts)
        sys.stdout.flush()


def _say(text: str) -> None:
    click.echo(text, err=True)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pytest-kebab-eval")
def main() -> None:
    """Tell whether a change to a retrieval or RAG system made it worse.

    Runs are named by an id, a unique prefix of one, latest, latest~1, or commit:HASH. Data goes to standard
    output, everything else to standard error. Exit codes: 0; 1 for a regression, a failed gate or findings;
    2 for wrong use; 130 or 141 where it was stopped, or its output closed.
    """
    leave_to_the_system("kebab-eval")


@main.command()
@options("db", "suite", "json")
def runs(db: str | None, suite: str | None, as_json: bool) -> None:
    """List the stored runs, the newest first."""
    with open_database(settings_from(run_b="-", db=db).db_b) as database:
        found = [run for run in in_order(database.runs()) if suite is None or run.suite == suite]
        counts = {run.run_id: database.result_count(run.run_id) for run in found}
    if as_json:
        rows = [
            {
                "run_id": one.run_id,
                "suite": one.suite,
                "commit_hash": one.commit_hash,
                "created_at": one.created_at,
                "queries": counts[one.run_id],
            }
            for one in found
        ]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max((len(printable(run.run_id)) for run in found), default=0)
    for run in found:
        commit = f"  {printable(run.commit_hash[:12])}" if run.commit_hash else ""
        count = counted(counts[run.run_id], "query")
        when, of = printable(run.created_at), printable(run.suite)
        click.echo(f"{printable(run.run_id):<{width}}  {when}  {count:>12}  {of}{commit}")
    if not found:
        _say("there are no runs" + (f" of the suite '{printable(suite)}'" if suite else " yet"))


@main.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@options(*COMPARING, "json")
@click.option("-v", "--verbose", is_flag=True, help="Explain every query that fails.")
@collection_paused()
def compare(a: str, b: str, as_json: bool, verbose: bool, **given: Any) -> None:
    """Compare run B, the candidate, with run A, the baseline.

    Prints the table that pytest prints; exits with 1 if B lost something or a gate failed. Nothing is stored.
    """
    settings = _comparing(a, b, **given)
    evaluation = _evaluated(settings)
    failing = [one for one, verdict in evaluation.verdicts.items() if verdict.outcome is Outcome.FAILED]
    if as_json:
        _print(report_json(evaluation.report))
    else:
        _print_comparison(settings, evaluation, failing, verbose)
    report = evaluation.report
    if failing or report.unreadable or report.problems or any(not gate.passed for gate in report.gates):
        _exit(REGRESSION)


def _comparing(a: str, b: str, **given: Any) -> Settings:
    if not a.strip() or not b.strip():
        raise InputError("the name of a run is empty; give two names: kebab-eval compare A B")
    return settings_from(run_a=a, run_b=b, **given)


def _evaluated(settings: Settings) -> Evaluation:
    evaluation = evaluate(settings)
    for warning in evaluation.report.warnings:
        _say(f"warning: {warning}")
    return evaluation


def _print_comparison(settings: Settings, evaluation: Evaluation, failing: list[str], verbose: bool) -> None:
    queries = load_golden_set(settings.golden).by_id() if verbose else {}
    comparisons = {one.query_id: one for one in evaluation.report.per_query}
    for query_id in failing:
        verdict = evaluation.verdicts[query_id]
        click.secho(f"FAILED {printable(query_id)}: {verdict.reason}", fg="red")
        if verbose:
            query = queries[query_id]
            where = f"{shown_path(settings.golden)}:{query.line}"
            text = explain(query, verdict, comparisons.get(query_id), evaluation.shown.get(query_id), where)
            click.echo("\n".join(text.splitlines()[1:]))
    for line in summary(evaluation.report):
        click.secho(line.text, fg={1: "green", -1: "red"}.get(line.direction))


@main.command()
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All runs (of the suite, if one is named).")
@options("db", "golden", "suite", "json")
def aggregate(names: tuple[str, ...], every: bool, as_json: bool, **given: Any) -> None:
    """Compute the aggregates of runs anew and store them; says which metrics changed.

    For when formulas or the golden file have changed: every run is scored again from its stored results.
    """
    if bool(names) == every:
        raise InputError("name the runs to aggregate, or say --all")
    settings = settings_from(run_b="-", **given)
    with open_database(settings.db_b) as database:
        found = (
            in_order(database.runs()) if every else [find_run(database, one, settings.suite) for one in names]
        )
    chosen = dict.fromkeys(run.run_id for run in found if not every or settings.suite in (None, run.suite))
    changes, broken = {}, False
    with _progress(list(chosen), "aggregating") as steps:
        for run_id in steps:
            changed = _aggregate_anew(run_id, settings)
            broken = broken or changed is None
            changes[run_id] = changed or {}
    if as_json:
        click.echo(json.dumps(changes, indent=2, ensure_ascii=False))
    for run_id, changed in () if as_json else changes.items():
        click.echo(
            f"{printable(run_id)}: {counted(len(changed), 'metric')} changed"
            if changed
            else f"{printable(run_id)}: as it was"
        )
        for name, (before, after) in changed.items():
            click.echo(f"  {name}: {_shown(before)} → {_shown(after)}")
    if broken:
        _exit(REGRESSION)


def _aggregate_anew(run_id: str, settings: Settings) -> dict[str, tuple[Any, Any]] | None:
    """What changed; None, and nothing is stored, if the run has results that cannot be read."""
    golden = load_golden_set(settings.golden)
    with open_database(settings.db_b) as database:
        before = stored_values(database.stored_aggregate(run_id))
        scorecard = scored_run(database, find_run(database, run_id), golden)
    if scorecard.unreadable:
        query_id, reason = next(iter(scorecard.unreadable.items()))
        _say(
            f"run {printable(run_id)}: not stored, since the result of query '{printable(query_id)}'"
            f" cannot be read: {reason}"
        )
        return None
    values = total(scorecard)
    store_aggregate(run_id, values, db=settings.db_b)
    after = {name: value for name, value in values.by_name().items() if value is not None}
    return {
        name: (before.get(name), after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    }


def _shown(value: Any) -> str:
    return "–" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")


@main.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@options(*COMPARING)
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "html", "json"]),
    default="md",
    show_default=True,
    help="The format.",
)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file."
)
def report(a: str, b: str, form: str, output: Path | None, **given: Any) -> None:
    """Print the report of B against A; exits with 0 whatever it says."""
    from pytest_kebab_eval.reports.as_markdown import render_report_md
    from pytest_kebab_eval.reports.context import report_context
    from pytest_kebab_eval.reports.publishing import html_of

    settings = _comparing(a, b, **given)
    inputs = find_inputs(settings)
    made = evaluate(settings, inputs).report
    for warning in made.warnings:
        _say(f"warning: {warning}")
    parts: Iterable[str]
    if form == "html":
        parts = html_of(settings, inputs, made, report_context(made))
    else:
        parts = [render_report_md(made)] if form == "md" else report_json(made)
    if output is not None:
        _write(output, parts)
        return
    _print(parts)


def _write(path: Path, parts: Iterable[str]) -> None:
    try:
        write_whole(path, parts)
    except OSError as error:
        raise StoreError(f"cannot write {shown_path(path)}: {error.strerror or error}") from None


@main.command()
@click.argument("metrics", metavar="[METRIC]...", nargs=-1)
@options("db", "golden", "suite", "json")
@click.option("--last", type=click.IntRange(1), default=30, show_default=True, help="How many runs.")
def history(metrics: tuple[str, ...], last: int, as_json: bool, **given: Any) -> None:
    """Show how metrics went over the stored runs, the oldest first.

    From the stored aggregates; those that are missing are computed, but not stored.
    """
    settings = settings_from(run_b="-", **given)
    known = all_names()
    unknown = [name for name in metrics if name not in known]
    points = runs_so_far(settings.db_b, load_golden_set(settings.golden), settings.suite, last=last)
    measured = {name for point in points for name in point.values}
    unknown = [name for name in unknown if name not in measured]
    if unknown:
        raise InputError(f"there is no metric '{printable(unknown[0])}'; see the README's table")
    names = [Metric.parse(name).name if name in known else name for name in metrics or _IN_HISTORY]
    if as_json:
        rows = [
            {"run_id": one.run_id, "created_at": one.created_at, "values": _only(one.values, metrics, names)}
            for one in points
        ]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max((len(printable(point.run_id)) for point in points), default=3)
    click.echo(f"{'run':<{width}}  {'created at':<20}" + "".join(f"{name:>{_wide(name)}}" for name in names))
    for point in points:
        values = "".join(f"{format_value(point.values.get(name)):>{_wide(name)}}" for name in names)
        click.echo(f"{printable(point.run_id):<{width}}  {printable(point.created_at)[:19]:<20}{values}")


def _only(values: dict[str, float], asked: tuple[str, ...], names: list[str]) -> dict[str, float]:
    """All values, or those that were asked for."""
    return {name: value for name, value in values.items() if not asked or name in names}


def _wide(name: str) -> int:
    return max(10, len(name) + 2)


@main.command("validate")
@options("db", "golden", "json")
def validate_command(as_json: bool, **given: Any) -> None:
    """Check the golden file against the database; exits with 1 if something is off."""
    settings = settings_from(run_b="-", **given)
    golden = load_golden_set(settings.golden)
    with open_database(settings.db_b) as database:
        findings = validate(golden, database)
        known = database.corpus.has_chunks
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(findings), indent=2, ensure_ascii=False))
    else:
        name = shown_path(settings.golden)
        for one in findings:
            click.echo(f"{name}:{one.line}: query '{printable(one.query_id)}' {one.text}")
    if not known:
        _say("the database has no chunks, so expected ids were looked for among the stored hits alone")
    _say(f"{counted(len(golden.queries), 'query')}, {counted(len(findings), 'finding')}")
    if findings:
        _exit(REGRESSION)


@main.command()
@options("db", "golden")
@click.option("--force", is_flag=True, help="Replace a lock file of another chunker.")
def lock(force: bool, **given: Any) -> None:
    """Write the lock file: where the expected chunks are, by the chunker that made them.

    With it the runs of other chunkers can still be judged when the index no longer has these chunks. Commit
    it beside the golden file, and lock again when the golden file changes.
    """
    settings = settings_from(run_b="-", **given)
    golden = load_golden_set(settings.golden)
    with open_database(settings.db_b) as database:
        made = make_lock(golden, database)
    version = printable(str(made.lock.chunker_version))
    if made.other_versions:
        raise InputError(
            f"the expected chunks are of several chunkers ({version},"
            f" {', '.join(map(printable, made.other_versions))}); a lock file is for one:"
            " see kebab-eval validate"
        )
    old = golden.lock.chunker_version if golden.lock else None
    if old is not None and made.lock.chunks and old != made.lock.chunker_version and not force:
        raise InputError(
            f"the lock file is of chunker {printable(old)}, the database of {version};"
            " say --force to lock the new places, and lose the old"
        )
    if not made.lock.chunks:
        raise InputError(
            "none of the expected chunks is in the database; is it the one they were taken from?"
        )
    path = lock_path(settings.golden)
    text = render_lock(made.lock)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        _write(path, [text])
    for chunk_id in made.unknown:
        _say(f"warning: the chunk '{printable(chunk_id)}' is not in the database, nor now in the lock file")
    _say(f"{shown_path(path)}: {len(made.lock.chunks)} chunks of chunker {version}")


@main.command()
@click.argument(
    "directory", metavar="[DIRECTORY]", default="kebab-demo", type=click.Path(file_okay=False, path_type=Path)
)
def demo(directory: Path) -> None:
    """Build the bundled example in a directory and catch its regressions."""
    import subprocess

    script = _quickstart() / "demo.py"
    command = [sys.executable, str(script), str(directory)]
    _exit(subprocess.run(command, check=False).returncode)  # noqa: S603  our own script


def _quickstart() -> Path:
    """The bundled example: in the package where it is installed, beside it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "quickstart"
    return inside if inside.exists() else package.parent / "examples" / "quickstart"


# -- progress, on a terminal only ----------------------------------------------------------------


@contextmanager
def _progress(steps: list[str], label: str) -> Iterator[Any]:
    if len(steps) > 1 and sys.stderr.isatty():
        with click.progressbar(steps, label=label, file=sys.stderr) as bar:
            yield bar
    else:
        yield steps
