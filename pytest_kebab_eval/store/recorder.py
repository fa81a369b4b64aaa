"""Recording a run, query by query; it is stored when all of it is there. The end says how it is called."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, SupportsFloat
from uuid import UUID

import msgspec

from pytest_kebab_eval.errors import InputError, KebabEvalError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.model import QueryResult, Recorded, Run, Unreadable
from pytest_kebab_eval.store import backend_of, has_run, open_database
from pytest_kebab_eval.store.address import Address, files_of, shown_address, to_address
from pytest_kebab_eval.store.database import RECORDED_KEY, check_text
from pytest_kebab_eval.store.given import AnswerLike, HitLike
from pytest_kebab_eval.store.new_chunks import ChunkRow, to_chunk_rows
from pytest_kebab_eval.store.plain import (
    JsonError,
    encode_json,
    error_text,
    id_text,
    in_words,
    is_unicode,
    to_stored,
    with_parts,
)
from pytest_kebab_eval.store.results import decode_result
from pytest_kebab_eval.store.sql import RunIsThere
from pytest_kebab_eval.store.staging import RUNS_DIR, Head, RecordedTwice, Staging, staging_path
from pytest_kebab_eval.store.working_tree import working_tree
from pytest_kebab_eval.text import brief, pattern, printable, safe_lines
from pytest_kebab_eval.text.folding import fold_id
from pytest_kebab_eval.text.masking import mask_config, mask_text
from pytest_kebab_eval.text.progress import Progress

if TYPE_CHECKING:
    from typing_extensions import Self

_WAY_TO_NAME_RUNS = pattern(r"latest(@.*|~\d+)?|(commit|tag):.*|.*,.*", re.DOTALL)
PROGRESS_DELAY_S = 2.0


def _query_id(given: str | int | UUID | PurePath) -> str:
    name = id_text(given, "the id of a query")
    return fold_id(name) or name


class Recording:
    """Takes the results of a run; what is recorded here is checked, and dropped."""

    def __init__(self, mask: bool | Sequence[str] = True) -> None:
        self.config: dict[str, Any] = {}
        self._ids: set[str] = set()
        self._mask = _patterns(mask)
        self._documents: dict[str, Any] = {}  # by chunk id, where the chunks are known

    def record(
        self,
        query_id: str | int | UUID | PurePath,
        hits: Iterable[HitLike] | Mapping[Any, Any] = (),
        answer: AnswerLike | None = None,
        *,
        query: str = "",
        grounded: bool | None = None,
        citations: Iterable[Any] | None = None,
        error: str | BaseException | None = None,
        elapsed_ms: SupportsFloat | None = None,
        mode: str | None = None,
        scope: Mapping[str, Any] | None = None,
        timings_ms: Mapping[str, SupportsFloat] | None = None,
        timed_out: bool | None = None,
        cost_usd: SupportsFloat | None = None,
        judge: Mapping[str, Any] | None = None,
        **unknown: NoReturn,
    ) -> None:
        """Record the result of a query; an `InputError` if a part is misspelt or has the wrong shape."""
        name = _query_id(query_id)
        if self._mask is not None and isinstance(error, (str, BaseException)):
            error = mask_text(error_text(error) or "")  # errors of databases quote passwords
        optional = {
            "mode": mode,
            "scope": scope,
            "timings_ms": timings_ms,
            "timed_out": timed_out,
            "cost_usd": cost_usd,
            "judge": judge,
        }
        given = {key: value for key, value in optional.items() if value is not None}
        fields: dict[str, Any] = {
            "query": query,
            "elapsed_ms": elapsed_ms,
            "error": error,
            **given,
            **unknown,
        }
        of_answer = {"grounded": grounded, "citations": citations}
        whole = with_parts(answer, {key: value for key, value in of_answer.items() if value is not None})
        self.record_json(name, to_stored(name, hits, whole, documents=self._documents, **fields))

    def record_json(self, query_id: str, result_json: bytes) -> None:
        """Record a `result_json` as it is; an `InputError` if it could not be read back."""
        query_id = fold_id(query_id) or query_id
        result = decode_result(query_id, result_json)
        try:
            result_json.decode()  # also in fields that nobody reads
        except UnicodeDecodeError as error:
            if not isinstance(result, Unreadable):
                result = Unreadable(query_id, f"it is not UTF-8 at byte {error.start}")
        if isinstance(result, Unreadable):
            raise InputError(f"query '{printable(query_id)}' cannot be recorded: {in_words(result.reason)}")
        check_text(query_id, "the query id")
        self._keep(query_id, result, result_json)

    def chunks(self, chunks: Iterable[Mapping[str, Any]]) -> None:
        """Give the chunks of the index, which are stored with the run."""
        rows = to_chunk_rows(chunks)
        self._keep_chunks(rows)
        self._documents = {row.chunk_id: {"doc_id": row.doc_id, "doc_path": row.path} for row in rows}

    def has(self, query_id: str | int | UUID | PurePath) -> bool:
        """Whether the query has a result already."""
        return _query_id(query_id) in self._ids

    def _keep(self, query_id: str, result: QueryResult, result_json: bytes) -> None:  # noqa: ARG002  dropped
        self._ids.add(query_id)

    def _keep_chunks(self, rows: Sequence[ChunkRow]) -> None:
        """Nothing is kept here."""

    def _as_stored(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """A configuration as JSON holds it, without its secrets."""
        config: dict[str, Any] = msgspec.json.decode(encode_json("config", given))
        return config if self._mask is None else mask_config(config, self._mask).config


class StagedRecording(Recording):
    """Takes the results of a run into a staging file, which other processes may write to."""

    def __init__(self, staging: Staging, mask: bool | Sequence[str] = True) -> None:
        super().__init__(mask)
        self.staging = staging
        self._sent_config = b"{}"

    def has(self, query_id: str | int | UUID | PurePath) -> bool:
        return _query_id(query_id) in self.staging

    def update_config(self, *, has_results: bool) -> None:
        """Keep the configuration as it is now; an `InputError` if it is not that of results before."""
        encoded = encode_json("config", self.config)
        if encoded != self._sent_config or (has_results and self.staging.goes_on):
            self.staging.update_config(self._as_stored(self.config), has_results=has_results)
            self._sent_config = encoded

    def _keep(self, query_id: str, result: QueryResult, result_json: bytes) -> None:  # noqa: ARG002
        with suppress(JsonError):  # of a configuration that is no JSON yet; at the end it is an error
            self.update_config(has_results=True)
        try:
            self.staging.add(query_id, result_json)
        except RecordedTwice as error:  # nobody can tell which of the two is meant
            self.staging.set("refusal", str(error))
            raise

    def _keep_chunks(self, rows: Sequence[ChunkRow]) -> None:
        self.staging.set_chunks(rows)


class RunRecorder(Recording):
    """Records a run as a context manager; the run is stored when the block ends, unless it raises.

        with RunRecorder("eval.sqlite", suite="docs", config={"chunker_version": "v2"}) as run:
            for query in load_golden_set("golden.yaml").queries:
                run.record(query.id, hits=retriever.search(query.query))

    Hits are ids, pairs of an id and a score or a document id, whole hits, or hits of LangChain, LlamaIndex,
    Haystack or Elasticsearch, best first; or a mapping of scores by id. `chunks` are those of the index.
    What looks like a secret in the configuration is stored as `***`, as is what the patterns of `mask` match.

    Until the run is stored, its results are kept in a file beside the database (for PostgreSQL, in
    `runs_dir`). If the process is killed, or the block raises, `resume=True` goes on with them, and
    `run.has(query_id)` says which queries are there; it refuses if suite, commit, configuration or golden
    file have changed. `golden`, a file or what was loaded of it, also says how many queries there will be.
    `progress` is shown on a terminal: from the start (True), if recording takes a while (None), or never.
    """

    keeps_unfinished = True  # False: nothing is left of a run that is not stored

    def __init__(
        self,
        db: str | Address,
        suite: str = "default",
        config: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        commit_hash: str | None = None,
        branch: str | None = None,
        chunks: Iterable[Mapping[str, Any]] | None = None,
        resume: bool = False,
        *,
        mask: bool | Sequence[str] = True,
        golden: GoldenSet | str | Path | None = None,
        progress: bool | None = None,
        runs_dir: str | Path = RUNS_DIR,
    ) -> None:
        super().__init__(mask)
        self.db = to_address(db)
        self.suite = suite
        self.config = dict(config or {})
        if resume and run_id is None:
            raise InputError("resume=True needs the run_id of the run to go on with")
        self.run_id = new_run_id() if run_id is None else run_id
        check_names(self.run_id, suite)
        self._given_commit = commit_hash
        self._tree = working_tree(self.db)
        self.commit_hash = commit_hash if commit_hash is not None else self._tree.commit
        self._branch = branch if branch is not None else self._tree.branch
        self.partial: str | None = None  # the selection of tests that the run is recorded from
        self._chunks: Sequence[ChunkRow] | None = None
        if chunks is not None:
            self.chunks(chunks)
        self._resume = resume
        self._golden = load_golden_set(golden) if isinstance(golden, (str, Path)) else golden
        self._shows_progress = progress
        self._runs_dir = Path(runs_dir)
        self.is_stored = False
        self._staging: Staging | None = None
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.store()
            return
        if self.kept and hasattr(error, "add_note"):  # Python 3.11
            error.add_note(safe_lines(f"kebab-eval: run {self.run_id} is not stored; {self.kept}"))
        self.close()

    # -- what the with block does, one by one ------------------------------------------------------

    def open(self) -> None:
        """Start to record, or go on; an `InputError` if the run could not be stored in the end."""
        self.is_stored = False
        path = staging_path(self.db, self.run_id, self._runs_dir) if self.keeps_unfinished else None
        was_stored = self._resume and path is not None and path.exists() and has_run(self.db, self.run_id)
        if not was_stored:
            backend_of(self.db).check_recordable(self.run_id, with_chunks=self._chunks is not None)
        staging = Staging(path)
        golden = self._golden.fingerprint if self._golden else None
        store = "" if files_of(self.db) else shown_address(self.db)
        head = Head(self.run_id, self.suite, store, self._as_stored(self.config), golden, self.commit_hash)
        try:
            begun = staging.begin(head, resume=self._resume, like=files_of(self.db))
            if staging.goes_on:
                self.commit_hash = begun.commit_hash or self.commit_hash
                self.config = {**staging.config, **self.config}
            if was_stored:  # by a process that was killed before it could remove the file
                with open_database(self.db) as database:
                    self.is_stored = database.holds(self.run_id, staging)
                if not self.is_stored:
                    backend_of(self.db).check_recordable(self.run_id)  # which says that the run is there
        except BaseException:
            staging.close()
            raise
        self._staging = staging
        if self._shows_progress is not False:
            total = len(self._golden.queries) if self._golden else None
            delay = 0.0 if self._shows_progress else PROGRESS_DELAY_S
            label = f"recording {self.run_id}"
            self._progress = Progress(label, total, done=len(staging), delay_s=delay)

    def store(self) -> None:
        """Store the run, and remove what was kept of it; an error keeps it."""
        staging = self.staging
        try:
            if not len(staging):  # which would pass for a run in which there was nothing to lose
                raise InputError(f"run {printable(self.run_id)} is not stored: nothing was recorded in it")
            if not self.is_stored:
                is_dirty = self._tree.is_dirty_for(self.commit_hash, is_given=self._given_commit is not None)
                config = self._as_stored(self.config) | _recorded(self._branch, is_dirty, self.partial)
                run = Run(self.run_id, self.suite, config, self.commit_hash)
                chunks = staging.chunks() if self._chunks is None else self._chunks
                with staging.sealed():
                    backend_of(self.db).write_run(run, staging, chunks)
            self.is_stored = True
        except RunIsThere as error:  # another recorder stored it meanwhile: there is nothing to go on with
            kept = f"; {staging.whereabouts}, which can be deleted" if staging.path else ""
            raise RunIsThere(f"{error}{kept}") from None
        except KebabEvalError as error:
            raise type(error)(f"{error}; {self.kept}" if self.kept else str(error)) from None
        finally:
            self.close()

    def close(self) -> None:
        """Stop recording; what is recorded is kept for `resume=True`, unless the run is stored."""
        staging, self._staging = self._staging, None
        progress, self._progress = self._progress, None
        if progress is not None:
            progress.close()
        if staging is not None:
            if self.is_stored or not staging.kept:
                staging.remove()
            else:
                staging.close()

    # -- what is recorded ----------------------------------------------------------------------------

    @property
    def staging(self) -> Staging:
        if self._staging is None:
            raise InputError("a RunRecorder records inside its with block")
        return self._staging

    def has(self, query_id: str | int | UUID | PurePath) -> bool:
        return self._staging is not None and _query_id(query_id) in self._staging

    @property
    def kept(self) -> str:
        """Where the results are that are kept, in words; empty if none are."""
        return self._staging.kept if self._staging is not None else ""

    def _keep(self, query_id: str, result: QueryResult, result_json: bytes) -> None:
        staging, name = self.staging, printable(query_id)
        if self.is_stored and query_id not in staging:
            raise InputError(f"run {printable(self.run_id)} is stored already, without query '{name}'")
        staging.add(query_id, result_json)
        if self._progress is not None:
            self._progress.advance(errors=result.error is not None)

    def _keep_chunks(self, rows: Sequence[ChunkRow]) -> None:
        if self._chunks is not None and self._chunks != rows:
            raise InputError("the chunks of the index were given before, and they were others")
        self._chunks = rows


def _recorded(branch: str | None, is_dirty: bool | None, partial: str | None) -> dict[str, Any]:
    """How the run is recorded, as it is stored with the configuration; nothing if nothing is known."""
    recorded = Recorded(branch, is_dirty, partial)
    found: dict[str, Any] = msgspec.to_builtins(recorded)
    return {RECORDED_KEY: found} if found else {}


def _patterns(mask: bool | Sequence[str]) -> Sequence[str] | None:
    """The patterns to mask by, beside what looks like a secret; None to mask nothing."""
    if isinstance(mask, bool):
        return () if mask else None
    if isinstance(mask, str) or not all(isinstance(part, str) and part for part in mask):
        raise InputError(f"mask is {brief(repr(mask), 60)}; give True, False or a list of patterns for keys")
    return tuple(mask)


# -- what a run is called ------------------------------------------------------------------------------


def new_run_id() -> str:
    """`run_` and a UUID of version 7, so that ids sort by time."""
    milliseconds = time.time_ns() // 1_000_000
    noise = int.from_bytes(os.urandom(10), "big")
    high = (milliseconds << 16) | 0x7000 | (noise >> 68)  # the time, the version, 12 bits of noise
    low = (0b10 << 62) | (noise & ((1 << 62) - 1))  # the variant, 62 bits of noise
    return f"run_{high:016x}{low:016x}"


def check_names(run_id: str, suite: str) -> None:
    """Raise an `InputError` for a run id or a suite that cannot be stored."""
    for name, text in (("run id", run_id), ("suite", suite)):
        if not isinstance(text, str) or not text.strip() or not is_unicode(text):
            raise InputError(f"{brief(repr(text), 60)} is no {name}")
    if _WAY_TO_NAME_RUNS.fullmatch(run_id):
        raise InputError(f"'{printable(run_id)}' is a way to name runs, so no run can have it as its id")
