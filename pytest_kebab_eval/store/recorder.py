"""A run, recorded: into a database of our own or one that has the eval tables, whole or not at all."""

from __future__ import annotations

import datetime
import difflib
import math
import os
import re
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

import msgspec

from pytest_kebab_eval.errors import DatabaseError, InputError, StoreError
from pytest_kebab_eval.model import Answer, Hit, Unreadable
from pytest_kebab_eval.store.database import EVAL_TABLES, decode_result
from pytest_kebab_eval.text import brief, printable, shown_path

if TYPE_CHECKING:
    from typing_extensions import Self

RECORD_TIMEOUT_S = 60.0

SCHEMA = (
    """
CREATE TABLE eval_runs (
    run_id TEXT PRIMARY KEY, suite TEXT NOT NULL, config_snapshot_json TEXT NOT NULL,
    aggregate_json TEXT NOT NULL DEFAULT '{}', commit_hash TEXT, created_at TEXT NOT NULL)
""",
    """
CREATE TABLE eval_query_results (
    run_id TEXT NOT NULL REFERENCES eval_runs (run_id), query_id TEXT NOT NULL, result_json TEXT NOT NULL,
    PRIMARY KEY (run_id, query_id))
""",
)

_MORE_FIELDS = ("mode", "scope", "timings_ms", "timed_out", "cost_usd", "judge")

HitLike = str | tuple[str, "float | str"] | Mapping[str, Any] | Hit
AnswerLike = str | Mapping[str, Any] | Answer


