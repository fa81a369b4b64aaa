"""A TREC run and its qrels; the rank column is ignored."""

from __future__ import annotations

from functools import partial

from pytest_kebab_eval.importers.importer import Importer, ImportOption, optional
from pytest_kebab_eval.importers.rankings import TREC_RUN, SpacedColumns, import_rankings

_QRELS = SpacedColumns(("topic", "0", "docno", "relevance"), docno=2, value=3)


TREC = Importer(
    name="trec",
    help="A TREC run and its relevance judgments.",
    options=(
        ImportOption("run", "The run: topic, Q0, docno, rank, score, tag."),
        ImportOption("qrels", "The judgments: topic, 0, docno, relevance."),
        optional("topics", "The topics' texts: <top> <num> … <title> …, or id, tab, text."),
    ),
    read=partial(import_rankings, read_run=TREC_RUN.read, read_qrels=_QRELS.read),
)
