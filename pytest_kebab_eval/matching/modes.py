"""Whether hits are told right from wrong by their chunk ids, or by where they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.matching.locations import StoredRun
from pytest_kebab_eval.model import MatchMode, QueryResult, gains_of
from pytest_kebab_eval.store import Database


def match_mode(runs: Sequence[StoredRun], golden: GoldenSet) -> MatchMode:
    """Exact where the runs are of one chunker, unless the golden file's ids are plainly of another.

    One run alone must be of the golden set's version. Two runs of one version are matched exactly, unless the
    golden set is of another version and neither run returned any of its ids. One that was re-anchored in part
    has ids of two chunkers, which may be alike; only where the chunks are tells them apart.
    """
    versions = {run.chunker_version for _, run in runs}
    if len(versions) > 1 or _left_ids(golden):
        return MatchMode.FALLBACK
    of_golden = golden_versions(golden, [database for database, _ in runs])
    if not of_golden or versions <= of_golden:
        return MatchMode.EXACT
    if len(runs) > 1 and (versions == {None} or _returned_any(_expected_ids(golden), runs)):
        return MatchMode.EXACT
    return MatchMode.FALLBACK


def golden_versions(golden: GoldenSet, databases: Iterable[Database]) -> set[str | None]:
    """The chunkers of the expected ids, as the lock file says, else as the index does, if it has any."""
    if golden.lock is not None and golden.lock.chunker_version is not None:
        lock = golden.lock
        return {lock.chunker_version, *map(lock.version_of, _left_ids(golden))}
    corpora = [database.corpus for database in dict.fromkeys(databases) if database.corpus.has_chunks]
    expected = _expected_ids(golden) if corpora else ()
    found = (corpus.chunk(chunk_id) for corpus in corpora for chunk_id in expected)
    return {chunk.chunker_version for chunk in found if chunk is not None}


def _left_ids(golden: GoldenSet) -> set[str]:
    """The expected ids that a re-anchoring left, of the chunker before."""
    left = golden.lock.left() if golden.lock else set()
    return left & _expected_ids(golden) if left else left


def _expected_ids(golden: GoldenSet) -> set[str]:
    return {chunk_id for query in golden.queries for chunk_id in gains_of(query)}


def _returned_any(ids: set[str], runs: Sequence[StoredRun]) -> bool:
    return any(
        hit.chunk_id in ids
        for database, run in runs
        for result in database.results(run.run_id)
        if isinstance(result, QueryResult)
        for hit in result.hits
    )
