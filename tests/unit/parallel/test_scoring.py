"""Runs that are scored in parts: whatever the parts are, the outcome is that of one process."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from pytest_kebab_eval.errors import WorkerError
from pytest_kebab_eval.evaluate import Evaluation, evaluate, failure_evidence
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.parallel.golden import LoadedGolden, load_golden
from pytest_kebab_eval.parallel.scoring import PartScorer, score_part
from pytest_kebab_eval.settings import Settings
from tests.builders import answer, hit, make_database, render_report_json, result, write_golden
from tests.stores import SqliteStore, Store
from tests.unit.conftest import InlineWorkers

_spec = importlib.util.spec_from_file_location(
    "random_runs", Path(__file__).parents[3] / "benchmarks" / "random_runs.py"
)
assert _spec is not None
assert _spec.loader is not None
random_runs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(random_runs)

GATES = (*random_runs.GATES, "hit@7 >= 0.2", "overlap@4{difficulty=hard} >= 0.1", "regressions <= 3")


def outcome(evaluation: Evaluation) -> tuple[Any, ...]:
    """All that a user sees of an evaluation."""
    verdicts = [*evaluation.verdicts.items()]
    return render_report_json(evaluation.report), verdicts, evaluation.report.warnings


def in_one(given: Settings) -> Evaluation:
    return evaluate(given)


def in_parts(given: Settings, workers: int, part_queries: int = 50_000, part_bytes: int = 100) -> Evaluation:
    helpers = InlineWorkers(workers)
    loaded = load_golden(given.golden, helpers, part_bytes)
    inputs = find_inputs(given, golden=loaded.golden)
    score = PartScorer(helpers, given, loaded, part_queries).score

    def checked(*asked: Any) -> Any:
        scored = score(*asked)
        assert scored is not None, "the parts are not the whole"
        return scored

    return evaluate(given, inputs, score_parts=checked)


def settings_for(directory: Path, golden: str = "golden.json", **more: Any) -> Settings:
    database = directory / "kebab.sqlite"
    return Settings(
        **{
            "run_a": "a",
            "run_b": "b",
            "db_a": database,
            "db_b": database,
            "golden": directory / golden,
            **more,
        }
    )


def as_jsonl(golden: Path) -> str:
    """The same golden file with one entry a line."""
    entries = json.loads(golden.read_text("utf-8"))
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    golden.with_suffix(".jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return "golden.jsonl"


@examples(max_examples=examples().max_examples // 3)  # each takes as long as ten of other tests
@given(
    seed=st.integers(0, 100_000),
    workers=st.integers(1, 7),
    part_queries=st.sampled_from([1, 2, 3, 7, 10, 60]),
    part_bytes=st.sampled_from([1, 100, 1_000]),
    more=st.fixed_dictionaries(
        {},
        optional={
            "run_a": st.none(),
            "cutoffs": st.just((2, 12)),
            "k": st.sampled_from([1, 3, 20]),
            "compare_k": st.sampled_from([1, 4, 20]),
            "span_overlap": st.sampled_from([0.2, 1.0]),
            "fail_on": st.sampled_from([frozenset({"loss", "attribution"}), frozenset[str]()]),
        },
    ),
    gates=st.lists(st.sampled_from(GATES), unique=True, max_size=3),
)
def test_any_parts_of_any_runs_give_the_outcome_of_one_process(
    seed: int, workers: int, part_queries: int, part_bytes: int, more: dict[str, Any], gates: list[str]
) -> None:
    if "run_a" in more:
        gates = [gate for gate in gates if gate in {"hit@5 >= 0.5", "error_rate <= 10%", "hit@7 >= 0.2"}]
    with tempfile.TemporaryDirectory() as parent:
        directory = Path(parent, "data")
        random_runs.RandomRuns(seed).write(directory)
        golden = as_jsonl(directory / "golden.json")
        given = settings_for(directory, golden, gates=tuple(gates), **more)
        assert outcome(in_parts(given, workers, part_queries, part_bytes)) == outcome(in_one(given))


# -- what the random runs do not have ------------------------------------------------------------


def write_golden_jsonl(directory: Path, *entries: dict[str, Any]) -> None:
    lines = (json.dumps({"query": "?", **entry}) for entry in entries)
    (directory / "golden.jsonl").write_text("\n".join(lines), "utf-8")


def expecting(*query_ids: str) -> list[dict[str, Any]]:
    return [{"id": query_id, "expected_chunk_ids": [f"c-{query_id}"]} for query_id in query_ids]


ODD_IDS = ("Z", "a b", "é", "日本", "😀", "ｚ", "~", "q\u0000x", "'", "%")


def test_ids_are_cut_in_the_order_that_the_database_has(tmp_path: Path, store: Store) -> None:
    """PostgreSQL holds no text with a NUL, and otherwise sorts as its locale does."""
    names = [name for name in ODD_IDS if "\0" not in name or isinstance(store, SqliteStore)]
    stored = {query_id: result(f"c-{query_id}") for query_id in (*names, "unknown", "0")}
    address = store.make(a=stored, b=stored)
    write_golden_jsonl(tmp_path, *expecting(*names))
    given = settings_for(tmp_path, "golden.jsonl", db_a=address, db_b=address)
    found = in_parts(given, 1, part_queries=1)
    assert outcome(found) == outcome(in_one(given))
    assert found.report.not_in_golden == ("0", "unknown")


def test_two_databases_are_read_each_for_its_run(tmp_path: Path) -> None:
    make_database(tmp_path / "a.sqlite", a={"q1": result("c-q1"), "q2": result("c-q2")})
    make_database(tmp_path / "b.sqlite", b={"q1": result("c-q1"), "q2": result("c9")})
    write_golden_jsonl(tmp_path, *expecting("q1", "q2"))
    given = settings_for(
        tmp_path, "golden.jsonl", db_a=tmp_path / "a.sqlite", db_b=tmp_path / "b.sqlite", run_a="a", run_b="b"
    )
    found = in_parts(given, 2, part_queries=1)
    assert outcome(found) == outcome(in_one(given))
    assert [comparison.kind for comparison in found.report.per_query] == ["draw", "regression"]


def test_where_expected_chunks_are_is_told_to_workers(tmp_path: Path) -> None:
    """B's chunker is another one: chunks are found by where A's hits say that they are, and the lock file."""
    citations = {name: {"kind": "line", "path": "d.md", "start": at, "end": at + 9} for name, at in PLACES}
    in_a = {
        name: result(hit(f"c-{name}", doc_id="d", citation=citation)) for name, citation in citations.items()
    }
    in_b = {
        name: result(hit(f"n-{name}", doc_id="d", citation=citation)) for name, citation in citations.items()
    }
    configs = {"a": {"chunker_version": "v1"}, "b": {"chunker_version": "v2"}}
    make_database(tmp_path / "kebab.sqlite", configs=configs, a=in_a, b=in_b)
    write_golden_jsonl(tmp_path, *expecting("q1", "q2", "q3"))
    spans = [{"kind": "line", "start": 1, "end": 10}]
    lock = {"chunker_version": "v1", "chunks": {"c-q1": {"doc_id": "d", "spans": spans}}}
    (tmp_path / "golden.lock.json").write_text(json.dumps(lock), "utf-8")
    given = settings_for(tmp_path, "golden.jsonl")
    found = in_parts(given, 3)
    assert outcome(found) == outcome(in_one(given))
    assert found.report.deltas is not None
    assert found.report.deltas.matched_by["span"] == 3


PLACES = (("q1", 1), ("q2", 31), ("q3", 61))


def test_ids_that_no_hit_has_are_looked_for_in_all_parts(tmp_path: Path) -> None:
    """Six queries expect what only another part's hits have, or none: those of the second kind are named."""
    names = [f"q{number}" for number in range(12)]
    stored = {name: result("c-q0" if name == "q11" else "c9") for name in names}
    make_database(tmp_path / "kebab.sqlite", a=stored, b=stored)
    found = {"id": "found", "expected_chunk_ids": ["c9"]}
    write_golden_jsonl(tmp_path, *expecting(*names), found)
    with sqlite3.connect(tmp_path / "kebab.sqlite") as connection:
        row = json.dumps({"query_id": "found", **result("c9")})
        connection.executemany(
            "INSERT INTO eval_query_results VALUES (?, 'found', ?)", [("a", row), ("b", row)]
        )
    connection.close()
    given = settings_for(tmp_path, "golden.jsonl")
    evaluation = in_parts(given, 4, part_queries=2)
    assert outcome(evaluation) == outcome(in_one(given))
    assert any("11 of 13 queries expect only ids that no hit" in text for text in evaluation.report.warnings)


