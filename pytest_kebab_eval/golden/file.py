"""A golden file (YAML, JSON or JSONL) and the lock file beside it -> a `GoldenSet`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden.lock import Lock, lock_path, read_lock
from pytest_kebab_eval.golden.queries import check_entries
from pytest_kebab_eval.golden.values import ParseError, Problem, decode_utf8, entries_of, read_file
from pytest_kebab_eval.model import GoldenQuery, Value
from pytest_kebab_eval.text import shown_path

MAX_PROBLEMS_SHOWN = 50

_encode_sorted = msgspec.json.Encoder(order="sorted").encode


class GoldenSet(Value, frozen=True, dict=True, gc=True):
    """The golden queries of one file, in the file's order, and its lock file if there is one."""

    path: Path
    queries: Sequence[GoldenQuery]
    lock: Lock | None = None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the queries' content; their order, the layout, comments and xfail do not change it."""
        queries = sorted(self.queries, key=lambda query: query.id)
        content = [msgspec.structs.replace(query, line=0, xfail=None) for query in queries]
        return hashlib.sha256(_encode_sorted(content)).hexdigest()

    def unusual(self) -> Sequence[GoldenQuery]:
        """The queries that are in a group or have an xfail, in the file's order."""
        return [query for query in self.queries if query.group is not None or query.xfail is not None]

    def by_id(self) -> Mapping[str, GoldenQuery]:
        return self._by_id

    @cached_property
    def _by_id(self) -> Mapping[str, GoldenQuery]:
        return {query.id: query for query in self.queries}


def load_golden_set(path: str | Path) -> GoldenSet:
    """Read and check a golden file; raises one `GoldenError` that lists everything wrong with it."""
    path = Path(path)
    return GoldenSet(path, parse_golden(path, read_text(path)), read_lock(lock_path(path)))


def parse_golden(path: Path, text: str) -> tuple[GoldenQuery, ...]:
    """The queries of a golden file's text."""
    problems: list[Problem] = []
    try:
        queries = tuple(check_entries(entries_of(text, path.suffix.lower(), problems), problems))
    except ParseError as error:
        raise GoldenError(f"{shown_path(path)}:{error.line}: {error}") from None
    if problems:
        raise GoldenError(describe(path, problems))
    if not queries:
        raise GoldenError(f"{shown_path(path)}:1: there is no query in this file; add one")
    return queries


def read_text(path: Path) -> str:
    """The text of a golden file, with the mark that some editors put at its start."""
    try:
        return decode_utf8(read_file(path))
    except FileNotFoundError:
        raise GoldenError(
            f"there is no golden file {shown_path(path)}; name yours with --kebab-golden=FILE"
        ) from None
    except ParseError as error:
        raise GoldenError(f"{shown_path(path)}:{error.line}: {error}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GoldenError(f"cannot read the golden file {shown_path(path)}: {reason}") from None


def describe(path: Path, problems: list[Problem]) -> str:
    """What is wrong with a file, each with its line."""
    name = shown_path(path)
    lines = [f"{name}:{problem.line}: {problem.text}" for problem in sorted(problems)]
    if len(lines) == 1:
        return lines[0]
    cut = lines[:MAX_PROBLEMS_SHOWN]
    if len(lines) > len(cut):
        cut.append(f"… and {len(lines) - len(cut)} more")
    return "\n  ".join([f"{name} has {len(lines)} problems:", *cut])
