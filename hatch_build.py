"""Makes the README what a package index can show, and compiles the templates of reports for the wheel."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "https://github.com/pytest-kebab-eval/pytest-kebab-eval"
RAW = "https://raw.githubusercontent.com/pytest-kebab-eval/pytest-kebab-eval"
_DARK = re.compile(r"^!\[[^]]*\]\([^)]*#gh-dark-mode-only\)\n", re.MULTILINE)
_LINK = re.compile(r"(!?)(\[[^]]*\])\((?!https?://|#)([^)#]+)(#[^)]*)?\)")


def with_absolute_links(text: str, version: str) -> str:
    """Markdown whose relative links and images are those of that version; of two images, the light one."""

    def absolute(match: re.Match[str]) -> str:
        is_image, label, path, anchor = match.groups()
        start = f"{RAW}/v{version}" if is_image else f"{REPOSITORY}/blob/v{version}"
        return f"{is_image}{label}({start}/{path}{'' if is_image else anchor or ''})"

    return _LINK.sub(absolute, _DARK.sub("", text))


class ReadmeHook(MetadataHookInterface):
    """Called by hatchling when it builds."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        source = (root / "pytest_kebab_eval" / "__init__.py").read_text(encoding="utf-8")
        (version,) = re.findall(r'^__version__ = "(.+?)"', source, re.MULTILINE)
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(text, version),
        }


class TemplatesHook(BuildHookInterface[Any]):
    """Puts the templates into the wheel as Python modules, too; a checkout goes without."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from pytest_kebab_eval.reports.templates import COMPILED

        self._directory = TemporaryDirectory()  # deleted when the build is over
        compile_templates(Path(self._directory.name))
        build_data["force_include"][self._directory.name] = str(COMPILED.relative_to(self.root))


def compile_templates(directory: Path) -> None:
    """Write every template as a module, with the options of the environment that renders it."""
    from jinja2 import nodes

    from pytest_kebab_eval.reports.templates import make_environment

    def at_run_time(*args: object) -> str:
        raise NotImplementedError  # so that Jinja2 computes nothing in advance

    text = make_environment(autoescape=False, keep_trailing_newline=True)
    page = make_environment(autoescape=True, finalize=at_run_time)
    for name in text.list_templates(extensions=["jinja"]):
        environment = text if name.endswith(".md.jinja") else page
        source = environment.loader.get_source(environment, name)[0]
        used = {node.name for node in environment.parse(source).find_all(nodes.Filter)}
        environment.filters.update(dict.fromkeys(used - environment.filters.keys(), at_run_time))
        environment.compile_templates(directory, filter_func=name.__eq__, zip=None, ignore_errors=False)
