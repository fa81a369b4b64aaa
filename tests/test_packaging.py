"""What is declared is what is used: dependencies, versions, rules, the files of the sdist and the wheel."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
import tarfile
import zipfile
from fnmatch import fnmatch
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import ModuleLoader

from pytest_kebab_eval import __version__
from pytest_kebab_eval.reports.templates import COMPILED
from tests.test_architecture import HOME, imports_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
DECLARED: dict[str, Any] = tomllib.loads(TEXT)
PROJECT = DECLARED["project"]
REQUIRED = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
LINT = DECLARED["tool"]["ruff"]["lint"]
IGNORED = {("*", code) for code in LINT["ignore"]} | {
    (files, code) for files, codes in LINT["per-file-ignores"].items() for code in codes
}


def normal(name: str) -> str:
    """The name of a distribution as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def floor(requirement: str) -> tuple[str, str]:
    """`click>=8.1` -> `click`, `8.1`; `psycopg[binary]>=3.2.1` -> `psycopg`, `3.2.1`."""
    name, version = requirement.split(">=")
    return normal(name.partition("[")[0]), version


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def workflow(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text("utf-8"))
    return read


# -- dependencies --------------------------------------------------------------------------------


def test_the_declared_dependencies_are_those_that_are_imported() -> None:
    modules = {name.split(".")[0] for path in HOME.rglob("*.py") for name in imports_of(path)}
    foreign = modules - sys.stdlib_module_names - {HOME.name}
    owners = packages_distributions()
    imported = {normal(name) for module in foreign for name in owners.get(module, [module])}
    assert imported == {floor(requirement)[0] for requirement in REQUIRED}


def test_make_versions_tests_the_lowest_versions_that_are_declared() -> None:
    lines = (ROOT / ".ci" / "lowest.txt").read_text("utf-8").splitlines()
    pins = [
        line.partition(";")[0].split("==")
        for line in lines
        if not line.startswith("#") and "python_version ==" not in line and "python_version >=" not in line
    ]
    assert sorted((normal(name), version) for name, version in pins) == sorted(map(floor, REQUIRED))


def test_the_tests_ask_for_the_pytest_that_is_declared() -> None:
    assert ("pytest", DECLARED["tool"]["pytest"]["ini_options"]["minversion"]) in map(
        floor, PROJECT["dependencies"]
    )


def test_before_a_commit_ruff_is_the_one_that_make_lint_runs() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    (revision,) = [repo["rev"] for repo in config["repos"] if "ruff" in repo["repo"]]
    assert f"ruff=={revision.removeprefix('v')}" in DECLARED["dependency-groups"]["dev"]


# -- rules of ruff -------------------------------------------------------------------------------


def test_every_ignored_rule_is_selected_and_has_a_reason() -> None:
    for files, code in sorted(IGNORED):
        assert code.startswith(tuple(LINT["select"])), f"{code} is not selected"
        lines = [line for line in TEXT.splitlines() if f'"{code}"' in line and "select" not in line]
        assert lines
        assert all("#" in line for line in lines), f"{code} is ignored in {files} without a reason"


def test_every_ignored_rule_would_be_broken() -> None:
    rules = ",".join(code for _, code in IGNORED)
    check = ("check", "--isolated", "--target-version=py310", "--no-cache", "--exit-zero")
    found = json.loads(run(sys.executable, "-m", "ruff", *check, "--output-format=json", f"--select={rules}"))
    broken = {(Path(each["filename"]).relative_to(ROOT).as_posix(), each["code"]) for each in found}
    unused = [
        (files, code)
        for files, code in sorted(IGNORED)
        if not any(fnmatch(path, files) and rule.startswith(code) for path, rule in broken)
    ]
    assert unused == []


# -- workflows -----------------------------------------------------------------------------------


