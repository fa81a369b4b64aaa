"""The lock file beside a golden file: spans and texts of the expected chunks, and their chunker version."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden.values import read_file
from pytest_kebab_eval.model import Span, Value
from pytest_kebab_eval.text import brief, shown_path
from pytest_kebab_eval.text.folding import are_folded, fold_id


class LockedChunk(Value, frozen=True):
    """One expected chunk: its document, its source spans, and its text."""

    doc_id: str | None = None
    spans: tuple[Span, ...] = ()
    text: str | None = None
    # Of a chunk that a re-anchoring left: its own chunker, empty if that is not known. Else it is the lock's.
    chunker_version: str | None = None


class Lock(Value, frozen=True):
    """The content of a lock file."""

    chunker_version: str | None = None
    chunks: dict[str, LockedChunk] = msgspec.field(default_factory=dict)

    def version_of(self, chunk_id: str) -> str | None:
        """The chunker of a chunk; None if it is not known."""
        chunk = self.chunks.get(chunk_id)
        own = chunk.chunker_version if chunk else None
        return self.chunker_version if own is None else own or None

    def joined_with(self, new: Lock) -> Lock:
        """This lock, with the chunks of a newer one that it does not have, each with its own version."""
        more = {
            name: msgspec.structs.replace(chunk, chunker_version=new.version_of(name) or "")
            for name, chunk in new.chunks.items()
        }
        return Lock(self.chunker_version, more | self.chunks)

    def left(self) -> set[str]:
        """The chunks that are of another chunker than the lock: a re-anchoring left them."""
        return {name for name, chunk in self.chunks.items() if chunk.chunker_version is not None}


def lock_path(golden: Path) -> Path:
    """`golden_queries.yaml` -> `golden_queries.lock.json`."""
    return golden.with_name(f"{golden.stem}.lock.json")


def read_lock(path: Path) -> Lock | None:
    """The lock file, or None where there is none."""
    try:
        data = read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise GoldenError(f"cannot read the lock file {shown_path(path)}: {error.strerror}") from None
    try:
        lock = msgspec.json.decode(data, type=Lock)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        what = f"this is not a lock file: {brief(str(error), 120)}; fix it, or delete it to go without"
        raise GoldenError(f"{shown_path(path)}: {what}") from None
    if are_folded(lock.chunks):
        return lock
    return Lock(lock.chunker_version, {fold_id(name): chunk for name, chunk in lock.chunks.items()})


def render_lock(lock: Lock) -> str:
    """A lock file's text: one chunk a line, sorted by id, so that its diff can be reviewed."""
    chunks = []
    for chunk_id, chunk in sorted(lock.chunks.items()):
        fields = msgspec.to_builtins(chunk).items()
        known = {key: value for key, value in fields if value is not None or key == "doc_id"}
        chunks.append(f"    {_json(chunk_id)}: {_json(known)}")
    body = ",\n".join(chunks)
    return f'{{\n  "chunker_version": {_json(lock.chunker_version)},\n  "chunks": {{\n{body}\n  }}\n}}\n'


def _json(value: object) -> str:
    return json.dumps(_whole_numbers(value), ensure_ascii=False)


def _whole_numbers(value: object) -> object:
    """Whole floats as integers: a line is 12, not 12.0."""
    if isinstance(value, dict):
        return {key: _whole_numbers(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_numbers(element) for element in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
