"""What must hold before a version is published; `make release` calls both, and uploads nothing.

python .ci/release.py check     the version, its tag, the changelog and the working tree
python .ci/release.py try       the wheel in dist, in a new environment: the commands and the demo
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def problems(version: str, changelog: str, tags: list[str], changed: list[str]) -> Iterator[str]:
    """Why this tree is not to be published as that version; `tags` are those of the commit."""
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        yield f"__version__ is {version}; leave .dev out, and commit that"
    if f"v{version}" not in tags:
        yield f"the commit has no tag v{version}: git tag v{version}"
    if changed:
        yield f"there are uncommitted changes: {', '.join(changed)}"
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n"
    entry = re.search(rf"{heading}(.*?)^(?:## )?\[", changelog, re.MULTILINE | re.DOTALL)
    if not entry or not entry[1].strip():
        yield f"CHANGELOG.md says nothing under '## [{version}] - YYYY-MM-DD'"
    unreleased = re.search(r"^## \[Unreleased\]\n(.*?)^## ", changelog, re.MULTILINE | re.DOTALL)
    if not unreleased or unreleased[1].strip():
        yield f"CHANGELOG.md has changes under [Unreleased]; they belong to {version}"
    if f"/compare/v{version}...HEAD" not in changelog or f"\n[{version}]: " not in changelog:
        yield f"the links at the end of CHANGELOG.md are not those of {version}"


def version_of_tree() -> str:
    """What `__version__` says."""
    source = (ROOT / "pytest_kebab_eval" / "__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "(.+?)"', source, re.MULTILINE)
    return str(version)


def check() -> int:
    """Print what is wrong; 1 if anything is."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    tags = _lines("git", "tag", "--points-at", "HEAD")
    changed = _lines("git", "status", "--porcelain")
    found = list(problems(version_of_tree(), changelog, tags, changed))
    sys.stdout.writelines(f"not to be released: {problem}\n" for problem in found)
    return 1 if found else 0


def try_wheel() -> int:
    """Install the wheel into a new environment, and have it catch the regressions of the demo."""
    version = version_of_tree()
    (wheel,) = (ROOT / "dist").glob(f"pytest_kebab_eval-{version}-*.whl")
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        venv.create(home / "venv", with_pip=True)
        programs = home / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        python = str(programs / "python")
        _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel), cwd=home)
        scripts = ([str(programs / name)] for name in ("kebab-eval", "pytest-kebab-eval"))
        for command in (*scripts, [python, "-m", "pytest_kebab_eval"]):
            said = _run(*command, "--version", cwd=home)
            if said.split()[-1] != version:
                raise SystemExit(f"{' '.join(command)} --version says {said}, and not {version}")
        said = _run(str(programs / "kebab-eval"), "demo", "demo", cwd=home)
        if "2 of 7 queries failed" not in said:
            raise SystemExit(f"the demo did not catch its regressions:\n{said}")
    sys.stdout.write(f"{wheel.name} installs, says its version and catches the regressions of the demo\n")
    return 0


def _lines(*command: str) -> list[str]:
    return [line.strip() for line in _run(*command, cwd=ROOT).splitlines()]


def _run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603  our own
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit({"check": check, "try": try_wheel}[sys.argv[1]]())
