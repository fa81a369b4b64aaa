"""`kebab-eval propose`: golden queries from what people asked."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli.options import json_option, options, path_to_file, sources_from
from pytest_kebab_eval.cli.output import print_json, print_report, read_golden, tell
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.files import exists
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.golden.writing import new_golden_file, write_golden
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.inputs.sides import shown_version
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Sources, database_of, golden_of, is_given
from pytest_kebab_eval.store import find_run, open_database
from pytest_kebab_eval.text import brief, shown_path
from pytest_kebab_eval.upkeep.proposing import AskedRun, NotProposed, Proposal, read_questions
from pytest_kebab_eval.upkeep.proposing import propose as propose_entries

_STDOUT = Path("-.yaml")  # whose ending says the format


@click.command()
@click.option(
    "--from", "log", required=True, metavar="FILE", help="The questions: JSONL, CSV or JSON; - for stdin."
)
@click.option(
    "--run",
    "names",
    required=True,
    multiple=True,
    metavar="RUN",
    help="A run whose first hits become targets; those of several are pooled (repeatable).",
)
@click.option(
    "--top", type=click.IntRange(1), default=1, show_default=True, help="How many hits of each run to expect."
)
@click.option("--field", metavar="NAME", help="The field of the question, if it cannot be guessed.")
@click.option("--out", metavar="FILE", type=path_to_file, help="Write to a new file: YAML, JSON or JSONL.")
@options("db", "golden", "suite")
@json_option
def propose(
    log: str,
    names: tuple[str, ...],
    top: int,
    field: str | None,
    out: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Turn a log of questions into golden queries to review.

    The targets are what the runs returned first for each question, which is found by its text, else by the id
    in the log. What one run found favours it: name every run that will be compared. Where the text of a hit
    is known, a sentence of it is a snippet, by which it is found when the chunker changes. Entries say
    'reviewed: false' until a person has looked at them. Near-duplicates of golden queries and of each other
    are left out, and named, as are questions that no run has anything for. No file is ever replaced.
    """
    if out is not None and exists(out):
        raise InputError(f"{shown_path(out)} is there already; name a new file for --out")
    sources = sources_from(**given)
    golden = _golden(sources)
    questions = read_questions(Source(log), field)
    with open_database(database_of(sources)) as database:
        runs = _distinct(find_run(database, name, sources.read("suite")) for name in names)
        asked = [
            AskedRun(run.run_id, database.results(run.run_id), Passages(database.corpus, run.chunker_version))
            for run in runs
        ]
        made = propose_entries(questions, asked, golden, top)
    written = _write(made, out) if out is not None else ""
    if as_json:
        print_json(_as_json(made))
    elif out is None and made.entries:
        text = io.StringIO()
        write_golden(text, _STDOUT, made.entries, made.comments)
        print_report([text.getvalue()], "md")
    _tell_left_out("near-duplicates, left out", made.near_duplicates)
    _tell_left_out("without anything to expect", made.without_result)
    if made.without_result and not made.has_texts:
        which = "the run" if len(runs) == 1 else "the runs"
        tell(f"{which} stored no texts of queries; record with query=…, or give questions the ids of results")
    tell(
        f"{counted(len(questions), 'question')}: {len(made.entries)} proposed,"
        f" {counted(len(made.near_duplicates), 'near-duplicate')},"
        f" {len(made.without_result)} without anything to expect{written}"
    )


def _write(made: Proposal, out: Path) -> str:
    """Write what is proposed, if anything is; how that ends the summary."""
    if not made.entries:
        return f"; {shown_path(out)} was not written"
    with new_golden_file(out) as file:
        write_golden(file, out, made.entries, made.comments)
    return f", written to {shown_path(out)}"


def _distinct(runs: Iterable[Run]) -> list[Run]:
    """Each run once; runs of different chunkers are refused, since they have no chunk ids in common."""
    found = [*{run.run_id: run for run in runs}.values()]
    versions = sorted({shown_version(run.chunker_version) for run in found})
    if len(versions) > 1:
        different = f"the runs have different chunker versions ({', '.join(versions)})"
        raise InputError(f"{different}, and no chunk ids in common; propose from runs of one chunker")
    return found


def _golden(sources: Sources) -> GoldenSet | None:
    """The golden file, if one is named, or is where it is looked for."""
    path = golden_of(sources)
    if not is_given(sources, "golden") and not exists(path):
        tell(f"there is no golden file {shown_path(path)} yet, so that nothing is a duplicate of it")
        return None
    return read_golden(sources)


def _tell_left_out(title: str, left_out: Sequence[NotProposed]) -> None:
    if left_out:
        tell(f"{title}:")
    for question, reason in left_out:
        tell(f"  line {question.line}: {brief(question.text, 80)} ({reason})")


def _as_json(made: Proposal) -> dict[str, Any]:
    left_out = {"near_duplicates": made.near_duplicates, "without_result": made.without_result}
    return {"proposed": made.entries} | {
        name: [
            {"line": question.line, "question": question.text, "asked": question.asked, "reason": reason}
            for question, reason in questions
        ]
        for name, questions in left_out.items()
    }
