"""The judgments and the run of ranx, and the same of pytrec_eval: dictionaries, saved as JSON."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_kebab_eval.importers.dictionaries import read_dictionaries
from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption
from pytest_kebab_eval.importers.rankings import Rankings
from pytest_kebab_eval.importers.samples import is_scores, is_topics
from pytest_kebab_eval.importers.sources import Source


def _read(sources: Mapping[str, Source]) -> Imported:
    return Rankings(
        run=sources["run"],
        read_run=read_dictionaries,
        qrels=sources["qrels"],
        read_qrels=read_dictionaries,
        topics=sources.get("topics"),
    ).imported()


RANX = Importer(
    name="ranx",
    help="The JSON of ranx and pytrec_eval: a run and its judgments.",
    options=(
        ImportOption("run", "The run: {query: {document: score}}.", fits=is_scores),
        ImportOption(
            "qrels",
            "The judgments: {query: {document: relevance}}.",
            fits=lambda sample: is_scores(sample) and sample.is_whole,
        ),
        ImportOption(
            "topics",
            "The queries' texts: id, tab, text, or JSONL with an id and a text.",
            required=False,
            fits=is_topics,
        ),
    ),
    read=_read,
)
