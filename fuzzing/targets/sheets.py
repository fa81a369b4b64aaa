"""A golden file and a review sheet, of which each may be anything: the verdicts become labels.

An input is both files, each after a line with its ending: `=== yaml` (or `json`, `jsonl`), and `=== sheet`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fuzzing.targets.databases import TODAY, build, settings_in
from fuzzing.targets.files import Execute, expect_usable
from pytest_kebab_eval.cli.reviewing import _decisions, _row
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.golden import render_lock
from pytest_kebab_eval.golden.reading import read_text
from pytest_kebab_eval.golden.sheets import read_sheet, render_sheet
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.upkeep.reviewing import Label, Review, apply_decisions
from pytest_kebab_eval.upkeep.unlabelled import find_unlabelled

_PART = re.compile(rb"^=== ([a-z]+)\n", re.MULTILINE)
_GOLDEN = ("yaml", "json", "jsonl")
_TEXTS = {
    "c1": "Keys are rotated every quarter: create the new key beside the old one, deploy both, revoke one.",
    "c2": "A key that leaked is revoked at once, by whoever sees it first.",
    "c3": "The VPN needs a badge; the porter has more of them.",
    "c 4": "Chapter 4. Keys are rotated every quarter: create the new key beside the old one, deploy both.",
    "5": "# Leaks\n\nCall the desk: a key is revoked within minutes. \u200b",
}
_FOUND = {"A": ("c1", "c2"), "B": ("c3", "c 4", "5")}


def review_sheet(directory: Path) -> Execute:
    """A sheet that is applied twice: the second time, everything that it says is known."""
    build(directory, {"eval_runs": [_run(name) for name in _FOUND], "eval_query_results": [*_results()]})
    sheet = directory / "sheet.yaml"

    def execute(data: bytes) -> None:
        _, *parts = _PART.split(data)
        files = dict(zip(map(bytes.decode, parts[::2]), parts[1::2], strict=True))
        ending = next((name for name in _GOLDEN if name in files), None)
        if ending is None or "sheet" not in files:
            raise InputError("there is no golden file, or no sheet")
        golden = directory / f"golden.{ending}"
        golden.write_bytes(files[ending])
        sheet.write_bytes(files["sheet"])
        settings = settings_in(directory)._replace(golden=golden, gates=())
        made = _apply(settings, sheet)
        golden.write_bytes(made.text.encode())
        expect_usable(golden)
        if not made.left:
            assert _apply(settings, sheet).text == made.text, "a sheet that was applied twice did more"

    return execute


def _apply(settings: Settings, sheet: Path) -> Review:
    inputs = find_inputs(settings)
    evaluation = evaluate(settings, inputs, today=TODAY)
    found = [*find_unlabelled(settings, inputs, evaluation, [*inputs.golden.queries])]
    written = sheet.with_name("written.yaml")
    written.write_text(
        "".join(render_sheet(_row(reviewed, hit) for reviewed in found for hit in reviewed.hits)),
        encoding="utf-8",
    )
    assert not any(found) or read_sheet(written) == ([], []), "a sheet that was written has verdicts"
    rows, problems = read_sheet(sheet)
    by_id = {reviewed.query.id: reviewed for reviewed in found}
    decisions: list[Label] = _decisions(sheet, rows, problems, inputs.golden, by_id)
    made = apply_decisions(inputs.golden, read_text(settings.golden), decisions)
    assert len(made.labelled) <= len(decisions)
    if made.lock:
        render_lock(made.lock).encode()
    return made


def _run(name: str) -> list[Any]:
    return [name, "s", {"chunker_version": "v1"}, "{}", None, f"2031-01-0{ord(name) - 64}T00:00:00Z"]


def _results() -> list[list[Any]]:
    rows = []
    for run, chunks in _FOUND.items():
        for number in range(1, 7):
            hits = [
                {"rank": rank, "chunk_id": chunk, "doc_id": f"d-{chunk}", "doc_path": f"{chunk}.md"}
                | {"text": _TEXTS[chunk]}
                for rank, chunk in enumerate(chunks, start=1)
            ]
            rows.append([run, f"q{number}", {"query_id": f"q{number}", "hits_top_k": hits}])
    return rows
