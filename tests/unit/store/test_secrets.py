"""Secrets in the configuration of a run: masked when it is recorded, and when it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import InputError, RunRecorder
from pytest_kebab_eval.comparing.configurations import config_changes
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store import find_run, open_database
from tests.builders import Json, make_database
from tests.unit.store.conftest import rows

CONFIG = {
    "chunker_version": "v1",
    "llm": {"api_key": "hunter2", "max_tokens": 5},
    "config": {"dsn": "redis://:hunter2@h", "host": "h"},
}


def recorded(db: Path, **given: Any) -> Any:
    """The configuration as it is stored."""
    with RunRecorder(db, config=CONFIG, run_id="r", **given) as run:
        run.record("q1", ["c1"])
    ((text,),) = rows(db, "SELECT config_snapshot_json FROM eval_runs")
    return json.loads(text)


def test_the_recorder_masks_before_it_stores(db: Path) -> None:
    assert recorded(db) == {
        "chunker_version": "v1",
        "llm": {"api_key": "***", "max_tokens": 5},
        "config": {"dsn": "redis://:***@h", "host": "h"},
    }


def test_no_byte_of_the_database_has_a_masked_secret(db: Path) -> None:
    recorded(db)
    assert b"hunter2" not in db.read_bytes()


@pytest.mark.parametrize(("mask", "stored"), [(True, "***"), (False, "hunter2")])
def test_what_an_error_says_of_a_password_is_masked_before_it_is_stored(
    db: Path, mask: bool, stored: str
) -> None:
    with RunRecorder(db, run_id="r", mask=mask) as run:
        run.record("q1", error=ConnectionError("no answer from redis://:hunter2@h"))
    ((text,),) = rows(db, "SELECT result_json FROM eval_query_results")
    assert json.loads(text)["error"] == f"ConnectionError: no answer from redis://:{stored}@h"


def test_nothing_is_said_of_a_secret_that_one_run_was_recorded_without(tmp_path: Path) -> None:
    masked, plain = ({"llm": {"api_key": key}} for key in ("***", "hunter2"))
    db = make_database(tmp_path / "k.sqlite", a={}, b={}, configs={"a": masked, "b": plain})
    with open_database(db) as database:
        a, b = (database.with_config(find_run(database, name)) for name in "ab")
    assert config_changes(a, b) == []


def test_the_recorder_masks_by_patterns_too(db: Path) -> None:
    assert recorded(db, mask=["*.host", "chunker_version"])["config"] == {
        "dsn": "redis://:***@h",
        "host": "***",
    }


def test_the_chunker_version_is_stored_whatever_a_pattern_says(db: Path) -> None:
    assert recorded(db, mask=["*"]) == {"chunker_version": "v1", "llm": "***", "config": "***"}


def test_the_recorder_stores_secrets_if_it_is_told_to(db: Path) -> None:
    assert recorded(db, mask=False) == CONFIG


@pytest.mark.parametrize("mask", ["*.host", [""], [1]], ids=repr)
def test_a_mask_that_is_no_list_of_patterns_is_refused(db: Path, mask: Any) -> None:
    with pytest.raises(InputError, match="give True, False or a list of patterns for keys"):
        RunRecorder(db, mask=mask)


def read(tmp_path: Path, a: Json, b: Json, *mask: str) -> tuple[Run, Run]:
    path = make_database(tmp_path / "k.sqlite", configs={"a": a, "b": b}, a={}, b={})
    with open_database(path, mask) as opened:
        return find_run(opened, "a"), find_run(opened, "b")


def test_a_run_is_read_without_its_secrets(tmp_path: Path) -> None:
    run, _ = read(tmp_path, CONFIG, CONFIG, "host")
    assert run.config == {
        "chunker_version": "v1",
        "llm": {"api_key": "***", "max_tokens": 5},
        "config": {"dsn": "redis://:***@h", "host": "***"},
    }
    assert "hunter2" not in repr(run)


def test_a_secret_that_only_one_run_has_is_a_change(tmp_path: Path) -> None:
    changes = config_changes(*read(tmp_path, {}, {"api_key": "x"}))
    assert [(change.key, change.a, change.b) for change in changes] == [("api_key", None, "***")]


def test_a_secret_that_changed_is_said_to_have_changed(tmp_path: Path) -> None:
    changes = config_changes(*read(tmp_path, {"keys": [{"api_key": "x"}]}, {"keys": [{"api_key": "y"}]}))
    assert [(change.key, change.a, change.b) for change in changes] == [
        ("keys.0.api_key", "***", "*** (changed)")
    ]


def test_a_secret_that_did_not_change_is_not_mentioned(tmp_path: Path) -> None:
    assert config_changes(*read(tmp_path, CONFIG, CONFIG)) == []


def test_changes_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    changes = config_changes(
        *read(tmp_path, {"z": 1, "m_token": "x", "a": 1}, {"z": 2, "m_token": "y", "a": 2})
    )
    assert [change.key for change in changes] == ["a", "m_token", "z"]
