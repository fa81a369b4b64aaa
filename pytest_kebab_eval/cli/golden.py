"""`kebab-eval validate`, `lock`, `reanchor` and `schema`: the golden file and the database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from pytest_kebab_eval.cli.options import json_option, options, sources_from
from pytest_kebab_eval.cli.output import fail_if, print_json, print_line, read_golden, tell, write_file
from pytest_kebab_eval.comparing.evidence import KnownPassage
from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.golden import GoldenSet, Lock, lock_path, render_lock
from pytest_kebab_eval.golden.file import read_text
from pytest_kebab_eval.golden.queries import golden_schema
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import database_of
from pytest_kebab_eval.store import find_run, open_database
from pytest_kebab_eval.text import brief, printable, shown_path
from pytest_kebab_eval.upkeep import reanchoring, validation
from pytest_kebab_eval.upkeep.locking import Locking, make_lock
from pytest_kebab_eval.upkeep.reanchoring import NewChunks, Reanchoring, Undecided

_TEXT_SHOWN = 200  # characters of a chunk's text
_IDS_SHOWN = 6


@click.command()
@options("db", "golden")
@click.option("--golden-only", is_flag=True, help="Check the file alone: no database is needed.")
@json_option
def validate(golden_only: bool, as_json: bool, **given: Any) -> None:
    """Check the golden file against the database.

    Exits with 1 if something is off.
    """
    sources = sources_from(**given)
    golden = read_golden(sources)
    if golden_only:
        findings = validation.contradictions(golden)
    else:
        with open_database(database_of(sources)) as database:
            if not database.corpus.has_chunks:
                tell("the database has no chunks, so expected ids are looked for among the stored hits alone")
            findings = validation.validate(golden, database)
    if as_json:
        print_json([msgspec.to_builtins(found) | {"kind": found.kind.name.lower()} for found in findings])
    else:
        name = shown_path(golden.path)
        for finding, sentence in validation.summed_up(findings):
            print_line(f"{name}:{finding.line}: {sentence}" if finding else sentence)
    tell(f"{counted(len(golden.queries), 'query')}, {counted(len(findings), 'finding')}")
    fail_if(findings)


@click.command()
@options("db", "golden")
@click.option("--run", metavar="RUN", help="Take what the database's chunks lack from the hits of this run.")
@click.option("--force", is_flag=True, help="Replace a lock file of another chunker.")
def lock(run: str | None, force: bool, **given: Any) -> None:
    """Write the lock file: where the expected chunks are.

    It has their chunker version and their texts, too. With it the runs of other chunkers can still be judged
    when the index no longer has these chunks. Commit it beside the golden file, and lock again when the
    golden file changes.
    """
    sources = sources_from(**given)
    golden = read_golden(sources)
    with open_database(database_of(sources)) as database:
        made = make_lock(golden, database, find_run(database, run) if run else None)
    _check_lock(made, golden, run, force=force)
    path = lock_path(golden.path)
    write_if_changed(path, render_lock(made.lock))
    for chunk_id in made.unknown:
        name = printable(chunk_id)
        tell(f"warning: the chunk '{name}' is not {_where_looked(run)}, nor now in the lock file")
    version = printable(str(made.lock.chunker_version))
    origins = ", ".join(f"{count} from {origin}" for origin, count in made.origins.items())
    if len(made.origins) == 1:
        origins = f"from {next(iter(made.origins))}"
    tell(f"{shown_path(path)}: {len(made.lock.chunks)} chunks of chunker {version}, {origins}")


def _where_looked(run: str | None) -> str:
    return f"in the database's chunks or a hit of run {printable(run)}" if run else "in the database's chunks"


def _check_lock(made: Locking, golden: GoldenSet, run: str | None, *, force: bool) -> None:
    """Refuse a lock file that is of several chunkers, of another than the old one, or empty."""
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
        to_do = (
            "name a run that found them and whose hits have texts, or citations with lines or pages"
            if run
            else "name the database that they were taken from, or, with --run RUN, a run whose hits have"
            " citations or texts; without kebab, record with RunRecorder(…, chunks=…)"
        )
        raise InputError(
            f"none of the expected chunks has its place or its text {_where_looked(run)}; {to_do}"
        )


@click.command()
@click.option("--to", "to", required=True, metavar="RUN", help="A run of the newer chunker.")
@options("db", "golden", "span_overlap")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if something is to be done.")
@json_option
def reanchor(to: str, check: bool, as_json: bool, **given: Any) -> None:
    """Replace chunk ids by those of a newer chunker.

    An expected chunk becomes the chunks of the run that the gate would take for it: by document and span, or
    else by text. The lock file is written anew. Only ids change in the golden file; its comments, order and
    quotes stay. The texts of the chunks that go (-) and come (+) are shown where they are known. A query that
    cannot be decided is listed and left as it is; then the exit code is 1.
    """
    sources = sources_from(**given)
    golden = read_golden(sources)
    text = read_text(golden.path)
    with open_database(database_of(sources)) as database:
        run = find_run(database, to)
        overlap = sources.read("span_overlap")
        made = reanchoring.reanchor(golden, text, (database, run), least_overlap=overlap)
    if not check:
        _write(golden, text, made)
    name = shown_path(golden.path)
    if as_json:
        changed = [
            {
                "query_id": query.query_id,
                "line": query.line,
                "ids": query.ids,
                "by": "text" if query.by_text else "span",
                "old_texts": {name: found.text for name, found in query.old.items() if found.text},
                "new_texts": {name: found.text for name, found in query.new.items() if found.text},
            }
            for query in made.changed
        ]
        print_json({"written": not check, "changed": changed, "undecided": made.undecided})
    else:
        listed: list[NewChunks | Undecided] = [*made.changed, *made.undecided]
        for query in sorted(listed, key=lambda query: query.line):
            print_line(f"{name}:{query.line}: query '{printable(query.query_id)}'{_sentence(query)}")
            for text in _texts(query) if isinstance(query, NewChunks) else ():
                print_line(f"  {text}")
    if not made.in_index and made.changed:
        tell("the index has no chunks of this chunker, so only those are known that a hit of the run is")
    version = printable(str(made.locking.lock.chunker_version))
    to_do = "to re-anchor" if check else "re-anchored"
    count = counted(len(made.changed), "query")
    tell(f"{name}: {count} {to_do} to chunker {version}, {len(made.undecided)} left as they are")
    fail_if(made.undecided or (check and made.changed))


def _write(golden: GoldenSet, text: str, made: Reanchoring) -> None:
    """Write the golden file and its lock; killed in between, a lock of both fits whichever is there."""
    path, lock = lock_path(golden.path), made.locking.lock
    has_lock = lock.chunks and (made.changed or not made.undecided)
    if made.changed:
        check_unchanged(golden, text)
        if has_lock:
            write_if_changed(path, render_lock((golden.lock or Lock()).joined_with(lock)))
        write_golden_text(golden, text, made.text)
    if has_lock:
        write_if_changed(path, render_lock(lock))


def write_golden_text(golden: GoldenSet, old: str, new: str) -> None:
    """Write the golden file; an error if somebody else did since it was read."""
    check_unchanged(golden, old)
    write_file(golden.path, [new])


def check_unchanged(golden: GoldenSet, old: str) -> None:
    """Raise if somebody else wrote the golden file since it was read."""
    if read_text(golden.path) != old:
        raise StoreError(
            f"{shown_path(golden.path)} was changed meanwhile, so it is left as it is; try again"
        )


def _sentence(query: NewChunks | Undecided) -> str:
    if isinstance(query, Undecided):
        return f" is left as it is: it {query.reason}"
    changes = []
    for old, new in query.ids.items():
        shown = ", ".join(brief(name, 60) for name in new[:_IDS_SHOWN])
        more = f", and {len(new) - _IDS_SHOWN} more" if len(new) > _IDS_SHOWN else ""
        changes.append(f"{brief(old, 60)} -> {shown}{more}")
    return f": {'; '.join(changes)}{' (by text)' if query.by_text else ''}"


def _texts(query: NewChunks) -> Iterator[str]:
    """What the chunks that go say, and those that come, as far as the texts are known."""
    for old, new in query.ids.items():
        found = [("-", query.old[old]), *(("+", query.new[name]) for name in new[:_IDS_SHOWN])]
        yield from (f"{sign} {_passage(passage)}" for sign, passage in found if passage.text)


def _passage(passage: KnownPassage) -> str:
    """Where it is and what it says: of a long text the start and the end, where chunkers differ."""
    words = " ".join(passage.text.split())
    said = brief(words if len(words) <= _TEXT_SHOWN else f"{words[:120]} … {words[-70:]}", _TEXT_SHOWN)
    where = f"{brief(passage.where, 60)}  " if passage.where else ""
    return f'{where}"{said}"  ({brief(passage.id, 60)})'


def write_if_changed(path: Path, text: str) -> None:
    """Write a file that is not replaced through a link, unless it holds that text already."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_file(path, [text], follow_link=False)


@click.command()
def schema() -> None:
    """Print the JSON schema of a golden file.

    It is made of the types that the parser checks the fields by. What a schema cannot say, such as that ids
    are unique, 'validate --golden-only' does.
    """
    print_json(golden_schema())
