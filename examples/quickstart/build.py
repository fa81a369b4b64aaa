"""Builds the quickstart's database: a small team's notes, and three stored evaluation runs over them.

    python build.py [DIRECTORY]      writes kebab.sqlite and fixtures/golden_queries.yaml there

`baseline` and `candidate` were chunked alike; `rechunked` is from another chunker, whose chunk ids are
all new. A real database comes from kebab; this one is written out so that every figure can be checked.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

from pytest_kebab_eval import load_golden_set
from pytest_kebab_eval.files import creating, write_whole

HERE = Path(__file__).parent
GOLDEN = "fixtures/golden_queries.yaml"
WRITTEN = (
    "kebab.sqlite",
    GOLDEN,
    "fixtures/golden_queries.lock.json",
    "runs/candidate",
)  # or would take part

NOTES = {
    "notes/secrets.md": """\
# Secrets
All credentials live in the vault; nothing is kept in the repository.
## Reading a secret
Ask for the `reader` role, then run `vault read team/<name>`.
## Rotating API keys
Create the new key beside the old one and deploy both.
When no request used the old key for a day, revoke it.
## Lost laptops
Call the security desk; every token of that person is revoked at once.
""",
    "notes/backups.md": """\
# Backups
Every database is dumped at 02:00 UTC to cold storage.
## Restoring
Fetch last night's dump with `backup fetch --latest`.
Load it into a scratch database first, then swap the two.
## Checking
A restore drill runs on the first Tuesday of each month.
""",
    "notes/vpn.md": """\
# VPN
The VPN is needed for the admin panels only.
## First login
Install the client, import the profile from the portal, and log in with your badge number.
## When it drops
Switch to the second gateway.
""",
    "notes/oncall.md": """\
# On-call
One engineer is on call for a week at a time.
## Handover
The handover is on Monday at 10:00, with a written summary of the week.
## Paging
Page the secondary after fifteen minutes without an answer.
""",
    "notes/logging.md": """\
# Logging
Services log JSON lines to standard output.
## Retention
Access logs are kept for 30 days, audit logs for seven years.
## Personal data
Addresses are hashed before they are written.
""",
    "notes/deploys.md": """\
# Deploys
Every merge to main is deployed within the hour.
## Freezes
No deploys from the second Friday of December until January 2.
## Rollback
Redeploy the previous tag; it takes four minutes.
""",
}

SCHEMA = """
CREATE TABLE documents (doc_id TEXT PRIMARY KEY, workspace_path TEXT NOT NULL);
CREATE TABLE chunks (
    chunk_id TEXT PRIMARY KEY, doc_id TEXT NOT NULL, text TEXT NOT NULL, heading_path_json TEXT NOT NULL,
    source_spans_json TEXT NOT NULL, token_estimate INTEGER NOT NULL, chunker_version TEXT NOT NULL);
PRAGMA application_id = 0x6B656201; -- as where pytest-kebab-eval made the tables
CREATE TABLE eval_runs (
    run_id TEXT PRIMARY KEY, suite TEXT NOT NULL, config_snapshot_json TEXT NOT NULL,
    aggregate_json TEXT NOT NULL DEFAULT '{}', commit_hash TEXT, created_at TEXT NOT NULL);
CREATE TABLE eval_query_results (
    run_id TEXT NOT NULL, query_id TEXT NOT NULL, result_json TEXT NOT NULL, PRIMARY KEY (run_id, query_id));
