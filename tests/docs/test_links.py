"""Every relative link and anchor of the Markdown pages leads somewhere; nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, ROOT, name_of

DOCS = ROOT / "docs"
LINKED = (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")
THEMES = {"gh-light-mode-only", "gh-dark-mode-only"}  # GitHub shows a picture in one theme only

_LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)", re.MULTILINE)
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def links_of(text: str) -> Iterator[str]:
    """The targets of links and pictures, but for those in code and those on the web."""
    for match in _LINK.finditer(_CODE.sub("", text)):
        target = match[1] or match[2]
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors_of(text: str) -> set[str]:
    """The anchors of a page's headings as GitHub makes them."""
    fenced = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
    return {github_anchor(heading) for heading in _HEADING.findall(fenced.sub("", text))}


def github_anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def mkdocs_anchor(heading: str) -> str:
    """As Python-Markdown makes them: like GitHub, but for spaces and hyphens in a row."""
    return re.sub(r"-+", "-", github_anchor(heading)).strip("-")


def broken_links(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    for link in links_of(text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists():
            yield f"{link}: there is no such file"
        elif page.parent == DOCS and target.parent != DOCS:
            yield f"{link}: it leaves docs/, so the site does not have it"
        elif anchor and anchor not in THEMES and anchor not in anchors_of(target.read_text(encoding="utf-8")):
            yield f"{link}: there is no such heading"


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_anchors_that_are_linked_to_are_the_same_on_github_and_on_the_site(page: Path) -> None:
    anchors = [link.partition("#")[2] for link in links_of(page.read_text(encoding="utf-8"))]
    assert [anchor for anchor in anchors if anchor != mkdocs_anchor(anchor)] == []


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n[here](#a-page) [there](#nowhere) [file](gone.md) `[code](gone.md)`\n"
        "```\n[block](gone.md)\n```\n[web](https://example.org) ![picture](gone.png)\n[ref]: gone.txt\n"
    )
    assert list(broken_links(page)) == [
        "#nowhere: there is no such heading",
        "gone.md: there is no such file",
        "gone.png: there is no such file",
        "gone.txt: there is no such file",
    ]
