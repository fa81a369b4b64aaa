"""`kebab-eval tag` and `prune`, as they are called from a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import make_database, result, write_golden
from tests.integration.conftest import call, execute


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}])
    runs = {"r1": {"q1": result("c1")}, "r2": {"q1": result("c1")}, "r3": {"q1": result("c9")}}
    return make_database(tmp_path / "kebab.sqlite", r1=runs["r1"], r2=runs["r2"], r3=runs["r3"])


def test_a_tagged_baseline_is_compared_with(db: Path) -> None:
    assert call("tag", "latest~2", "baseline").stderr == "tag baseline: r1\n"
    done = call("compare", "tag:baseline", "latest", "--golden", "golden.yaml")
    assert done.code == 1
    assert "q1" in done.stdout
    assert call("tag", "r2", "baseline").stderr == "tag baseline: r2; it was r1\n"
    assert call("tag").stdout == "baseline  r2\n"
    assert json.loads(call("tag", "--json").stdout) == {"baseline": "r2"}
    assert "r2  2026-01-02T00:00:00Z       1 query  suite  tag:baseline" in call("runs").stdout
    assert [row["tags"] for row in json.loads(call("runs", "--json").stdout)] == [[], ["baseline"], []]
    assert call("tag", "--delete", "baseline").stderr == "tag baseline: removed; it was r2\n"
    assert call("tag").stderr == "there are no tags yet; kebab-eval tag RUN NAME sets one\n"


def test_a_tag_that_is_set_or_removed_is_data_for_a_script(db: Path) -> None:
    done = call("tag", "latest~2", "baseline", "--json")
    assert (done.code, json.loads(done.stdout), done.stderr) == (0, {"baseline": "r1"}, "")
    gone = call("tag", "--delete", "baseline", "--json")
    assert (gone.code, json.loads(gone.stdout), gone.stderr) == (0, {"baseline": None}, "")
    assert json.loads(call("tag", "--json").stdout) == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tag", "r1"), "kebab-eval tag takes RUN and NAME, or --delete NAME, or nothing to list the tags"),
        (("tag", "r1", "x", "--delete", "y"), "kebab-eval tag takes RUN and NAME"),
        (("tag", "nope", "x"), "there is no run 'nope'"),
        (("tag", "r1", "a b"), "'a b' cannot be a tag"),
        (("tag", "--delete", "x"), "there is no tag 'x' in kebab.sqlite"),
        (("prune", "--keep", "1", "--suite", "none"), "kebab.sqlite has no runs of the suite 'none'; it has"),
        (("prune", "--keep", "0"), "0 is not in the range x>=1"),
        (("prune",), "Missing option '--keep'"),
    ],
)
def test_wrong_use_is_said_in_a_sentence(db: Path, arguments: tuple[str, ...], message: str) -> None:
    done = call(*arguments)
    assert done.code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_old_runs_go_and_a_dry_run_only_says_so(db: Path) -> None:
    call("tag", "r1", "baseline")
    dry = call("prune", "--keep", "1", "--dry-run")
    assert dry.stdout == "r2  2026-01-02T00:00:00Z  suite\n"
    assert dry.stderr == "1 run would be removed from kebab.sqlite; kept, being tagged: 1\n"
    assert len(json.loads(call("runs", "--json").stdout)) == 3
    done = call("prune", "--keep", "1", "--json")
    size = db.stat().st_size
    expected = {"removed": ["r2"], "tagged": ["r1"], "dry_run": False}
    assert json.loads(done.stdout) == {**expected, "bytes": {"before": size, "after": size}}
    assert [row["run_id"] for row in json.loads(call("runs", "--json").stdout)] == ["r3", "r1"]
    assert call("prune", "--keep", "5").stderr == "0 runs removed from kebab.sqlite\n"


def test_prune_says_how_much_room_it_gave_back(db: Path) -> None:
    execute(db, "UPDATE eval_query_results SET result_json = ? WHERE run_id IN ('r1', 'r2')", "x" * 600_000)
    said = call("prune", "--keep", "2", "--branch", "main").stderr
    assert said.startswith("1 run removed from kebab.sqlite\nit takes 0.6 MB now, 0.6 MB less than before\n")
