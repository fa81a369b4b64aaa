"""A gate loads what it needs: every module of ours takes a third of a millisecond, compiled as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import hit, make_database, result, write_golden
from tests.test_architecture import HOME, PACKAGE
from tests.test_cold_start import GATE, SHOWN, line, run

MOST, MOST_WITH_A_PAGE = 88, 98
PAGE = {"reports.html", "history", "reports.briefs", "store.working_tree"}
NEVER_IN_A_PLAIN_GATE = {
    *("api", "cli", "importers", "upkeep"),
    *(
        "golden.edit",
        "golden.writing",
        "golden.sheets",
        "matching.by_location",
        "matching.text",
        "history.blame",
    ),
    *("plugin.recording", "plugin.recorded_run", "plugin.recorded_gate", "plugin.snapshot", "text.progress"),
    *("reports.site", "store.postgres", "store.exports"),
    *("store.recorder", "store.staging", "store.given", "store.plain", "store.new_chunks"),
}


@pytest.fixture(params=["passes", "fails"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory with a golden file, runs A and B, and a plugin that shows which modules are loaded."""
    queries = [{"id": q, "query": q, "expected_chunk_ids": [q]} for q in ("q1", "q2")]
    write_golden(tmp_path / "golden.yaml", queries)
    a = {q: result(hit(q)) for q in ("q1", "q2")}
    b = a if request.param == "passes" else {**a, "q1": result(hit("c9"))}
    make_database(tmp_path / "kebab.sqlite", A=a, B=b)
    make_database(tmp_path / "replicates.sqlite", A1=a, A2=a, B1=b, B2=b)
    (tmp_path / "shown.py").write_text(SHOWN, encoding="utf-8")
    return tmp_path


def loaded_by(project: Path, *args: str) -> set[str]:
    """The modules of ours that are loaded when the session is over, without the name of the package."""
    printed = run(HOME.parent, project, *args)
    assert "kebab-eval: " in printed
    return {name.removeprefix(f"{PACKAGE}.") for name in line(printed, "MODULES")}


def among(loaded: set[str], packages: set[str]) -> set[str]:
    """Those that are one of these, or in one of them."""
    return {name for name in loaded if any(f"{name}.".startswith(f"{package}.") for package in packages)}


def test_a_plain_gate_loads_few_modules_and_none_of_what_others_need(project: Path) -> None:
    loaded = loaded_by(project, *GATE, "--kebab-no-html")
    assert {"evaluate", "plugin.session", "reports.as_markdown", "store.sqlite"} <= loaded
    assert among(loaded, NEVER_IN_A_PLAIN_GATE | PAGE) == set()
    assert len(loaded) <= MOST


def test_a_gate_with_a_page_loads_what_the_page_needs_besides(project: Path) -> None:
    loaded = loaded_by(project, *GATE)
    assert {"reports.html.page", "history"} <= loaded
    assert among(loaded, NEVER_IN_A_PLAIN_GATE) == set()
    assert len(loaded) <= MOST_WITH_A_PAGE


def test_a_golden_file_of_jsonl_is_read_without_yaml(project: Path) -> None:
    lines = [f'{{"id": "{q}", "query": "{q}", "expected_chunk_ids": ["{q}"]}}\n' for q in ("q1", "q2")]
    (project / "golden.jsonl").write_text("".join(lines), encoding="utf-8")
    golden = ("golden.jsonl", "--kebab-golden=golden.jsonl")
    loaded = loaded_by(project, *golden, *GATE[2:], "--kebab-no-html")
    assert "golden.values" in loaded
    assert "golden.yaml_values" not in loaded


def test_replicates_load_no_page(project: Path) -> None:
    replicates = ("--kebab-db=replicates.sqlite", "--kebab-run-a=A1,A2", "--kebab-run-b=B1,B2")
    loaded = loaded_by(project, *GATE[:2], *replicates, "--kebab-no-html")
    assert among(loaded, PAGE) == set()
