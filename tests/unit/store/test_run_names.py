from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_kebab_eval.errors import RunNameError
from pytest_kebab_eval.store import find_run, find_runs, open_database
from tests.builders import make_database


class Row(NamedTuple):
    run_id: str
    created_at: str = "2026-01-01T00:00:00Z"
    suite: str = "main"
    commit: str | None = None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_database(tmp_path / "k.sqlite")


def store(path: Path, *rows: Row) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(
            "INSERT INTO eval_runs VALUES (?, ?, '{}', '{}', ?, ?)",
            [(row.run_id, row.suite, row.commit, row.created_at) for row in rows],
        )
        connection.commit()
    return path


def found(path: Path, name: str, suite: str | None = None) -> str:
    with open_database(path) as database:
        return find_run(database, name, suite).run_id


def refused(path: Path, name: str, suite: str | None = None) -> str:
    with pytest.raises(RunNameError) as caught:
        found(path, name, suite)
    return str(caught.value)


# -- by id ---------------------------------------------------------------------------------------


def test_a_run_is_found_by_its_id(path: Path) -> None:
    store(path, Row("run-1"), Row("run-2"))
    assert found(path, "run-2") == "run-2"


def test_a_run_is_found_by_a_prefix_that_fits_no_other(path: Path) -> None:
    store(path, Row("2026-alpha"), Row("2026-beta"))
    assert found(path, "2026-b") == "2026-beta"


def test_an_id_wins_over_being_a_prefix_of_another(path: Path) -> None:
    store(path, Row("run-1"), Row("run-10"), Row("run-11"))
    assert found(path, "run-1") == "run-1"


def test_a_prefix_that_fits_two_is_an_error_that_lists_those_two(path: Path) -> None:
    store(path, Row("run-10"), Row("run-11"), Row("other"))
    message = refused(path, "run-1")
    assert "'run-1' fits 2 runs" in message
    assert "run-10" in message
    assert "run-11" in message
    assert "other" not in message


def test_a_prefix_is_case_sensitive_as_ids_are(path: Path) -> None:
    store(path, Row("Run"), Row("run"))
    assert found(path, "R") == "Run"


def test_signs_that_sql_would_obey_mean_themselves(path: Path) -> None:
    store(path, Row("a%b"), Row("axb"), Row("a_b"), Row("a*b"))
    assert found(path, "a%") == "a%b"
    assert found(path, "a_") == "a_b"
    assert found(path, "a*") == "a*b"


def test_an_id_and_its_prefixes_are_found_in_any_suite(path: Path) -> None:
    store(path, Row("run-1", suite="one"), Row("run-2", suite="two"))
    assert found(path, "run-1", suite="two") == "run-1"


def test_an_id_that_looks_like_a_rule_is_still_an_id(path: Path) -> None:
    store(
        path,
        Row("latest", "2026-01-01T00:00:00Z"),
        Row("commit:abc", "2026-01-02T00:00:00Z"),
        Row("newer", "2026-01-03T00:00:00Z", commit="abc"),
    )
    assert found(path, "latest") == "latest"
    assert found(path, "commit:abc") == "commit:abc"


def test_a_name_that_fits_no_run_is_an_error_that_lists_the_runs(path: Path) -> None:
    store(path, Row("run-1", "2026-02-03T04:05:06Z", suite="docs", commit="abcdef0123456789"))
    message = refused(path, "nosuch")
    assert message.startswith("there is no run 'nosuch' in ")
    assert "k.sqlite" in message
    for told in ("run-1", "2026-02-03T04:05:06Z", "docs", "abcdef012345"):
        assert told in message


def test_the_candidates_are_listed_newest_first_and_not_without_end(path: Path) -> None:
    store(path, *(Row(f"r{day:02}", f"2026-01-{day:02}T00:00:00Z") for day in range(1, 14)))
    listed = [row.replace("- ", "").split()[0] for row in refused(path, "nosuch").splitlines()[1:]]
    # 13 runs: the newest ten (13 down to 4), then how many more there are
    assert listed == [f"r{day:02}" for day in range(13, 3, -1)] + ["…"]
    assert refused(path, "nosuch").endswith("and 3 more")


@pytest.mark.parametrize("name", ["anything", "latest", "latest~1", "commit:abc"])
def test_an_empty_database_is_said_to_hold_no_runs(path: Path, name: str) -> None:
    assert "holds no runs yet" in refused(path, name)


def test_no_name_at_all_is_no_prefix_of_everything(path: Path) -> None:
    store(path, Row("only"))
    assert "there is no run ''" in refused(path, "")


def test_hostile_ids_are_listed_inert(path: Path) -> None:
    store(path, Row("\x1b[2J\nx", "\x1b[31m", suite="\u202esuite", commit="\r\n"))
    message = refused(path, "\x1b]0;title\x07")
    assert message.replace("\n", "").isprintable()
    assert len(message.splitlines()) == 2  # the sentence, and the one run


# -- latest --------------------------------------------------------------------------------------


