"""Recording a run, query by query; it is stored when all of it is there."""

from __future__ import annotations

import datetime
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import PurePath
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.files import temporary_file
from pytest_kebab_eval.model import Run, Unreadable
from pytest_kebab_eval.store.address import Address, to_address
from pytest_kebab_eval.store.answers import AnswerLike
from pytest_kebab_eval.store.backend import backend_of
from pytest_kebab_eval.store.hits import HitLike
from pytest_kebab_eval.store.new_chunks import to_chunk_rows
from pytest_kebab_eval.store.new_runs import check_recordable, write_run
from pytest_kebab_eval.store.plain import id_text
from pytest_kebab_eval.store.results import decode_result, encode_json, error_text, in_words, to_stored
from pytest_kebab_eval.text import brief, printable
from pytest_kebab_eval.text.masking import mask_config, mask_text

if TYPE_CHECKING:
    from typing_extensions import Self


class Recording:
    """The results of a run that is being recorded, in memory; `config` is its configuration."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.rows: list[tuple[str, bytes]] = []
        self._mask: Sequence[str] | None = ()
        self._documents: dict[str, Any] = {}  # by chunk id, where the chunks are known

    def record(
        self,
        query_id: str | int | UUID | PurePath,
        hits: Iterable[HitLike] | Mapping[Any, Any] = (),
        answer: AnswerLike | None = None,
        *,
        query: str = "",
        error: str | BaseException | None = None,
        elapsed_ms: float | None = None,
        **more: Any,
    ) -> None:
        """Record the result of a query; `more` may be mode, scope, timings_ms, timed_out, cost_usd, judge."""
        name = id_text(query_id, "the id of a query")
        fields = {"query": query, "elapsed_ms": elapsed_ms, "error": self._without_secrets(error), **more}
        self.record_json(name, to_stored(name, hits, answer, documents=self._documents, **fields))

    def record_json(self, query_id: str, result_json: bytes) -> None:
        """Record a `result_json` as it is; an `InputError` if it could not be read back."""
        result = decode_result(query_id, result_json)
        reason = result.reason if isinstance(result, Unreadable) else _not_utf8(result_json)
        if reason:
            raise InputError(f"query '{printable(query_id)}' cannot be recorded: {in_words(reason)}")
        self._keep(query_id, result_json)

    def _keep(self, query_id: str, result_json: bytes) -> None:
        self.rows.append((query_id, result_json))

    def _without_secrets(self, error: str | BaseException | None) -> str | BaseException | None:
        """What went wrong, without the passwords that errors of databases quote."""
        if self._mask is None or not isinstance(error, (str, BaseException)):
            return error
        return mask_text(error_text(error) or "")


class RunRecorder(Recording):
    """Records a run as a context manager; the run is stored when the block ends, unless it raises.

        with RunRecorder("eval.sqlite", suite="docs", config={"chunker_version": "v2"}) as run:
            for query in load_golden_set("golden.yaml").queries:
                run.record(query.id, hits=retriever.search(query.query))

    Hits are ids, pairs of an id and a score or a document id, whole hits, or hits of LangChain, LlamaIndex,
    Haystack or Elasticsearch, best first; or a mapping of scores by id. `chunks` are those of the index.
    What looks like a secret in the configuration is stored as `***`, and so is what the patterns of `mask`
    match; with `mask=False` it is stored as it is.
    """

    def __init__(
        self,
        db: str | Address,
        suite: str = "default",
        config: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        commit_hash: str | None = None,
        chunks: Iterable[Mapping[str, Any]] | None = None,
        *,
        mask: bool | Sequence[str] = True,
    ) -> None:
        super().__init__()
        self.db = to_address(db)
        self.suite = suite
        self.config = dict(config or {})
        self._mask = _patterns(mask)
        self.run_id = new_run_id() if run_id is None else run_id
        _check_names(self.run_id, suite)
        self.commit_hash = commit_hash if commit_hash is not None else _current_commit()
        self._chunks = None if chunks is None else to_chunk_rows(chunks)
        self._documents = {
            row.chunk_id: {"doc_id": row.doc_id, "doc_path": row.path} for row in self._chunks or ()
        }
        self.is_stored = False
        self._spool: _Spool | None = None
        self._ids: set[str] = set()

    def __enter__(self) -> Self:
        check_recordable(self.db, self.run_id, with_chunks=self._chunks is not None)
        self._spool = _Spool()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        spool, self._spool = self._spool, None
        if spool is not None:
            try:
                if kind is None:
                    self._check_recorded()
                    write_run(self.db, self._run(), spool, self._chunks)
                    self.is_stored = True
            finally:
                spool.close()

    def _check_recorded(self) -> None:
        """A run without results would pass for one in which there was nothing to lose."""
        if not self._ids:
            raise InputError(f"run {printable(self.run_id)} is not stored: nothing was recorded in it")

    def _run(self) -> Run:
        now = datetime.datetime.now(datetime.timezone.utc)
        return Run(
            run_id=self.run_id,
            suite=self.suite,
            config=self._stored_config(),
            commit_hash=self.commit_hash,
            created_at=now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        )

    def _stored_config(self) -> dict[str, Any]:
        """The configuration as JSON holds it, without its secrets."""
        config: dict[str, Any] = msgspec.json.decode(encode_json("config", self.config))
        return config if self._mask is None else mask_config(config, self._mask, ["chunker_version"]).config

    def _keep(self, query_id: str, result_json: bytes) -> None:
        if self._spool is None:
            raise InputError("a RunRecorder records inside its with block")
        if query_id in self._ids:
            raise InputError(
                f"query '{printable(query_id)}' is recorded twice in run {printable(self.run_id)}"
            )
        backend_of(self.db).check_text(query_id, "the query id")
        self._ids.add(query_id)
        self._spool.add(query_id, result_json)


class _Spool:
    """Rows in a temporary file without a name, which disappears with the process, however it ends."""

    def __init__(self) -> None:
        with _temporary_file_errors():
            self._file = temporary_file()

    def add(self, query_id: str, result_json: bytes) -> None:
        name = query_id.encode("utf-8")
        with _temporary_file_errors():
            self._file.write(b"%d %d\n" % (len(name), len(result_json)) + name + result_json)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        with _temporary_file_errors():
            self._file.seek(0)
        while header := self._file.readline():
            name_length, length = map(int, header.split())
            yield self._file.read(name_length).decode("utf-8"), self._file.read(length)

    def close(self) -> None:
        with suppress(OSError):  # what is still to be written is not needed any more
            self._file.close()


@contextmanager
def _temporary_file_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"the run was not recorded: {error.strerror or error}") from None


def new_run_id() -> str:
    """`run_` and a UUID of version 7, so that ids sort by time."""
    milliseconds = time.time_ns() // 1_000_000
    noise = int.from_bytes(os.urandom(10), "big")
    high = (milliseconds << 16) | 0x7000 | (noise >> 68)  # the time, the version, 12 bits of noise
    low = (0b10 << 62) | (noise & ((1 << 62) - 1))  # the variant, 62 bits of noise
    return f"run_{high:016x}{low:016x}"


def _check_names(run_id: str, suite: str) -> None:
    for name, text in (("run id", run_id), ("suite", suite)):
        if not isinstance(text, str) or not text.strip() or not _is_unicode(text):
            raise InputError(f"{brief(repr(text), 60)} is no {name}")
    if re.fullmatch(r"latest(~\d+)?|commit:.*", run_id):
        raise InputError(f"'{printable(run_id)}' is a way to name runs, so no run can have it as its id")


def _patterns(mask: bool | Sequence[str]) -> Sequence[str] | None:
    """The patterns to mask by, beside what looks like a secret; None to mask nothing."""
    if isinstance(mask, bool):
        return () if mask else None
    if isinstance(mask, str) or not all(isinstance(pattern, str) and pattern for pattern in mask):
        raise InputError(f"mask is {brief(repr(mask), 60)}; give True, False or a list of patterns for keys")
    return tuple(mask)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _not_utf8(data: bytes) -> str:
    """Where the bytes are not UTF-8, also in fields that nobody reads; empty if they are."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"it is not UTF-8 at byte {error.start}"
    return ""


def _current_commit() -> str | None:
    """The commit of the working directory, if it is in a git repository."""
    import subprocess

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
