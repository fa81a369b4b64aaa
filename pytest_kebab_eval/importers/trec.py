"""A TREC run and its qrels; the rank column is ignored."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption
from pytest_kebab_eval.importers.rankings import TREC_QRELS, TREC_RUN, Rankings, read_columns
from pytest_kebab_eval.importers.samples import Sample, is_number_at, is_run, is_topics
from pytest_kebab_eval.importers.sources import Source


def _read(sources: Mapping[str, Source]) -> Imported:
    return Rankings(
        run=sources["run"],
        read_run=read_columns(TREC_RUN),
        qrels=sources["qrels"],
        read_qrels=read_columns(TREC_QRELS),
        topics=sources.get("topics"),
    ).imported()


def _is_qrels(sample: Sample) -> bool:
    """Four columns, of which the second is an iteration and the last a relevance."""
    has_iteration = is_number_at(sample, 1) or sample.fields[1:2] == ("Q0",)
    return sample.kind == "columns" and len(sample.fields) == 4 and has_iteration and is_number_at(sample, 3)


TREC = Importer(
    name="trec",
    help="A TREC run and its relevance judgments.",
    options=(
        ImportOption("run", "The run: topic, Q0, docno, rank, score, tag.", fits=is_run),
        ImportOption("qrels", "The judgments: topic, 0, docno, relevance.", fits=_is_qrels),
        ImportOption(
            "topics",
            "The topics' texts: <top> <num> … <title> …, or id, tab, text.",
            required=False,
            fits=lambda sample: sample.kind == "sgml" or is_topics(sample),
        ),
    ),
    read=_read,
)
