"""A large golden file, read by several processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.golden.parts import FilePart, QueriesPart, join_parts, read_part, split_file
from pytest_kebab_eval.metrics import all_metrics
from pytest_kebab_eval.parallel.workers import Workers
from pytest_kebab_eval.scoring.slices import slices_by_query
from pytest_kebab_eval.scoring.survey import needs_met

PART_BYTES = 1_000_000  # of a golden file; a smaller one is read here


class Surveyed(NamedTuple):
    """The queries of a part, and what a survey of the golden set is joined from."""

    queries: QueriesPart
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
    joiner = _Joiner()
    golden = join_parts(path, joiner.queries(workers.map(survey_part, parts))) if parts else None
    if golden is None:
        return LoadedGolden(load_golden_set(path))
    return LoadedGolden(golden, joiner.slices, joiner.needs_met)


def survey_part(part: FilePart) -> Surveyed | None:
    """In a worker: read a part of the file; None if anything is wrong with it."""
    found = read_part(part)
    if found is None:
        return None
    packed, queries = found
    slices = slices_by_query(queries)
    places: dict[tuple[str, ...], int] = {}
    which = [places.setdefault(slices[query.id], len(places)) for query in queries]
    return Surveyed(packed, [*places], which, needs_met(queries, all_metrics()))


class _Joiner:
    def __init__(self) -> None:
        self.slices: dict[str, tuple[str, ...]] = {}
        self.needs_met: frozenset[str] = frozenset()
        self._shared: dict[tuple[str, ...], tuple[str, ...]] = {}

    def queries(self, parts: Iterator[Surveyed | None]) -> Iterator[QueriesPart | None]:
        """The queries of each part; what else it says is kept."""
        for part in parts:
            if part is not None:
                distinct = [self._shared.setdefault(slices, slices) for slices in part.slices]
                ids = part.queries.ids
                self.slices.update(zip(ids, map(distinct.__getitem__, part.which), strict=True))
                self.needs_met |= part.needs_met
            yield part and part.queries
