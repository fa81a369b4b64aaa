"""`kebab-eval review`: a person labels what run B found and nobody has judged."""

from __future__ import annotations

import difflib
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli.comparing import read_inputs
from pytest_kebab_eval.cli.golden import write_golden_text, write_if_changed
from pytest_kebab_eval.cli.options import comparing_options, path_to_file, run_arguments, sources_from
from pytest_kebab_eval.cli.output import REGRESSION, exit_with, print_line, tell, write_file
from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.errors import InputError, SettingsError
from pytest_kebab_eval.evaluate import Evaluation, evaluate
from pytest_kebab_eval.files import exists
from pytest_kebab_eval.golden import GoldenSet, lock_path, render_lock
from pytest_kebab_eval.golden.file import read_text
from pytest_kebab_eval.golden.sheets import VERDICTS, SheetRow, read_sheet, render_sheet
from pytest_kebab_eval.golden.values import Problem
from pytest_kebab_eval.model import GoldenQuery
from pytest_kebab_eval.reports.wording import counted, partial_losses
from pytest_kebab_eval.settings import resolve
from pytest_kebab_eval.text import brief, printable, shown_path
from pytest_kebab_eval.upkeep.reviewing import Label, Review, apply_decisions
from pytest_kebab_eval.upkeep.unlabelled import QueryToReview, UnlabelledHit, find_unlabelled

_TEXT_IN_SHEET = 2000  # characters
_COLOURS = {"+": "green", "-": "red"}


@click.command()
@run_arguments
@comparing_options
@click.option("--query", "query_ids", multiple=True, metavar="ID", help="Review this query (repeatable).")
@click.option("--all", "every", is_flag=True, help="Review all queries, also those that do not fail.")
@click.option(
    "--out",
    metavar="FILE",
    type=path_to_file,
    help="Write the hits to a sheet, for somebody to fill in; .yaml.",
)
@click.option(
    "--apply", "sheet", metavar="FILE", type=path_to_file, help="Label what a filled-in sheet says."
)
def review(
    a: str,
    b: str,
    query_ids: tuple[str, ...],
    every: bool,
    out: Path | None,
    sheet: Path | None,
    **given: Any,
) -> None:
    """Label the hits of B that nobody has judged, where queries fail.

    Such hits count as wrong, so that B may be better than it looks. Of each query, what is expected is shown,
    and each unlabelled hit with the share of the expected text that it has, the likeliest first. A right hit
    becomes an alternative of the target that B lost, or a further target; one that is the same as an expected
    passage, an alternative of that; a wrong one gets the gain 0. The golden file is edited in place, its
    comments and layout stay, and the changes are shown as a diff; a lock file follows.
    """
    _check_use(query_ids, every=every, out=out, sheet=sheet)
    settings = resolve(sources_from(run_a=a, run_b=b, **given))
    inputs = read_inputs(settings)
    golden = inputs.golden
    text = read_text(golden.path)
    rows, problems = read_sheet(sheet) if sheet else ([], [])
    evaluation = evaluate(settings, inputs)
    if sheet:
        query_ids = tuple(dict.fromkeys(row.query_id for row in rows if row.query_id in golden.by_id()))
    queries = _selected(golden, evaluation, query_ids, every=every) if query_ids or not sheet else []
    found = [*find_unlabelled(settings, inputs, evaluation, queries)]
    if sheet:
        by_id = {reviewed.query.id: reviewed for reviewed in found}
        decisions = _decisions(sheet, rows, problems, golden, by_id)
    elif not any(reviewed.hits for reviewed in found):
        which = "these queries" if query_ids or every else "the queries that fail"
        tell(f"nothing to review: of {which}, no top hit of B is without a label")
        in_part = [] if query_ids or every else partial_losses(evaluation.report)
        if in_part:
            lost = f"{counted(len(in_part), 'query')} lost a target and still found another"
            tell(f"{lost}: review these with --fail-on +coverage, or all queries with --all")
        return
    elif out:
        _write_sheet(out, found)
        return
    else:
        decisions = ask(found)
    _write(golden, text, apply_decisions(golden, text, decisions, settings.require))


def _check_use(query_ids: Sequence[str], *, every: bool, out: Path | None, sheet: Path | None) -> None:
    if out and sheet:
        raise SettingsError("--out and --apply are both given; leave one of them out")
    if sheet and (every or query_ids):
        raise SettingsError("--apply labels what the sheet has; leave --all and --query out")
    if every and query_ids:
        raise SettingsError("--all and --query are both given; leave one of them out")
    if out is not None and exists(out):
        raise InputError(f"{shown_path(out)} is there already; name a new file for --out")
    if not out and not sheet and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SettingsError(
            "this is no terminal to ask on; write a sheet with --out sheet.yaml, have it filled in, and label"
            " what it says with --apply sheet.yaml"
        )


