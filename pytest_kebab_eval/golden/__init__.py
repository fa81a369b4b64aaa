"""A golden file (YAML, JSON or JSONL) and the lock file beside it -> a `GoldenSet`."""

from __future__ import annotations

from pytest_kebab_eval.golden.file import GoldenSet, load_golden_set
from pytest_kebab_eval.golden.lock import Lock, LockedChunk, lock_path, read_lock, render_lock

__all__ = ["GoldenSet", "Lock", "LockedChunk", "load_golden_set", "lock_path", "read_lock", "render_lock"]
