"""Which files of a directory are ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.reports.site.directory import SiteBasis, SiteDirectory, is_ours

BASIS = SiteBasis("1", "golden", "settings")
PAGE = "suites/s/index.html"


def make(path: Path, *names: str) -> SiteDirectory:
    """A site with these files."""
    directory = SiteDirectory(path)
    directory.start(BASIS, names)
    for name in names:
        directory.update(name, f"text of {name}")
    directory.finish(BASIS, names)
    return directory


def files(path: Path) -> list[str]:
    return sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())


def test_a_directory_that_is_not_there_is_made(tmp_path: Path) -> None:
    make(tmp_path / "new" / "site", "index.html")
    assert files(tmp_path / "new" / "site") == ["index.html", "site.json"]


def test_a_file_is_written_only_if_it_differs(tmp_path: Path) -> None:
    assert make(tmp_path, "index.html", PAGE).written == 2
    assert make(tmp_path, "index.html", PAGE).written == 0


def test_what_is_no_longer_part_of_the_site_is_removed_with_its_directories(tmp_path: Path) -> None:
    make(tmp_path, "index.html", PAGE, "suites/s/runs/r/report.html")
    make(tmp_path, "index.html", PAGE)
    assert files(tmp_path) == ["index.html", "site.json", PAGE]
    assert not (tmp_path / "suites/s/runs").exists()


def test_files_of_others_stay(tmp_path: Path) -> None:
    make(tmp_path, "index.html", PAGE)
    (tmp_path / "suites/s/notes.txt").write_text("mine")
    make(tmp_path, "index.html")
    assert files(tmp_path) == ["index.html", "site.json", "suites/s/notes.txt"]


def test_a_name_that_somebody_else_took_is_left_to_them(tmp_path: Path) -> None:
    make(tmp_path, "index.html")
    (tmp_path / "suites/s").mkdir(parents=True)
    (tmp_path / PAGE).write_text("mine")
    for _ in range(2):
        directory = make(tmp_path, "index.html", PAGE)
        assert len(directory.errors) == 1
        assert directory.errors[0].endswith("was not written by kebab-eval site, and stays as it is")
    assert (tmp_path / PAGE).read_text() == "mine"


def test_after_a_call_that_was_killed_the_names_are_still_ours(tmp_path: Path) -> None:
    directory = SiteDirectory(tmp_path)
    directory.start(BASIS, ["index.html", PAGE])
    directory.update(PAGE, "half of the site")
    assert make(tmp_path, "index.html", PAGE).errors == []
    assert (tmp_path / PAGE).read_text() == f"text of {PAGE}"


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"is not empty and no site of kebab-eval \(it has thesis.tex\)"):
        SiteDirectory(tmp_path)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"kind": "another", "files": []}', "\xff"])
def test_a_site_json_of_another_program_does_not_make_it_ours(text: str, tmp_path: Path) -> None:
    (tmp_path / "site.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="no site of kebab-eval"):
        SiteDirectory(tmp_path)


def test_what_a_branch_for_github_pages_has_does_not_count(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "CNAME").write_text("example.org")
    (tmp_path / ".nojekyll").write_text("there already")
    assert make(tmp_path, "index.html", ".nojekyll").errors == []
    assert (tmp_path / ".nojekyll").read_text() == "there already"
    assert (tmp_path / "CNAME").read_text() == "example.org"


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "site").write_text("")
    with pytest.raises(InputError, match="cannot be used for a site"):
        SiteDirectory(tmp_path / "site")


@pytest.mark.parametrize(
    "name", ["../index.html", "suites/../../x/index.html", "/etc/passwd", "suites/s/other.html", "site.json"]
)
def test_a_manifest_cannot_have_other_files_removed(name: str, tmp_path: Path) -> None:
    assert not is_ours(name)
    site = tmp_path / "site"
    make(site, "index.html")
    (tmp_path / "index.html").write_text("mine")
    manifest = json.loads((site / "site.json").read_text())
    (site / "site.json").write_text(json.dumps(manifest | {"files": [name, "index.html"]}))
    make(site, "index.html")
    assert (tmp_path / "index.html").read_text() == "mine"
    assert json.loads((site / "site.json").read_text()) == manifest


def test_a_link_in_the_site_is_not_written_through(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    site = tmp_path / "site"
    make(site, "index.html")
    (site / "suites").symlink_to(elsewhere)
    with pytest.raises(StoreError, match="is a link, which is not written through"):
        make(site, "index.html", PAGE)
    assert list(elsewhere.iterdir()) == []