@pytest.mark.parametrize("row", ["NULL", "x'7131'"], ids=["without an id", "an id that is a blob"])
def test_rows_against_the_schema_are_scored_in_one_process(tmp_path: Path, row: str) -> None:
    """A table without a primary key may hold a row without an id, or an id twice, in two parts."""
    database = make_database(tmp_path / "kebab.sqlite", a={}, b={})
    with sqlite3.connect(database) as connection:
        connection.execute("DROP TABLE eval_query_results")
        connection.execute("CREATE TABLE eval_query_results (run_id, query_id, result_json)")
        text = json.dumps(result("c-q1"))
        for run_id in "ab":
            for query_id in ("'q1'", "'q2'", "'q3'", row):
                connection.execute(
                    f"INSERT INTO eval_query_results VALUES ('{run_id}', {query_id}, ?)", (text,)
                )
    connection.close()
    write_golden_jsonl(tmp_path, *expecting("q1", "q2", "q3"))
    given = settings_for(tmp_path, "golden.jsonl")
    helpers = InlineWorkers(3)
    loaded = load_golden(given.golden, helpers, 1)
    inputs = find_inputs(given, golden=loaded.golden)
    scorer = PartScorer(helpers, given, loaded)
    answers: list[object] = []

    def score(*asked: Any) -> Any:
        answers.append(scorer.score(*asked))
        return answers[-1]

    assert outcome(evaluate(given, inputs, score_parts=score)) == outcome(in_one(given))
    assert answers == [None]


