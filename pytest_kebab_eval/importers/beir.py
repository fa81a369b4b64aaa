"""A BEIR directory (`corpus.jsonl`, `queries.jsonl`, `qrels/*.tsv`) and a run over it.

The corpus may be large: it is read once, line by line, for the texts of the first hits of each query.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption, optional
from pytest_kebab_eval.importers.rankings import TabColumns, import_rankings, read_any_run
from pytest_kebab_eval.importers.sources import Id, Source, json_lines, required_id
from pytest_kebab_eval.text import printable, shown_path

_QRELS = TabColumns(("query-id", "corpus-id", "score"), docno=1, value=2, has_header=True)
_USUAL_SPLIT = "test.tsv"


class _Document(msgspec.Struct):
    own_id: Id | None = msgspec.field(default=None, name="_id")
    title: str | None = None
    text: str | None = None


def _read(sources: Mapping[str, Source]) -> Imported:
    files = {**_files_of(sources["data"]), **sources} if "data" in sources else sources
    if "qrels" not in files:
        raise InputError(f"there is no qrels/*.tsv in {sources['data'].name}; name one with --qrels")
    passages = partial(_texts, files["corpus"]) if "corpus" in files else None
    return import_rankings(files, read_any_run, _QRELS.read, "queries", passages)


def _files_of(data: Source) -> dict[str, Source]:
    """The files of a BEIR directory that are there; an error if it is none."""
    directory = Path(data.path)
    if not directory.is_dir():
        raise InputError(f"there is no directory {data.name} to import from")
    found = {name: _plain_or_packed(directory / f"{name}.jsonl") for name in ("queries", "corpus")}
    found["qrels"] = _split(directory / "qrels")
    return {name: Source(str(path)) for name, path in found.items() if path is not None}


def _plain_or_packed(path: Path) -> Path | None:
    candidates = (path, path.with_name(f"{path.name}.gz"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _split(directory: Path) -> Path | None:
    """The judgments of the split that BEIR takes by itself, or the only ones that are there."""
    splits = sorted(directory.glob("*.tsv"))
    usual = [path for path in splits if path.name == _USUAL_SPLIT]
    if len(splits) > 1 and not usual:
        names = ", ".join(printable(path.name) for path in splits)
        raise InputError(f"{shown_path(directory)} has no {_USUAL_SPLIT}, but {names}; name one with --qrels")
    return next(iter(usual or splits), None)


def _texts(corpus: Source, wanted: set[str]) -> dict[str, str]:
    """The texts of these documents, each after its title."""
    found = {}
    for line, document in json_lines(corpus, _Document, "document"):
        name = required_id(corpus, line, document.own_id, "_id")
        if name in wanted:
            found[name] = "\n".join(filter(None, (document.title, document.text)))
    return found


BEIR = Importer(
    name="beir",
    help="A BEIR directory, and a run over it.",
    options=(
        ImportOption("run", "The run: TREC's columns, or .json: {query: {document: score}}."),
        optional("data", "The directory: queries.jsonl, qrels/test.tsv, corpus.jsonl."),
        optional("qrels", "The judgments, if not qrels/test.tsv: query-id, corpus-id, score."),
        optional("queries", "The queries, if not those of the directory: _id, text."),
        optional("corpus", "The documents, if not those of the directory: _id, title, text."),
    ),
    read=_read,
    needs_one_of=("data", "qrels"),
)
