"""A recording that goes on, in a store of each kind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_kebab_eval import InputError, RunRecorder
from pytest_kebab_eval.store.staging import staging_path
from tests.stores import PostgresStore, Store, new_database

NAMES = [f"q{number}" for number in range(10)]


def record(store: Store, *names: str, resume: bool = False, stop: bool = False) -> None:
    with RunRecorder(store.db, run_id="r", commit_hash="c", resume=resume) as run:
        for name in names:
            if not run.has(name):
                run.record(name, [f"of {name}"])
        if stop:
            raise KeyboardInterrupt


def stop(store: Store, *names: str, resume: bool = False) -> None:
    with pytest.raises(KeyboardInterrupt):
        record(store, *names, resume=resume, stop=True)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_ends_as_one_that_was_never_stopped(store: Store, tmp_path: Path) -> None:
    stop(store, *NAMES[:4])
    assert staging_path(store.address, "r").resolve().parent in (tmp_path, tmp_path / "runs")
    with pytest.raises(InputError, match=r"r\.unfinished has 4 results of run 'r', which is unfinished"):
        record(store, *NAMES)
    stop(store, *NAMES[:7], resume=True)
    assert store.dump().get("eval_query_results", []) == []
    record(store, *NAMES, resume=True)
    stored = store.rows("SELECT query_id FROM eval_query_results ORDER BY query_id")
    assert [query_id for (query_id,) in stored] == NAMES
    assert not staging_path(store.address, "r").exists()


def test_a_run_that_was_stored_before_the_process_was_killed_is_finished(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", die)
        with pytest.raises(KeyboardInterrupt):
            record(store, *NAMES)
    before = store.dump()
    record(store, *NAMES, resume=True)
    assert store.dump() == before
    assert not staging_path(store.address, "r").exists()


def test_results_for_one_server_are_not_stored_in_another(postgres: PostgresStore) -> None:
    stop(postgres, "q1")
    with (
        new_database() as other,
        pytest.raises(InputError, match="and it is run 'r' of another database; record it as it was begun"),
    ):
        record(other, "q1", resume=True)
    assert staging_path(postgres.address, "r").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="has other permissions")
def test_what_is_kept_for_a_server_is_for_its_owner_alone_and_has_no_password(
    postgres: PostgresStore,
) -> None:
    stop(postgres, "q1")
    path = staging_path(postgres.address, "r")
    assert path.stat().st_mode & 0o077 == 0
    assert b"password" not in path.read_bytes()
