"""What each output says of a comparison: terminal, JUnit, report.md, report.html, report.json, commands.

A case is a comparison with `arguments` for pytest, and

    expect    {query id or gate: tokens}, looked for after the id in each output, as whole words
    commands  of kebab-eval, whose output is looked at, too
    never     texts that no output may have
    repeat    {times, golden, base, cand}: an entry and its results that are there so often; in their texts
              `{n}` is the number and `{long}` are 700 letters
    hostile   looks for what a browser, a terminal or a CI service would obey

The outcome has for each output the tokens that it has. `obeyed` has what was found of what should be inert.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from tests.frozen.comparison import write_comparison
from tests.frozen.product import Outcome, run_command, run_pytest

Json = dict[str, Any]
GOLDEN = "--kebab-golden=golden_queries.yaml"
NEAR = 1_500  # letters after an id that are about it
MOST = 65_536


def run(case: Json, directory: Path) -> Json:
    """The tokens that each output has."""
    write_comparison(repeated(case), directory)
    session = run_pytest(directory, GOLDEN, "--tb=auto", *case["arguments"])
    outputs = dict(outputs_of(session, directory, case))
    found: Json = {"exit_code": session.exit_code, "says": {}}
    for name, text in outputs.items():
        found["says"][name] = {
            about: [token for token in tokens if is_said(text, about, token, far=name == "report.html")]
            for about, tokens in case.get("expect", {}).items()
        }
    found["said all the same"] = [
        name for name, said in outputs.items() if any(text in said for text in case.get("never", []))
    ]
    found["report.md is too long"] = len(outputs["report.md"]) > MOST
    if case.get("hostile"):
        written = (path.relative_to(directory).parts for path in directory.rglob("report.*"))
        found["obeyed"] = dict(obeyed(directory, session))
        found["written"] = sorted(
            f"{parts[0]}/…/{parts[-1]}" if len(parts) == 3 else "elsewhere" for parts in written
        )
    return found


def repeated(case: Json) -> Json:
    """The comparison, with as many more queries as it says."""
    if "repeat" not in case:
        return case
    given = case["repeat"]
    golden, runs = list(case["golden"]), json.loads(json.dumps(case["runs"]))
    for number in range(given["times"]):
        golden.append(filled(given["golden"], number))
        for run_id in ("base", "cand"):
            runs[run_id]["results"][golden[-1]["id"]] = filled(given[run_id], number)
    return {**case, "golden": golden, "runs": runs}


def filled(value: Any, number: int) -> Any:
    """A value with the number and the long text in it."""
    text = json.dumps(value).replace("{n}", str(number)).replace("{long}", "many words " * 64)
    return json.loads(text)


def outputs_of(session: Outcome, directory: Path, case: Json) -> Iterator[tuple[str, str]]:
    """Each output as one text, in which the characters are those that a reader sees."""
    yield "terminal", session.stdout
    yield "junit", "\n".join(junit_texts(session.junit))
    for name in ("report.md", "report.html", "report.json"):
        (path,) = directory.glob(f"runs/*/{name}")
        text = path.read_text(encoding="utf-8")
        yield name, readable(text) if name == "report.html" else text
    if "commands" in case:
        for line in case["commands"]:
            yield line, run_command(directory, *line.split(), "--golden=golden_queries.yaml").stdout


def junit_texts(root: ET.Element | None) -> Iterator[str]:
    """What JUnit XML says of each item."""
    for item in () if root is None else root.iter("testcase"):
        yield " ".join([item.get("name", ""), *(each.get("value", "") for each in item.iter("property"))])
        yield from (f"{child.get('message', '')} {child.text}" for child in item)


def readable(page: str) -> str:
    """The texts and data of a page, without its escapes, styles, tags and program."""
    text = re.sub(r"<style.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]*>", " ", text))
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)


def is_said(text: str, about: str, token: str, *, far: bool) -> bool:
    """Whether a token is said after an id; `far`: a word may be anywhere, as data may be apart from ids."""
    word = re.compile(rf"(?<!\w){re.escape(token)}(?!\w)")
    if far and not re.fullmatch(r"[-\d.]+", token):
        return about in text and bool(word.search(text))
    places = (found.end() for found in re.finditer(re.escape(about), text))
    return any(word.search(text, place, place + NEAR) for place in places)


# -- what is obeyed ----------------------------------------------------------------------------------

TERMINAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
CI = re.compile(r"^\s*::\w+|##\w*\[", re.MULTILINE)


class Page(HTMLParser):
    """Collects what a browser would run or load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag that nobody here writes, an event, or an address with a scheme."""
        if tag in {"img", "iframe", "object", "base", "owned"}:
            self.found.append(tag)
        for name, value in attrs:
            if name.startswith("on") or re.match(
                r"\s*(javascript:|data:(?!,)|https?:)", value or "", re.IGNORECASE
            ):
                self.found.append(f"{tag} {name}")


def obeyed(directory: Path, session: Outcome) -> Iterator[tuple[str, list[str]]]:
    """What was found by output; nothing, where all is inert."""
    yield "terminal", sorted(set(TERMINAL.findall(session.stdout))) + CI.findall(session.stdout)
    yield "junit", sorted(set(TERMINAL.findall("\n".join(junit_texts(session.junit)))))
    (markdown,) = directory.glob("runs/*/report.md")
    text = markdown.read_text(encoding="utf-8")
    outside_of_code = re.sub(
        r"(`+).+?\1", "", re.sub(r"^(```+|~~~+).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    )
    signs = r"<(?!/?(?:details|summary|br|b|sub|sup)\b)[a-z!/]|\]\(javascript:|^#+ owned|!\["
    yield (
        "report.md",
        re.findall(signs, outside_of_code, re.MULTILINE | re.IGNORECASE) + TERMINAL.findall(text),
    )
    (page,) = directory.glob("runs/*/report.html")
    content = page.read_text(encoding="utf-8")
    parser = Page()
    parser.feed(content)
    yield (
        "report.html",
        parser.found
        + re.findall("<script>owned|</script>owned|<!--owned", content)
        + TERMINAL.findall(content),
    )
