"""What a person decided on unlabelled hits -> the golden file with these labels, and its lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden import GoldenSet, Lock
from pytest_kebab_eval.golden.edit import Refused, edit_entries
from pytest_kebab_eval.golden.queries import check_entries
from pytest_kebab_eval.golden.values import Problem, entries_of
from pytest_kebab_eval.text import shown_path
from pytest_kebab_eval.upkeep.locking import FoundChunk, with_text
from pytest_kebab_eval.upkeep.reanchoring import Undecided
from pytest_kebab_eval.upkeep.unlabelled import ExpectedPassage, QueryToReview, UnlabelledHit

_Fields = dict[str, Any]  # an entry of the golden file, as it is written


class Label(NamedTuple):
    """What a person said of a hit."""

    reviewed: QueryToReview
    hit: UnlabelledHit
    verdict: str  # right | same | wrong, as in a sheet
    same_as: str | None = None  # the target that it is the same as; None: the nearest


class Review(NamedTuple):
    """The golden file with labels, what was labelled, and what could not be."""

    text: str
    labelled: tuple[Label, ...]
    left: tuple[Undecided, ...]  # queries whose labels could not be written
    lock: Lock | None  # None: there is none, or it stays as it is


def apply_decisions(golden: GoldenSet, text: str, decisions: Sequence[Label], require: str = "any") -> Review:
    """The labels of all decisions, written into the text of the golden file.

    `require` holds for queries that do not say whether any of their targets is enough, or all must be found.
    """
    suffix = golden.path.suffix.lower()
    entries = {entry.value["id"]: entry.value for entry in entries_of(text, suffix, [])}
    labels = _Labels(golden, entries, require)
    done, left = [], []
    for decision in decisions:
        try:
            labels.add(decision)
            done.append(decision)
        except Refused as error:
            left.append(_not_labelled(decision, str(error)))
    numbers = {query_id: number for number, query_id in enumerate(entries)}
    try:
        edited = edit_entries(text, suffix, {numbers[name]: entry for name, entry in labels.changed.items()})
    except Refused as error:
        raise GoldenError(f"{shown_path(golden.path)} {error}") from None
    refused = {name: edited.refused[at] for name, at in numbers.items() if at in edited.refused}
    left += [_not_labelled(made, refused[made.reviewed.query.id]) for made in done if _is_of(made, refused)]
    done = [made for made in done if not _is_of(made, refused)]
    _check(golden, edited.text, suffix)
    return Review(edited.text, tuple(done), tuple(left), _lock_with(golden.lock, done))


def _not_labelled(decision: Label, reason: str) -> Undecided:
    query = decision.reviewed.query
    return Undecided(query.id, query.line, reason)


def _is_of(decision: Label, query_ids: Iterable[str]) -> bool:
    return decision.reviewed.query.id in query_ids


def _check(golden: GoldenSet, text: str, suffix: str) -> None:
    """Refuse to write a golden file that would not be read again."""
    problems: list[Problem] = []
    for _ in check_entries(entries_of(text, suffix, problems), problems):
        pass
    if problems:
        found = "; ".join(f"line {problem.line}: {problem.text}" for problem in problems[:3])
        raise GoldenError(f"{shown_path(golden.path)} is left as it is: with these labels, {found}")


# -- the labels of an entry --------------------------------------------------------------------------


class _Labels:
    """Entries of a golden file that get labels; they are plain values here."""

    def __init__(self, golden: GoldenSet, entries: Mapping[str, Mapping[str, Any]], require: str) -> None:
        self._entries = entries
        self._require = require
        self._groups: dict[str, list[str]] = {}
        for query in golden.unusual():
            if query.group is not None:
                self._groups.setdefault(query.group, []).append(query.id)
        self.changed: dict[str, _Fields] = {}

    def add(self, decision: Label) -> None:
        """Write what was decided; `Refused` if there is no way to."""
        reviewed, hit = decision.reviewed, decision.hit
        entry = self._entry(reviewed.query.id)
        if decision.verdict == "wrong":
            if not hit.hit.chunk_id:
                raise Refused("has a wrong hit without a chunk id, by which alone it can be labelled")
            if not reviewed.has_own_ids:
                raise Refused("has a wrong hit of another chunker, whose ids are those of other chunks here")
            entry["relevance"] = {**(entry.get("relevance") or {}), hit.hit.chunk_id: 0}
        elif reviewed.found_by == "document":
            self._add_document(decision, self._like(decision))
        elif reviewed.found_by == "anchor":
            _add_support(entry, decision, self._like(decision))
        else:
            like = self._like(decision)
            _add_chunk(entry, hit.id, like.id if like else None)
            if entry.get("gold_supports") and hit.support and not entry.get("required_support_groups"):
                entry["gold_supports"] = [*entry["gold_supports"], hit.support]
            if entry.get("expected_doc_ids") and hit.hit.doc_id:
                self._add_document(decision, like)

    def _entry(self, query_id: str) -> _Fields:
        """An entry to be changed; of its values, none is changed but by another in its place."""
        return self.changed.setdefault(query_id, dict(self._entries[query_id]))

    def _like(self, decision: Label) -> ExpectedPassage | None:
        """The target that a hit is an alternative of; None if it is a target of its own."""
        reviewed, hit = decision.reviewed, decision.hit
        gains = self._entry(reviewed.query.id).get("relevance") or {}
        known = {passage.id: passage for passage in reviewed.expected if gains.get(passage.id) != 0}
        if decision.verdict == "same":
            named = decision.same_as or hit.nearest
            if named and named not in known:
                raise Refused(f"has a hit that is the same as '{named}', which is wrong")
            likely = [decision.same_as, hit.nearest, *reviewed.lost, *known]
        elif (reviewed.query.require or self._require) == "all":
            likely = []
        else:
            likely = [hit.nearest if hit.nearest in reviewed.lost else None, *reviewed.lost]
        return next((known[name] for name in likely if name in known), None)

    def _add_document(self, decision: Label, like: ExpectedPassage | None) -> None:
        """Have the document expected, too, by all queries of a group, which share their documents."""
        query, doc_id = decision.reviewed.query, decision.hit.hit.doc_id or ""
        for query_id in self._groups.get(query.group, []) if query.group else [query.id]:
            entry = self._entry(query_id)
            known = entry.get("expected_doc_ids") or []
            of = (like.doc_id or like.id) if like else None
            entry["expected_doc_ids"] = with_alternative(known, of, doc_id)


def _add_chunk(entry: _Fields, chunk_id: str, like: str | None) -> None:
    known, gains = entry.get("expected_chunk_ids") or [], entry.get("relevance") or {}
    if like in gains and like not in _flat(known):
        entry["relevance"] = {**gains, chunk_id: gains[like]}
    else:
        entry["expected_chunk_ids"] = with_alternative(known, like, chunk_id)


def _add_support(entry: _Fields, decision: Label, like: ExpectedPassage | None) -> None:
    """A snippet of the hit: ids are of one chunker, and the runs or the golden file may be of another."""
    expected, support = decision.reviewed.expected, decision.hit.support
    if support is None:
        raise Refused("has a right hit whose path or text is not known, and ids are those of another chunker")
    supports = entry.get("gold_supports") or [passage.support for passage in expected]
    if not all(supports):
        unknown = next(passage.id for passage in expected if not passage.support)
        raise Refused(f"expects '{unknown}', whose path or text is not known; see kebab-eval reanchor")
    old = next((at for at, passage in enumerate(expected) if passage == like), None)
    if old is not None and _can_share(supports[old], support):
        shared = {**supports[old], "snippets": [*supports[old]["snippets"], *support["snippets"]]}
        entry["gold_supports"] = [*supports[:old], shared, *supports[old + 1 :]]
        return
    number = len(supports)
    entry["gold_supports"] = [*supports, support]
    groups = entry.get("required_support_groups")
    if groups and old is not None:
        others = [[number if at == old else at for at in group] for group in groups if old in group]
        entry["required_support_groups"] = [*groups, *others]


def _can_share(support: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the snippets of two can be those of one, of which any is enough."""
    return support["path"] == other["path"] and bool(support.get("snippets")) and not support.get("heading")


def with_alternative(known: Sequence[Any], of: str | None, new: str) -> list[Any]:
    """Expected ids with one more: an alternative of another, or, if that is not among them, on its own."""
    if new in _flat(known):
        return [*known]
    if of is None or of not in _flat(known):
        return [*known, new]
    return [
        [*item, new] if isinstance(item, list) and of in item else [of, new] if item == of else item
        for item in known
    ]


def _flat(known: Sequence[Any]) -> list[str]:
    return [name for item in known for name in (item if isinstance(item, list) else [item])]


# -- the lock ----------------------------------------------------------------------------------------


def _lock_with(lock: Lock | None, decisions: Iterable[Label]) -> Lock | None:
    """The lock file with the chunks that are expected now; None if that changes nothing."""
    if lock is None:
        return None
    chunks = dict(lock.chunks)
    for reviewed, hit, verdict, _ in decisions:
        name = hit.hit.chunk_id
        if verdict != "wrong" and reviewed.found_by == "chunk" and name and hit.locked:
            chunks[name] = with_text([FoundChunk(hit.locked, lock.chunker_version, "")]).chunk
    return msgspec.structs.replace(lock, chunks=chunks) if chunks != lock.chunks else None
