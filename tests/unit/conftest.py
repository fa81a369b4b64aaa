"""What the unit tests of a package need: small runs and golden files, their metrics, random histories."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import AggregateMetrics, GoldenError, GoldenSet, compute_aggregate, load_golden_set
from pytest_kebab_eval.text import shown_path
from tests.builders import Json, answer, hit, line, make_database, result, write_golden

FINDS_C1: Json = {"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Run a finds c1 at rank 1, run b at rank 2."""
    return make_database(tmp_path / "runs.sqlite", a={"q1": result("c1")}, b={"q1": result("x", "c1")})


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return write_golden(tmp_path / "golden.yaml", [FINDS_C1])


@pytest.fixture(scope="package", autouse=True)
def _no_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing of the environment that the tests run in is used; where users keep data is nothing."""
    nothing = tmp_path_factory.getbasetemp() / "no-data"
    with pytest.MonkeyPatch.context() as patched:
        for name in ("KEBAB_EVAL_DB", "KEBAB_EVAL_GOLDEN", "KEBAB_EVAL_RUN_A", "KEBAB_EVAL_RUN_B"):
            patched.delenv(name, raising=False)
        patched.setenv("XDG_DATA_HOME", str(nothing))
        yield
    assert not nothing.exists()


def load(directory: Path, content: str | bytes, name: str = "golden.yaml") -> GoldenSet:
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_golden_set(path)


def refusal(directory: Path, content: str | bytes, name: str = "golden.yaml") -> str:
    """The error's text, with the file's bare name for its path."""
    with pytest.raises(GoldenError) as caught:
        load(directory, content, name)
    return str(caught.value).replace(shown_path(directory / name), name)


def entry(id: str = "q1", **fields: Any) -> Json:  # noqa: A002
    return {"id": id, "query": "?", **fields}


def refusal_of(directory: Path, *entries: Json | str) -> str:
    """The error's text for these entries, or for one text that is the whole file."""
    path = directory / "golden.yaml"
    if entries and isinstance(entries[0], str):
        path.write_text(entries[0], encoding="utf-8")
    else:
        write_golden(path, [entry for entry in entries if isinstance(entry, dict)])
    with pytest.raises(GoldenError) as caught:
        load_golden_set(path)
    return str(caught.value).replace(shown_path(path), path.name)


def scored(tmp_path: Path, entries: Mapping[str, Json], results: Mapping[str, Json], **more: Any) -> Scores:
    """The metrics of a run: `{query id: golden fields}`, `{query id: result}`."""
    golden = write_golden(
        tmp_path / "golden.yaml", [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    )
    db = make_database(tmp_path / "kebab.sqlite", a=results, **more)
    return Scores(compute_aggregate("a", db=db, golden=golden))


def scored_one(tmp_path: Path, entry: Json, stored: Json, **more: Any) -> Scores:
    """The metrics of a run of one query."""
    return scored(tmp_path, {"q1": entry}, {"q1": stored}, **more)


class Scores:
    """An aggregate's values, by names that must exist."""

    def __init__(self, aggregate: AggregateMetrics) -> None:
        self.aggregate = aggregate

    def __getitem__(self, name: str) -> float | None:
        return self.aggregate.values[name]

    def n(self, name: str) -> int:
        return self.aggregate.counts[name]


C1 = {"expected_chunk_ids": ["c1"]}


ENTRIES: list[Json] = [
    {"id": "chunk", "query": "?", "expected_chunk_ids": ["c1", "c2"], "expected_doc_ids": ["d1"]},
    {"id": "graded", "query": "?", "relevance": {"c1": 2, "c3": 1}},
    {"id": "document", "query": "?", "expected_doc_ids": ["d2"]},
    {"id": "anchor", "query": "?", "gold_supports": [{"path": "d1.md", "heading": "A"}]},
    {"id": "nothing", "query": "?", "must_contain": ["x"]},
    *({"id": f"many-{number}", "query": "?", "expected_chunk_ids": ["c1"]} for number in range(20)),
]

HITS: list[Json] = [
    hit("c1", doc_id="d1", doc_path="d1.md", heading_path=["A"], citation=line("d1.md", 1, 9)),
    hit("c2", doc_id="d1", doc_path="d1.md", heading_path=["B"], citation=line("d1.md", 10, 19)),
    hit("c3", doc_id="d2", doc_path="d2.md", citation=line("d2.md", 1, 5)),
    hit("renamed", doc_id="d1", doc_path="d1.md", citation=line("d1.md", 2, 8)),
    hit("x", doc_id="d9", doc_path="d9.md"),
]


class History:
    """Runs whose queries keep their hits, mostly."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._found: dict[str, list[Json]] = {entry["id"]: self._hits() for entry in ENTRIES}

    def runs(self, count: int) -> dict[str, dict[str, Any]]:
        return {f"r{number}": self._run() for number in range(count)}

    def configs(self, count: int) -> dict[str, Json]:
        """One chunker for all, or two."""
        versions = ["v1", "v1", self._random.choice(["v1", "v2"])]
        return {f"r{number}": {"chunker_version": self._random.choice(versions)} for number in range(count)}

    def _run(self) -> dict[str, Any]:
        if self._random.random() < 0.1:
            return {}
        made = {entry["id"]: self._stored(entry["id"]) for entry in ENTRIES}
        return {query_id: stored for query_id, stored in made.items() if stored != "absent"}

    def _stored(self, query_id: str) -> Any:
        if self._random.random() < 0.3:
            self._found[query_id] = self._hits()
        stored = result(*self._found[query_id], elapsed_ms=self._random.randrange(99), answer=answer())
        damaged = [
            "absent",
            stored | {"error": "down, with token=abcdefghijklmnop"},
            stored | {"hits_top_k": None},
            stored | {"answer": {"grounded": "yes"}},
            "no JSON",
            json.dumps({"query_id": query_id, **stored})[:-1] + ', "hits_top_k": []}',
        ]
        return self._random.choice(damaged) if self._random.random() < 0.2 else stored

    def _hits(self) -> list[Json]:
        some = self._random.sample(HITS, self._random.randrange(len(HITS)))
        skipped = self._random.choice([0, 0, 0, 8])  # so that some are found below the cutoff
        return [{**fields, "rank": skipped + rank} for rank, fields in enumerate(some, 1)]
