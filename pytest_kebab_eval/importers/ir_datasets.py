"""What `ir_datasets export` writes, as TSV or JSONL: judgments, and scored documents as a run."""

from __future__ import annotations

from functools import partial

from pytest_kebab_eval.importers.importer import Importer, ImportOption, optional
from pytest_kebab_eval.importers.rankings import (
    ByTopic,
    JsonColumns,
    TabColumns,
    import_rankings,
    read_any_run,
)
from pytest_kebab_eval.importers.sources import Source

_QRELS = TabColumns(("query_id", "doc_id", "relevance", "iteration"), docno=1, value=2, optional=1)
_JSON_QRELS = JsonColumns(("query_id", "doc_id", "relevance"), docno=1, value=2)
_SCORED = TabColumns(("query_id", "doc_id", "score"), docno=1, value=2)
_JSON_SCORED = JsonColumns(("query_id", "doc_id", "score"), docno=1, value=2)


def _read_qrels(source: Source) -> ByTopic:
    return (_JSON_QRELS if source.ending == ".jsonl" else _QRELS).read(source)


def _read_run(source: Source) -> ByTopic:
    if source.ending not in {".jsonl", ".tsv"}:
        return read_any_run(source)
    return (_JSON_SCORED if source.ending == ".jsonl" else _SCORED).read(source)


IR_DATASETS = Importer(
    name="ir-datasets",
    help="Judgments that ir_datasets exported, and a run.",
    options=(
        ImportOption("run", "The run: TREC's columns, .json as of ranx, or scoreddocs as .tsv or .jsonl."),
        ImportOption(
            "qrels", "The judgments: query_id, doc_id, relevance, iteration, apart by tabs; or .jsonl."
        ),
        optional("queries", "The queries' texts: id, tab, text; or JSONL."),
    ),
    read=partial(import_rankings, read_run=_read_run, read_qrels=_read_qrels, topics="queries"),
)
