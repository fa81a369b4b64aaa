"""The judgments and the run of ranx, and the same of pytrec_eval: dictionaries, saved as JSON."""

from __future__ import annotations

from functools import partial

from pytest_kebab_eval.importers.importer import Importer, ImportOption, optional
from pytest_kebab_eval.importers.rankings import import_rankings, read_dictionaries

RANX = Importer(
    name="ranx",
    help="The JSON of ranx and pytrec_eval: a run and its judgments.",
    options=(
        ImportOption("run", "The run: {query: {document: score}}."),
        ImportOption("qrels", "The judgments: {query: {document: relevance}}."),
        optional("topics", "The queries' texts: id, tab, text, or JSONL with an id and a text."),
    ),
    read=partial(import_rankings, read_run=read_dictionaries, read_qrels=read_dictionaries),
)
