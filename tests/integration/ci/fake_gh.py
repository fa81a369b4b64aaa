"""A `gh` that knows the artifacts and comments of one repository, kept in the directory FAKE_GITHUB.

It understands the calls that the scripts in ci/ make, and fails on any other. `jq` evaluates the filters.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

STATE = Path(os.environ["FAKE_GITHUB"])
PAGE = 100
RUN = re.compile(r"repos/o/r/actions/runs/(\d+)")
ARTIFACTS = re.compile(r"repos/o/r/actions/artifacts\?name=([\w.-]+)&per_page=100")
COMMENTS = re.compile(r"repos/o/r/issues/12/comments(?:\?per_page=100)?")
COMMENT = re.compile(r"repos/o/r/issues/comments/(\d+)")


def main() -> int:
    """Answer one call."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    api = commands.add_parser("api")
    api.add_argument("url")
    api.add_argument("--jq")
    api.add_argument("--method", default="GET")
    api.add_argument("--paginate", action="store_true")
    api.add_argument("--silent", action="store_true")
    api.add_argument("-F", dest="field")
    run = commands.add_parser("run")
    run.add_argument("verb", choices=["download"])
    run.add_argument("run_id", type=int)
    run.add_argument("--name")
    run.add_argument("--dir")
    given = parser.parse_args()
    if not os.environ.get("GH_TOKEN"):
        sys.exit("gh: no token")
    return _download(given) if given.command == "run" else _api(given)


def _download(given: argparse.Namespace) -> int:
    source = STATE / "artifacts" / str(given.run_id) / given.name
    if not source.is_dir():
        sys.exit("gh: no such artifact")
    shutil.copytree(source, given.dir)
    return 0


def _api(given: argparse.Namespace) -> int:
    if given.method == "GET":
        for page in _pages(given):
            subprocess.run(["jq", "-r", given.jq], input=json.dumps(page), text=True, check=True)
        return 0
    if os.environ.get("FAKE_READ_ONLY"):
        sys.exit("gh: Resource not accessible by integration (HTTP 403)")
    comments = _read("comments.json")
    name, _, file = given.field.partition("=@")
    body = {name: Path(file).read_text(encoding="utf-8")}
    if match := COMMENT.fullmatch(given.url):
        next(comment for comment in comments if comment["id"] == int(match[1])).update(body)
    else:
        assert given.method == "POST"
        assert COMMENTS.fullmatch(given.url)
        comments.append({"id": len(comments) + 1, "user": {"type": "Bot"}, **body})
    (STATE / "comments.json").write_text(json.dumps(comments), encoding="utf-8")
    return 0


def _pages(given: argparse.Namespace) -> list[Any]:
    if os.environ.get("FAKE_NOT_FOUND"):  # what GitHub answers to a token that may not read
        sys.exit("gh: Not Found (HTTP 404)")
    if match := RUN.fullmatch(given.url):
        return [{"event": _read("runs.json")[match[1]]}]
    if match := ARTIFACTS.fullmatch(given.url):
        listed = [artifact for artifact in _read("artifacts.json") if artifact["name"] == match[1]]
        newest_first = listed[::-1]
        pages: list[Any] = [{"artifacts": newest_first[at : at + PAGE]} for at in range(0, len(listed), PAGE)]
        return (pages if given.paginate else pages[:1]) or [{"artifacts": []}]
    if not COMMENTS.fullmatch(given.url):
        sys.exit(f"gh: HTTP 404: {given.url}")
    comments = _read("comments.json")
    pages = [comments[start : start + PAGE] for start in range(0, len(comments), PAGE)] or [[]]
    return pages if given.paginate else pages[:1]


def _read(name: str) -> Any:
    path = STATE / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


if __name__ == "__main__":
    sys.exit(main())
