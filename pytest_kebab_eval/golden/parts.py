"""A large golden file in parts, each of which another process can read, and the golden set joined from them.

Only a file without a mistake is read in this way: what its errors say is found by reading it as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden import GoldenSet, canonical, hash_of
from pytest_kebab_eval.golden.entries import as_set, check_entries
from pytest_kebab_eval.golden.lock import lock_path, read_lock
from pytest_kebab_eval.golden.packing import PackedQueries, is_unusual, pack
from pytest_kebab_eval.golden.parsing import ParseError, read_file
from pytest_kebab_eval.golden.reading import Entry, Problem, entries_of
from pytest_kebab_eval.model import GoldenQuery

_STARTS = {".jsonl": b"\n", ".yaml": b"\n- ", ".yml": b"\n- "}  # what an entry begins with, and a line break

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class FilePart(NamedTuple):
    """Some whole entries of a golden file, as they are written."""

    data: bytes
    suffix: str
    lines_before: int


class QueriesPart(NamedTuple):
    """The queries of a part of a file, packed."""

    ids: list[str]
    fields: list[bytes]
    content: bytes | None  # as `canonical` has it, joined by commas; None if the ids are not in order
    unusual: list[str]  # the ids of those in a group or with an xfail
    groups: Mapping[str, frozenset[str] | None]  # the expected documents of each group

    @property
    def packed(self) -> Iterator[tuple[str, bytes]]:
        """Each query's id, and its other fields."""
        return zip(self.ids, self.fields, strict=True)


def split_file(path: Path, part_bytes: int) -> list[FilePart]:
    """The parts of a file, each of about so many bytes; none if it cannot be split, or is too small."""
    suffix = path.suffix.lower()
    start = _STARTS.get(suffix)
    try:
        data = read_file(path) if start else b""
    except (OSError, ValueError):
        return []
    if start is None or len(data) <= part_bytes or (suffix != ".jsonl" and not _is_one_list(data)):
        return []
    return list(_cut(data, suffix, start, part_bytes))


def _first_entry(data: bytes, start: bytes) -> int:
    return 0 if data[:5].lstrip(_BYTE_ORDER_MARK).startswith(start[1:]) else data.find(start) + 1


def _is_one_list(data: bytes) -> bool:
    """Whether YAML has neither directives, which hold for all of it, nor a second document."""
    first = _first_entry(data, _STARTS[".yaml"])
    return not data.startswith(b"%") and not any(
        data.find(mark, begin) >= 0 for mark, begin in ((b"\n%", 0), (b"\n---", first), (b"\n...", first))
    )


def _cut(data: bytes, suffix: str, start: bytes, part_bytes: int) -> Iterator[FilePart]:
    begin, lines = 0, 0
    least = _first_entry(data, start) + part_bytes  # what comes before the first entry is no part of its own
    while begin < len(data):
        found = data.find(start, max(begin + part_bytes, least))
        end = len(data) if found < 0 else found + 1
        yield FilePart(data[begin:end], suffix, lines)
        lines += data.count(b"\n", begin, end)
        begin = end


def read_part(part: FilePart) -> tuple[QueriesPart, list[GoldenQuery]] | None:
    """The queries of a part, packed and as they are; None if anything is wrong, or leads out of the part."""
    if part.lines_before and part.data.startswith(_BYTE_ORDER_MARK):
        return None  # a mark that is allowed only where the file begins
    problems: list[Problem] = []
    try:
        entries = entries_of(part.data, part.suffix, problems)
        queries = list(check_entries(_moved(entries, part.lines_before), problems))
    except (ParseError, GoldenError):
        return None
    if problems:
        return None
    ids = [query.id for query in queries]
    packed = QueriesPart(
        ids,
        [pack(query) for query in queries],
        b",".join(map(canonical, queries)) if ids == sorted(ids) else None,
        [query.id for query in queries if is_unusual(query)],
        {query.group: as_set(query.expected_doc_ids) for query in queries if query.group is not None},
    )
    return packed, queries


def _moved(entries: Iterable[Entry], lines: int) -> Iterator[Entry]:
    """The entries with their lines in the whole file."""
    return (entry._replace(line=entry.line + lines) for entry in entries)


def join_parts(path: Path, parts: Iterable[QueriesPart | None]) -> GoldenSet | None:
    """The golden set of all parts; None if anything is wrong with one, or with all of them together."""
    joiner = _Joiner()
    fingerprint = hash_of(joiner.contents(parts))
    queries = PackedQueries.of(joiner.packed, joiner.unusual)
    if joiner.is_wrong or not joiner.packed or len(queries) < len(joiner.packed):  # an id is there twice
        return None
    golden = GoldenSet(path=path, queries=queries, lock=read_lock(lock_path(path)))
    if joiner.is_in_order:
        vars(golden)["fingerprint"] = fingerprint  # which need not be computed again
    return golden


class _Joiner:
    """Joins parts as they come in."""

    def __init__(self) -> None:
        self.packed: list[tuple[str, bytes]] = []
        self.unusual: list[str] = []
        self.is_wrong = False
        self.is_in_order = True
        self._groups: dict[str, frozenset[str] | None] = {}

    def contents(self, parts: Iterable[QueriesPart | None]) -> Iterator[bytes]:
        """The content of each part that has queries, as long as nothing is wrong."""
        for part in parts:
            if part is None or self._breaks_group(part):
                self.is_wrong = True
                return
            if part.ids:
                follows = not self.packed or self.packed[-1][0] < part.ids[0]
                self.is_in_order = self.is_in_order and follows and part.content is not None
                yield part.content or b""
            self.packed += part.packed
            self.unusual += part.unusual

    def _breaks_group(self, part: QueriesPart) -> bool:
        return any(self._groups.setdefault(name, docs) != docs for name, docs in part.groups.items())
