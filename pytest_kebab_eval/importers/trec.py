"""A run and its judgments in TREC's columns, or as the JSON dictionaries of ranx and pytrec_eval."""

from __future__ import annotations

from pytest_kebab_eval.importers.importer import Importer, ImportOption, optional
from pytest_kebab_eval.importers.rankings import import_rankings

TREC = Importer(
    name="trec",
    help="A TREC run and its judgments, also as JSON of ranx and pytrec_eval.",
    options=(
        ImportOption(
            "run", "The run: topic, Q0, docno, rank, score, tag; .json: {query: {document: score}}."
        ),
        ImportOption(
            "qrels", "The judgments: topic, 0, docno, relevance; .json: {query: {document: relevance}}."
        ),
        optional("topics", "The topics' texts: <top> <num> … <title> …; id, tab, text; or JSONL."),
    ),
    read=import_rankings,
)
