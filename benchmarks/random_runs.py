"""Small random databases and golden files that use every feature, for comparing two versions of the code."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

Json = dict[str, Any]

TABLES = """
CREATE TABLE eval_runs (
    run_id TEXT PRIMARY KEY, suite TEXT NOT NULL, config_snapshot_json TEXT NOT NULL,
    aggregate_json TEXT NOT NULL DEFAULT '{}', commit_hash TEXT, created_at TEXT NOT NULL);
CREATE TABLE eval_query_results (
    run_id TEXT NOT NULL, query_id TEXT NOT NULL, result_json TEXT NOT NULL, PRIMARY KEY (run_id, query_id));
"""
CORPUS = """
CREATE TABLE documents (doc_id TEXT PRIMARY KEY, workspace_path TEXT NOT NULL);
CREATE TABLE chunks (
    chunk_id TEXT PRIMARY KEY, doc_id TEXT NOT NULL, text TEXT NOT NULL, heading_path_json TEXT NOT NULL,
    source_spans_json TEXT NOT NULL, token_estimate INTEGER NOT NULL, chunker_version TEXT NOT NULL);
"""
GATES = ("hit@5 >= 0.5", "delta mrr >= -5%", "delta ndcg@10 >= 0 unless p > 0.05", "error_rate <= 10%")
WORDS = "rotate the key before it expires and tell whoever owns the service account about it".split()  # noqa: SIM905


class RandomRuns:
    """One dataset, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._documents = self._random.randint(2, 8)
        self._chunks = self._random.randint(2, 6)  # of each document
        self._answers = self._random.random() < 0.7
        self._queries = [self._golden(number) for number in range(self._random.randint(5, 60))]

    def write(self, directory: Path, runs: int = 1) -> list[str]:
        """Write `kebab.sqlite` and `golden.json`, with so many runs a side; returns options for pytest."""
        chance = self._random.random
        directory.mkdir(parents=True)
        (directory / "golden.json").write_text(json.dumps(self._queries, indent=1), encoding="utf-8")
        connection = sqlite3.connect(directory / "kebab.sqlite")
        with connection:
            connection.executescript(TABLES)
            versions = self._random.choice([("v1", "v1"), ("v1", "v1"), ("v1", "v2"), (None, None)])
            for day, (run_id, version) in enumerate(
                zip(("older", "a", "b"), ("v1", *versions), strict=True), 1
            ):
                self._write_run(connection, run_id, version, day)
            for run_id in "ab":
                for number in range(2, runs + 1):
                    self._repeat_run(connection, run_id, number)
            if chance() < 0.5:
                connection.executescript(CORPUS)
                self._write_corpus(connection)
        connection.close()
        gates = [f"--kebab-gate={gate}" for gate in GATES if chance() < 0.5]
        more = [f"--kebab-k={self._random.choice([1, 3, 7])}"] if chance() < 0.3 else []
        more += ["--kebab-fail-on=retrieval,loss,error"] if chance() < 0.3 else []
        more += [f"--kebab-compare-k={self._random.choice([3, 20])}"] if chance() < 0.3 else []
        a, b = (",".join([side, *(f"{side}{number}" for number in range(2, runs + 1))]) for side in "ab")
        return [f"--kebab-run-a={a}", f"--kebab-run-b={b}", "--kebab-golden=golden.json", *gates, *more]

    def _write_run(self, connection: sqlite3.Connection, run_id: str, version: str | None, day: int) -> None:
        config: Json = {"embedding": {"model": self._random.choice(["e1", "e2"])}, "rrf_k": day}
        if version:
            config["chunker_version"] = version
        connection.execute(
            "INSERT INTO eval_runs VALUES (?, 's', ?, '{}', ?, ?)",
            (run_id, json.dumps(config), f"c0ffee{day}", f"2026-01-{day:02}T00:00:00Z"),
        )
        for query in self._queries:
            draw = self._random.random()
            if draw > 0.03:
                text = json.dumps(self._result(query["id"])) if draw > 0.035 else "{broken"
                connection.execute(
                    "INSERT INTO eval_query_results VALUES (?, ?, ?)", (run_id, query["id"], text)
                )
        if self._random.random() < 0.3:
            connection.execute(
                "INSERT INTO eval_query_results VALUES (?, ?, ?)",
                (run_id, "stray", json.dumps(self._result("stray"))),
            )

    def _repeat_run(self, connection: sqlite3.Connection, run_id: str, number: int) -> None:
        """A run of the same configuration: most results are those of the first, a few differ or lack."""
        name = f"{run_id}{number}"
        connection.execute(
            "INSERT INTO eval_runs SELECT ?, suite, config_snapshot_json, '{}', commit_hash, created_at"
            " FROM eval_runs WHERE run_id = ?",
            (name, run_id),
        )
        rows = connection.execute(
            "SELECT query_id, result_json FROM eval_query_results WHERE run_id = ? ORDER BY query_id",
            (run_id,),
        )
        for query_id, text in rows.fetchall():
            draw = self._random.random()
            if draw > 0.02:
                text = json.dumps(self._result(query_id)) if draw < 0.2 else text
                connection.execute("INSERT INTO eval_query_results VALUES (?, ?, ?)", (name, query_id, text))

    def _write_corpus(self, connection: sqlite3.Connection) -> None:
        for doc in range(self._documents):
            connection.execute("INSERT INTO documents VALUES (?, ?)", (f"d{doc}", f"notes/d{doc}.md"))
            for chunk in range(self._chunks):
                span = json.dumps([_lines(chunk)])
                row = (f"d{doc}#{chunk}", f"d{doc}", " ".join(WORDS[chunk:]), '["Top"]', span, 9, "v1")
                connection.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def _chunk_id(self) -> str:
        return f"d{self._random.randrange(self._documents)}#{self._random.randrange(self._chunks)}"

    def _golden(self, number: int) -> Json:
        pick, chance = self._random.choice, self._random.random
        query: Json = {"id": f"q{number:03}", "query": f"question {number}?"}
        kind = pick(
            ["chunks", "chunks", "chunks", "relevance", "anchors", "documents", "spans", "refuse", "none"]
        )
        chunks = sorted({self._chunk_id() for _ in range(self._random.randint(1, 3))})
        if kind == "chunks":
            query |= {"expected_chunk_ids": chunks}
            if chance() < 0.6:
                query["expected_doc_ids"] = sorted({chunk.split("#")[0] for chunk in chunks})
        elif kind == "relevance":
            query["relevance"] = {chunk: pick([0, 1, 2, 0.5]) for chunk in chunks} | {self._chunk_id(): 3}
        elif kind == "anchors":
            query["gold_supports"] = [
                {"path": f"notes/{chunk.split('#')[0]}.md", "heading": pick(["", "Top", "# Top > Part 1"])}
                | ({"snippets": [pick(WORDS)]} if chance() < 0.5 else {})
                for chunk in chunks
            ]
            query["required_support_groups"] = [[support] for support in range(len(chunks))]
        elif kind == "documents":
            query["expected_doc_ids"] = sorted({chunk.split("#")[0] for chunk in chunks})
            if chance() < 0.3:
                query |= {"group": "g", "expected_doc_ids": ["d0"]}
        elif kind == "spans":
            query["expected_spans"] = [{"doc_id": "d1", **_lines(1)}]
            if chance() < 0.5:
                query["expected_chunk_ids"] = chunks
        elif kind == "refuse":
            query["expected_doc_ids"] = []
        more = self._rules_and_labels()
        if kind == "refuse":  # which expects nothing else
            more = {name: more[name] for name in more.keys() - {"must_contain", "claims", "expected_answer"}}
        return query | dict(sorted(more.items()))

    def _rules_and_labels(self) -> Json:
        pick, chance = self._random.choice, self._random.random
        optional: Json = {
            "must_contain": [pick(WORDS)],
            "forbidden": ["never"],
            "claims": [pick(["service account", "no such claim", "key"])],
            "expected_answer": pick(["the key", "not there"]),
            "k": pick([1, 2, 20]),
            "lang": pick(["en", "de"]),
            "difficulty": pick(["easy", "hard"]),
            "category": pick(["x", "y"]),
            "tags": [pick(["t1", "t2"]), "t3"],
            "xfail": {"reason": "known", "until": pick(["2020-01-01", "2099-01-01"])},
        }
        return {
            name: value for name, value in optional.items() if chance() < (0.05 if name == "xfail" else 0.3)
        }

    def _result(self, query_id: str) -> Json:
        pick, chance = self._random.choice, self._random.random
        ids = list(dict.fromkeys(self._chunk_id() for _ in range(self._random.choice([0, 3, 10, 25]))))
        hits = [self._hit(rank, chunk_id) for rank, chunk_id in enumerate(ids, 1)]
        result: Json = {"query_id": query_id, "query": "?", "mode": "hybrid", "hits_top_k": hits}
        result |= {"elapsed_ms": self._random.randrange(5, 500), "error": None, "answer": None}
        if self._answers and chance() < 0.8:
            result["answer"] = self._answer(hits)
        if chance() < 0.05:
            result["error"] = pick(["timed out", "no index"])
        optional: Json = {
            "timed_out": True,
            "cost_usd": round(chance(), 6),
            "timings_ms": {"retrieval": self._random.randrange(50), "generation": self._random.randrange(90)},
            "scope": {"mode": "on", "folders": [pick(["notes", "other"])]},
            "judge": {
                "groundedness": pick([1, 4, 5]),
                "correctness": 3,
                "model": "j",
                "second": {"groundedness": 3},
            },
        }
        return result | {name: value for name, value in optional.items() if chance() < 0.2}

    def _hit(self, rank: int, chunk_id: str) -> Json:
        doc_id, _, chunk = chunk_id.partition("#")
        hit: Json = {"rank": rank, "chunk_id": chunk_id, "doc_id": doc_id, "doc_path": f"notes/{doc_id}.md"}
        hit["heading_path"] = ["Top", f"Part {chunk}"]
        optional: Json = {
            "snippet": " ".join(WORDS[:4]),
            "text": " ".join(WORDS[int(chunk) :]),
            "citation": {**_lines(int(chunk)), "path": f"notes/{doc_id}.md"},
        }
        return hit | {name: value for name, value in optional.items() if self._random.random() < 0.7}

    def _answer(self, hits: list[Json]) -> Json:
        pick, chance = self._random.choice, self._random.random
        cited = [hit for hit in hits[:3] if chance() < 0.7]
        citations: list[Json] = [
            {"marker": f"[{number}]", "chunk_id": hit["chunk_id"]}
            if chance() < 0.5
            else {
                "marker": f"({number})",
                "citation": hit.get("citation", {"kind": "caption", "path": "nowhere.md"}),
            }
            for number, hit in enumerate(cited, 1)
        ]
        return {
            "answer": pick(["", " ".join(WORDS), "never the key"]),
            "grounded": chance() < 0.8,
            "refusal_reason": pick([None, "not in the notes"]),
            "citations": citations,
            "usage": {"prompt_tokens": self._random.randrange(999), "completion_tokens": 7},
        }


def _lines(chunk: int) -> Json:
    return {"kind": "line", "start": 10 * chunk + 1, "end": 10 * chunk + 10}
