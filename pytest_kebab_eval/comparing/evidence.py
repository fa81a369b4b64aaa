"""What is shown of a query's stored results, so that a verdict can be traced."""

from __future__ import annotations

import msgspec

from pytest_kebab_eval.model import Answer, GoldenQuery, QueryComparison, QueryResult, Value, gains_of

HITS_SHOWN = 5  # in a message
_LONGEST_SHOWN = 200  # characters of a hit's text


class QueryEvidence(Value, frozen=True):
    """A query's stored results in both runs, judged hit by hit and citation by citation."""

    a: QueryResult | None
    b: QueryResult | None
    correct_a: tuple[int, ...]
    correct_b: tuple[int, ...]
    expected: tuple[str, ...]
    readable_a: bool = True
    readable_b: bool = True
    cited_a: tuple[bool, ...] = ()  # for each citation of the answer, whether it resolves to a chunk
    cited_b: tuple[bool, ...] = ()

    def for_message(self, comparison: QueryComparison | None) -> QueryEvidence:
        """Only what the message of a failure shows: where all queries fail, thousands have to be kept."""
        a, b, rank_in_a = self.a, self.b, comparison.a_hit_rank if comparison else None
        if a is not None:
            a = msgspec.structs.replace(a, hits=(), answer=None)
        if b is not None:
            near = [
                msgspec.structs.replace(
                    hit, text=(hit.text or "")[:_LONGEST_SHOWN], citation=None, score=None, retrieval=None
                )
                for position, hit in enumerate(b.hits)
                if position < HITS_SHOWN or hit.rank == rank_in_a
            ]
            b = msgspec.structs.replace(b, hits=tuple(near), answer=_for_message(b.answer))
        return msgspec.structs.replace(self, a=a, b=b)


def _for_message(answer: Answer | None) -> Answer | None:
    """The answer without what may be any JSON: xdist's workers are sent what is left."""
    if answer is None:
        return None
    citations = tuple(msgspec.structs.replace(cited, marker=None) for cited in answer.citations)
    return msgspec.structs.replace(answer, citations=citations, refusal_reason=None)


def unread_evidence(query: GoldenQuery) -> QueryEvidence:
    """A query whose stored results can no longer be read."""
    expected = tuple(gains_of(query)) or query.expected_doc_ids or ()
    return QueryEvidence(None, None, (), (), expected, readable_a=False, readable_b=False)