"""

Chunk = dict[str, Any]


def chunk_by_heading() -> dict[str, Chunk]:
    """One chunk a heading: `secrets-1`, `secrets-2`, …"""
    chunks: dict[str, Chunk] = {}
    for path, text in NOTES.items():
        lines = text.splitlines()
        starts = [number for number, line in enumerate(lines) if line.startswith("#")]
        title = lines[0].lstrip("# ")
        for count, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines)], strict=True), 1):
            heading = lines[start].lstrip("# ")
            headings = [title] if heading == title else [title, heading]
            chunks[f"{Path(path).stem}-{count}"] = _chunk(path, headings, start + 1, end)
    return chunks


def chunk_by_window(size: int = 3) -> dict[str, Chunk]:
    """One chunk every few lines: `secrets/w1`, `secrets/w2`, …"""
    chunks = {}
    for path, text in NOTES.items():
        lines = text.splitlines()
        for count, start in enumerate(range(0, len(lines), size), 1):
            end = min(start + size, len(lines))
            above = [line.lstrip("# ") for line in lines[: start + 1] if line.startswith("#")]
            headings = list(dict.fromkeys([above[0], above[-1]]))
            chunks[f"{Path(path).stem}/w{count}"] = _chunk(path, headings, start + 1, end)
    return chunks


def _chunk(path: str, headings: list[str], start: int, end: int) -> Chunk:
    text = "\n".join(NOTES[path].splitlines()[start - 1 : end])
    return {"path": path, "headings": headings, "start": start, "end": end, "text": text}


# For each query of a run: the ids of its hits from rank 1 on, and, where the run has one, the answer as
# (text, cited chunk), with None as the text of a refusal.
BASELINE: dict[str, tuple[list[str], Any]] = {
    "rotate-api-keys": (["secrets-3", "secrets-2", "vpn-2", "oncall-3"], None),
    "restore-backup": (["backups-3", "backups-1", "oncall-2"], None),
    "vpn-first-login": (["vpn-2", "vpn-1", "secrets-2"], None),
    "oncall-handover": (["oncall-2", "oncall-1"], ("Handover is on Monday at 10:00.", "oncall-2")),
    "log-retention": (["logging-2", "logging-1"], ("Access logs are kept for 30 days.", "logging-2")),
    "deploy-freeze": (["deploys-1", "deploys-2"], None),
    "parking-permits": (["vpn-1"], (None, None)),
}
CANDIDATE = BASELINE | {
    "rotate-api-keys": (["secrets-4", "secrets-2", "vpn-2", "oncall-3"], None),
    "restore-backup": (["backups-2", "backups-3", "oncall-2"], None),
    "vpn-first-login": (["vpn-1", "vpn-3", "vpn-2"], None),
    "log-retention": (["logging-2", "logging-1"], ("They are kept for 90 days.", "logging-2")),
}
RECHUNKED: dict[str, tuple[list[str], Any]] = {
    "rotate-api-keys": (["secrets/w2", "secrets/w1", "vpn/w1"], None),
    "restore-backup": (["backups/w3", "backups/w2"], None),
    "vpn-first-login": (["vpn/w2", "vpn/w1"], None),
    "oncall-handover": (["oncall/w2", "oncall/w1"], ("Handover is on Monday at 10:00.", "oncall/w2")),
    "log-retention": (["logging/w2", "logging/w1"], ("Access logs are kept for 30 days.", "logging/w2")),
    "deploy-freeze": (["deploys/w1", "deploys/w2"], None),
    "parking-permits": (["vpn/w1"], (None, None)),
}

CONFIG = {
    "chunker_version": "heading-1",
    "embedding": {"model": "minilm-l6", "version": "2", "dimensions": 384, "provider": "local"},
    "llm": {"model_id": "llama-3-8b", "provider": "local"},
    "prompt_template_version": "answer-4",
    "index_version": "7",
}


def build(directory: Path) -> Path:
    """Write the database and the golden file into the directory; `FileExistsError` if one is there."""
    check_free(directory)
    database, golden = directory / "kebab.sqlite", directory / GOLDEN
    golden.parent.mkdir(parents=True, exist_ok=True)
    with creating(database) as new:
        _fill(new)
        write_whole(golden, [(HERE / golden.name).read_text(encoding="utf-8")])
    return database


def check_free(directory: Path) -> None:
    """Raise a `FileExistsError` if something is there that the example would write."""
    for path in (directory / name for name in WRITTEN):
        if os.path.lexists(path) and not _is_own_golden(path):
            raise FileExistsError(f"{path} is there already, so nothing was written; name another directory")


def _is_own_golden(path: Path) -> bool:
    """Whether it is the golden file that would be written, so that nothing is lost."""
    own = HERE / path.name
    return own.is_file() and path.is_file() and own.read_bytes() == path.read_bytes()


def _fill(database: Path) -> None:
    by_heading, by_window = chunk_by_heading(), chunk_by_window()
    connection = sqlite3.connect(database)
    with connection:
        connection.executescript(SCHEMA)
        connection.executemany(
            "INSERT INTO documents VALUES (?, ?)", [(Path(path).stem, path) for path in NOTES]
        )
        connection.executemany(
            "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, 'heading-1')",
            [_chunk_row(chunk_id, chunk) for chunk_id, chunk in by_heading.items()],
        )
        new_model = {"embedding": {**CONFIG["embedding"], "model": "e5-small"}}
        _insert_run(connection, "baseline", 1, CONFIG, BASELINE, by_heading)
        _insert_run(connection, "candidate", 2, CONFIG | new_model, CANDIDATE, by_heading)
        rechunked = CONFIG | {"chunker_version": "window-1", "index_version": "8"}
        _insert_run(connection, "rechunked", 3, rechunked, RECHUNKED, by_window)
    connection.close()


def _chunk_row(chunk_id: str, chunk: Chunk) -> tuple[object, ...]:
    span = {"kind": "line", "start": chunk["start"], "end": chunk["end"]}
    tokens = len(chunk["text"].split())
    doc_id = Path(chunk["path"]).stem
    return (chunk_id, doc_id, chunk["text"], json.dumps(chunk["headings"]), json.dumps([span]), tokens)


def _insert_run(
    connection: sqlite3.Connection,
    run_id: str,
    day: int,
    config: dict[str, Any],
    results: dict[str, tuple[list[str], Any]],
    chunks: dict[str, Chunk],
) -> None:
    connection.execute(
        "INSERT INTO eval_runs VALUES (?, 'notes', ?, '{}', NULL, ?)",
        (run_id, json.dumps(config), f"2026-03-0{day}T08:00:00Z"),
    )
    is_indexed = config["chunker_version"] == CONFIG["chunker_version"]  # else the hits have their texts
    questions = {query.id: query.query for query in load_golden_set(HERE / Path(GOLDEN).name).queries}
    for query_id, (hit_ids, answer) in results.items():
        result = {
            "query_id": query_id,
            "query": questions.get(query_id, ""),
            "mode": "hybrid",
            "hits_top_k": [
                _hit(rank, name, chunks[name]) | ({} if is_indexed else {"text": chunks[name]["text"]})
                for rank, name in enumerate(hit_ids, 1)
            ],
            "answer": _answer(answer, chunks),
            "elapsed_ms": 40 + 3 * len(hit_ids),
            "error": None,
        }
        connection.execute(
            "INSERT INTO eval_query_results VALUES (?, ?, ?)", (run_id, query_id, json.dumps(result))
        )


def _citation(chunk: Chunk) -> dict[str, Any]:
    section = chunk["headings"][-1]
    return {
        "kind": "line",
        "path": chunk["path"],
        "start": chunk["start"],
        "end": chunk["end"],
        "section": section,
    }


def _hit(rank: int, chunk_id: str, chunk: Chunk) -> dict[str, Any]:
    return {
        "rank": rank,
        "chunk_id": chunk_id,
        "doc_id": Path(chunk["path"]).stem,
        "doc_path": chunk["path"],
        "heading_path": chunk["headings"],
        "snippet": chunk["text"].splitlines()[-1],
        "citation": _citation(chunk),
        "retrieval": {"fusion_score": round(1 / (60 + rank), 6)},
    }


def _answer(answer: Any, chunks: dict[str, Chunk]) -> dict[str, Any] | None:
    if answer is None:
        return None
    text, cited = answer
    if text is None:
        return {
            "answer": "The notes do not say.",
            "grounded": False,
            "refusal_reason": "no_support",
            "citations": [],
        }
    citations = [{"marker": "[1]", "citation": _citation(chunks[cited])}]
    return {"answer": text, "grounded": True, "refusal_reason": None, "citations": citations}


if __name__ == "__main__":
    try:
        print(f"wrote {build(Path(sys.argv[1] if len(sys.argv) > 1 else '.'))}")
    except FileExistsError as error:
        sys.exit(str(error))
