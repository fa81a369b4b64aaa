"""Which hits are correct (sections 3.1 and 3.7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .case import Case, Chunk, Entry, Run
from .passages import FAIR_PART, is_passage, is_short, is_whole_part, letters_of, words_of
from .results import Result, result_of, results_of

Units = frozenset[tuple[str, int]]

EXACT, FALLBACK = "exact", "fallback_doc_span"
DEFAULT_OVERLAP = 0.5


@dataclass(frozen=True)
class Target:
    """One thing that a query looks for; `units` are the lines or bytes of its span, if they are known.

    Where they are not, its `text` decides, and where that is not known either, its documents.
    """

    name: str
    chunk_id: str | None = None
    docs: frozenset[str] = frozenset()
    units: Units | None = None
    text: str | None = None
    support: Entry | None = None
    gain: float = 1.0


def units_of(spans: list[Entry]) -> Units:
    """The lines, bytes, pages or milliseconds of some spans; 'lines are inclusive'."""
    return frozenset(unit for span in spans for unit in span_units(span))


def span_units(span: Entry) -> Iterator[tuple[str, int]]:
    """'`line` and `code` compare', so both are counted in lines."""
    if span["kind"] == "line":
        first, end = span["start"], span["end"] + 1
    elif span["kind"] == "code":
        first, end = span["line_start"], span["line_end"] + 1
    elif span["kind"] == "page":
        first, end = span["page"], span["page"] + 1
    elif span["kind"] == "time":
        first, end = span["start_ms"], span["end_ms"]
    else:
        first, end = span["start"], span["end"]
    family = "line" if span["kind"] == "code" else span["kind"]
    return ((family, number) for number in range(first, end))


def comparable(one: Units, other: Units) -> bool:
    """Whether two spans are of kinds that compare."""
    return bool({family for family, _ in one} & {family for family, _ in other})


def normalised(heading: str) -> str:
    """'after normalising `#` marks, spaces and the ` > ` delimiter'."""
    parts = [" ".join(part.split()).lstrip("#").strip() for part in heading.split(">")]
    return " > ".join(parts)


class Matching:
    """How the hits of one comparison, or of one run alone, are matched."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.overlap = DEFAULT_OVERLAP if case.options.span_overlap is None else case.options.span_overlap
        self.rows = {(chunk.chunk_id, chunk.version): chunk for chunk in case.chunks or ()}
        self.paths = {chunk.doc_id: chunk.path for chunk in case.chunks or ()}
        self.locked: dict[str, Chunk] = {chunk.chunk_id: chunk for chunk in case.locked}
        self.runs = case.runs if case.is_comparison else case.side_b
        self.hits = stored_hits(self.runs)
        self.mode = self._mode()

    def _mode(self) -> str:
        versions = {run.chunker_version for run in self.runs}
        if len(versions) > 1:
            return FALLBACK
        golden = self._golden_versions()
        if not golden or golden & versions:
            return EXACT
        if not self.case.is_comparison:
            return FALLBACK
        expected = {chunk_id for entry in self.case.golden for chunk_id in expected_chunks(entry)}
        return EXACT if not self.locked and expected & set(self.hits) else FALLBACK

    def _golden_versions(self) -> set[str]:
        """'the lock file's, else that of the expected ids in `chunks`, else assumed'."""
        ids = [chunk_id for entry in self.case.golden for chunk_id in expected_chunks(entry)]
        locked = {self.locked[chunk_id].version for chunk_id in ids if chunk_id in self.locked}
        return locked or {version for chunk_id, version in self.rows if chunk_id in ids}

    @property
    def is_fallback(self) -> bool:
        """Whether spans decide, since the chunkers differ."""
        return self.mode == FALLBACK

    def targets(self, entry: Entry) -> list[Target]:
        """What the query looks for, but for documents."""
        anchors = [
            Target(f"anchor {number}", support=support)
            for number, support in enumerate(entry.get("gold_supports", []))
        ]
        if self.mode == FALLBACK and anchors:
            return anchors
        chunks = [self._chunk_target(entry, chunk_id) for chunk_id in expected_chunks(entry)]
        located = chunks + span_targets(entry)
        if self.mode == FALLBACK:
            located = [self._for_both_runs(entry, target) for target in located]
        return located or anchors

    def _for_both_runs(self, entry: Entry, target: Target) -> Target:
        """'for both runs alike': where a hit of its document lacks what is compared, it goes unasked."""
        results = [result_of(run, entry["id"]) for run in self.runs]
        found = [hit for result in results if result and not result.errored for hit in result.hits]
        hits = [hit for hit in found if not target.docs or hit["doc_id"] in target.docs]
        units = [self.units(hit) for hit in hits]
        is_other_kind = any(one and target.units and not comparable(one, target.units) for one in units)
        if is_other_kind or not all(units):
            target = replace(target, units=None)
        if is_other_kind or any(self.text_of(hit) is None for hit in hits):
            target = replace(target, text=None)
        return target

    def _chunk_target(self, entry: Entry, chunk_id: str) -> Target:
        gain = entry.get("relevance", {}).get(chunk_id, 1.0)
        name = target_names(entry, "expected_chunk_ids").get(chunk_id, chunk_id)
        if self.mode == EXACT:
            return Target(name, chunk_id, gain=gain)
        docs, units = self._place(entry, chunk_id)
        docs = docs or frozenset(target_names(entry, "expected_doc_ids"))
        return Target(name, chunk_id, docs, units, self._expected_text(entry, chunk_id), gain=gain)

    def _expected_text(self, entry: Entry, chunk_id: str) -> str | None:
        """'the text is known (`expected_texts`, lock file, `chunks`, a stored hit)'."""
        texts = [entry.get("expected_texts", {}).get(chunk_id)]
        texts += [self.locked[chunk_id].text] if chunk_id in self.locked else []
        texts += [
            row.text for row in self.rows.values() if row.chunk_id == chunk_id and self._row_counts(row)
        ]
        texts += [hit.get("text") for hit in self.hits.get(chunk_id, [])]
        return next((text for text in texts if text), None)

    def _place(self, entry: Entry, chunk_id: str) -> tuple[frozenset[str], Units | None]:
        """The document and the span of an expected chunk, from the first that knows the span."""
        docs: frozenset[str] = frozenset()
        for doc_id, spans in self._places(entry, chunk_id):
            docs |= {doc_id}
            if spans:
                return frozenset({doc_id}), units_of(spans)
        return docs, None

    def _places(self, entry: Entry, chunk_id: str) -> Iterator[tuple[str, list[Entry]]]:
        for span in entry.get("expected_spans", []):
            if span.get("chunk_id") == chunk_id:
                yield span["doc_id"], [span]
        if chunk_id in self.locked:
            yield self.locked[chunk_id].doc_id, list(self.locked[chunk_id].spans)
        for row in self.rows.values():
            if row.chunk_id == chunk_id and self._row_counts(row):
                yield row.doc_id, list(row.spans)
        for hit in self.hits.get(chunk_id, []):
            yield hit["doc_id"], [hit["citation"]] if hit.get("citation") else []

    def _row_counts(self, row: Chunk) -> bool:
        """'a row of another known chunker version than run A's does not count: ids are reused'."""
        version = self.runs[0].chunker_version
        return not self.case.is_comparison or version is None or row.version == version

    def is_target(self, hit: Entry, target: Target) -> bool:
        """Whether a hit is that target."""
        if target.support is not None:
            return self.is_support(hit, target.support)
        if target.chunk_id is not None and self.mode == EXACT:
            return bool(hit["chunk_id"] == target.chunk_id)
        if target.units is None and target.text is not None:
            return self._has_text(hit, target, target.text)
        text = self.text_of(hit) if target.chunk_id is not None and target.units is None else None
        if text is not None and not letters_of(text):
            return False  # 'one without letters never matches', also where its document is all that is known
        return hit["doc_id"] in target.docs and self._overlaps(self.units(hit), target.units)

    def _has_text(self, hit: Entry, target: Target, text: str) -> bool:
        """By its text; short hits alone do not count if there are longer ones, or if they say little."""
        if not self._shares(hit, target, text):
            return False
        is_weak = is_short(self.text_of(hit) or "") and not is_short(text)
        longer = [other for other in hit["beside"] if not is_short(self.text_of(other) or "")]
        if not is_weak or any(self._shares(other, target, text) for other in longer):
            return True
        sharing = [other for other in hit["beside"] if self._shares(other, target, text)]
        letters = sum(len(letters_of(self.text_of(other) or "")) for other in sharing)
        return not longer and letters >= len(letters_of(text)) / 8

    def _shares(self, hit: Entry, target: Target, text: str) -> bool:
        if target.docs and hit["doc_id"] not in target.docs:
            return False
        return is_passage(text, self.text_of(hit) or "", self.overlap, alone=not target.docs)

    def text_of(self, hit: Entry) -> str | None:
        """The text of a hit is its own, or else that of its row."""
        row = self.row_of(hit)
        own: str | None = hit.get("text")
        return own if own is not None or row is None else row.text

    def _overlaps(self, one: Units | None, other: Units | None) -> bool:
        """Whether a hit and a target do: '≥ 0.5 × the shorter'; what does not compare goes by document."""
        if not one or not other or not comparable(one, other):
            return True
        is_fair = len(other) >= FAIR_PART * len(one)
        return is_fair and len(one & other) >= self.overlap * min(len(one), len(other))

    def units(self, hit: Entry) -> Units | None:
        """'A hit's span is that of its `chunks` row, else its citation's'."""
        row = self.row_of(hit)
        if row is not None and row.spans:
            return units_of(list(row.spans))
        return units_of([hit["citation"]]) if hit.get("citation") else None

    def row_of(self, hit: Entry) -> Chunk | None:
        """'A chunk is known by its id and chunker version together'; a hit's version is its run's."""
        if hit["chunker_version"] is not None:
            return self.rows.get((hit["chunk_id"], hit["chunker_version"]))
        return next((row for row in self.rows.values() if row.chunk_id == hit["chunk_id"]), None)

    def path_of(self, hit: Entry) -> str | None:
        """'path … of a hit come from the hit, else from `documents`'."""
        return hit.get("doc_path") or self.paths.get(hit["doc_id"])

    def is_support(self, hit: Entry, support: Entry, *, by_text: bool = True) -> bool:
        """'same path; the hit's heading path, joined, starts with this one', and a snippet in its text."""
        if self.path_of(hit) != support["path"]:
            return False
        row = self.row_of(hit)
        heading_path = hit.get("heading_path") or (row.heading if row else ())
        if not normalised(" > ".join(heading_path)).startswith(normalised(support.get("heading", ""))):
            return False
        text, snippets = self.text_of(hit), support.get("snippets", [])
        if not snippets or not text or not by_text:
            return True
        words = words_of(text)
        return any(
            snippet.lower() in text.lower() or is_whole_part(words_of(snippet), words) for snippet in snippets
        )

    def correct_ranks(self, entry: Entry, result: Result) -> dict[str, int]:
        """By target, the rank of its first hit; 'a query that errored counts as a miss'."""
        ranks: dict[str, int] = {}
        for hit in () if result.errored else result.hits:
            for target in self.compared_targets(entry):
                if self.is_target(hit, target):
                    ranks.setdefault(target.name, hit["rank"])
        return ranks

    def compared_targets(self, entry: Entry) -> list[Target]:
        """The targets, 'else, for the per-query comparison only, a hit in an expected document'."""
        documents = target_names(entry, "expected_doc_ids").items()
        return self.targets(entry) or [Target(name, docs=frozenset({doc_id})) for doc_id, name in documents]


def expected_chunks(entry: Entry) -> list[str]:
    """The expected chunks; 'a gain of 0 is not a target'."""
    graded = [chunk_id for chunk_id, gain in entry.get("relevance", {}).items() if gain > 0]
    return list(dict.fromkeys([*target_names(entry, "expected_chunk_ids"), *graded]))


def target_names(entry: Entry, field: str) -> dict[str, str]:
    """By id, the name of its target: of 'alternatives, any of which is that one target', the first."""
    targets = [one if isinstance(one, list) else [one] for one in entry.get(field, [])]
    return {name: target[0] for target in targets for name in target}


def span_targets(entry: Entry) -> list[Target]:
    """'one without a `chunk_id` is a target of its own'."""
    return [
        Target(f"span {number}", docs=frozenset({span["doc_id"]}), units=units_of([span]))
        for number, span in enumerate(entry.get("expected_spans", []))
        if "chunk_id" not in span
    ]


def stored_hits(runs: list[Run]) -> dict[str, list[Entry]]:
    """The hits of the runs by chunk, A's first."""
    hits: dict[str, list[Entry]] = {}
    for run in runs:
        for result in results_of(run):
            for hit in result.hits:
                hits.setdefault(hit["chunk_id"], []).append(hit)
    return hits
