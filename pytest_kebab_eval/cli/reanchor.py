"""`kebab-eval reanchor`: the golden file's chunk ids become those of a newer chunker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli.golden import write_if_changed
from pytest_kebab_eval.cli.group import REGRESSION
from pytest_kebab_eval.cli.options import json_option, options, sources_from
from pytest_kebab_eval.cli.output import exit_with, print_json, print_line, tell, tell_size, write_file
from pytest_kebab_eval.errors import StoreError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set, lock_path
from pytest_kebab_eval.golden.lock import render_lock
from pytest_kebab_eval.golden.reading import read_text
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import database_of, golden_of
from pytest_kebab_eval.store import find_run, open_database
from pytest_kebab_eval.text import brief, printable, shown_path
from pytest_kebab_eval.upkeep.reanchoring import NewChunks, Reanchoring, Undecided, reanchor

_IDS_SHOWN = 6


@click.command()
@click.option("--to", "to", required=True, metavar="RUN", help="A run of the newer chunker.")
@options("db", "golden", "span_overlap")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if something is to be done.")
@click.option("--no-texts", is_flag=True, help="Have hashes of the chunks' texts in the lock file.")
@json_option
def reanchor_command(to: str, check: bool, no_texts: bool, as_json: bool, **given: Any) -> None:
    """Replace the golden file's chunk ids by those of a newer chunker, and write the lock file.

    An expected chunk becomes the chunks of the run that the gate would take for it: by document and span, or
    else by text. Only ids change in the golden file; its comments, order and quotes stay. A query that cannot
    be decided is listed and left as it is; then the exit code is 1.
    """
    sources = sources_from(**given)
    golden = load_golden_set(golden_of(sources))
    tell_size(golden)
    text = read_text(golden.path)
    with open_database(database_of(sources)) as database:
        run = find_run(database, to)
        texts = not no_texts and not _has_hashes(golden)
        made = reanchor(
            golden, text, (database, run), least_overlap=sources.read("span_overlap"), texts=texts
        )
    if not check:
        _write(golden, text, made)
    _print(golden.path, made, as_json=as_json, written=not check)
    _tell(golden, made, check=check)
    if made.undecided or (check and made.changed):
        exit_with(REGRESSION)


def _has_hashes(golden: GoldenSet) -> bool:
    """Whether the lock file was made without texts."""
    chunks = golden.lock.chunks.values() if golden.lock else ()
    return any(chunk.shingles for chunk in chunks) and not any(chunk.text for chunk in chunks)


def _write(golden: GoldenSet, text: str, made: Reanchoring) -> None:
    if made.changed:
        if read_text(golden.path) != text:
            raise StoreError(
                f"{shown_path(golden.path)} was changed meanwhile, so it is left as it is; try again"
            )
        write_file(golden.path, [made.text])
    if made.locking.lock.chunks and (made.changed or not made.undecided):
        write_if_changed(lock_path(golden.path), render_lock(made.locking.lock))


def _print(path: Path, made: Reanchoring, *, as_json: bool, written: bool) -> None:
    if as_json:
        print_json(
            {
                "written": written,
                "changed": [_change_json(query) for query in made.changed],
                "undecided": [
                    {"query_id": query.query_id, "line": query.line, "reason": query.reason}
                    for query in made.undecided
                ],
            }
        )
        return
    name = shown_path(path)
    listed: list[NewChunks | Undecided] = [*made.changed, *made.undecided]
    for query in sorted(listed, key=lambda query: query.line):
        print_line(f"{name}:{query.line}: query '{printable(query.query_id)}'{_sentence(query)}")


def _change_json(query: NewChunks) -> dict[str, Any]:
    return {
        "query_id": query.query_id,
        "line": query.line,
        "ids": {old: list(new) for old, new in query.ids.items()},
        "by": "text" if query.by_text else "span",
    }


def _sentence(query: NewChunks | Undecided) -> str:
    if isinstance(query, Undecided):
        return f" is left as it is: it {query.reason}"
    changes = [f"{brief(old, 60)} -> {_listed(new)}" for old, new in query.ids.items()]
    return f": {'; '.join(changes)}{' (by text)' if query.by_text else ''}"


def _listed(ids: tuple[str, ...]) -> str:
    shown = ", ".join(brief(name, 60) for name in ids[:_IDS_SHOWN])
    return f"{shown}, and {len(ids) - _IDS_SHOWN} more" if len(ids) > _IDS_SHOWN else shown


def _tell(golden: GoldenSet, made: Reanchoring, *, check: bool) -> None:
    version = printable(str(made.locking.lock.chunker_version))
    to_do = "to re-anchor" if check else "re-anchored"
    if not made.in_index and made.changed:
        tell("the index has no chunks of this chunker, so only those are known that a hit of the run is")
    tell(
        f"{shown_path(golden.path)}: {counted(len(made.changed), 'query')} {to_do} to chunker {version},"
        f" {len(made.undecided)} left as they are"
    )