def test_every_declared_python_is_tested() -> None:
    prefix = "Programming Language :: Python :: "
    versions = [
        name.removeprefix(prefix) for name in PROJECT["classifiers"] if name.startswith(f"{prefix}3.")
    ]
    assert workflow("ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == versions
    assert PROJECT["requires-python"] == f">={versions[0]}"


@pytest.mark.parametrize("name", ["ci.yml", "release.yml"])
def test_a_workflow_calls_targets_that_exist(name: str) -> None:
    steps = [step for job in workflow(name)["jobs"].values() for step in job["steps"]]
    called = {step["run"].split()[1] for step in steps if step.get("run", "").startswith("make ")}
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert called
    assert called <= set(phony.split())


def test_the_actions_and_the_hook_are_named_in_the_version_that_this_is_or_will_be() -> None:
    released = __version__.partition(".dev")[0]
    starter = (ROOT / "examples" / "starter" / "github.yml").read_text("utf-8")
    for action in ("", "/comment"):
        assert f"uses: pytest-kebab-eval/pytest-kebab-eval{action}@v{released}\n" in starter
    assert f"    rev: v{released}\n" in (ROOT / "docs" / "ci.md").read_text("utf-8")


def test_the_version_is_in_the_changelog_unless_it_is_to_come() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert (f"\n## [{__version__}] - " in changelog) != (".dev" in __version__)


CHANGELOG = """
## [Unreleased]

## [1.2.0] - 2026-11-18

- It is there.

## [1.1.0] - 2026-11-01

[Unreleased]: https://example/compare/v1.2.0...HEAD
[1.2.0]: https://example/releases/tag/v1.2.0
"""


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, None),
        ({"version": "1.2.0.dev0"}, "__version__ is 1.2.0.dev0; leave .dev out"),
        ({"tags": ["v1.1.0"]}, "the commit has no tag v1.2.0"),
        ({"changed": ["M README.md"]}, "there are uncommitted changes: M README.md"),
        (
            {"changelog": CHANGELOG.replace("2026-11-18", "soon")},
            "CHANGELOG.md says nothing under '## [1.2.0]",
        ),
        (
            {"changelog": CHANGELOG.replace("- It is there.", "")},
            "CHANGELOG.md says nothing under '## [1.2.0]",
        ),
        ({"changelog": CHANGELOG.replace("ed]\n", "ed]\n\n- More.\n", 1)}, "has changes under [Unreleased]"),
        ({"changelog": CHANGELOG.replace("v1.2.0...", "v1.1.0...")}, "the links at the end of CHANGELOG.md"),
    ],
)
def test_a_release_is_refused_with_what_is_missing(given: dict[str, Any], problem: str | None) -> None:
    release = runpy.run_path(str(ROOT / ".ci" / "release.py"))
    tree = {"version": "1.2.0", "changelog": CHANGELOG, "tags": ["v1.2.0"], "changed": []} | given
    found = list(release["problems"](**tree))
    assert found == [] if problem is None else problem in found[0]


# -- sdist and wheel -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist and the wheel."""
    directory = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", str(directory))
    return directory


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone: no list of the files there should be")
def test_the_sdist_has_every_file_of_the_repository(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        packed = {name.partition("/")[2] for name in sdist.getnames()}
    files = run("git", "ls-files", "-z").split("\0")
    assert {name for name in files if (ROOT / name).is_file()} - packed == set()


def test_the_wheel_has_the_package_two_examples_the_templates_as_modules_and_nothing_else(
    built: Path,
) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    package = {path for path in HOME.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    expected = {path.relative_to(HOME.parent).as_posix() for path in package}
    for example in ("quickstart", "starter"):
        files = (path for path in (ROOT / "examples" / example).iterdir() if path.is_file())
        expected |= {f"{HOME.name}/{example}/{path.name}" for path in files}
    assert expected <= packed
    compiled = COMPILED.relative_to(HOME.parent).as_posix()
    modules = {f"{compiled}/{ModuleLoader.get_module_filename(name)}" for name in templates()}
    assert packed - expected == modules


def templates() -> list[str]:
    """As `html/report.html.jinja`."""
    return [path.relative_to(HOME / "reports").as_posix() for path in HOME.rglob("*.jinja")]


def metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        return opened.read(name).decode()


def test_links_and_images_of_the_readme_hold_on_a_package_index(built: Path) -> None:
    said = metadata(next(built.glob("*.whl")))
    files = f"https://github.com/pytest-kebab-eval/pytest-kebab-eval/blob/v{__version__}/"
    images = f"https://raw.githubusercontent.com/pytest-kebab-eval/pytest-kebab-eval/v{__version__}/"
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]+)\)", said)
    assert ("!", f"{images}docs/report-light.png") in links
    assert ("", f"{files}docs/ci.md") in links
    for is_image, link in links:
        start = images if is_image else files
        if not link.startswith("https://") or link.startswith(start):
            assert (ROOT / link.removeprefix(start).partition("#")[0]).is_file(), link


def test_without_git_the_wheel_says_the_same_of_itself(built: Path, tmp_path: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist"))
    subprocess.run(build, cwd=unpacked, capture_output=True, check=True)
    wheels = [next(directory.glob("*.whl")) for directory in (built, tmp_path / "dist")]
    assert wheels[0].name == wheels[1].name
    assert metadata(wheels[0]) == metadata(wheels[1])


def test_the_distribution_has_a_command_of_its_own_name() -> None:
    """By which `uvx pytest-kebab-eval` and `pipx run pytest-kebab-eval` need no second name."""
    assert PROJECT["scripts"][PROJECT["name"]] == PROJECT["scripts"]["kebab-eval"]


def test_the_module_can_be_run_as_the_command() -> None:
    said = run(sys.executable, "-m", HOME.name, "--version")
    assert said == f"kebab-eval, version {__version__}\n"