def _selected(
    golden: GoldenSet, evaluation: Evaluation, query_ids: Sequence[str], *, every: bool
) -> list[GoldenQuery]:
    queries = golden.by_id()
    unknown = [query_id for query_id in query_ids if query_id not in queries]
    if unknown:
        names = ", ".join(f"'{brief(query_id, 40)}'" for query_id in unknown)
        raise InputError(f"{shown_path(golden.path)} has no query {names}; --query takes ids of this file")
    if query_ids:
        return [queries[query_id] for query_id in dict.fromkeys(query_ids)]
    if every:
        return [*golden.queries]
    failed = [name for name, verdict in evaluation.verdicts.items() if verdict.outcome is Outcome.FAILED]
    return [queries[query_id] for query_id in failed]


# -- sheets ------------------------------------------------------------------------------------------


def _write_sheet(path: Path, found: Sequence[QueryToReview]) -> None:
    rows = [_row(reviewed, hit) for reviewed in found for hit in reviewed.hits]
    write_file(path, render_sheet(rows))
    queries = sum(bool(reviewed.hits) for reviewed in found)
    tell(f"{shown_path(path)}: {counted(len(rows), 'hit')} of {counted(queries, 'query')} to label")


def _row(reviewed: QueryToReview, hit: UnlabelledHit) -> dict[str, Any]:
    expected = {passage.id: _shortened(passage.text) for passage in reviewed.expected}
    row: dict[str, Any] = {"query_id": reviewed.query.id, "query": reviewed.query.query, "expected": expected}
    row |= {"chunk_id": hit.id, "rank": hit.hit.rank}
    if hit.path:
        row["document"] = hit.path
    if hit.shared:
        row["shares"] = f"{100 * hit.shared:.0f} % of {hit.nearest}"
    return {**row, "text": _shortened(hit.text), "verdict": None}


def _shortened(text: str | None) -> str | None:
    """A text for people to read: without spaces at the ends of lines, and not without end."""
    if not text:
        return None
    lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return lines if len(lines) <= _TEXT_IN_SHEET else f"{lines[:_TEXT_IN_SHEET].rstrip()} …"


def _decisions(
    sheet: Path,
    rows: Sequence[SheetRow],
    problems: list[Problem],
    golden: GoldenSet,
    found: Mapping[str, QueryToReview],
) -> list[Label]:
    """What a sheet says; one error that lists all that cannot be done."""
    decisions, queries = [], golden.by_id()
    for row in rows:
        made = _decision(row, queries, found.get(row.query_id))
        if isinstance(made, str):
            problems.append(Problem(row.line, made))
        elif made:
            decisions.append(made)
    if problems:
        name = shown_path(sheet)
        lines = [f"{name}:{line}: {text}" for line, text in sorted(problems)]
        count = f"{name} has {len(lines)} problems, and nothing was labelled:"
        raise InputError(lines[0] if len(lines) == 1 else "\n  ".join([count, *lines]))
    if len(decisions) < len(rows):
        tell(f"{counted(len(rows) - len(decisions), 'hit')} of the sheet had a label already")
    return decisions


def _decision(
    row: SheetRow, queries: Mapping[str, GoldenQuery], reviewed: QueryToReview | None
) -> Label | str | None:
    """What a row says; None if the golden file says it already, and words for what is wrong."""
    query = queries.get(row.query_id)
    name = f"'{brief(row.chunk_id, 60)}'"
    if query is None:
        return f"the golden file has no query '{brief(row.query_id, 60)}'"
    if reviewed is None:
        return f"the query '{brief(row.query_id, 60)}' expects nothing to be found"
    hit = next((hit for hit in reviewed.hits if hit.id == row.chunk_id), None)
    if hit is None and row.chunk_id in reviewed.labelled:
        return None
    if hit is None:
        return f"{name} is no top hit of B for the query '{brief(row.query_id, 60)}'"
    if row.same_as is not None and row.same_as not in {passage.id for passage in reviewed.expected}:
        return f"'{brief(row.same_as, 60)}' is not expected by the query '{brief(row.query_id, 60)}'"
    return Label(reviewed, hit, row.verdict, row.same_as)


# -- writing -----------------------------------------------------------------------------------------


