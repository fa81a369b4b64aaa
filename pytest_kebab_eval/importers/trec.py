"""A TREC run and its qrels; the rank column is ignored."""

from __future__ import annotations

from functools import partial

from pytest_kebab_eval.importers.columns import SpacedColumns
from pytest_kebab_eval.importers.importer import Importer, ImportOption, optional
from pytest_kebab_eval.importers.rankings import TREC_RUN, import_rankings
from pytest_kebab_eval.importers.samples import Sample, is_number_at, is_run, is_topics

_QRELS = SpacedColumns(("topic", "0", "docno", "relevance"), docno=2, value=3)


def _is_qrels(sample: Sample) -> bool:
    """Four columns, of which the second is an iteration and the last a relevance."""
    has_iteration = is_number_at(sample, 1) or sample.fields[1:2] == ("Q0",)
    return sample.kind == "columns" and len(sample.fields) == 4 and has_iteration and is_number_at(sample, 3)


def _is_topics(sample: Sample) -> bool:
    return sample.kind == "sgml" or is_topics(sample)


TREC = Importer(
    name="trec",
    help="A TREC run and its relevance judgments.",
    options=(
        ImportOption("run", "The run: topic, Q0, docno, rank, score, tag.", is_run),
        ImportOption("qrels", "The judgments: topic, 0, docno, relevance.", _is_qrels),
        optional("topics", "The topics' texts: <top> <num> … <title> …, or id, tab, text.", _is_topics),
    ),
    read=partial(import_rankings, read_run=TREC_RUN.read, read_qrels=_QRELS.read),
)
