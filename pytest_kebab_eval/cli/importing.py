"""`kebab-eval import` and `propose`: runs of other systems, and golden queries from what people asked."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli import Subcommand
from pytest_kebab_eval.cli.options import decorated_with, json_option, options, path_to_file, sources_from
from pytest_kebab_eval.cli.output import (
    print_json,
    print_line,
    print_report,
    read_golden,
    tell,
    tell_warnings,
)
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.files import exists, is_stream
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.golden.writing import new_golden_file, write_golden
from pytest_kebab_eval.importers import Importer, InstalledImporters, Source, import_run
from pytest_kebab_eval.inputs.sides import shown_version
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Sources, database_of, golden_of, is_given
from pytest_kebab_eval.store import find_run, open_database, shown_address, to_address
from pytest_kebab_eval.text import brief, shown_path
from pytest_kebab_eval.upkeep.proposing import AskedRun, NotProposed, Proposal, read_questions
from pytest_kebab_eval.upkeep.proposing import propose as propose_entries

_STDOUT = Path("-.yaml")  # whose ending says the format

# -- import: a subcommand for each importer that is installed --------------------------------------


class _Importers(click.Group):
    """A subcommand for each importer that is installed; one that cannot be used is named, and left out."""

    @cached_property
    def installed(self) -> InstalledImporters:
        return InstalledImporters()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all that can be used; a shell that completes a word sees no sentence on the others."""
        found = self.installed.load_all((lambda _: None) if ctx.resilient_parsing else _tell_problem)
        return sorted(importer.name for importer in found)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name; the other importers are not loaded for it."""
        if cmd_name not in self.installed:
            return None
        try:
            return _command_of(self.installed.load(cmd_name))
        except InputError:
            if ctx.resilient_parsing:
                return None
            raise


@click.group("import", cls=_Importers)
def import_() -> None:
    """Bring in a run from another system.

    All of it or, if a line is bad, nothing. Files may be plain, gzip-compressed (.gz) or '-' for standard
    input.
    """


def _tell_problem(sentence: str) -> None:
    tell(f"kebab-eval: {sentence}")


def _command_of(importer: Importer) -> click.Command:
    allow_missing = click.option(
        "--allow-missing", is_flag=True, help="No warning about ids that only one of the files has."
    )

    @click.command(importer.name, cls=Subcommand, help=importer.help)
    @decorated_with(
        [
            click.option(f"--{option.name}", required=option.required, metavar="FILE", help=option.help)
            for option in importer.options
        ]
    )
    @click.option(
        "--db",
        required=True,
        metavar="DB",
        help="The database to import into: an SQLite file, made if it is not there, or postgresql://….",
    )
    @click.option("--run-id", metavar="ID", help="The id of the run (default: a new one).")
    @click.option(
        "--suite", metavar="NAME", help="The suite of the run (default: default, or that of the export)."
    )
    @click.option(
        "--golden-out",
        metavar="FILE",
        type=path_to_file,
        help="Write the golden queries there (.yaml, .json or .jsonl).",
    )
    @decorated_with([allow_missing] if importer.joins_files else [])
    @click.option("--overwrite", is_flag=True, help="Replace the golden file if it is there.")
    def command(golden_out: Path | None, overwrite: bool, **given: Any) -> None:
        for sentence in import_.installed.left_out.get(importer.name, ()):
            _tell_problem(sentence)
        if golden_out is not None and not overwrite and golden_out.exists() and not is_stream(golden_out):
            raise InputError(f"{shown_path(golden_out)} is there already; say --overwrite to replace it")
        _import(importer, golden_out, **given)

    return command


def _import(
    importer: Importer,
    golden_out: Path | None,
    *,
    allow_missing: bool = False,
    db: str,
    run_id: str | None,
    suite: str | None,
    **files: str | None,
) -> None:
    sources = {name.replace("_", "-"): Source(path) for name, path in files.items() if path is not None}
    address = to_address(db)
    made = import_run(importer, sources, db=address, run_id=run_id, suite=suite, golden_out=golden_out)
    print_line(made.run_id)
    if not allow_missing:
        tell_warnings(made.warnings)
    golden = (
        f", {counted(made.golden or 0, 'golden query')} in {shown_path(golden_out)}" if golden_out else ""
    )
    tell(f"imported {counted(made.queries, 'query')} into {shown_address(address)}{golden}")


# -- propose ----------------------------------------------------------------------------------------


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