def test_latest_goes_by_created_at_not_by_the_order_of_insertion(path: Path) -> None:
    store(
        path,
        Row("middle", "2026-01-02T00:00:00Z"),
        Row("newest", "2026-01-03T00:00:00Z"),
        Row("oldest", "2026-01-01T00:00:00Z"),
    )
    assert found(path, "latest") == "newest"
    assert found(path, "latest~0") == "newest"
    assert found(path, "latest~1") == "middle"
    assert found(path, "latest~2") == "oldest"


def test_latest_beyond_the_first_run_is_an_error(path: Path) -> None:
    store(path, Row("only"))
    message = refused(path, "latest~1")
    assert "there is no run 'latest~1'" in message
    assert "k.sqlite; the oldest of 1 is latest~0; it has:\n  - only" in message


@pytest.mark.parametrize(
    "name", ["latest~", "latest~-1", "latest~x", "latest ~1", "Latest", "latest~1234567"]
)
def test_what_only_resembles_latest_is_no_rule(path: Path, name: str) -> None:
    store(path, Row("a"), Row("b"))
    assert "there is no run" in refused(path, name)


def test_latest_keeps_to_the_suite(path: Path) -> None:
    store(
        path,
        Row("docs-1", "2026-01-01T00:00:00Z", suite="docs"),
        Row("docs-2", "2026-01-02T00:00:00Z", suite="docs"),
        Row("code-1", "2026-01-03T00:00:00Z", suite="code"),
    )
    assert found(path, "latest") == "code-1"
    assert found(path, "latest", suite="docs") == "docs-2"
    assert found(path, "latest~1", suite="docs") == "docs-1"
    assert "docs-1" not in refused(path, "latest~1", suite="code")


def test_a_suite_that_no_run_is_of_is_named_in_the_error(path: Path) -> None:
    store(path, Row("docs-1", suite="docs"))
    message = refused(path, "latest", suite="dosc")
    assert message.endswith("k.sqlite has no runs of the suite 'dosc'; it has runs of 'docs'")


def test_moments_with_different_offsets_are_compared_as_moments(path: Path) -> None:
    store(
        path,
        Row("first", "2026-01-01T23:30:00+02:00"),  # 21:30 UTC
        Row("second", "2026-01-01T22:00:00Z"),  # 22:00 UTC
        Row("third", "2026-01-01T17:30:00-05:00"),  # 22:30 UTC
    )
    assert [found(path, f"latest~{back}") for back in range(3)] == ["third", "second", "first"]


def test_an_offset_may_carry_a_moment_over_the_year(path: Path) -> None:
    store(path, Row("first", "2026-01-01T01:00:00+02:00"), Row("second", "2025-12-31T23:30:00Z"))
    assert found(path, "latest") == "second"  # 23:00 and 23:30 UTC of 2025


def test_fractions_of_a_second_count_however_many_digits_they_have(path: Path) -> None:
    store(
        path,
        Row("d", "2026-01-01T00:00:00.123456789Z"),
        Row("b", "2026-01-01T00:00:00.1Z"),
        Row("c", "2026-01-01T00:00:00.12Z"),
        Row("e", "2026-01-01T00:00:00.1234567891Z"),
        Row("a", "2026-01-01T00:00:00Z"),
        Row("f", "2026-01-01T00:00:00.5Z"),
    )
    newest_first = [found(path, f"latest~{back}") for back in range(6)]
    assert newest_first == ["f", "e", "d", "c", "b", "a"]


def test_small_letters_and_a_space_are_rfc_3339_too(path: Path) -> None:
    store(
        path,
        Row("b", "2026-01-02 00:00:00z"),
        Row("a", "2026-01-01t00:00:00Z"),
        Row("c", "2026-01-03T00:00:00Z"),
    )
    assert [found(path, f"latest~{back}") for back in range(3)] == ["c", "b", "a"]


@pytest.mark.parametrize(
    "unparseable", ["", "yesterday", "2026-13-01T00:00:00Z", "0000-00-00T00:00:00Z", "9999"]
)
def test_a_moment_that_does_not_parse_is_older_than_any_other(path: Path, unparseable: str) -> None:
    store(path, Row("z-undated", unparseable), Row("a-dated", "1970-01-01T00:00:00Z"))
    assert found(path, "latest") == "a-dated"
    assert found(path, "latest~1") == "z-undated"


def test_a_tie_goes_to_the_greater_id_whatever_the_order_of_insertion(path: Path, tmp_path: Path) -> None:
    other = make_database(tmp_path / "other.sqlite")
    store(path, Row("a"), Row("b"))
    store(other, Row("b"), Row("a"))
    assert found(path, "latest") == found(other, "latest") == "b"


# -- commits -------------------------------------------------------------------------------------


def test_a_run_is_found_by_a_prefix_of_its_commit_case_aside(path: Path) -> None:
    store(path, Row("one", commit="ABCDEF01"), Row("two", commit="abc0000"), Row("none"))
    assert found(path, "commit:abcd") == "one"
    assert found(path, "commit:ABC0") == "two"
    assert found(path, "commit:abcdef01") == "one"


def test_two_runs_of_one_commit_are_ambiguous_and_listed(path: Path) -> None:
    store(path, Row("one", commit="abc123"), Row("two", commit="abc123"), Row("other", commit="def"))
    message = refused(path, "commit:abc")
    assert "fits 2 runs" in message
    assert "one" in message
    assert "two" in message
    assert "other" not in message


