"""A handbook and runs over it that have something of everything: answers, refusals, errors, hostile texts.

python -m tests.browser.handbook DIR      # writes the pages of it into a new directory
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_kebab_eval import RunRecorder
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reports.as_markdown import report_context
from pytest_kebab_eval.reports.briefs import Briefs
from pytest_kebab_eval.reports.publishing import ReportSource, render
from pytest_kebab_eval.reports.site import write_site
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, line, write_golden

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'\u2028\u202eleft"
LONG = "Every line of the log has a time, a level and the id of the request it belongs to. " * 12

# (path, heading, text), by a name that only this file knows; ids are opaque, as those of most stores.
PASSAGES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "logs": (
        "operations/logging.md",
        ("Logging", "Retention"),
        "Access logs are kept for 30 days and then deleted. Audit logs are kept for one year, since the"
        " auditors ask for them. " + LONG,
    ),
    "metrics": (
        "operations/logging.md",
        ("Logging", "Metrics"),
        "Metrics are kept for 90 days at full resolution, and thinned to one value an hour after that.",
    ),
    "keys": (
        "security/keys.md",
        ("Secrets", "Rotating keys"),
        (
            "Create the new key, deploy it beside the old one, and revoke the old key after a day. Never"
            " revoke first: running jobs would lose access at once."
        ),
    ),
    "passwords": (
        "security/passwords.md",
        ("Secrets", "Passwords"),
        "Passwords have at least twelve characters. The password manager makes them, and nobody types them.",
    ),
    "backup": (
        "operations/backups.md",
        ("Backups", "Restoring"),
        (
            "To restore a backup, stop the service, run `restore --latest`, and start it again. Restoring"
            " takes about ten minutes for each 100 GB."
        ),
    ),
    "schedule": (
        "operations/backups.md",
        ("Backups", "Schedule"),
        "A full backup is made on Sundays at 02:00, an incremental one every night.",
    ),
    "vpn": (
        "it/vpn.md",
        ("Remote work", "VPN"),
        (
            "Install the VPN client from the portal and log in with your hardware key. The first login"
            " asks for a code that your lead has."
        ),
    ),
    "leave": (
        "people/leave.md",
        ("Leave", "Parental leave"),
        "Parents have sixteen weeks of paid leave, which may be taken in parts within two years.",
    ),
    "draft": (
        "drafts/leave-2027.md",
        ("Draft", "Leave"),
        "DRAFT, not decided: parents have eighteen weeks of paid leave from 2027 on.",
    ),
    "freeze": (
        "operations/deploys.md",
        ("Deploys", "Freeze"),
        "Nothing is deployed between 20 December and 2 January, but for fixes of an incident.",
    ),
    "incident": (
        "operations/incidents.md",
        ("Incidents", "First steps"),
        "Declare the incident in the channel, name a lead, and write down what you see before you change it.",
    ),
    "hostile": (HOSTILE, (HOSTILE,), HOSTILE),
}
QUERIES: list[Json] = [
    {
        "id": "log-retention",
        "query": "How long do we keep access logs?",
        "expected_chunk_ids": ["logs"],
        "must_contain": ["30 days"],
        "forbidden": ["90 days"],
        "expected_answer": "kept for 30 days",
        "tags": ["operations"],
        "difficulty": "easy",
    },
    {
        "id": "rotate-keys",
        "query": "How do I rotate an API key without downtime?",
        "expected_chunk_ids": ["keys"],
        "expected_answer": "revoke the old key after a day",
        "tags": ["security"],
        "difficulty": "hard",
    },
    {"id": "first-login", "query": "What do I need for my first VPN login?", "expected_chunk_ids": ["vpn"]},
    {
        "id": "restore/backup #2",
        "query": "How do I restore a backup, and when is it made?",
        "expected_chunk_ids": ["backup", "schedule"],
        "require": "all",
        "tags": ["operations"],
    },
    {"id": "partly", "query": "What about backups?", "expected_chunk_ids": ["backup", "schedule"]},
    {
        "id": "parental-leave",
        "query": "How many weeks of parental leave are there?",
        "expected_chunk_ids": ["leave"],
        "forbidden_chunk_ids": ["draft"],
        "claims": ["sixteen weeks"],
        "tags": ["people"],
    },
    {"id": "salary", "query": "What does my colleague earn?", "expected_doc_ids": [], "tags": ["people"]},
    {
        "id": "incident",
        "query": "Production is down. What now?",
        "expected_chunk_ids": ["incident"],
        "must_contain": ["Declare the incident"],
    },
    {
        "id": "freeze",
        "query": "When may I not deploy?",
        "expected_chunk_ids": ["freeze"],
        "claims": ["20 December"],
    },
    {
        "id": "passwords",
        "query": "How long must a password be?",
        "expected_chunk_ids": ["passwords"],
        "must_rank_at_most": 1,
        "xfail": {"reason": "the reranker prefers keys to passwords", "until": "2099-01-01"},
    },
    {"id": "timeout", "query": "Where are the metrics?", "expected_chunk_ids": ["metrics"], "lang": "en"},
    {
        "id": "same",
        "query": "When is the deploy freeze?",
        "expected_chunk_ids": ["freeze"],
        "difficulty": "easy",
    },
    {
        "id": HOSTILE,
        "query": HOSTILE,
        "expected_chunk_ids": ["hostile"],
        "must_contain": [HOSTILE],
        "forbidden": ["<script>"],
        "tags": [HOSTILE],
    },
]
KEPT = "Access logs are kept for 30 days, audit logs for one year [1]. After that they are deleted."
WRONG = "Access logs are kept for 90 days, audit logs for one year [1]. After that they are thinned."
STEPS = "Declare the incident in the channel, then name a lead [1]. " + LONG


def chunk_id(name: str, chunker: str = "v1") -> str:
    """The id of a passage in an index."""
    return hashlib.sha256(f"{chunker}/{name}".encode()).hexdigest()[:16]


def cited(name: str) -> Json:
    """A citation of a passage."""
    return line(PASSAGES[name][0], 1, 4)


def good(query_id: str) -> Json:
    """What a query has where nothing is wrong."""
    found: dict[str, Json] = {
        "log-retention": {
            "hits": ["logs", "metrics", "incident"],
            "answer": answer(KEPT, cites=[cited("logs")]),
        },
        "rotate-keys": {"hits": ["keys", "passwords", "vpn"]},
        "first-login": {"hits": ["vpn", "passwords", "keys"]},
        "restore/backup #2": {"hits": ["backup", "schedule", "freeze"]},
        "partly": {"hits": ["schedule", "backup"]},
        "parental-leave": {
            "hits": ["leave", "freeze"],
            "answer": answer("There are sixteen weeks of paid leave [1].", cites=[cited("leave")]),
        },
        "salary": {
            "hits": ["leave"],
            "answer": answer("I cannot say.", grounded=False, refusal_reason="private"),
        },
        "incident": {"hits": ["incident", "logs"], "answer": answer(STEPS, cites=[cited("incident")])},
        "freeze": {
            "hits": ["freeze", "schedule"],
            "answer": answer("Not between 20 December and 2 January [1].", cites=[cited("freeze")]),
        },
        "passwords": {"hits": ["passwords", "keys"]},
        "timeout": {"hits": ["metrics", "logs"]},
        "same": {"hits": ["freeze", "incident"]},
        HOSTILE: {"hits": ["hostile", "logs"], "answer": answer(HOSTILE, cites=[line(HOSTILE, 1, 2)])},
    }
    return found[query_id]


BROKEN: dict[str, Json] = {
    "log-retention": {
        "hits": ["logs", "metrics", "incident"],
        "answer": answer(WRONG, cites=[line("wiki/logs.md", 3, 9)]),
    },
    "rotate-keys": {"hits": ["passwords", "vpn", "incident"]},
    "first-login": {"hits": ["keys", "passwords", "vpn"]},
    "restore/backup #2": {"hits": ["freeze", "backup", "incident"]},
    "partly": {"hits": ["backup", "freeze"]},
    "parental-leave": {
        "hits": ["draft", "leave"],
        "answer": answer("There are eighteen weeks of paid leave [1].", cites=[cited("draft")]),
    },
    "salary": {"hits": ["leave"], "answer": answer("They earn as much as the pay scale says.")},
    "incident": {
        "hits": ["incident"],
        "answer": answer("I do not know.", grounded=False, refusal_reason="score_gate"),
    },
    "passwords": {"hits": ["keys", "passwords"]},
    "timeout": {
        "hits": [],
        "error": f"TimeoutError: no answer within 30 s from {HOSTILE}",
        "timed_out": True,
    },
    HOSTILE: {"hits": ["logs"], "answer": answer(f"No. {HOSTILE}", cites=[line(HOSTILE, 1, 2)])},
}


def write_handbook_golden(path: Path, filler: int = 0) -> Path:
    """The golden file; `filler` queries more, which always pass."""
    entries = [
        query | {key: [chunk_id(name) for name in query[key]] for key in query if key.endswith("chunk_ids")}
        for query in QUERIES
    ]
    entries += [
        {
            "id": f"filler-{n:03}",
            "query": f"Question number {n} about deploys?",
            "expected_chunk_ids": [chunk_id("freeze")],
        }
        for n in range(filler)
    ]
    return write_golden(path, entries)


def record_run(
    db: Path, run_id: str, broken: Sequence[str] = (), chunker: str = "v1", filler: int = 0, **config: Any
) -> None:
    """A run in which some of the queries are broken."""
    chunks = [
        {
            "chunk_id": chunk_id(name, chunker),
            "doc_id": path,
            "path": path,
            "heading_path": list(headings),
            "text": text,
            "start": 1,
            "end": 4,
        }
        for name, (path, headings, text) in PASSAGES.items()
    ]
    settings: Mapping[str, Any] = {"chunker_version": chunker, **config}
    with RunRecorder(
        db,
        suite="handbook",
        run_id=run_id,
        config=settings,
        chunks=chunks,
        commit_hash=hashlib.sha256(run_id.encode()).hexdigest()[:40],
        branch="main",
        progress=False,
    ) as run:
        for number, query in enumerate(QUERIES):
            result = (BROKEN if query["id"] in broken else {}).get(query["id"]) or good(query["id"])
            hits = [
                {"chunk_id": chunk_id(name, chunker), "score": round(0.9 / (n + 1), 4)}
                for n, name in enumerate(result["hits"])
            ]
            run.record(
                query["id"],
                **result | {"hits": hits},
                query=query["query"],
                elapsed_ms=120 + 31 * number + len(broken),
            )
        for n in range(filler):
            run.record(
                f"filler-{n:03}",
                hits=[chunk_id("freeze", chunker), chunk_id("incident", chunker)],
                elapsed_ms=90 + n,
            )


# -- the pages of all that ------------------------------------------------------------------------

OLD: Json = {"embedding": {"model": "minilm-l6", "dimensions": 384}, "prompt_template_version": "p3"}
NEW: Json = {
    "embedding": {"model": "e5-small-v2", "dimensions": 384},
    "prompt_template_version": "p4",
    "rrf_k": 30,
}
GATES = ("hit@3 >= 0.80", "delta mrr >= -5%", "error_rate <= 0")
COMPARISONS = {  # names of pages, and of the runs that they compare
    "report.html": ("main-4", "candidate"),
    "alone.html": (None, "candidate"),
    "replicates.html": ("main-1,main-2,main-3", "candidate,again"),
    "chunker.html": ("main-4", "rechunked"),
}


def write_pages(directory: Path, filler: int = 50) -> None:
    """Pages of comparisons, and a page of all runs, in a directory."""
    db, golden = directory / "kebab.sqlite", write_handbook_golden(directory / "golden.yaml", filler)
    for number, broken in enumerate(([], ["first-login"], ["partly"], []), 1):
        record_run(db, f"main-{number}", broken, filler=filler, **OLD)
    record_run(db, "rechunked", ["rotate-keys"], "v2", filler, **OLD)
    record_run(db, "candidate", [*BROKEN], filler=filler, **NEW)
    record_run(db, "again", [name for name in BROKEN if name != "salary"], filler=filler, **NEW)
    for name, (run_a, run_b) in COMPARISONS.items():
        settings = Settings(run_a, run_b, db, db, golden, gates=GATES if run_a else ())
        inputs, briefs = find_inputs(settings), Briefs()
        report = evaluate(settings, inputs, observer=briefs).report
        source = ReportSource(settings, inputs, report, report_context(report), briefs)
        with (directory / name).open("w", encoding="utf-8") as page:
            page.writelines(render("html", source, []))
    write_site(directory / "site", db, load_golden_set(golden))


if __name__ == "__main__":
    made = Path(sys.argv[1])
    made.mkdir(parents=True)
    write_pages(made)
