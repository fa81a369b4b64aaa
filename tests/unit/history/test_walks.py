"""What `blame` says of a history is what a walk says that decodes and scores every result by itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.history.blame import Blame, Walk, walk_suite, watched_queries
from pytest_kebab_eval.history.sightings import Sighting, State, Trace
from pytest_kebab_eval.matching.locations import OpenRun, Passages
from pytest_kebab_eval.model import GoldenQuery, QueryResult, Unreadable
from pytest_kebab_eval.open_runs import find_matcher
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import Address
from tests.builders import hit, line, make_database, result, write_golden
from tests.stores import SqliteStore, Store
from tests.unit.conftest import ENTRIES, History

# -- the walk that takes its time ----------------------------------------------------------------


def sighting_of(walk: Walk, stored: OpenRun, query: GoldenQuery, position: int) -> Sighting:
    database, run = stored
    found = database.result(run.run_id, query.id)
    if found is None:
        return Sighting(position, State.ABSENT)
    if isinstance(found, Unreadable):
        return Sighting(position, State.UNREADABLE, reason=found.reason)
    if found.error is not None:
        return Sighting(position, State.ERROR, reason=found.error)
    rank = rank_of(walk, stored, query, found)
    is_found = rank is not None and rank <= walk.yardstick.settings.compare_k
    return Sighting(position, State.FOUND if is_found else State.LOST, rank)


def rank_of(walk: Walk, stored: OpenRun, query: GoldenQuery, found: QueryResult) -> int | None:
    """The first correct rank, by the ranking that metrics are computed from."""
    database, run = stored
    yardstick = walk.yardstick
    matcher = find_matcher(
        yardstick.golden, yardstick.mode_of(run), yardstick.base, yardstick.settings.span_overlap
    )
    ranking = matcher.targets(query).judge(found.hits, Passages(database.corpus, run.chunker_version))
    return ranking.first


def naive(walk: Walk, golden: GoldenSet) -> dict[str, Trace]:
    traces = {query.id: Trace() for query in golden.queries}
    for position, stored in enumerate(walk.runs):
        for query in golden.queries:
            traces[query.id].add(sighting_of(walk, stored, query, position))
    runs = enumerate(walk.runs)
    empty = {position for position, (database, run) in runs if not database.result_count(run.run_id)}
    for trace in traces.values():
        trace.lose_absent(empty)
    return traces


# -- what is compared ----------------------------------------------------------------------------


def told(walk: Walk, trace: Trace) -> tuple[object, ...]:
    def seen(sighting: Sighting | None) -> object:
        if sighting is None:
            return None
        run = walk.runs[sighting.run][1]
        return run.run_id, sighting.state, sighting.rank, sighting.reason

    unknown = [*map(seen, trace.unknown)]
    return seen(trace.last_good), seen(trace.first_bad), unknown, trace.before, trace.since


def said(blame: Blame) -> tuple[object, ...]:
    good, bad, *unknown = [
        seen and (seen.run_id, seen.state, seen.rank, seen.reason)
        for seen in (blame.last_good, blame.first_bad, *blame.unknown)
    ]
    return good, bad, unknown, blame.before, blame.since


def check_history(address: Address, golden_file: Path, *, few: bool) -> None:
    golden = load_golden_set(golden_file)
    given = Settings(run_a=None, run_b="latest", db_a=address, db_b=address, golden=golden_file)
    asked = [query.id for query in golden.queries][: 2 if few else None]
    with walk_suite(given, golden) as walk:
        blames = walk.blame(watched_queries(golden, asked))
        expected = naive(walk, golden)
        assert {blame.query_id: said(blame) for blame in blames} == {
            query_id: told(walk, expected[query_id]) for query_id in asked
        }


@examples(max_examples=examples().max_examples // 2)  # each takes as long as ten of other tests
@given(st.integers(0, 10**6), st.integers(1, 8))
def test_a_walk_says_what_one_says_that_scores_every_result(seed: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        history = History(seed)
        path = Path(directory) / "kebab.sqlite"
        SqliteStore(path).make(configs=history.configs(count), **history.runs(count))
        golden_file = write_golden(Path(directory) / "golden.yaml", ENTRIES)
        check_history(path, golden_file, few=False)
        check_history(path, golden_file, few=True)


def test_in_postgresql_too(postgres: Store, tmp_path: Path) -> None:
    history = History(0)
    address = postgres.make(configs=history.configs(6), **history.runs(6))
    golden_file = write_golden(tmp_path / "golden.yaml", ENTRIES)
    check_history(address, golden_file, few=False)
    check_history(address, golden_file, few=True)


def test_hits_that_repeat_in_a_run_of_another_chunker_are_judged_anew(tmp_path: Path) -> None:
    """The index, of v1, has chunk y at lines 1 to 9; in a run of v2, its citation says where it is."""
    same = {"q": result(hit("y", doc_id="d1", citation=line("d1.md", 40, 50)))}
    db = make_database(
        tmp_path / "kebab.sqlite",
        corpus={"y": ("d1", [{"kind": "line", "start": 1, "end": 9}])},
        configs={
            name: {"chunker_version": version} for name, version in (("A", "v1"), ("B", "v2"), ("C", "v1"))
        },
        A=same,
        B=same,
        C=same,
    )
    span = {"doc_id": "d1", "chunk_id": "c", "kind": "line", "start": 1, "end": 9}
    entries = [{"id": "q", "query": "?", "expected_chunk_ids": ["c"], "expected_spans": [span]}]
    golden_file = write_golden(tmp_path / "golden.yaml", entries)
    golden = load_golden_set(golden_file)
    given = Settings(run_a=None, run_b="latest", db_a=db, db_b=db, golden=golden_file)
    with walk_suite(given, golden) as walk:
        (blame,) = walk.blame(watched_queries(golden, ["q"]))
    assert (blame.passed, blame.status) == (2, "found")
    check_history(db, golden_file, few=False)