def _write(golden: GoldenSet, text: str, made: Review) -> None:
    """Write the golden file and its lock file, and show what changed."""
    name = shown_path(golden.path)
    if made.lock:  # first: if the golden file is not written after it, the review can be done again
        write_if_changed(lock_path(golden.path), render_lock(made.lock))
    if made.text != text:
        write_golden_text(golden, text, made.text)
        for line in _diff(text, made.text, name):
            print_line(line, _COLOURS.get(line[:1]))
    changed = {decision.reviewed.query.id for decision in made.labelled}
    for query in dict.fromkeys(made.left):
        left = "gets no label for a hit" if query.query_id in changed else "is left as it is"
        tell(f"{name}:{query.line}: query '{printable(query.query_id)}' {left}: it {query.reason}")
    counts = Counter(decision.verdict for decision in made.labelled)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    labelled = f"{counted(len(made.labelled), 'hit')} labelled{f' ({said})' if said else ''}"
    tell(f"{name}: {labelled}")
    if made.left:
        exit_with(REGRESSION)


def _diff(old: str, new: str, name: str) -> Iterator[str]:
    return (
        line.rstrip("\r\n")
        for line in difflib.unified_diff(old.splitlines(), new.splitlines(), name, name, lineterm="")
    )


# -- the terminal: hits are shown one by one, and one key says what each is ------------------------


_VERDICTS = {verdict[0]: verdict for verdict in VERDICTS}
_SKIP, _UNDO, _QUIT = "n", "u", "q"
_CTRL_C, _ESCAPE = "\x03", "\x1b"
_EXPECTED_SHOWN, _TEXT_SHOWN = 400, 800  # characters
_WIDEST = 100


def ask(found: Sequence[QueryToReview]) -> list[Label]:
    """What a person says of the hits; what was decided is kept when they stop half-way."""
    hits = [(reviewed, hit) for reviewed in found for hit in reviewed.hits]
    decided: list[Label | None] = []  # None: skipped
    keys = _typed()
    try:
        while len(decided) < len(hits):
            reviewed, hit = hits[len(decided)]
            _show(reviewed, hit, f"{len(decided) + 1} of {len(hits)}")
            key = _key(keys, reviewed, can_undo=bool(decided))
            if key == _QUIT:
                break
            if key == _UNDO:
                decided.pop()
            else:
                decided.append(_typed_label(reviewed, hit, key))
    except (KeyboardInterrupt, EOFError):
        tell("stopped; what was decided is kept")
    return [decision for decision in decided if decision]


def _typed() -> Iterator[str]:
    """The keys, one by one: what is typed fast may come together; arrows and the like are none."""
    while True:
        typed = click.getchar()
        for key in () if typed.startswith(_ESCAPE) else typed:
            if key == _CTRL_C:
                raise KeyboardInterrupt
            yield key.lower()


def _key(keys: Iterator[str], reviewed: QueryToReview, *, can_undo: bool) -> str:
    """The next key that means something here."""
    targets = [str(number) for number, _ in enumerate(reviewed.expected[:9], 1)]
    known = {*_VERDICTS, _SKIP, _QUIT, *targets, *([_UNDO] if can_undo else [])}
    return next(key for key in keys if key in known)


def _typed_label(reviewed: QueryToReview, hit: UnlabelledHit, key: str) -> Label | None:
    if key == _SKIP:
        print_line("  skipped")
        return None
    same_as = reviewed.expected[int(key) - 1].id if key.isdigit() else None
    verdict = "same" if same_as else _VERDICTS[key]
    print_line(f"  {verdict}{f' as {same_as}' if same_as else ''}", "red" if verdict == "wrong" else "green")
    return Label(reviewed, hit, verdict, same_as)


def _show(reviewed: QueryToReview, hit: UnlabelledHit, position: str) -> None:
    """A query, what it expects, the hit, and what the keys are."""
    print_line(f"\n[{position}] {brief(reviewed.query.id, 60)}: {brief(reviewed.query.query, 200)}", "cyan")
    for number, passage in enumerate(reviewed.expected, 1):
        lost = " (B lost it)" if passage.id in reviewed.lost else ""
        where = f", {brief(passage.where, 80)}" if passage.where else ""
        print_line(f"  expected {number}. {brief(passage.id, 60)}{where}{lost}")
        _show_text(passage.text, _EXPECTED_SHOWN)
    shares = f", has {100 * hit.shared:.0f} % of {hit.nearest}" if hit.shared and hit.nearest else ""
    places = [*([hit.path] if hit.path else []), *(hit.hit.heading_path or ())]
    where = f", {brief(' > '.join(places), 80)}" if places else ""
    print_line(f"  B at rank {hit.hit.rank}: {brief(hit.id, 60)}{where}{shares}")
    _show_text(hit.text, _TEXT_SHOWN)
    which = f" (1-{min(9, len(reviewed.expected))}: as which)" if len(reviewed.expected) > 1 else ""
    print_line(f"  r right   s same{which}   w wrong   n skip   u undo   q quit")


def _show_text(text: str | None, length: int) -> None:
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    shown = brief(text, length) if text else "(its text is not known)"
    print_line(textwrap.fill(shown, width, initial_indent="      ", subsequent_indent="      "))
