"""The plugins that are tried, and how each is made to do something.

The first twelve are the pytest plugins with the most downloads from PyPI in March 2026, of those that are for
testing and still loaded by pytest (https://github.com/hugovk/top-pypi-packages, its list of 1 April 2026).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Plugin:
    """A plugin, as it is installed and called."""

    name: str  # on PyPI
    args: tuple[str, ...] = ()
    also: tuple[str, ...] = ()  # other distributions that it needs
    files: Mapping[str, str] = field(default_factory=dict)  # what the project needs for it
    output: str = ""  # a glob of the files that it writes, which must have the messages too
    hides: bool = False  # it deselects golden queries or marks them: the session fails, and names one
    title: str = ""  # in the table, if not the name

    @property
    def label(self) -> str:
        """What the table calls it."""
        return self.title or self.name


MOST_INSTALLED = (
    Plugin("anyio"),
    Plugin("pytest-cov", ("--cov=own", "--cov-report=term")),
    Plugin("pytest-asyncio", ("--asyncio-mode=auto",)),
    Plugin("pytest-xdist", ("-n", "2")),
    Plugin("pytest-mock"),
    Plugin("pytest-json-ctrf", ("--ctrf=out/ctrf.json",), output="out/ctrf.json"),
    Plugin("pytest-timeout", ("--timeout=60",)),
    Plugin("pytest-rerunfailures", ("--reruns=1",)),
    Plugin("pytest-metadata", ("--metadata", "key", "value")),
    Plugin("pytest-env", ("-o", "env=COMPAT=1")),
    Plugin("pytest-html", ("--html=out/report.html", "--self-contained-html"), output="out/report.html"),
    Plugin("pytest-django", ("--ds=settings",), ("django",), {"settings.py": "SECRET_KEY = 'none'\n"}),
)
QUARANTINED = "".join(
    f"fixtures/golden_queries.yaml::query[{name}]\n" for name in ("rotate-api-keys", "log-retention")
)
EVAL_TEST = "import pytest\n\n@pytest.mark.eval(name='own')\ndef test_eval():\n    pass\n"
OTHERS = (
    Plugin("pytest-benchmark"),
    Plugin("pytest-randomly", ("-p", "randomly")),
    Plugin("pytest-sugar", ("--force-sugar",)),
    Plugin("pytest-retry", ("--retries=1",)),
    Plugin("pytest-flakefinder", ("--flake-finder", "--flake-runs=2")),
    Plugin("flaky", ("--force-flaky",)),
    Plugin(
        "pytest-quarantine",
        ("--quarantine=quarantine.txt",),
        files={"quarantine.txt": QUARANTINED},
        hides=True,
    ),
    Plugin("pytest-testmon", ("--testmon",), hides=True),
    Plugin("allure-pytest", ("--alluredir=out/allure",), output="out/allure/*-result.json"),
    Plugin("pytest-evals"),
    Plugin(
        "pytest-evals",
        ("--run-eval",),
        files={"test_eval.py": EVAL_TEST},
        hides=True,
        title="pytest-evals --run-eval",
    ),
    Plugin("pytest-snapshot", ("-p", "no:syrupy")),
    Plugin("snapshottest", ("-p", "no:syrupy")),
)
# Of the same options as syrupy: pytest does not start beside both.
CLASHING = ("pytest-snapshot", "snapshottest")
