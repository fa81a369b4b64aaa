"""What `pytest --help` has of this plugin: these options, and no other."""

from __future__ import annotations

import re

from tests.integration.conftest import LEAN, Project

OF_A_CALL = {"record", "resume", "run-a", "run-b"}
OPTIONS = OF_A_CALL | {
    *("golden", "suite", "db", "db-a", "db-b", "gate", "fail-on", "require", "if-no-baseline"),
    *("k", "compare-k", "span-overlap", "alpha", "strict-chunker-version", "allow-document-matching"),
    *("runs-dir", "no-store", "no-html", "mask", "snapshot"),
}


def test_pytest_lists_these_options_and_no_other(project: Project) -> None:
    text = project.pytester.runpytest_inprocess(*LEAN, "--help").stdout.str()
    group = text.partition("pytest-kebab-eval):\n")[2].partition("\n\n")[0]
    listed = re.findall(r"^  (--[a-z-]+)(?:, (--[a-z-]+))?", group, re.MULTILINE)
    flags = {flag for both in listed for flag in both if flag}
    assert flags == {"--strict-chunker-version", *(f"--kebab-{name}" for name in OPTIONS)}
    ini = set(re.findall(r"^  kebab_(\w+) \(", text, re.MULTILINE))
    names = OPTIONS - {"gate"} | {"gates"}
    assert ini == {name.replace("-", "_") for name in names}
    refused = re.findall(r"^  kebab_(\w+) \(string\):\s+refused", text, re.MULTILINE)
    assert set(refused) == {name.replace("-", "_") for name in OF_A_CALL}