class Recording:
    """The results of a run that is being recorded, in memory; `config` is its configuration."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.rows: list[tuple[str, bytes]] = []

    def record(
        self,
        query_id: str,
        hits: Iterable[HitLike] = (),
        answer: AnswerLike | None = None,
        *,
        query: str = "",
        error: str | None = None,
        elapsed_ms: float | None = None,
        **more: Any,
    ) -> None:
        """Record what one query gave; `more` may be mode, scope, timings_ms, timed_out, cost_usd, judge."""
        for name in more:
            if name not in _MORE_FIELDS:
                near = difflib.get_close_matches(name, [*_MORE_FIELDS, "elapsed_ms", "error"], n=1)
                hint = f"; did you mean '{near[0]}'?" if near else f"; there is {', '.join(_MORE_FIELDS)}"
                raise InputError(f"a result has no field '{printable(name)}'{hint}")
        try:
            found, given = _ranked(hits), _answer(answer)
        except InputError as wrong:
            raise InputError(f"query '{printable(str(query_id))}': {wrong}") from None
        result = {
            "query_id": query_id,
            "query": query,
            "mode": "hybrid",
            "hits_top_k": found,
            "answer": given,
            "elapsed_ms": elapsed_ms,
            "error": error,
            **more,
        }
        self.record_json(query_id, _encoded(query_id, result))

    def record_json(self, query_id: str, result_json: bytes) -> None:
        """Record a `result_json` as it is, if it can be read back."""
        readable = decode_result(query_id, result_json)
        reason = readable.reason if isinstance(readable, Unreadable) else _not_text(result_json)
        if reason:
            raise InputError(f"query '{printable(query_id)}' cannot be recorded: {reason}")
        self._keep(query_id, result_json)

    def _keep(self, query_id: str, result_json: bytes) -> None:
        self.rows.append((query_id, result_json))


class RunRecorder(Recording):
    """Records a run as a context manager; nothing of it is in the database until it ends well.

        with RunRecorder("eval.sqlite", suite="docs", config={"chunker_version": "v2"}) as run:
            for query in load_golden_set("golden.yaml").queries:
                run.record(query.id, hits=retriever.search(query.query))

    Hits are ids, pairs of an id and a score or a document id, or whole hits, best first.
    """

    def __init__(
        self,
        db: str | Path,
        suite: str = "default",
        config: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        commit_hash: str | None = None,
    ) -> None:
        super().__init__()
        self.db = Path(db)
        self.suite = suite
        self.config = dict(config or {})
        self.run_id = run_id or new_run_id()
        if re.fullmatch(r"latest(~\d+)?|commit:.*", self.run_id):
            raise InputError(
                f"'{printable(self.run_id)}' is a way to name runs, so no run can have it as its id"
            )
        self.commit_hash = commit_hash if commit_hash is not None else _commit_here()
        for name, text in (("run id", self.run_id), ("suite", suite)):
            if not isinstance(text, str) or not text.strip() or not _is_unicode(text):
                raise InputError(f"{brief(repr(text), 60)} is no {name}")
        self._spool: IO[bytes] | None = None
        self._ids: set[str] = set()

    def __enter__(self) -> Self:
        check_recordable(self.db, self.run_id)
        self._spool = tempfile.TemporaryFile()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        spool, self._spool = self._spool, None
        if spool is not None:
            with spool:
                if kind is None:
                    spool.seek(0)
                    write_run(self, _read_rows(spool))

    def _keep(self, query_id: str, result_json: bytes) -> None:
        """To a file without a name, which is gone when the process is, however it ends."""
        if self._spool is None:
            raise InputError("a RunRecorder records inside its with block")
        if query_id in self._ids:
            raise InputError(
                f"query '{printable(query_id)}' is recorded twice in run {printable(self.run_id)}"
            )
        self._ids.add(query_id)
        name = query_id.encode("utf-8")
        self._spool.write(b"%d %d\n" % (len(name), len(result_json)) + name + result_json)


def check_recordable(db: Path, run_id: str) -> None:
    """Find out early whether a run of that id could be recorded; an `InputError` if not."""
    if db.exists():
        try:
            with closing(_connect(db)) as connection:
                _refuse_existing(connection, run_id, db)
        except (sqlite3.Error, OSError) as error:
            raise DatabaseError(f"cannot record into {shown_path(db)}: {error}") from None


def write_run(recorder: RunRecorder, rows: Iterable[tuple[str, bytes]]) -> None:
    """Store a recorded run in one transaction."""
    now = datetime.datetime.now(datetime.timezone.utc)
    snapshot = _encoded("config", recorder.config)
    with _explained(recorder.db), closing(_connect(recorder.db)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        if not _tables(connection):
            for statement in SCHEMA:
                connection.execute(statement)
        _refuse_existing(connection, recorder.run_id, recorder.db)
        connection.execute(
            "INSERT INTO eval_runs"
            " (run_id, suite, config_snapshot_json, aggregate_json, commit_hash, created_at)"
            " VALUES (?, ?, ?, '{}', ?, ?)",
            (
                recorder.run_id,
                recorder.suite,
                snapshot.decode(),
                recorder.commit_hash,
                now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            ),
        )
        connection.executemany(
            "INSERT INTO eval_query_results (run_id, query_id, result_json) VALUES (?, ?, ?)",
            ((recorder.run_id, query_id, result.decode()) for query_id, result in rows),
        )
        connection.execute("COMMIT")


def new_run_id() -> str:
    """`run_` and a UUID of version 7, so that ids sort by time."""
    milliseconds = time.time_ns() // 1_000_000
    noise = int.from_bytes(os.urandom(10), "big")
    high = (milliseconds << 16) | 0x7000 | (noise >> 68)  # the moment, the version, 12 bits of noise
    low = (0b10 << 62) | (noise & ((1 << 62) - 1))  # the variant, 62 bits of noise
    return f"run_{high:016x}{low:016x}"


# -- shapes of input -----------------------------------------------------------------------------


def _ranked(hits: Iterable[HitLike]) -> list[dict[str, Any]]:
    if isinstance(hits, (str, bytes)) or not isinstance(hits, Iterable):
        raise InputError(f"hits must be a list of hits, not {brief(repr(hits), 40)}")
    return [_hit(rank, hit) for rank, hit in enumerate(hits, start=1)]


def _hit(rank: int, hit: HitLike) -> dict[str, Any]:
    if isinstance(hit, Hit):
        return dict(msgspec.to_builtins(hit))
    if isinstance(hit, str):
        return {"rank": rank, "chunk_id": hit, "doc_id": hit}
    if isinstance(hit, Mapping):
        if not (hit.get("chunk_id") or hit.get("doc_id")):
            raise InputError(f"hit {rank} has neither a chunk_id nor a doc_id: {brief(repr(dict(hit)), 60)}")
        return {"rank": rank, "doc_id": hit.get("chunk_id"), **hit}
    if isinstance(hit, tuple) and len(hit) == 2 and isinstance(hit[1], (str, int, float)):
        chunk_id, other = hit
        if isinstance(other, str):
            return {"rank": rank, "chunk_id": chunk_id, "doc_id": other}
        if not math.isfinite(other):
            raise InputError(f"hit {rank} ({brief(chunk_id, 40)}) has the score {other}, which is no number")
        score = {"retrieval": {"fusion_score": float(other)}}
        return {"rank": rank, "chunk_id": chunk_id, "doc_id": chunk_id, **score}
    raise InputError(
        f"hit {rank} is {brief(repr(hit), 60)}; give an id, a pair of an id and a score or a document id,"
        " or a whole hit"
    )


def _answer(answer: AnswerLike | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    if isinstance(answer, str):
        return {"answer": answer, "grounded": True, "citations": []}
    if not isinstance(answer, (Answer, Mapping)):
        raise InputError(f"an answer is text or a mapping, not {brief(repr(answer), 40)}")
    given = msgspec.to_builtins(answer) if isinstance(answer, Answer) else dict(answer)
    if "answer" not in given:
        raise InputError(
            f"an answer needs its text under 'answer'; it has {', '.join(map(printable, given))}"
        )
    citations = given.get("citations") or ()
    return {"grounded": True, **given, "citations": _citations(citations)}


def _citations(citations: Sequence[Any]) -> list[Any]:
    """Citations as they are; one that is only text is the id of the cited chunk."""
    if isinstance(citations, (str, bytes)) or not isinstance(citations, Iterable):
        raise InputError(f"citations must be a list, not {brief(repr(citations), 40)}")
    return [
        {"marker": f"[{number}]", "citation": None, "chunk_id": one} if isinstance(one, str) else one
        for number, one in enumerate(citations, start=1)
    ]


def _encoded(name: str, value: Any) -> bytes:
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        reason = brief(str(error), 120)
        raise InputError(f"'{printable(name)}' cannot be recorded as JSON: {reason}") from None
    if b"null" in encoded and not _is_finite(msgspec.to_builtins(value)):
        raise InputError(f"'{printable(name)}' cannot be recorded: a number in it is not finite")
    return encoded


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_finite(value: Any) -> bool:
    """Whether no NaN or infinity is in it, which JSON cannot hold."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _not_text(data: bytes) -> str:
    """Why bytes are not text, also in fields that nobody reads; empty if they are."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"it is not UTF-8 at byte {error.start}"
    return ""


def _read_rows(rows: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    while header := rows.readline():
        name_length, length = map(int, header.split())
        yield rows.read(name_length).decode("utf-8"), rows.read(length)


# -- the database --------------------------------------------------------------------------------


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=RECORD_TIMEOUT_S, isolation_level=None)


def _tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    return {str(name) for (name,) in rows}


def _refuse_existing(connection: sqlite3.Connection, run_id: str, path: Path) -> None:
    """A database of somebody else's is never changed; a run that is there is never overwritten."""
    tables = _tables(connection)
    if not tables:
        return
    if not set(EVAL_TABLES) <= tables:
        raise InputError(
            f"{shown_path(path)} is a database of something else: it has no {' and '.join(EVAL_TABLES)}"
            " tables; name another file to record into"
        )
    if connection.execute("SELECT 1 FROM eval_runs WHERE run_id = ?", (run_id,)).fetchone():
        raise InputError(
            f"{shown_path(path)} has a run '{printable(run_id)}' already; name the new one differently"
        )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Words for what SQLite or the file system says while recording."""
    try:
        yield
    except sqlite3.OperationalError as error:
        why = "it is locked by another program" if "locked" in str(error) else str(error)
        raise StoreError(f"the run was not recorded in {shown_path(path)}: {why}") from None
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"the run was not recorded in {shown_path(path)}: {error}") from None


def _commit_here() -> str | None:
    """The commit of the working directory, if it is in a git repository."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
