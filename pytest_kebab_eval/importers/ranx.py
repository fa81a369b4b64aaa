"""The judgments and the run of ranx, and the same of pytrec_eval: dictionaries, saved as JSON."""

from __future__ import annotations

from functools import partial

from pytest_kebab_eval.importers.columns import read_dictionaries
from pytest_kebab_eval.importers.importer import Importer, ImportOption, optional
from pytest_kebab_eval.importers.rankings import import_rankings
from pytest_kebab_eval.importers.samples import Sample, is_scores, is_topics


def _is_qrels(sample: Sample) -> bool:
    return is_scores(sample) and sample.is_whole


RANX = Importer(
    name="ranx",
    help="The JSON of ranx and pytrec_eval: a run and its judgments.",
    options=(
        ImportOption("run", "The run: {query: {document: score}}.", is_scores),
        ImportOption("qrels", "The judgments: {query: {document: relevance}}.", _is_qrels),
        optional("topics", "The queries' texts: id, tab, text, or JSONL with an id and a text.", is_topics),
    ),
    read=partial(import_rankings, read_run=read_dictionaries, read_qrels=read_dictionaries),
)