def test_the_suite_narrows_a_commit_down(path: Path) -> None:
    store(path, Row("one", commit="abc", suite="docs"), Row("two", commit="abc", suite="code"))
    assert found(path, "commit:abc", suite="code") == "two"


@pytest.mark.parametrize("name", ["commit:", "commit:fff", "commit:abcdef", "Commit:abc"])
def test_a_commit_that_no_run_is_of_is_an_error(path: Path, name: str) -> None:
    store(path, Row("one", commit="abc"), Row("none"))
    assert "there is no run" in refused(path, name)


# -- what is found -------------------------------------------------------------------------------


def test_the_run_found_has_its_configuration(tmp_path: Path) -> None:
    path = make_database(
        tmp_path / "k.sqlite",
        configs={"a": {"chunker_version": "v1"}, "b": {"chunker_version": "v2"}},
        a={},
        b={},
    )
    with open_database(path) as database:
        assert find_run(database, "latest").chunker_version == "v2"
        assert find_run(database, "latest~1").chunker_version == "v1"


@pytest.mark.parametrize(("name", "meant"), [("nigthly", "nightly"), ("lastest", "latest")])
def test_a_mistyped_name_is_answered_with_the_nearest(path: Path, name: str, meant: str) -> None:
    store(path, Row("nightly"), Row("release"))
    assert f"; did you mean '{meant}'? it has:" in refused(path, name)


def test_a_name_like_no_other_is_answered_without_a_guess(path: Path) -> None:
    assert "did you mean" not in refused(store(path, Row("nightly")), "xyz")


# -- several runs --------------------------------------------------------------------------------


def all_found(path: Path, names: str, suite: str | None = None) -> list[str]:
    with open_database(path) as database:
        return [run.run_id for run in find_runs(database, names, suite)]


def all_refused(path: Path, names: str) -> str:
    with pytest.raises(RunNameError) as caught:
        all_found(path, names)
    return str(caught.value)


def test_runs_are_listed_with_commas_each_named_in_any_way(path: Path) -> None:
    day = "2026-01-0{}T00:00:00Z".format
    store(path, Row("one", day(1)), Row("two", day(2), commit="abc"), Row("three", day(3)))
    assert all_found(path, "on, latest,commit:ab") == ["one", "two", "three"]


def test_runs_are_in_one_order_however_they_are_named_by_time_and_then_by_id(path: Path) -> None:
    day = "2026-01-0{}T00:00:00Z".format
    store(path, Row("c", day(1)), Row("b", day(2)), Row("a", day(2)))
    for names in itertools.permutations("abc"):
        assert all_found(path, ",".join(names)) == ["c", "a", "b"]


def test_an_id_that_has_a_comma_goes_before_a_list(path: Path) -> None:
    store(path, Row("a,b"), Row("a"), Row("b"), Row("c"))
    assert all_found(path, "a,b") == ["a,b"]
    assert all_found(path, "c,a,b") == ["a,b", "c"]
    assert all_found(path, "b,a") == ["a", "b"]


def test_all_runs_of_a_commit_are_replicates_the_oldest_first(path: Path) -> None:
    day = "2026-01-0{}T00:00:00Z".format
    store(
        path, Row("one", day(2), commit="ABC1"), Row("two", day(1), commit="abc1"), Row("other", commit="d")
    )
    assert all_found(path, "commit:abc*") == ["two", "one"]


def test_a_commit_in_several_suites_asks_for_one(path: Path) -> None:
    store(path, Row("one", commit="abc"), Row("two", suite="other", commit="abc"))
    assert all_refused(path, "commit:abc*").endswith("choose one with --kebab-suite")
    assert all_found(path, "commit:abc*", "other") == ["two"]


def test_a_prefix_of_several_commits_asks_for_more_of_the_hash(path: Path) -> None:
    store(path, Row("one", commit="abc1"), Row("two", commit="abc2"))
    assert "fits runs of 2 commits" in all_refused(path, "commit:abc*")


def test_a_commit_without_runs_lists_what_there_is(path: Path) -> None:
    store(path, Row("one", commit="abc"))
    assert "there is no run 'commit:d*'" in all_refused(path, "commit:d*")


def test_a_run_that_is_named_twice_is_refused(path: Path) -> None:
    store(path, Row("one"), Row("two"))
    assert all_refused(path, "one,two,on") == (
        "'one,two,on' names the run 'one' twice; name each run once, since a run is no replicate of itself"
    )


def test_runs_of_two_suites_are_refused(path: Path) -> None:
    store(path, Row("one"), Row("two", suite="other"))
    assert all_refused(path, "one,two") == (
        "'one,two' names runs of the suites main, other; replicates are of one suite"
    )


@pytest.mark.parametrize("names", ["one,", ",one", "one,,two"])
def test_a_comma_without_a_run_is_refused(path: Path, names: str) -> None:
    store(path, Row("one"), Row("two"))
    assert all_refused(path, names).endswith("has a comma without a run beside it; name a run there")
