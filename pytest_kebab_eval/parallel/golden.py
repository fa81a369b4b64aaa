"""A large golden file, read by several processes: its parts, and the golden set joined from them.

Only a file without a mistake is read in this way: what its errors say is found by reading it as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden import (
    Fingerprint,
    GoldenSet,
    canonical,
    is_unusual,
    load_golden_set,
    lock_path,
    read_lock,
)
from pytest_kebab_eval.golden.entries import Documents, check_entries, documents_of
from pytest_kebab_eval.golden.packing import PackedQueries, pack
from pytest_kebab_eval.golden.reading import BYTE_ORDER_MARK, ParseError, Problem, entries_of, read_file
from pytest_kebab_eval.metrics import all_metrics
from pytest_kebab_eval.parallel.workers import Workers
from pytest_kebab_eval.scoring.scorecard import needs_met, slices_by_query

PART_BYTES = 1_000_000  # of a golden file; a smaller one is read here
_STARTS = {".jsonl": b"\n", ".yaml": b"\n- ", ".yml": b"\n- "}  # what an entry begins with, and a line break


class FilePart(NamedTuple):
    """Some whole entries of a golden file, as they are written."""

    data: bytes
    suffix: str
    lines_before: int


class QueriesPart(NamedTuple):
    """The queries of a part of a file, packed, and what a survey of the golden set is joined from."""

    ids: list[str]
    fields: list[bytes]
    content: bytes | None  # as `canonical` has it, joined by commas; None if the ids are not in order
    unusual: list[str]  # the ids of those in a group or with an xfail
    groups: Mapping[str, Documents | None]  # the expected documents of each group
    slices: list[tuple[str, ...]]  # the distinct ones
    which: list[int]  # for each query, the place of its slices
    needs_met: frozenset[str]


class LoadedGolden(NamedTuple):
    """A golden set; and, if it was read in parts, its slices and the metrics whose needs are met."""

    golden: GoldenSet
    slices: dict[str, tuple[str, ...]] | None = None
    needs_met: frozenset[str] = frozenset()


def load_golden(path: Path, workers: Workers, part_bytes: int = PART_BYTES) -> LoadedGolden:
    """Read and check a golden file; one that is small, or wrong, is read here, as ever."""
    parts = split_file(path, part_bytes)
    joined = join_parts(path, workers.map(read_part, parts)) if parts else None
    return joined or LoadedGolden(load_golden_set(path))


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
    return 0 if data[:5].lstrip(BYTE_ORDER_MARK).startswith(start[1:]) else data.find(start) + 1


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


def read_part(part: FilePart) -> QueriesPart | None:
    """In a worker: the queries of a part; None if anything is wrong, or leads out of the part."""
    if part.lines_before and part.data.startswith(BYTE_ORDER_MARK):
        return None  # a mark that is allowed only where the file begins
    problems: list[Problem] = []
    try:
        entries = entries_of(part.data, part.suffix, problems)
        moved = (entry._replace(line=entry.line + part.lines_before) for entry in entries)
        queries = list(check_entries(moved, problems))
    except (ParseError, GoldenError):
        return None
    if problems:
        return None
    ids, slices = [query.id for query in queries], slices_by_query(queries)
    places: dict[tuple[str, ...], int] = {}
    which = [places.setdefault(slices[query_id], len(places)) for query_id in ids]
    return QueriesPart(
        ids,
        [pack(query) for query in queries],
        b",".join(map(canonical, queries)) if ids == sorted(ids) else None,
        [query.id for query in queries if is_unusual(query)],
        {query.group: documents_of(query) for query in queries if query.group is not None},
        [*places],
        which,
        needs_met(queries, all_metrics()),
    )


def join_parts(path: Path, parts: Iterable[QueriesPart | None]) -> LoadedGolden | None:
    """The golden set of all parts; None if anything is wrong with one, or with all of them together."""
    queries, fingerprint, count, last = PackedQueries(), Fingerprint(), 0, ""
    is_in_order = True
    groups: dict[str, Documents | None] = {}
    slices: dict[str, tuple[str, ...]] = {}
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    met: frozenset[str] = frozenset()
    for part in parts:
        if part is None or any(groups.setdefault(name, docs) != docs for name, docs in part.groups.items()):
            return None
        if not part.ids:
            continue
        is_in_order = is_in_order and last < part.ids[0] and part.content is not None
        fingerprint.add(part.content or b"")
        queries.add_packed(part.ids, part.fields, part.unusual)
        distinct = [shared.setdefault(some, some) for some in part.slices]
        slices.update(zip(part.ids, map(distinct.__getitem__, part.which), strict=True))
        met |= part.needs_met
        count, last = count + len(part.ids), part.ids[-1]
    if not count or len(queries) < count:  # an id is there twice
        return None
    golden = GoldenSet(path=path, queries=queries, lock=read_lock(lock_path(path)))
    if is_in_order:
        vars(golden)["fingerprint"] = fingerprint.hexdigest()  # which need not be computed again
    return LoadedGolden(golden, slices, met)
