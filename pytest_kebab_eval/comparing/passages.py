"""What is known of a query's targets and hits: from golden and lock file, stores and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from pytest_kebab_eval.comparing.evidence import KnownPassage, passage_of
from pytest_kebab_eval.matching.locations import Locations, Passages
from pytest_kebab_eval.matching.strategies import Ranking
from pytest_kebab_eval.matching.targets import Targets
from pytest_kebab_eval.model import GoldenQuery, Hit, QueryResult, Value


class JudgedResult(Value, frozen=True):
    """A stored result of one side, and which of its hits are correct."""

    result: QueryResult | None
    ranking: Ranking
    passages: Passages

    def found(self, target: int) -> Hit | None:
        """The hit by which a target was found, with all that is known of it."""
        rank = self.ranking.found[target] if target < len(self.ranking.found) else None
        hits = self.result.hits if self.result else ()
        hit = next((hit for hit in hits if hit.rank == rank), None)
        return self.passages.with_all_known(hit) if hit else None

    def with_all_known(self, most: int) -> QueryResult | None:
        """The result, its first hits and the correct ones with the path, headings and text of the index."""
        if self.result is None:
            return None
        hits = tuple(
            self.passages.with_all_known(hit) if place < most or hit.rank in self.ranking.correct else hit
            for place, hit in enumerate(self.result.hits)
        )
        return msgspec.structs.replace(self.result, hits=hits)


class TargetPassages:
    """Finds what is known of the targets of queries."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def find(
        self, query: GoldenQuery, targets: Targets, sides: Sequence[JudgedResult]
    ) -> Iterator[KnownPassage]:
        """The targets in their order, then the alternatives of each."""
        for number, name in enumerate(targets.ids):
            hits = (side.found(number) for side in sides)
            hit = next((hit for hit in hits if hit), None)
            if targets.matched_by == "anchor":
                support = query.gold_supports[number]
                yield KnownPassage(name, support.path, support.heading, " … ".join(support.snippets))
            elif targets.has_chunk_targets:
                yield self.chunk(query, name, hit)
            else:
                yield KnownPassage(name, self._path(name) or (hit and hit.doc_path) or name)
        for group in query.alternatives if targets.matched_by != "anchor" else ():
            yield from (self.chunk(query, name) for name in group if name not in targets.ids)

    def chunk(self, query: GoldenQuery, name: str, hit: Hit | None = None) -> KnownPassage:
        """A chunk that a query expects; the hit that found it is asked for what nothing else knows."""
        locations = self._locations
        text, doc_id = locations.text_of(query, name), locations.locate(query, name).doc_id
        headings = () if locations.is_left(name) else self._headings(name)
        own = KnownPassage() if hit is None else passage_of(hit)
        return KnownPassage(
            name,
            (self._path(doc_id) if doc_id else None) or own.document or doc_id or "",
            " > ".join(headings) or own.heading,
            text if isinstance(text, str) else own.text,
        )

    def _headings(self, name: str) -> Sequence[str]:
        found = (corpus.heading_path(name, self._locations.version) for corpus in self._locations.corpora)
        return next(filter(None, found), ())

    def _path(self, doc_id: str) -> str | None:
        return next(
            filter(None, (corpus.documents.path_of(doc_id) for corpus in self._locations.corpora)), None
        )