def test_what_comes_back_is_small(tmp_path: Path) -> None:
    """Of a thousand results of 5 kB each, less than 50 bytes a query: scores are shared, results stay."""
    stored = {f"q{number:04}": result(hit("c1", text="x" * 5_000)) for number in range(1_000)}
    make_database(tmp_path / "kebab.sqlite", a=stored, b=stored)
    write_golden_jsonl(tmp_path, *({"id": name, "expected_chunk_ids": ["c1"]} for name in stored))
    sizes: list[int] = []

    class Watched(InlineWorkers):
        def map(self, function: Any, tasks: Any) -> Any:
            import pickle

            for found in super().map(function, tasks):
                if function is score_part:
                    sizes.append(len(pickle.dumps(found)))
                yield found

    given = settings_for(tmp_path, "golden.jsonl")
    helpers = Watched(1)
    loaded = load_golden(given.golden, helpers)
    inputs = find_inputs(given, golden=loaded.golden)
    evaluate(given, inputs, score_parts=PartScorer(helpers, given, loaded).score)
    assert len(sizes) == 1
    assert sizes[0] < 50 * 1_000


def test_the_fingerprint_is_that_of_the_whole_golden_set(tmp_path: Path) -> None:
    stored = {"q1": result("c-q1"), "q2": result("c-q2")}
    make_database(tmp_path / "kebab.sqlite", a=stored, b=stored)
    write_golden_jsonl(tmp_path, *expecting("q2", "q1"))
    given = settings_for(tmp_path, "golden.jsonl")
    whole = in_one(given).report.aggregate_b
    assert msgspec.structs.asdict(in_parts(given, 2).report.aggregate_b) == msgspec.structs.asdict(whole)


def test_a_worker_that_cannot_see_the_database_is_one_sentence(tmp_path: Path) -> None:
    make_database(tmp_path / "kebab.sqlite", a={"q1": result("c-q1")}, b={"q1": result("c-q1")})
    write_golden_jsonl(tmp_path, *expecting("q1"))
    given = settings_for(tmp_path, "golden.jsonl")

    class Elsewhere(InlineWorkers):
        def map(self, function: Any, tasks: Any) -> Any:
            (tmp_path / "kebab.sqlite").rename(tmp_path / "moved.sqlite")
            return super().map(function, tasks)

    inputs = find_inputs(given)
    score = PartScorer(Elsewhere(), given, LoadedGolden(inputs.golden)).score
    with pytest.raises(
        WorkerError, match=r"^a worker cannot see the database .*kebab\.sqlite; keep it where"
    ):
        evaluate(given, inputs, score_parts=score)


def test_failures_can_be_explained_when_workers_scored_and_the_databases_were_closed(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"query": "?", "expected_chunk_ids": ["c1"], "must_contain": ["uv"]}
    golden = write_golden(tmp_path / "golden.yaml", [{"id": query, **fields} for query in ("q1", "q2")])
    lines = {"kind": "line", "start": 1, "end": 9}
    found = hit("x", 1, doc_id="d1", citation={**lines, "path": "d1.md"})  # so that the answer alone is lost
    said: dict[str, Any] = {
        run: {query: result(found, answer=answer(text)) for query in ("q1", "q2")}
        for run, text in (("a", "uv"), ("b", "pip"))
    }
    versions = {"a": {"chunker_version": "v1"}, "b": {"chunker_version": "v2"}}
    db = make_database(
        tmp_path / "kebab.sqlite",
        configs=versions,
        corpus={"c1": ("d1", [lines])},
        corpus_version="v1",
        **said,
    )
    given = Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden)
    inputs = find_inputs(given)
    in_parts_found, in_one_found = in_parts(given, 2), evaluate(given, inputs)
    evidence = failure_evidence(given, inputs, in_parts_found)
    assert evidence.keys() == {"q1", "q2"}
    assert evidence == failure_evidence(given, inputs, in_one_found)
